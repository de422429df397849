// Package authorize decides who may do what: one place for requests of clients and for
// what the services do among themselves. What an operation needs to be allowed is
// declared beside it as a [Need]; how policies are evaluated is package policy's.
package authorize

// Need is an action that a request does on a resource.
type Need struct {
	Action   string // as policies name it: "sqs:SendMessage"
	Resource string // an ARN; "*" for what is about no resource
	// Named is what a denial names, where the request names something else and the denial may not
	// tell what that leads to; empty: Resource.
	Named string
	// Account owns the resource; empty: the caller's.
	Account string
	// Shared says that the resource's policy can let other accounts do it, and its own
	// account's callers. Else only the caller's own policies count.
	Shared bool
	// Must says that the resource's policy has to allow it, to its own account too, as a
	// role's trust policy has.
	Must bool
	// Tags are those that the request would set, TagKeys also those that it would take
	// away.
	Tags    map[string]string
	TagKeys []string
	Keys    []Key // those of the action
	// Inside says that the operation asks for the action itself, once it has found the
	// resource: Resource is empty.
	Inside bool
	// Absent is what another account is answered instead of a denial, where the resource is
	// not there for those who may not use it; nil: the denial.
	Absent error
}

// Key is a condition key and its values. The name is in lower case.
type Key struct {
	Name   string
	Values []string
}
