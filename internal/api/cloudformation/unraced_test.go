//go:build !race

package cloudformation

// mostAllocated is what judging a template may allocate, in bytes.
const mostAllocated = 256 << 20
