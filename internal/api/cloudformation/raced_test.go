//go:build race

package cloudformation

// mostAllocated is what judging a template may allocate, in bytes: under the race detector, which
// has pools forget what they hold, several times as much.
const mostAllocated = 2 << 30
