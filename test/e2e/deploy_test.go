package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// TestDeployedUnit starts what the unit in deploy/ starts, from what deploy/README.md has
// somebody make.
func TestDeployedUnit(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/systemd/godwit.service")
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=godwit (.*)$`).FindStringSubmatch(string(unit))
	if start == nil {
		t.Fatal("the unit starts nothing")
	}
	guide, err := os.ReadFile("../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	making := regexp.MustCompile(`(?m)^ *godwit (init [^#\n]*)`).FindStringSubmatch(string(guide))
	if making == nil {
		t.Fatal("deploy/README.md makes nothing")
	}
	dir := t.TempDir()
	here := strings.NewReplacer("/etc/godwit", dir+"/etc", "/var/lib/godwit", dir+"/lib")
	if out, err := exec.Command(binary, strings.Fields(here.Replace(making[1]))...).CombinedOutput(); err != nil {
		t.Fatalf("godwit %s: %v\n%s", making[1], err, out)
	}
	addr := freeAddress(t)
	p := launch(t, addr, exec.Command(binary, append(strings.Fields(here.Replace(start[1])), "--listen", addr)...))
	p.awaitReady(t)
	if !regexp.MustCompile(`(?m)^ExecReload=/bin/kill -HUP \$MAINPID$`).Match(unit) {
		t.Error("the unit cannot be reloaded")
	}
	// Nobody gets in without the key.
	stranger := &production{AccessKeyID: "AKIAIOSFODNN7EXAMPLE"}
	if _, err := stranger.sqs(p, "secret").ListQueues(t.Context(), &sqs.ListQueuesInput{MaxResults: aws.Int32(1)}); err == nil {
		t.Error("a stranger lists queues")
	}
}

// TestUnitIsValid has systemd read the unit, and holds that what is changed while the server
// runs can be written under it.
func TestUnitIsValid(t *testing.T) {
	programs.Need(t, "systemd-analyze")
	unit, err := os.ReadFile("../../deploy/systemd/godwit.service")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^ReadWritePaths=.*/etc/godwit$`).Match(unit) {
		t.Error("a rotation of the root key cannot write in /etc/godwit")
	}
	here := filepath.Join(t.TempDir(), "godwit.service")
	text := strings.ReplaceAll(string(unit), "ExecStart=godwit", "ExecStart="+binary)
	if err := os.WriteFile(here, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", here).CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("%v: %s", err, out)
	}
	// What an attacker in it could reach, from 0 to 100.
	if out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=40", here).CombinedOutput(); err != nil {
		t.Errorf("the exposure is 4 or more: %v\n%s", err, out)
	}
}

// SIGHUP, which systemctl reload sends, has a server of production read its settings again: some
// count at once, the others are named. What is wrong with them is logged, and nothing changes.
func TestServeReloads(t *testing.T) {
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil, "--log-format", "json")
	text, err := os.ReadFile(p.settings)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(more, want string) {
		t.Helper()
		if err := os.WriteFile(p.settings, []byte(string(text)+more), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, want, func() (bool, error) { return strings.Contains(s.stderr.String(), want), nil })
	}
	lists := func() (refused int) {
		c := p.sqs(s, p.SecretAccessKey)
		for range 4 {
			if _, err := c.ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
				if !strings.Contains(err.Error(), "hrottl") {
					t.Fatal(err)
				}
				refused++
			}
		}
		return refused
	}
	reload("", `"msg":"settings were read anew","changed":null`)
	if n := lists(); n != 0 {
		t.Errorf("%d of 4 requests are refused", n)
	}
	reload("account-max-requests: 1\nlog-level: debug\nregion: eu-west-1\n", `"changed":["account-max-requests","log-level"]`)
	eventually(t, "the region is named", func() (bool, error) {
		return strings.Contains(s.stderr.String(), `count from the next start","settings":["region"]`), nil
	})
	if n := lists(); n < 2 {
		t.Errorf("%d of 4 requests are refused at one a second", n)
	}
	reload("account-max-requests: 5\nlog-lvel: debug\n", "log-lvel")
	reload("account-max-requests: 5\nadmin-listen: 0.0.0.0:81\n", "reached by strangers")
	if n := lists(); n < 2 {
		t.Errorf("what was refused counts: %d of 4 requests are refused", n)
	}
	if strings.Count(s.stderr.String(), "stay as they are") != 2 {
		t.Errorf("the log: %s", s.stderr.String())
	}
	s.terminate(t)
	s.exit(t)
}

// The file in deploy/logrotate takes the audit log of a running server away: no line is
// lost, and the new file is the server's alone.
func TestAuditLogIsRotated(t *testing.T) {
	programs.Need(t, "logrotate")
	text, err := os.ReadFile("../../deploy/logrotate/godwit")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path, conf := filepath.Join(dir, "audit.log"), filepath.Join(dir, "logrotate.conf")
	own := strings.ReplaceAll(string(text), "/var/log/godwit/audit.log", path)
	if own == string(text) {
		t.Fatal("it is about another file")
	}
	if err := os.WriteFile(conf, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil, "--audit-log", path)
	c := p.sqs(s, p.SecretAccessKey)
	create := func(name string) {
		t.Helper()
		if _, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name}); err != nil {
			t.Fatal(err)
		}
	}
	rotate := func() {
		t.Helper()
		if out, err := exec.Command("logrotate", "--force", "--state", filepath.Join(dir, "state"), conf).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	create("first")
	rotate()
	create("second")
	s.terminate(t)
	s.exit(t)
	for name, file := range map[string]string{"first": path + ".1", "second": path} {
		lines, err := os.ReadFile(file)
		if err != nil || strings.Count(string(lines), "\n") != 1 || !strings.Contains(string(lines), `"queueName":"`+name+`"`) {
			t.Errorf("%s has %q: %v", file, lines, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", file, info.Mode(), err)
		}
	}
}
