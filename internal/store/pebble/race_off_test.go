//go:build !race

package pebble_test

// unraced is a size that is smaller under the race detector.
func unraced(usual, _ int) int { return usual }
