package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/readme"
)

// TestUnitInstalled has somebody install the unit as deploy/README.md tells, and upgrade the
// program as docs/upgrade.md does, on a machine of its own with a systemd of its own.
func TestUnitInstalled(t *testing.T) {
	programs.Need(t, "systemd-nspawn")
	m := newMachine(t)
	for _, dir := range []string{"/new", "/deploy/systemd"} {
		m.run(t, "mkdir", "-p", dir)
	}
	m.put(t, binary, "/new/godwit")
	m.run(t, "install", "-m", "755", "/new/godwit", "/usr/local/bin/godwit")
	m.put(t, filepath.Join(top, "deploy/systemd/godwit.service"), "/deploy/systemd/godwit.service")
	m.start(t)

	addr := freeAddress(t)
	s := &process{client: newClient(addr), addr: addr}
	ready := func() {
		t.Helper()
		eventually(t, "the server is ready", func() (bool, error) {
			a, err := s.call(t.Context(), "GET", "/_godwit/ready", nil, nil)
			return err == nil && a.status == 200, err
		})
	}
	// The machine has this one's network, where others may have the usual port.
	const then = "chown "
	install := readme.Of(t, top, "deploy/README.md")[0].Text
	if !strings.Contains(install, then) {
		t.Fatalf("nothing is given to the user godwit:\n%s", install)
	}
	m.run(t, "sh", "-ec", "cd /\n"+strings.Replace(install, then, "sed -i s/127.0.0.1:4566/"+addr+"/ /etc/godwit/godwit.yaml\n"+then, 1))
	ready()
	process := func() string { return m.run(t, "systemctl", "show", "--property=MainPID", "godwit.service") }
	before := process()
	m.run(t, "sh", "-ec", "cd /new\n"+readme.Of(t, top, "docs/upgrade.md")[0].Text)
	ready()
	if after := process(); after == before {
		t.Errorf("the process is the same: %s", after)
	}
}
