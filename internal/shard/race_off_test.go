//go:build !race

package shard

// unraced is how much of a test to run: less under the race detector, with
// which Pebble checks itself so thoroughly that it takes twenty times as long.
func unraced(usual, _ int) int { return usual }
