package api

// Principals replaces the users and roles in resource policies by their unique ids. A new
// user or role with the name of a deleted one has none of its permissions.
type Principals interface {
	// BindPolicy replaces the ARNs of users, roles and role sessions in a policy by unique
	// ids. unknown is a principal that does not exist, if that has to be refused; else empty.
	BindPolicy(document string) (bound, unknown string)
	// ShowPolicy is the inverse; a deleted principal stays a unique id.
	ShowPolicy(document string) string
	// BindPrincipal and ShowPrincipal do the same for one name. known is false for a
	// principal that does not exist, if that has to be refused.
	BindPrincipal(name string) (id string, known bool)
	ShowPrincipal(id string) string
}

// Unbound are the Principals of a server without identities: names stay unchanged.
type Unbound struct{}

// BindPolicy implements Principals.
func (Unbound) BindPolicy(document string) (bound, unknown string) { return document, "" }

// ShowPolicy implements Principals.
func (Unbound) ShowPolicy(document string) string { return document }

// BindPrincipal implements Principals.
func (Unbound) BindPrincipal(name string) (id string, known bool) { return name, true }

// ShowPrincipal implements Principals.
func (Unbound) ShowPrincipal(id string) string { return id }
