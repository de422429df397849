// Package function is the catalog of Lambda functions: all functions of one shard, with their
// versions, aliases and permissions.
//
// It is pure. A command has the time and all random values (incarnations, revisions, the draw
// that picks a version) as input, checks everything, and only then changes the state and
// appends the same change to a mutation.Batch; a command that fails changes nothing. Loading
// the written records gives the same state again. A State is not safe for concurrent use.
//
// Code is stored elsewhere: a version has the id of its upload.
//
// A creation or update is not complete at once: it has a completion time, at which
// CompleteChanges completes it. Until then the previous version is invoked.
package function
