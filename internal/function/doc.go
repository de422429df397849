// Package function is the catalog of Lambda functions: all those of one shard,
// with their versions, aliases and permissions.
//
// It is pure. A command takes the time and everything random (incarnations,
// revisions, the draw that picks a version) as input, checks all of it, and only
// then changes the state and appends the same change to a mutation.Batch; a
// command that fails has changed nothing. Loading the records that the mutations
// leave behind gives the same state again. A State belongs to one goroutine.
//
// Code is not kept here: a version names the upload that holds it.
//
// What is created or updated is not ready at once: the change is complete at a moment
// that the command names, by the command CompleteChanges. Until then the version before it
// serves.
package function
