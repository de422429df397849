// Package authorize decides whether a caller may do an action: for requests of clients and
// for those between services. The permissions of an operation are declared next to it as
// [Need]s; package policy evaluates policies.
package authorize

// Need is an action on a resource that a request requires.
type Need struct {
	Action   string // as in policies: "sqs:SendMessage"
	Resource string // an ARN; "*" for no particular resource
	// Named replaces Resource in a denial, if the request has another name and must not learn
	// the resource; empty: Resource.
	Named string
	// Account is the resource's account; empty: the caller's.
	Account string
	// Shared says that the resource's policy can allow the action, to callers of other
	// accounts and of its own. Otherwise only the caller's policies can.
	Shared bool
	// Must says that the resource's policy must allow the action, also to its own account,
	// like a role's trust policy.
	Must bool
	// Tags are the tags that the request sets, TagKeys also those that it removes.
	Tags    map[string]string
	TagKeys []string
	Keys    []Key // of the action
	// Inside says that the operation itself checks the action, once it has found the
	// resource: Resource is empty.
	Inside bool
	// Absent replaces the denial for another account, if the resource must look absent to
	// those without permission; nil: the denial.
	Absent error
}

// Key is a condition key and its values. The name is in lower case.
type Key struct {
	Name   string
	Values []string
}
