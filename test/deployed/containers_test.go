package deployed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testTimeout bounds every wait for something that should be quick, on a machine that may have
// much else to do.
const testTimeout = 2 * time.Minute

// image is what deploy/Dockerfile makes, as its configuration says, and with its files in a
// directory.
type image struct {
	files  string
	Config struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		Volumes    map[string]struct{}
	} `json:"config"`
}

// built makes the image of deploy/Dockerfile.
func built(t *testing.T) *image { return builtBy(t, "Dockerfile", "") }

// builtBy makes an image by buildah, of the server under test. base is a directory with the
// files of the image that it is made from; empty: it is made from none.
func builtBy(t *testing.T, dockerfile, base string) *image {
	t.Helper()
	need(t, "buildah", "runc", "tar")
	if os.Geteuid() != 0 {
		skip(t, "it takes root")
	}
	server, err := alone()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	// As make image-files does; the certificates are those of a test.
	if err := os.MkdirAll(filepath.Join(from, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{"godwit": server, "Dockerfile": "../../deploy/" + dockerfile} {
		text, err := os.ReadFile(of)
		if err == nil {
			err = os.WriteFile(filepath.Join(from, name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "ca-certificates.crt"), []byte("# none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	layout := filepath.Join(dir, "oci")
	steps := [][]string{
		{"build", "--isolation", "chroot", "--quiet", "--build-arg", "BASE=localhost/base", "--tag", "godwit", from},
		{"push", "--quiet", "godwit", "oci:" + layout + ":godwit"},
	}
	if base != "" {
		steps = append([][]string{{"build", "--isolation", "chroot", "--quiet", "--tag", "localhost/base", base}}, steps...)
	}
	for _, args := range steps {
		args = append([]string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}, args...)
		if out, err := exec.Command("buildah", args...).CombinedOutput(); err != nil {
			t.Fatalf("buildah: %v\n%s", err, out)
		}
	}
	type blob struct {
		Digest string `json:"digest"`
	}
	var index struct {
		Manifests []blob `json:"manifests"`
	}
	var manifest struct {
		Config blob   `json:"config"`
		Layers []blob `json:"layers"`
	}
	i := &image{files: filepath.Join(dir, "files")}
	path := func(b blob) string {
		return filepath.Join(layout, "blobs", strings.Replace(b.Digest, ":", "/", 1))
	}
	read := func(path string, v any) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read(filepath.Join(layout, "index.json"), &index)
	read(path(index.Manifests[0]), &manifest)
	read(path(manifest.Config), i)
	if err := os.Mkdir(i.files, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, layer := range manifest.Layers {
		if out, err := exec.Command("tar", "-C", i.files, "--same-owner", "-xzpf", path(layer)).CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, out)
		}
	}
	return i
}

// container is what runc runs: an image with what was said of it.
type container struct {
	image    *image
	args     []string // in place of the image's command
	env      []string // after the image's
	user     string   // in place of the image's: UID:GID
	groups   []int64
	writable bool // its root directory, which else can only be read
	mounts   []mount
	network  string // the path of a namespace; "" is this machine's network

	// functions is what docs/functions.md says that functions take; else it has no rights.
	functions bool
}

type mount struct {
	from string // "" is memory
	to   string
	read bool // only
}

// running is a container that runs, or has ended.
type running struct {
	id, state string
	ended     chan struct{}
	status    int

	mu  sync.Mutex
	log bytes.Buffer
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *running) printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

var began int // containers

// start runs a container, which ends with the test.
func (c *container) start(t *testing.T) *running {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "rootfs")
	if out, err := exec.Command("cp", "-al", c.image.files, root).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	var uid, gid int64
	user := c.user
	if user == "" {
		user = c.image.Config.User
	}
	if _, err := fmt.Sscanf(user, "%d:%d", &uid, &gid); err != nil {
		t.Fatalf("the user %q: %v", user, err)
	}
	type object = map[string]any
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755"}},
	}
	for _, m := range c.mounts {
		if m.from == "" {
			mounts = append(mounts, object{"destination": m.to, "type": "tmpfs", "source": "tmpfs", "options": []string{"mode=1777"}})
			continue
		}
		options := []string{"bind"}
		if m.read {
			options = append(options, "ro")
		}
		mounts = append(mounts, object{"destination": m.to, "type": "bind", "source": m.from, "options": options})
	}
	namespaces := []object{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}}
	if c.network != "" {
		namespaces = append(namespaces, object{"type": "network", "path": c.network})
	}
	args := c.args
	if args == nil {
		args = c.image.Config.Cmd
	}
	process := object{
		"user": object{"uid": uid, "gid": gid, "additionalGids": c.groups}, "cwd": "/", "noNewPrivileges": true,
		"args": append(append([]string{}, c.image.Config.Entrypoint...), args...), "env": append(append([]string{}, c.image.Config.Env...), c.env...),
	}
	linux := object{"namespaces": namespaces}
	if c.functions {
		// As docker run has them with --cap-add SYS_ADMIN --cap-add NET_ADMIN and --device /dev/net/tun,
		// without a filter of system calls.
		caps := []string{
			"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
			"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE", "CAP_SYS_ADMIN", "CAP_NET_ADMIN",
		}
		process["capabilities"] = object{"bounding": caps, "effective": caps, "permitted": caps}
		process["noNewPrivileges"] = false
		linux["devices"] = []object{{"path": "/dev/net/tun", "type": "c", "major": 10, "minor": 200, "fileMode": 0o666, "uid": 0, "gid": 0}}
		linux["maskedPaths"] = []string{"/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"}
		linux["readonlyPaths"] = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	}
	text, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"root":       object{"path": root, "readonly": !c.writable},
		"process":    process,
		"mounts":     mounts,
		"linux":      linux,
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	began++
	r := &running{id: fmt.Sprintf("godwit-%d-%d", os.Getpid(), began), state: filepath.Join(dir, "state"), ended: make(chan struct{})}
	cmd := r.runc("run", "--bundle", dir, r.id)
	cmd.Stdout, cmd.Stderr = r, r
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = cmd.Wait() // how it ended is in its state
		r.status = cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = r.runc("kill", r.id, "KILL").Run() // fails only if it has ended
		<-r.ended
		_ = r.runc("delete", "--force", r.id).Run()
		if t.Failed() {
			t.Logf("%s printed:\n%s", strings.Join(args, " "), r.printed())
		}
	})
	return r
}

func (r *running) runc(args ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", r.state}, args...)...)
}

// exec runs a program in the container.
func (r *running) exec(args ...string) (string, error) {
	out, err := r.runc(append([]string{"exec", r.id}, args...)...).CombinedOutput()
	return string(out), err
}

// end tells the container to end, as whoever runs containers does, and gives its status.
func (r *running) end(t *testing.T) int {
	t.Helper()
	if out, err := r.runc("kill", r.id, "TERM").CombinedOutput(); err != nil {
		t.Fatalf("runc kill: %v\n%s", err, out)
	}
	return r.await(t)
}

func (r *running) await(t *testing.T) int {
	t.Helper()
	timer := time.NewTimer(testTimeout)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		t.Fatal("it does not end")
	}
	return r.status
}

// ready waits until a URL answers 200.
func (r *running) ready(t *testing.T, client *http.Client, url string) {
	t.Helper()
	r.eventually(t, url, func() error {
		answer, err := client.Get(url)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", answer.StatusCode)
		}
		return nil
	})
}

func (r *running) eventually(t *testing.T, what string, probe func() error) {
	t.Helper()
	late := time.NewTimer(testTimeout)
	defer late.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := probe()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.ended:
			t.Fatalf("%s: it has ended with %d\n%s", what, r.status, r.printed())
		case <-late.C:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// volume is a directory as one that is mounted in place of an image's: its owner's, and its mode.
func (i *image) volume(t *testing.T, path string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "volume")
	if out, err := exec.Command("cp", "-a", filepath.Join(i.files, path), dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	return dir
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
