package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

// Both versions of control groups, in directories that look like the kernel's.
func TestControlGroups(t *testing.T) {
	const memory, quota = "159383552", "1447" // 152 MiB; 128/1769 of 20 ms
	for name, c := range map[string]struct {
		groups string
		mounts []string // kind, options
		want   []map[string]string
	}{
		"version 2": {
			groups: "0::/service\n", mounts: []string{"cgroup2 rw"},
			want: []map[string]string{{"memory.max": memory, "memory.swap.max": "0", "cpu.max": quota + " 20000"}},
		},
		"version 1": {
			groups: "4:memory:/service\n3:cpu,cpuacct:/service\n0::/\n", mounts: []string{"cgroup rw,memory", "cgroup rw,cpu,cpuacct"},
			want: []map[string]string{
				{"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
				{"cpu.cfs_period_us": "20000", "cpu.cfs_quota_us": quota},
			},
		},
		"version 1, without one for processors": {
			groups: "4:memory:/service\n", mounts: []string{"cgroup rw,memory"},
			want: []map[string]string{{"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory}},
		},
		"none that is mounted": {groups: "0::/service\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			k := kernel{groups: filepath.Join(dir, "groups"), mounts: filepath.Join(dir, "mounts")}
			var mounts []byte
			for i, mount := range c.mounts {
				at := filepath.Join(dir, string(rune('a'+i)))
				if err := os.MkdirAll(filepath.Join(at, "service"), 0o700); err != nil {
					t.Fatal(err)
				}
				kind, options, _ := strings.Cut(mount, " ")
				mounts = append(mounts, "none "+at+" "+kind+" "+options+" 0 0\n"...)
			}
			for path, text := range map[string]string{k.groups: c.groups, k.mounts: string(mounts)} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			made, err := findControlGroups(k, true).make(128, 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]string
			for _, dir := range made.dirs {
				files := map[string]string{}
				entries, _ := os.ReadDir(dir)
				for _, e := range entries {
					name := filepath.Join(dir, e.Name())
					if err := os.Chmod(name, 0o600); err != nil { // else only root may read it
						t.Fatal(err)
					}
					text, _ := os.ReadFile(name)
					files[e.Name()] = string(text)
				}
				got = append(got, files)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if made.memory != (len(c.want) > 0) {
				t.Errorf("memory is limited: %t", made.memory)
			}
		})
	}
}

// CanLimit reports whether control groups of a version can be made here, for memory
// or for processors.
func CanLimit(v2, processor bool) bool {
	g := findControlGroups(thisKernel, true)
	h := g.memory
	if processor {
		h = g.processor
	}
	return h.dir != "" && h.v2 == v2
}

// What processes share counts once.
func TestTreeKB(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 60 & sleep 60 & sleep 60 & echo; wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, pid := range sandbox.Descendants(cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait() // it has no error worth telling
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, ok := fieldKB(cmd.Process.Pid, "smaps_rollup", "Pss"); !ok {
		t.Skip("this kernel does not tell what processes share")
	}
	resident := int64(0)
	all := append(sandbox.Descendants(cmd.Process.Pid), cmd.Process.Pid)
	for _, pid := range all {
		kB, _ := fieldKB(pid, "status", "VmRSS")
		resident += kB
	}
	if tree := treeKB(cmd.Process.Pid); len(all) != 4 || tree <= 0 || tree > resident*3/4 {
		t.Errorf("%d processes: %d kB, resident %d", len(all), tree, resident)
	}
}

// WithoutGroups lets the runners of a test find no control groups.
func WithoutGroups(t *testing.T) {
	before := thisKernel
	thisKernel = kernel{}
	t.Cleanup(func() { thisKernel = before })
}

// What is in /tmp, and what the kernel takes back, is not the function's memory.
func TestGroupExceeds(t *testing.T) {
	const limit = (128 + initMB) << 20
	for name, c := range map[string]struct {
		v2         bool
		all        int
		stat       string
		tmpKB      int64
		wantExceed bool
	}{
		"below":                     {v2: true, all: limit, stat: "anon 900000000\n"},
		"files that were read":      {v2: true, all: 2 * limit, stat: "anon 1000000\nfile 300000000\nshmem 0\n"},
		"what is in /tmp":           {v2: true, all: 2 * limit, stat: "anon 1000000\nshmem 200000000\n", tmpKB: 200_000},
		"shared memory beside /tmp": {v2: true, all: 2 * limit, stat: "anon 1000000\nshmem 200000000\n", tmpKB: 1000, wantExceed: true},
		"too much":                  {v2: true, all: 2 * limit, stat: "anon 200000000\nshmem 1000\n", tmpKB: 200_000, wantExceed: true},
		"too much of the kernel's":  {v2: true, all: 2 * limit, stat: "anon 100000000\nslab_unreclaimable 100000000\n", wantExceed: true},
		"version 1":                 {all: 2 * limit, stat: "rss 1\ntotal_rss 200000000\n", wantExceed: true},
		"version 1, /tmp":           {all: 2 * limit, stat: "total_rss 1000\ntotal_shmem 200000000\n", tmpKB: 200_000},
	} {
		t.Run(name, func(t *testing.T) {
			m := group{dirs: []string{t.TempDir()}, memory: true, v2: c.v2}
			all := "memory.usage_in_bytes"
			if c.v2 {
				all = "memory.current"
			}
			for file, text := range map[string]string{all: fmt.Sprintln(c.all), "memory.stat": c.stat} {
				if err := os.WriteFile(filepath.Join(m.dirs[0], file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := m.exceeds(128, c.tmpKB); got != c.wantExceed {
				t.Errorf("it exceeds: %t", got)
			}
		})
	}
}

// The memory of a container is less than the machine's.
func TestMemoryBytes(t *testing.T) {
	root := t.TempDir()
	for _, step := range []struct {
		file, text string
		want       int64
	}{
		{"proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n", 1_024_000},
		{"sys/fs/cgroup/memory.max", "max\n", 1_024_000},
		{"sys/fs/cgroup/memory.max", "500000\n", 500_000},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", 500_000},
	} {
		path := filepath.Join(root, step.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := memoryBytes(root); got != step.want {
			t.Errorf("after %s %q: %d, want %d", step.file, step.text, got, step.want)
		}
	}
}
