package limit

// Bounds of the default for bytes in flight, which is an eighth of the memory.
const (
	minBytes = 32 << 20
	maxBytes = 256 << 20
)

// DefaultBytes is the default of the bytes that requests may hold at once, for a process with
// this much memory; 0: unknown.
func DefaultBytes(memory int64) int64 {
	if memory <= 0 {
		return maxBytes
	}
	return min(max(memory/8, minBytes), maxBytes)
}
