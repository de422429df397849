package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux that
// Go runs on.
const tick = 10 * time.Millisecond

// usage is what has been spent since the start of each process.
type usage struct {
	at      time.Time
	server  time.Duration // user and system time of the server and its children
	client  time.Duration // of this process
	machine time.Duration // of everything on the machine
}

// readUsage takes all figures at one time. Pid 0 is a server that can't be seen.
func readUsage(pid int) usage {
	u := usage{at: time.Now()}
	for _, p := range family(pid) {
		u.server += spent(p)
	}
	var self syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &self) == nil {
		u.client = time.Duration(self.Utime.Nano() + self.Stime.Nano())
	}
	stat, _ := os.ReadFile("/proc/stat")
	u.machine = machineTime(stat)
	return u
}

// family is a process and its living descendants.
func family(pid int) []int {
	if pid == 0 {
		return nil
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ { // grows as it goes
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", all[i]))
		for _, task := range tasks {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", all[i], task.Name()))
			for field := range strings.FieldsSeq(string(children)) {
				if child, err := strconv.Atoi(field); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}

// spent is the user and system time of a process and of the children that it
// has waited for. Summed over a family it never falls: what a child has spent
// passes to its parent.
func spent(pid int) time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	own, children := statTimes(stat)
	if exact, ok := processClock(pid); ok {
		own = exact // the same sum, without the ticks
	}
	return own + children
}

// statTimes reads a /proc/PID/stat: user and system time of the process, and
// of the children that it has waited for.
func statTimes(stat []byte) (own, children time.Duration) {
	end := bytes.LastIndexByte(stat, ')') // the name before may hold anything
	if end < 0 {
		return 0, 0
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 15 {
		return 0, 0
	}
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return time.Duration(n) * tick
	}
	return ticks(11) + ticks(12), ticks(13) + ticks(14) // utime, stime, cutime, cstime
}

// processClock reads the clock of another process' CPU time, in nanoseconds
// (clock_getcpuclockid(3): the clock's number is made of the process').
func processClock(pid int) (time.Duration, bool) {
	const allThreads = 2
	clock := ^pid<<3 | allThreads
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), errno == 0
}

// machineTime reads the first line of /proc/stat: all time that is not idle,
// waiting for I/O, or counted twice (guests are in user time).
func machineTime(stat []byte) time.Duration {
	line, _, _ := strings.Cut(string(stat), "\n")
	var sum time.Duration
	for i, field := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64)
		sum += time.Duration(n) * tick
	}
	return sum
}

// memory is a server's resident memory in MB (10^6 bytes): now, and at most
// since resetPeak. Of what it started, it is what is there now, and what several
// processes share counts once.
func memory(pid int) (now, peak float64) {
	all := family(pid)
	for i, p := range all {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
		rss, most := statusKiB(status, "VmRSS:"), 0.0
		if i == 0 {
			most = statusKiB(status, "VmHWM:")
		}
		if rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p)); err == nil && len(all) > 1 {
			rss = statusKiB(rollup, "Pss:")
		}
		now += rss
		peak += max(most, rss)
	}
	return now * 1024 / 1e6, peak * 1024 / 1e6
}

// writtenBy is what a process and its living descendants have given to the disk since their
// start, in bytes.
func writtenBy(pid int) (bytes uint64) {
	for _, p := range family(pid) {
		io, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", p))
		for line := range strings.Lines(string(io)) {
			if value, ok := strings.CutPrefix(line, "write_bytes:"); ok {
				n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
				bytes += n
			}
		}
	}
	return bytes
}

// flushesBelow counts the flushes of the disk that a directory is on, whoever asked for
// them; 0: it is on none that counts.
func flushesBelow(dir string) uint64 {
	const flushes = 15 // the field of Documentation/block/stat.rst
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	device := info.Sys().(*syscall.Stat_t).Dev
	at := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(device), unix.Minor(device))
	if _, err := os.Stat(at + "/partition"); err == nil {
		at += "/.." // partitions are not counted apart
	}
	stat, _ := os.ReadFile(at + "/stat")
	fields := strings.Fields(string(stat))
	if len(fields) <= flushes {
		return 0
	}
	n, _ := strconv.ParseUint(fields[flushes], 10, 64)
	return n
}

func statusKiB(status []byte, key string) float64 {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return n
		}
	}
	return 0
}

// resetPeak lets the peak of resident memory start over, where that is allowed.
func resetPeak(pid int) {
	for _, p := range family(pid) {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p), []byte("5"), 0o600)
	}
}

// forget drops the files below dir from the page cache, as far as they are on
// disk, so that what is read next comes from there.
func forget(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreMissing(err)
		}
		file, err := os.Open(path)
		if err != nil {
			return ignoreMissing(err)
		}
		err = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
		return errors.Join(err, file.Close())
	})
}

// detach puts a server into a process group of its own, so that an interrupt
// in the terminal reaches the benchmark first, and lets it end with this process.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// machineFacts describes the processor, memory and kernel in a line.
func machineFacts() string {
	cpu := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	meminfo, _ := os.ReadFile("/proc/meminfo")
	memory := fmt.Sprintf("%.0f GB", statusKiB(meminfo, "MemTotal:")*1024/1e9)
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kernel := strings.TrimSpace(string(release))
	return fmt.Sprintf("%s, %s memory, Linux %s", cpu, memory, kernel)
}
