//go:build race

package soak

// raced reports whether the race detector watches.
const raced = true
