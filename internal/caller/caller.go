// Package caller says who makes a request: as authentication has found it out, and as
// policies, answers and logs name it.
package caller

import "time"

// Kind is the kind of a Caller.
type Kind uint8

// The kinds.
const (
	Anonymous Kind = iota // nothing was signed
	Root                  // the root of an account
	User                  // an IAM user
	Session               // of a role that was assumed
	Federated             // of a user's federation token
	Service               // a service that acts on its own account, as sns.amazonaws.com
)

// Caller is who makes a request. It does not change once it is made, and may be
// shared. The zero value is Anonymous.
type Caller struct {
	Kind    Kind
	Account string // 12 digits; empty for Anonymous and Service
	// ARN is what answers and refusals show: of a session the sts ARN, which holds the
	// session's name.
	ARN string
	// ID is the unique id, as aws:userid has it: of a session the role's id, a colon and
	// the session's name; of root the account.
	ID   string
	Name string // of the user, or of the session
	// Role is the ARN of a session's role, which is what its policies and
	// aws:PrincipalArn are about; RoleID is that role's unique id.
	Role, RoleID string
	// User is who has made a federation token: the unique id of a user, or the account for its
	// root.
	User string
	// Services are the names of a Service, as "sns.amazonaws.com" and its regional form.
	Services []string

	AccessKey string // empty for Anonymous and Service
	// Tags are aws:PrincipalTag: those of the user, or of the role and the session.
	Tags map[string]string
	// Issued is when a session's credentials were made; zero for long-term keys.
	Issued time.Time
	// Provider is the identity provider of a session by web identity; else empty.
	Provider string
	// Claims are the condition keys of what that provider said, as "accounts.google.com:sub",
	// in lower case.
	Claims map[string][]string
	// SourceIdentity is who is behind a session, as that was said when the first of its
	// chain began; else empty.
	SourceIdentity string
	// Policies are a session's policy documents, inline and managed, that cap what it
	// may; Capped reports that there are any, as documents that were since deleted count.
	Policies []string
	Capped   bool
}

// PolicyARN is the ARN that policies know the caller by: of a session that of its role.
func (c *Caller) PolicyARN() string {
	if c.Kind == Session {
		return c.Role
	}
	return c.ARN
}
