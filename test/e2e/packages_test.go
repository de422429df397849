package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.yaml.in/yaml/v3"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// top is the module's directory, in which paths of .goreleaser.yaml begin.
const top = "../.."

// release is what the tests need to know of .goreleaser.yaml.
type release struct {
	Snapshot struct {
		Version string `yaml:"version_template"`
	} `yaml:"snapshot"`
	Packages []map[string]any `yaml:"nfpms"`
	Archives []struct {
		Files []struct {
			Src         string `yaml:"src"`
			Destination string `yaml:"dst"`
		} `yaml:"files"`
	} `yaml:"archives"`
	Formulas []struct {
		Install string `yaml:"install"`
		Service string `yaml:"service"`
		Test    string `yaml:"test"`
	} `yaml:"brews"`
}

func readRelease(t *testing.T) (r release) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A package has the version that its program prints.
func TestReleasedVersion(t *testing.T) {
	if want := config.Version + "+{{ .ShortCommit }}"; readRelease(t).Snapshot.Version != want {
		t.Errorf("snapshots have the version %s, want %s", readRelease(t).Snapshot.Version, want)
	}
}

// packaged makes the package that goreleaser makes of .goreleaser.yaml, by the program that
// goreleaser has as a library, of the binary under test.
func packaged(t *testing.T, version, format string) string {
	t.Helper()
	dir := t.TempDir()
	nfpm := filepath.Join(dir, "nfpm")
	build := exec.Command("go", "build", "-o", nfpm, "github.com/goreleaser/nfpm/v2/cmd/nfpm")
	build.Dir = filepath.Join(top, "tools", "nfpm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// What goreleaser adds, and the one name that it has for itself.
	what := maps.Clone(readRelease(t).Packages[0])
	bin := what["bindir"].(string)
	what["name"], what["arch"], what["version"], what["mtime"] = what["package_name"], "amd64", version, "2026-01-01T00:00:00Z"
	what["contents"] = append(slices.Clone(what["contents"].([]any)),
		map[string]any{"src": binary, "dst": bin + "/godwit", "file_info": map[string]any{"mode": 0o755}})
	for _, one := range what["contents"].([]any) {
		if one := one.(map[string]any); one["src"] == "bin/man/*.1.gz" {
			one["src"] = filepath.Join(manuals(t), "*.1.gz")
		}
	}
	for _, own := range []string{"id", "formats", "bindir", "package_name"} {
		delete(what, own)
	}
	for _, of := range what["overrides"].(map[string]any) {
		of := of.(map[string]any)
		of["depends"] = of["dependencies"]
		delete(of, "dependencies")
	}
	text, err := yaml.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	settings, made := filepath.Join(dir, "nfpm.yaml"), filepath.Join(dir, "godwit."+format)
	if err := os.WriteFile(settings, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pack := exec.Command(nfpm, "package", "--config", settings, "--packager", format, "--target", made)
	pack.Dir = top
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("nfpm: %v\n%s", err, out)
	}
	return made
}

// manuals is a directory of manual pages as .goreleaser.yaml has them made.
func manuals(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "man")
	printed(t, exec.Command(binary, "man", dir))
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("there are %d pages: %v", len(pages), err)
	}
	printed(t, exec.Command("gzip", append([]string{"-9n"}, pages...)...))
	return dir
}

// ofCommand is the page of a command, as a package lists it. There is one of each.
var ofCommand = regexp.MustCompile(`^-rw-r--r-- root root /usr/share/man/man1/godwit-[a-z]+\.1\.gz$`)

// withoutCommands leaves out the pages of commands.
func withoutCommands(t *testing.T, lines []string) []string {
	t.Helper()
	all := len(lines)
	lines = slices.DeleteFunc(lines, ofCommand.MatchString)
	if pages := all - len(lines); pages < 20 {
		t.Errorf("it has manuals of %d commands", pages)
	}
	return lines
}

// contents are the files of the packages, but for the manuals of commands: what a directory's mode keeps others from is the
// server's alone.
var contents = []string{
	"drwx------ root root /etc/godwit",
	"-rw-r--r-- root root /etc/logrotate.d/godwit",
	"-rwxr-xr-x root root /usr/bin/godwit",
	"-rw-r--r-- root root /usr/lib/systemd/system/godwit.service",
	"-rw-r--r-- root root /usr/share/doc/godwit/CHANGELOG.md",
	"-rw-r--r-- root root /usr/share/doc/godwit/README.md",
	"-rw-r--r-- root root /usr/share/doc/godwit/copyright",
	"-rw-r--r-- root root /usr/share/man/man1/godwit.1.gz",
	"drwx------ root root /var/lib/godwit",
}

// inDeb lists a package as contents does, by their paths, without the directories that lead there.
func inDeb(t *testing.T, made string) (got []string) {
	t.Helper()
	listed := regexp.MustCompile(`(?m)^(\S+) (\w+)/(\w+) .* \.(/\S*?)/?$`)
	for _, line := range listed.FindAllStringSubmatch(printed(t, exec.Command("dpkg-deb", "--contents", made)), -1) {
		if line := strings.Join(line[1:], " "); slices.Contains(contents, line) || !strings.HasPrefix(line, "drwxr-xr-x root root ") {
			got = append(got, line)
		}
	}
	path := func(line string) string { return line[strings.LastIndex(line, " "):] }
	slices.SortFunc(got, func(a, b string) int { return strings.Compare(path(a), path(b)) })
	return withoutCommands(t, got)
}

func TestRPM(t *testing.T) {
	programs.Need(t, "rpm")
	made := packaged(t, config.Version, "rpm")
	query := func(args ...string) string {
		out, err := exec.Command("rpm", append(args, made)...).CombinedOutput()
		if err != nil {
			t.Fatalf("rpm: %v\n%s", err, out)
		}
		return string(out)
	}
	if got := withoutCommands(t, strings.Split(strings.TrimSpace(query("-qp", "--queryformat", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES}\n]")), "\n")); !slices.Equal(got, contents) {
		t.Errorf("it has\n%s", strings.Join(got, "\n"))
	}
	if got := query("-qp", "--configfiles"); got != "/etc/logrotate.d/godwit\n" {
		t.Errorf("what an upgrade leaves as it is: %s", got)
	}
	for name, script := range map[string]string{"postinstall": "postinst", "preuninstall": "prerm", "postuninstall": "postrm"} {
		text, err := os.ReadFile(filepath.Join(top, "deploy", "packages", script))
		if err != nil || !strings.Contains(query("-qp", "--scripts"), name+" scriptlet (using /bin/sh):\n"+string(text)) {
			t.Errorf("it has another script than %s: %v", script, err)
		}
	}
}

// TestRPMInstalled has the package's scripts run as Red Hat's package manager runs them.
func TestRPMInstalled(t *testing.T) {
	programs.Need(t, "rpm")
	m := newMachine(t)
	rpm := func(args ...string) {
		t.Helper()
		printed(t, m.outside(append([]string{"rpm", "--root=" + m.root, "--nodeps"}, args...)...))
	}
	rpm("--install", m.root+m.put(t, packaged(t, config.Version, "rpm"), "/godwit.rpm"))
	m.run(t, "runuser", "-u", "godwit", "--", "godwit", "init", "--dir", "/etc/godwit", "--data", "/var/lib/godwit")
	rpm("--upgrade", m.root+m.put(t, packaged(t, config.Version+".1", "rpm"), "/newer.rpm"))
	if got := m.run(t, "stat", "--format=%n %U %G %a", "/etc/godwit", "/var/lib/godwit"); got != "/etc/godwit godwit godwit 700\n/var/lib/godwit godwit godwit 700\n" {
		t.Errorf("directories: %s", got)
	}
	if !m.has("/usr/bin/godwit") {
		t.Error("after an upgrade there is no program")
	}
	rpm("--erase", "godwit")
	for name, want := range map[string]bool{"/usr/bin/godwit": false, "/etc/godwit/root.key": true} {
		if m.has(name) != want {
			t.Errorf("erased: that there is %s is %v", name, !want)
		}
	}
}

// Debian's own look at the package, without what a static program of Go is and has not.
func TestDebIsInOrder(t *testing.T) {
	programs.Need(t, "lintian", "dpkg-deb")
	made := packaged(t, config.Version, "deb")
	out, err := exec.Command("lintian", "--allow-root", "--fail-on=error,warning", "--suppress-tags", strings.Join([]string{
		"missing-dependency-on-libc", "unstripped-binary-or-object", "hardening-no-pie", // how Go links
		"no-changelog",                      // CHANGELOG.md
		"bogus-mail-host",                   // who publishes packages has an address
		"non-standard-dir-perm",             // others must not look into them
		"maintainer-script-calls-systemctl", // only where systemd runs, or there is nothing of Debian's
		"statically-linked-binary",          // how Go links
	}, ","), made).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// machine is a root directory of its own, with all that this machine has, and nothing that
// happens in it happens to this machine.
type machine struct {
	root string // as its keeper sees it
	pid  int    // of the keeper: it has the mounts
	boot int    // of its systemd; 0: none runs
}

// newMachine makes one, which goes with the test.
func newMachine(t *testing.T) *machine {
	t.Helper()
	programs.Need(t, "unshare", "nsenter", "mount", "dpkg", "useradd", "runuser")
	if os.Geteuid() != 0 {
		programs.Skip(t, "it takes root")
	}
	at := t.TempDir()
	keeper := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", `
		mount -t tmpfs none "$0"
		mkdir "$0/upper" "$0/work" "$0/root"
		mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root"
		rm -rf "$0/root/etc/godwit" "$0/root/var/lib/godwit"
		mount -t tmpfs none "$0/root/run"
		mount --bind /dev "$0/root/dev"
		mount -t proc proc "$0/root/proc"
		echo made
		exec cat`, at)
	var complaints bytes.Buffer
	keeper.Stderr = &complaints
	hold, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := keeper.StdoutPipe()
	if err == nil {
		err = keeper.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		hold.Close()
		_ = keeper.Wait() // its mounts go with it
	})
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "made\n" {
		programs.Skip(t, "a root directory of its own cannot be mounted: "+complaints.String())
	}
	return &machine{root: filepath.Join(at, "root"), pid: keeper.Process.Pid}
}

// outside is a command that sees the machine's root directory at root.
func (m *machine) outside(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{fmt.Sprintf("--mount=/proc/%d/ns/mnt", m.pid), "--"}, args...)...)
}

// inside is a command in the machine: under its systemd, once that runs.
func (m *machine) inside(args ...string) *exec.Cmd {
	if m.boot != 0 {
		return exec.Command("nsenter", append([]string{"--target", fmt.Sprint(m.boot), "--all", "--"}, args...)...)
	}
	return m.outside(append([]string{"chroot", m.root}, args...)...)
}

func printed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

func (m *machine) run(t *testing.T, args ...string) string {
	t.Helper()
	return printed(t, m.inside(args...))
}

// path is that of a file of the machine, for this process.
func (m *machine) path(name string) string {
	return filepath.Join("/proc", fmt.Sprint(m.pid), "root", m.root, name)
}

func (m *machine) has(name string) bool {
	_, err := os.Lstat(m.path(name))
	return err == nil
}

// put copies a file to the machine.
func (m *machine) put(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(m.path(name), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// start has a systemd of its own begin with the machine's basic.target.
func (m *machine) start(t *testing.T) {
	t.Helper()
	printed(t, m.outside("umount", m.root+"/dev", m.root+"/proc", m.root+"/run"))
	spawn := m.outside("systemd-nspawn", "--directory="+m.root, "--register=no", "--keep-unit", "--console=pipe", "--kill-signal=SIGRTMIN+3",
		"--boot", "systemd.unit=basic.target")
	var log bytes.Buffer
	spawn.Stdout, spawn.Stderr = &log, &log
	if err := spawn.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = spawn.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = spawn.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("systemd printed:\n%s", tail(log.String(), 4000))
		}
	})
	eventually(t, "systemd runs", func() (bool, error) {
		select {
		case <-ended:
			t.Fatalf("it has ended:\n%s", log.String())
		default:
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", spawn.Process.Pid))
		if err != nil {
			return false, err
		}
		if _, err := fmt.Sscan(string(children), &m.boot); err != nil {
			return false, err
		}
		out, err := m.inside("systemctl", "is-active", "basic.target").CombinedOutput()
		return string(out) == "active\n", err
	})
}

// TestPackage takes the package for Debian through its life, in a root directory of its own:
// installed, started by its unit, upgraded while it runs, removed and purged.
func TestPackage(t *testing.T) {
	programs.Need(t, "dpkg", "dpkg-deb", "systemd-analyze")
	made := packaged(t, config.Version, "deb")
	if got := inDeb(t, made); !slices.Equal(got, contents) {
		t.Errorf("the package has\n%s", strings.Join(got, "\n"))
	}

	m := newMachine(t)
	deb := m.put(t, made, "/godwit.deb")
	if out := printed(t, m.outside("dpkg", "--root="+m.root, "--install", m.root+deb)); !strings.Contains(out, "godwit init --dir /etc/godwit") {
		t.Errorf("who has installed it is not told how to go on: %s", out)
	}
	if got := m.run(t, "getent", "passwd", "godwit"); !regexp.MustCompile(`^godwit:[^:]*:\d{3}:\d{3}:Godwit:/var/lib/godwit:/usr/sbin/nologin\n$`).MatchString(got) {
		t.Errorf("the user: %s", got)
	}
	if got := m.run(t, "stat", "--format=%n %U %G %a", "/etc/godwit", "/var/lib/godwit"); got != "/etc/godwit godwit godwit 700\n/var/lib/godwit godwit godwit 700\n" {
		t.Errorf("directories: %s", got)
	}
	if !m.has("/etc/systemd/system/multi-user.target.wants/godwit.service") {
		t.Error("the machine's start does not start it")
	}
	if got := m.run(t, "systemd-analyze", "verify", "/usr/lib/systemd/system/godwit.service"); got != "" {
		t.Errorf("the unit: %s", got)
	}
	m.run(t, "systemd-analyze", "security", "--offline=true", "--threshold=40", "/usr/lib/systemd/system/godwit.service")

	// What deploy/README.md has somebody do then, but for the form of what is printed.
	initialise, begin, _ := strings.Cut(readme.Of(t, top, "deploy/README.md")[0].Text, "\n")
	p := &production{}
	if err := json.Unmarshal([]byte(m.run(t, "sh", "-ec", initialise+" -o json")), p); err != nil {
		t.Fatal(err)
	}
	addr := freeAddress(t)
	settings, err := os.ReadFile(m.path("/etc/godwit/godwit.yaml"))
	if err == nil {
		err = os.WriteFile(m.path("/etc/godwit/godwit.yaml"), bytes.Replace(settings, []byte("127.0.0.1:4566"), []byte(addr), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}

	var queue *string
	t.Run("the unit's command as its user", func(t *testing.T) {
		unit, err := os.ReadFile(m.path("/usr/lib/systemd/system/godwit.service"))
		if err != nil {
			t.Fatal(err)
		}
		command := strings.Fields(regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(string(unit))[1])
		user := regexp.MustCompile(`(?m)^User=(.*)$`).FindStringSubmatch(string(unit))[1]
		s := launch(t, addr, m.outside(append([]string{"chroot", "--userspec=" + user + ":" + user, m.root}, command...)...))
		s.awaitReady(t)
		made, err := p.sqs(s, p.SecretAccessKey).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
		if err != nil {
			t.Fatal(err)
		}
		queue = made.QueueUrl
		if _, err := p.sqs(s, p.SecretAccessKey).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("m")}); err != nil {
			t.Fatal(err)
		}
		s.terminate(t)
		if status := s.exit(t); status != 0 {
			t.Errorf("it ends with status %d", status)
		}
	})
	if queue == nil {
		return
	}
	t.Run("systemd", func(t *testing.T) {
		programs.Need(t, "systemd-nspawn")
		m.start(t)
		m.run(t, "sh", "-ec", begin)
		s := &process{client: newClient(addr), addr: addr}
		ready := func() {
			t.Helper()
			eventually(t, "the server is ready", func() (bool, error) {
				a, err := s.call(t.Context(), "GET", "/_godwit/ready", nil, nil)
				return err == nil && a.status == 200, err
			})
		}
		ready()
		count := func() string {
			t.Helper()
			a, err := p.sqs(s, p.SecretAccessKey).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
				QueueUrl: queue, AttributeNames: []types.QueueAttributeName{"ApproximateNumberOfMessages"},
			})
			if err != nil {
				t.Fatal(err)
			}
			return a.Attributes["ApproximateNumberOfMessages"]
		}
		if got := count(); got != "1" {
			t.Errorf("%s messages", got)
		}
		main := func() string { return m.run(t, "systemctl", "show", "--property=MainPID", "godwit.service") }
		before := main()
		if got := m.run(t, "stat", "--format=%U %a", "/var/log/godwit"); got != "godwit 700\n" {
			t.Errorf("the directory of logs: %s", got)
		}
		m.run(t, "dpkg", "--install", m.put(t, packaged(t, config.Version+".1", "deb"), "/newer.deb"))
		ready()
		if after := main(); after == before || after == "MainPID=0\n" {
			t.Errorf("after the upgrade runs %s, before it %s", after, before)
		}
		if got := count(); got != "1" {
			t.Errorf("after the upgrade %s messages", got)
		}
		m.run(t, "dpkg", "--remove", "godwit")
		if out, err := m.inside("systemctl", "is-active", "godwit.service").CombinedOutput(); err == nil {
			t.Errorf("it was removed, and is %s", out)
		}
		if _, err := s.call(t.Context(), "GET", "/_godwit/ready", nil, nil); err == nil {
			t.Error("it was removed, and answers")
		}
	})

	dpkg := func(action string) string {
		if m.boot != 0 {
			return m.run(t, "dpkg", action, "godwit")
		}
		return printed(t, m.outside("dpkg", "--root="+m.root, action, "godwit"))
	}
	holds := func(when string, want bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if m.has(name) != want {
				t.Errorf("%s: that there is %s is %v", when, name, !want)
			}
		}
	}
	program := []string{"/usr/bin/godwit", "/usr/lib/systemd/system/godwit.service", "/usr/share/doc/godwit"}
	kept := []string{"/etc/godwit/root.key", "/etc/godwit/godwit.yaml", "/var/lib/godwit/root-key.id"}
	if m.boot == 0 {
		dpkg("--remove")
	}
	holds("removed", false, program...)
	holds("removed", true, append(kept, "/etc/logrotate.d/godwit")...)
	if out := dpkg("--purge"); !strings.Contains(out, "/etc/godwit is kept") || !strings.Contains(out, "/var/lib/godwit is kept") {
		t.Errorf("who has purged it is not told of what is left: %s", out)
	}
	holds("purged", false, "/etc/logrotate.d/godwit", "/var/log/godwit", "/etc/systemd/system/multi-user.target.wants/godwit.service", "/etc/systemd/system/godwit.service")
	holds("purged", true, kept...)
}
