// Package caller identifies the caller of a request, as authenticated, for policies, answers
// and logs.
package caller

import "time"

// Kind is the kind of a Caller.
type Kind uint8

// The kinds.
const (
	Anonymous Kind = iota // not signed
	Root                  // the root of an account
	User                  // an IAM user
	Session               // of a role that was assumed
	Federated             // of a user's federation token
	Service               // a service in its own name, for example sns.amazonaws.com
)

// Caller is the caller of a request. It is immutable, and may be shared. The zero value is
// Anonymous.
type Caller struct {
	Kind    Kind
	Account string // 12 digits; empty for Anonymous and Service
	// ARN is the ARN in answers and errors: for a session the sts ARN with the session's
	// name.
	ARN string
	// ID is the unique id, aws:userid: for a session the role's id, a colon and the session's
	// name; for root the account.
	ID   string
	Name string // of the user, or of the session
	// Role is the ARN of a session's role, which has its policies and is aws:PrincipalArn;
	// RoleID is that role's unique id.
	Role, RoleID string
	// User is the creator of a federation token: the unique id of a user, or the account for
	// its root.
	User string
	// Services are the names of a Service, for example "sns.amazonaws.com" and its regional
	// form.
	Services []string

	AccessKey string // empty for Anonymous and Service
	// Tags are aws:PrincipalTag: those of the user or role, and of the session.
	Tags map[string]string
	// Transitive are the keys of the session's tags that the session of a further role inherits.
	Transitive []string
	// Issued is the creation time of a session's credentials; zero for long-term keys.
	Issued time.Time
	// Provider is the identity provider of a session by web identity; else empty.
	Provider string
	// Claims are the condition keys of the provider's claims, for example
	// "accounts.google.com:sub", in lower case.
	Claims map[string][]string
	// SourceIdentity is the source identity of a session, set by the first session of its
	// chain; else empty.
	SourceIdentity string
	// Policies are a session's policy documents, inline and managed, which limit its
	// permissions; Capped says that there are any, because deleted documents count, too.
	Policies []string
	Capped   bool
}

// PolicyARN is the caller's ARN in policies: for a session that of its role.
func (c *Caller) PolicyARN() string {
	if c.Kind == Session {
		return c.Role
	}
	return c.ARN
}

// WithoutKey is the caller as records keep it, for what acts in its name later; nil if c is.
func (c *Caller) WithoutKey() *Caller {
	if c == nil {
		return nil
	}
	kept := *c
	kept.AccessKey = ""
	return &kept
}
