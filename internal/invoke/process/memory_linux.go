package process

import (
	"os"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

// fieldKB reads a field of a file of a process in /proc that is in kB; ok is false if
// it cannot be read.
func fieldKB(pid int, file, field string) (kB int64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(text), "\n"+field+":")
	if !ok {
		return 0, false
	}
	rest, _, _ = strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
	return n, err == nil
}

// treeKB is the memory of a process and its descendants, in kB. Shared memory counts once.
func treeKB(pid int) (sum int64) {
	for _, p := range append([]int{pid}, sandbox.Descendants(pid)...) {
		kB, ok := fieldKB(p, "smaps_rollup", "Pss")
		if !ok { // another user's, or an old kernel
			kB, _ = fieldKB(p, "status", "VmRSS")
		}
		sum += kB
	}
	return sum
}

// peakKB is the most that a process had in memory, in kB.
func peakKB(pid int) int64 {
	kB, _ := fieldKB(pid, "status", "VmHWM")
	return kB
}
