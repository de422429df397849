package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// initMB is what the sandbox's own process may need beside the function.
const initMB = 24

// period is how long a function's share of the processors is counted for, in
// microseconds: AWS's.
const period = 20_000

// controlGroups makes control groups for functions. The zero value makes none.
type controlGroups struct {
	memory    hierarchy
	processor hierarchy // without one: processor time is not limited
}

// hierarchy is a directory for control groups of a controller. With version 2 of control
// groups, one hierarchy has all controllers.
type hierarchy struct {
	dir string // empty: no groups can be made
	v2  bool
}

// kernel has the kernel's files on control groups.
type kernel struct{ groups, mounts string }

// thisKernel describes this process.
var thisKernel = kernel{groups: "/proc/self/cgroup", mounts: "/proc/self/mounts"}

// findControlGroups finds directories where this process may make groups that limit memory
// and, if requested, processor time.
func findControlGroups(k kernel, processor bool) (g controlGroups) {
	g.memory = k.find("memory", memoryFile)
	if processor {
		g.processor = k.find("cpu", processorFile)
	}
	return g
}

// memoryFile and processorFile name the files with a group's limits.
func memoryFile(v2 bool) string {
	if v2 {
		return "memory.max"
	}
	return "memory.limit_in_bytes"
}

func processorFile(v2 bool) string {
	if v2 {
		return "cpu.max"
	}
	return "cpu.cfs_quota_us"
}

// find looks for the hierarchy of a controller.
func (k kernel) find(controller string, file func(v2 bool) string) hierarchy {
	text, err := os.ReadFile(k.groups)
	if err != nil {
		return hierarchy{}
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var dirs []string
		h := hierarchy{v2: parts[1] == ""}
		switch {
		case h.v2:
			for _, mount := range k.mountsOf("cgroup2", "") {
				dirs = append(dirs, filepath.Join(mount, parts[2]))
			}
			for _, dir := range dirs { // whose subgroup this process was put into
				if above := filepath.Dir(dir); delegated(above) {
					dirs = append(dirs, above)
				}
			}
		case contains(parts[1], controller):
			for _, mount := range k.mountsOf("cgroup", controller) {
				dirs = append(dirs, filepath.Join(mount, parts[2]))
			}
		}
		for _, h.dir = range dirs {
			if h.usable(controller, file(h.v2)) {
				h.clean()
				return h
			}
		}
	}
	return hierarchy{}
}

// delegated reports whether systemd has delegated a group to its service.
func delegated(dir string) bool {
	var mark [1]byte
	n, err := unix.Getxattr(dir, "user.delegate", mark[:])
	return err == nil && n == 1 && mark[0] == '1'
}

func contains(list, one string) bool { return slices.Contains(strings.Split(list, ","), one) }

// mountsOf are the places where hierarchies of a kind are mounted.
func (k kernel) mountsOf(kind, option string) (mounts []string) {
	text, err := os.ReadFile(k.mounts)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 4 && fields[2] == kind && (option == "" || contains(fields[3], option)) {
			mounts = append(mounts, fields[1])
		}
	}
	return mounts
}

const groupPrefix = "godwit-"

// usable tries to make a group with a given file.
func (h hierarchy) usable(controller, file string) bool {
	if h.v2 { // refused without permission, or if the group has processes
		_ = os.WriteFile(filepath.Join(h.dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	dir, err := h.make()
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_CREATE, 0o600) // the kernel does not create files
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// make makes a group, named by its owner.
func (h hierarchy) make() (string, error) {
	return os.MkdirTemp(h.dir, groupPrefix+strconv.Itoa(os.Getpid())+"-")
}

// clean removes the groups of killed servers.
func (h hierarchy) clean() {
	left, _ := filepath.Glob(filepath.Join(h.dir, groupPrefix+"*"))
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			_ = os.Remove(dir)
		}
	}
}

// group is the control groups of a process.
type group struct {
	dirs   []string
	memory bool // the first group limits its memory
	v2     bool // the first is of version 2
}

// make makes the groups of a function with so much memory, to which the kernel adds the
// content of /tmp, up to its size.
func (g controlGroups) make(megabytes, tmpMB int) (made group, err error) {
	defer func() {
		if err != nil {
			made.remove()
			err = fmt.Errorf("making a control group: %w", err)
		}
	}()
	if g.memory.dir != "" {
		limit := strconv.Itoa((megabytes + initMB + tmpMB) << 20)
		dir, err := made.add(g.memory, memoryFile(g.memory.v2), limit)
		if err != nil {
			return made, err
		}
		// Not every kernel counts swap. Version 1 limits it together with memory.
		swap := "memory.memsw.limit_in_bytes"
		if g.memory.v2 {
			swap, limit = "memory.swap.max", "0"
		}
		_ = write(dir, swap, limit)
		made.memory, made.v2 = true, g.memory.v2
	}
	if g.processor.dir == "" {
		return made, nil
	}
	quota := strconv.Itoa(max(1000, megabytes*period/memoryOfProcessor)) // the kernel's minimum
	if g.processor.v2 {
		quota += " " + strconv.Itoa(period)
		if made.memory && g.memory == g.processor { // one group for both
			return made, write(made.dirs[0], processorFile(true), quota)
		}
		_, err = made.add(g.processor, processorFile(true), quota)
		return made, err
	}
	dir, err := made.add(g.processor, "cpu.cfs_period_us", strconv.Itoa(period))
	if err != nil {
		return made, err
	}
	return made, write(dir, processorFile(false), quota)
}

// add makes one more group, with a file.
func (m *group) add(h hierarchy, file, value string) (dir string, err error) {
	if dir, err = h.make(); err != nil {
		return "", err
	}
	m.dirs = append(m.dirs, dir)
	return dir, write(dir, file, value)
}

func write(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0)
}

// exceeds reports whether the processes of a group use more than the memory limit, without
// the content of /tmp and without memory that the kernel can reclaim, such as cached files.
func (m group) exceeds(megabytes int, tmpKB int64) bool {
	limit := int64(megabytes+initMB) << 20
	all, held, shared := "memory.usage_in_bytes", []string{"total_rss"}, "total_shmem"
	if m.v2 {
		all, held, shared = "memory.current", []string{"anon", "slab_unreclaimable", "kernel_stack", "pagetables"}, "shmem"
	}
	text, err := os.ReadFile(filepath.Join(m.dirs[0], all))
	if err != nil {
		return false // it is being removed
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil || n <= limit {
		return false
	}
	if text, err = os.ReadFile(filepath.Join(m.dirs[0], "memory.stat")); err != nil {
		return false
	}
	sum := int64(0)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case name == shared:
			sum += max(0, n-tmpKB<<10)
		case slices.Contains(held, name):
			sum += n
		}
	}
	return sum > limit
}

// remove removes the groups, which must not have processes.
func (m group) remove() {
	for _, dir := range m.dirs {
		_ = os.Remove(dir)
	}
}
