package limit

// Bounds of the default for bytes in flight, which is an eighth of the memory.
const (
	minBytes = 32 << 20
	maxBytes = 256 << 20
)

// DefaultBytes is how many bytes requests may hold at once in a process that may use so
// much memory; 0: that is not known.
func DefaultBytes(memory int64) int64 {
	if memory <= 0 {
		return maxBytes
	}
	return min(max(memory/8, minBytes), maxBytes)
}
