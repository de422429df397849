package keys

import (
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/policy"
)

// ErrDenied refuses what neither the key's policy nor a grant allows.
var ErrDenied = fault.NewRule(fault.KMSAccessDenied, "keys: nothing allows it") // caller, action, key, action

// Access is a use of a key that has to be allowed.
type Access struct {
	Operation string // "Decrypt"
	Caller    *caller.Caller
	// Via is the service that acts for the caller, as "sqs.us-east-1.amazonaws.com";
	// empty: the caller itself asks.
	Via     string
	Context map[string]string // the encryption context
	// Source is the ARN of what a service acts for, as a topic, and SourceAccount its
	// account; empty for others.
	Source, SourceAccount string
	// Grant is the grant that is to be made, of CreateGrant: another grant allows no more
	// than it has itself. Else nil.
	Grant *kms.Grant
}

// Decider decides an access; granted says that a grant allows it. A refusal is an error.
type Decider func(k *kms.Key, a *Access, granted bool) error

// Decide has d decide from now on, in place of Allow's own rule. It is called before
// anything is asked.
func (m *Module) Decide(d Decider) { m.decides = d }

// Allow refuses an access with ErrDenied unless it is allowed. Where nothing is enforced,
// who calls in the key's account may do everything there; of others, and of services on
// their own account, the key's policy decides, or a grant.
func (m *Module) Allow(k *kms.Key, a *Access) error {
	granted := m.granted(k, a)
	if m.decides != nil {
		return m.decides(k, a, granted)
	}
	if granted || a.Caller.Kind != caller.Service && a.Caller.Account == k.Account {
		return nil
	}
	p, err := policy.ParseLoose(k.Policy)
	if err != nil || p.Evaluate(&policy.Request{
		Caller: a.Caller, Owner: k.Account, Action: "kms:" + a.Operation, Resource: k.ARN().String(), Context: &asked{k, a},
	}) != policy.Allow {
		return m.denied(k, a)
	}
	return nil
}

func (m *Module) denied(k *kms.Key, a *Access) error {
	who := a.Caller.ARN
	if a.Caller.Kind == caller.Service {
		who = strings.Join(a.Caller.Services, ", ")
	}
	return ErrDenied.With(who, "kms:"+a.Operation, k.ARN().String(), "kms:"+a.Operation)
}

// Names are what grants may know a caller by: its unique id and its role's, and their
// ARNs where those were not known when the grant was made.
func Names(c *caller.Caller) []string {
	names := slices.Clone(c.Services)
	for _, name := range [...]string{c.ID, c.RoleID, c.ARN, c.Role} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// granted reports whether a grant allows an access.
func (m *Module) granted(k *kms.Key, a *Access) (granted bool) {
	principals := Names(a.Caller)
	_ = m.run(func() error {
		for _, g := range m.grants[k.ID] {
			granted = granted || g.Allows(principals, a.Operation, a.Context) && (a.Grant == nil || g.Covers(a.Grant))
		}
		return nil
	})
	return granted
}

// asked is what a key's policy can ask about an access.
type asked struct {
	key    *kms.Key
	access *Access
}

// Values implements policy.Context.
func (c *asked) Values(key string) []string {
	a := c.access
	switch key {
	case "kms:calleraccount", "aws:principalaccount":
		return one(a.Caller.Account)
	case "aws:sourcearn":
		return one(a.Source)
	case "aws:sourceaccount":
		return one(a.SourceAccount)
	case "kms:viaservice":
		return one(a.Via)
	case "kms:encryptioncontextkeys":
		return slices.Sorted(maps.Keys(a.Context))
	case "kms:keyspec":
		return one(c.key.Spec)
	case "kms:keyusage":
		return one(c.key.Usage)
	case "aws:principalarn":
		return one(a.Caller.PolicyARN())
	case "aws:userid":
		return one(a.Caller.ID)
	case "aws:requestedregion":
		return one(c.key.Region)
	case "aws:resourceaccount":
		return one(c.key.Account)
	case "aws:principalisawsservice":
		if a.Caller.Kind == caller.Service {
			return []string{"true"}
		}
		return []string{"false"}
	case "aws:viaawsservice":
		if a.Via != "" {
			return []string{"true"}
		}
		return []string{"false"}
	}
	if name, ok := strings.CutPrefix(key, "kms:encryptioncontext:"); ok {
		for of, value := range a.Context { // the key is in lower case
			if strings.EqualFold(of, name) {
				return []string{value}
			}
		}
	}
	return nil
}

func one(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
