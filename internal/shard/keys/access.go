package keys

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/policy"
)

// ErrDenied refuses a use that neither the key's policy nor a grant allows.
var ErrDenied = fault.NewRule(fault.KMSAccessDenied, "keys: nothing allows it") // caller, action, key, action

// Access is a use of a key that needs permission.
type Access struct {
	Operation string // "Decrypt"
	Caller    *caller.Caller
	// Address and Transport are those of the caller's request. Via is the service that acts for
	// the caller, as "sqs.us-east-1.amazonaws.com"; empty: the caller itself makes the request.
	Address   string
	Transport authorize.Transport
	Via       string
	Called    string            // the service through which the caller requests an operation of KMS, if any
	Alias     string            // by which the request names the key; else empty
	Context   map[string]string // the encryption context
	// Source is the ARN of the resource for which a service acts, such as a topic, and
	// SourceAccount its account; empty for others.
	Source, SourceAccount string
	// Keys are condition keys of the operation; Tags are the tags that it sets, TagKeys also
	// those that it removes.
	Keys    []authorize.Key
	Tags    map[string]string
	TagKeys []string
	// Grant is the grant to be made by CreateGrant: a grant can allow no more than the one that
	// allows making it. Else nil.
	Grant *kms.Grant
	// Granted says that a grant names the caller for the operation by other means than its
	// operations, as its retiring principal.
	Granted bool
}

// Decider decides by a key's policy (nil: it is unreadable), by whether a grant allows the
// access, and by the conditions that policies can check. A refusal is an error.
type Decider func(own *policy.Policy, granted bool, need *authorize.Need, known *authorize.Context) error

// Decide sets the decider, which replaces the rule of Allow. It must be called before the first
// request.
func (m *Module) Decide(d Decider) { m.decides = d }

// Allow refuses an access with ErrDenied unless it is allowed. If IAM is not enforced, callers
// of the key's account may do everything with it; for other accounts, and for services that act
// on their own account, the key's policy or a grant decides.
func (m *Module) Allow(k *kms.Key, a *Access) error {
	granted, need, known := m.ask(k, a)
	if m.decides == nil && (granted || a.Caller.Kind != caller.Service && a.Caller.Account == k.Account) {
		return nil
	}
	own := m.policyOf(k)
	if m.decides != nil {
		return m.decides(own, granted, &need, &known)
	}
	known.Need = &need
	if own == nil || own.Evaluate(&policy.Request{
		Caller: a.Caller, Owner: k.Account, Action: need.Action, Resource: need.Resource, Context: &known,
	}) != policy.Allow {
		return m.denied(k, a)
	}
	return nil
}

// policyOf is a key's policy, compiled; nil if it is unreadable, and so allows nobody.
func (m *Module) policyOf(k *kms.Key) *policy.Policy {
	if p, ok := m.policies.Get(k.Policy); ok {
		return p
	}
	p, err := policy.ParseLoose(k.Policy)
	if err != nil {
		return nil
	}
	m.policies.Add(k.Policy, p)
	return p
}

func (m *Module) denied(k *kms.Key, a *Access) error {
	who := a.Caller.ARN
	if a.Caller.Kind == caller.Service {
		who = strings.Join(a.Caller.Services, ", ")
	}
	return ErrDenied.With(who, "kms:"+a.Operation, k.ARN().String(), "kms:"+a.Operation)
}

// Names are the names by which grants may identify a caller: its unique id and its role's, and
// their ARNs, as a grant has ARNs of principals that did not exist when it was made.
func Names(c *caller.Caller) []string {
	names := slices.Clone(c.Services)
	for _, name := range [...]string{c.ID, c.RoleID, c.ARN, c.Role} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ask collects the inputs of the decision on an access: whether a grant allows it, and the
// condition keys.
func (m *Module) ask(k *kms.Key, a *Access) (granted bool, need authorize.Need, known authorize.Context) {
	principals := Names(a.Caller)
	granted = a.Granted
	var aliases []string
	_ = m.run(func() error {
		for _, g := range m.grants[k.ID] {
			granted = granted || g.Allows(principals, a.Operation, a.Context) && (a.Grant == nil || g.Covers(a.Grant))
		}
		for id, alias := range m.aliases {
			if alias.Key == k.ID {
				aliases = append(aliases, id.name)
			}
		}
		known.Now = m.shard.Now()
		return nil
	})
	known.Caller, known.Account, known.Region = a.Caller, k.Account, k.Region
	known.Address, known.Transport, known.Via = a.Address, a.Transport, cmp.Or(a.Via, a.Called)
	known.Source, known.Owner = a.Source, a.SourceAccount
	known.TagsOf = func() map[string]string { return k.Tags }
	need = authorize.Need{
		Action: "kms:" + a.Operation, Resource: k.ARN().String(), Account: k.Account, Shared: true, Must: true,
		Tags: a.Tags, TagKeys: a.TagKeys, Keys: slices.Concat(a.Keys, keysOf(k, a, aliases)),
	}
	return granted, need, known
}

// keysOf are the condition keys that every operation on a key has.
func keysOf(k *kms.Key, a *Access, aliases []string) []authorize.Key {
	keys := []authorize.Key{
		{Name: "kms:calleraccount", Values: one(a.Caller.Account)},
		{Name: "kms:viaservice", Values: one(a.Via)},
		{Name: "kms:keyspec", Values: one(k.Spec)},
		{Name: "kms:customermasterkeyspec", Values: one(k.Spec)},
		{Name: "kms:keyusage", Values: one(k.Usage)},
		{Name: "kms:customermasterkeyusage", Values: one(k.Usage)},
		{Name: "kms:keyorigin", Values: one("AWS_KMS")},
		{Name: "kms:multiregion", Values: one("false")},
		{Name: "kms:requestalias", Values: one(a.Alias)},
		{Name: "kms:resourcealiases", Values: aliases},
		{Name: "kms:encryptioncontextkeys", Values: slices.Sorted(maps.Keys(a.Context))},
	}
	begin := len(keys)
	for _, name := range slices.Sorted(maps.Keys(a.Context)) {
		key := authorize.Key{Name: "kms:encryptioncontext:" + strings.ToLower(name), Values: []string{a.Context[name]}}
		// Names that differ in case only are one key, which has the value of each.
		if i := slices.IndexFunc(keys[begin:], func(k authorize.Key) bool { return k.Name == key.Name }); i >= 0 {
			keys[begin+i].Values = append(keys[begin+i].Values, key.Values...)
		} else {
			keys = append(keys, key)
		}
	}
	return keys
}

func one(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
