package e2e_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A function has of the server AWS's API alone, at whatever address it asks, and
// nothing else of the machine.
func TestFunctionsReachTheAPIOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("functions run on Linux only")
	}
	_, port, _ := net.SplitHostPort(freeAddress(t))
	_, profiles, _ := net.SplitHostPort(freeAddress(t))
	p := startAt(t, "0.0.0.0:"+port, filepath.Join(t.TempDir(), "data"), "--pprof", "0.0.0.0:"+profiles)
	p.createFunction(t, "f", handlerZip(t))
	hosts := []string{"127.0.0.1", "localhost", "[::1]", "127.1.2.3"}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	hosts = append(hosts, name)
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() {
			hosts = append(hosts, ip.String())
		} else if ip.IsGlobalUnicast() {
			hosts = append(hosts, "["+ip.String()+"]")
		}
	}
	want := map[string]string{}
	for _, host := range hosts {
		at := "http://" + host + ":" + port
		want[at+"/2015-03-31/functions"] = "200 "
		for _, path := range []string{
			"/_godwit/health", "/_godwit/ready", "/_godwit/faults", "/_godwit/clock", "/metrics", "/%5fgodwit/health", "/_godwit", "/debug/pprof/",
		} {
			want[at+path] = "403 "
		}
		want[at+"/debug/pprof/"] = "4" // no such operation
		want["http://"+host+":"+profiles+"/debug/pprof/cmdline"] = "refused"
	}
	for _, path := range []string{"/_godwit/health", "/metrics"} { // they are there
		if a, err := p.call(t.Context(), http.MethodGet, path, nil, nil); err != nil || a.status != http.StatusOK {
			t.Errorf("%s: %d %v", path, a.status, err)
		}
	}
	targets := make([]string, 0, len(want))
	for target := range want {
		targets = append(targets, target)
	}
	var got map[string]string
	a := p.lambda(t, http.MethodPost, "/2015-03-31/functions/f/invocations", object{"probe": targets})
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatalf("%v %s", err, a.body)
	}
	if strings.HasPrefix(got["http://"+hosts[len(hosts)-1]+":"+port+"/metrics"], "unreachable") {
		t.Skip("functions have no tunnels on this machine, and nowhere to go")
	}
	if a, err := p.call(t.Context(), http.MethodGet, "/metrics", nil, nil); err != nil ||
		!strings.Contains(string(a.body), "godwit_function_connections_limit 4096\n") ||
		strings.Contains(string(a.body), "godwit_function_connections_refused_total{reason=\"policy\"} 0\n") {
		t.Errorf("the metrics do not tell: %v", err)
	}
	for target, prefix := range want {
		if !strings.HasPrefix(got[target], prefix) {
			t.Errorf("%s: %q, want %q", target, got[target], prefix)
		}
	}
}
