// Package iam holds the rules of an account's identities: users, groups, roles, managed
// and inline policies, permissions boundaries, access keys, OpenID Connect providers and
// instance profiles; what there may be of them, and what depends on what.
//
// An [Account] is its state. A command looks at everything before it changes anything,
// and brings the time and the ids that it needs. Entities are values that do not change
// once an account has them: a command puts another in their place. Who reads one may
// therefore keep it. What a command has put is noted, so that its caller can write it, or
// take it back with [Account.Revert].
package iam
