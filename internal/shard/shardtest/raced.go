//go:build race

package shardtest

// raced reports whether the race detector watches.
const raced = true
