package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

// keeperMB is what the sandbox's own process may need beside the function.
const keeperMB = 24

// memoryGroups makes control groups that limit memory. The zero value makes none.
type memoryGroups struct {
	dir   string // in which groups are made; empty: none can be
	limit string // name of the file
	swap  string // name of the file that limits memory and swap, or swap alone
	v2    bool
}

// findMemoryGroups looks for a place where this process may make groups.
func findMemoryGroups() memoryGroups {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return memoryGroups{}
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		g := memoryGroups{limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes"}
		var kind, option string
		switch parts[1] {
		case "memory":
			kind, option = "cgroup", "memory"
		case "":
			kind = "cgroup2"
			g = memoryGroups{limit: "memory.max", swap: "memory.swap.max", v2: true}
		default:
			continue
		}
		for _, mount := range cgroupMounts(kind, option) {
			g.dir = filepath.Join(mount, parts[2])
			if g.usable() {
				g.clean()
				return g
			}
		}
	}
	return memoryGroups{}
}

// cgroupMounts are the places where hierarchies of a kind are mounted.
func cgroupMounts(kind, option string) (mounts []string) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[2] != kind {
			continue
		}
		for o := range strings.SplitSeq(fields[3], ",") {
			if option == "" || o == option {
				mounts = append(mounts, fields[1])
				break
			}
		}
	}
	return mounts
}

const groupPrefix = "godwit-"

// usable tries to make a group.
func (g memoryGroups) usable() bool {
	dir, err := os.MkdirTemp(g.dir, groupName())
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	return os.WriteFile(filepath.Join(dir, g.limit), []byte("67108864"), 0) == nil
}

// groupName begins the names of this process's groups.
func groupName() string { return groupPrefix + strconv.Itoa(os.Getpid()) + "-" }

// clean removes the groups of servers that were killed.
func (g memoryGroups) clean() {
	left, _ := filepath.Glob(filepath.Join(g.dir, groupPrefix+"*"))
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			_ = os.Remove(dir)
		}
	}
}

// make makes a group for a function's memory; empty: it cannot be limited so.
func (g memoryGroups) make(megabytes int) (string, error) {
	if g.dir == "" {
		return "", nil
	}
	dir, err := os.MkdirTemp(g.dir, groupName())
	if err != nil {
		return "", fmt.Errorf("making a control group: %w", err)
	}
	limit := strconv.Itoa((megabytes + keeperMB) << 20)
	if err := os.WriteFile(filepath.Join(dir, g.limit), []byte(limit), 0); err != nil {
		return "", errors.Join(fmt.Errorf("limiting memory: %w", err), os.Remove(dir))
	}
	if g.v2 {
		limit = "0"
	}
	_ = os.WriteFile(filepath.Join(dir, g.swap), []byte(limit), 0) // not every kernel counts swap
	return dir, nil
}

// statusKB reads a field of /proc/PID/status that is in kB; 0: the process has
// ended.
func statusKB(pid int, field string) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(text), "\n"+field+":")
	if !ok {
		return 0
	}
	rest, _, _ = strings.Cut(rest, "\n")
	n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
	return n
}

// treeKB is what a process and those below it have in memory, in kB.
func treeKB(pid int) int64 {
	sum := statusKB(pid, "VmRSS")
	for _, child := range sandbox.Descendants(pid) {
		sum += statusKB(child, "VmRSS")
	}
	return sum
}

// peakKB is the most that a process had in memory, in kB.
func peakKB(pid int) int64 { return statusKB(pid, "VmHWM") }
