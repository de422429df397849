package api

// Principals binds the policies of resources to the users and roles that they name, by
// their unique ids: who is created under the name of one that was deleted has nothing of
// what that one was given.
type Principals interface {
	// BindPolicy puts unique ids in the place of the ARNs of users, roles and roles'
	// sessions that a policy names. unknown is a name that nobody has, if that is to be
	// refused; else empty.
	BindPolicy(document string) (bound, unknown string)
	// ShowPolicy is the opposite: who was deleted stays a unique id.
	ShowPolicy(document string) string
	// BindPrincipal and ShowPrincipal are the same for one name. known is false for one
	// that nobody has, if that is to be refused.
	BindPrincipal(name string) (id string, known bool)
	ShowPrincipal(id string) string
}

// Unbound are the Principals of a server that has no identities: names stay.
type Unbound struct{}

// BindPolicy implements Principals.
func (Unbound) BindPolicy(document string) (bound, unknown string) { return document, "" }

// ShowPolicy implements Principals.
func (Unbound) ShowPolicy(document string) string { return document }

// BindPrincipal implements Principals.
func (Unbound) BindPrincipal(name string) (id string, known bool) { return name, true }

// ShowPrincipal implements Principals.
func (Unbound) ShowPrincipal(id string) string { return id }
