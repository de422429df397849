package kernel

// maxNumbersPerMillisecond is more than the ids or sequences that one counter gives in a
// millisecond.
const maxNumbersPerMillisecond = 1 << 18

// Unreached is a number that no counter of ids or sequences that began at 0 can have reached at a
// time in epoch milliseconds. A counter whose latest number a repair has lost goes on behind it.
func Unreached(now int64) uint64 { return uint64(max(now, 0)) * maxNumbersPerMillisecond }
