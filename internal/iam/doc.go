// Package iam has the rules of an account's identities: users, groups, roles, managed and
// inline policies, permissions boundaries, access keys, OpenID Connect providers and instance
// profiles; their quotas and dependencies.
//
// An [Account] is its state. A command checks everything before it changes anything, and has
// the time and the ids as input. Entities of an account are immutable: a command replaces
// them, so that readers may keep them. Changes are recorded, so that the caller can write
// them, or undo them with [Account.Revert].
package iam
