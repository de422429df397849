package process

import (
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
			made, err := findControlGroups(k, true).make(128)
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
