package process_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/internal/invoke/process/network"
)

// labIn runs functions that have a network, whose API answers with what it is asked
// for. It skips the test where functions have no namespaces, or no tunnel where one
// is needed.
func labIn(t testing.TB, o network.Options, tunnel bool) (*lab, *network.Network) {
	t.Helper()
	n := newNetwork(t, o)
	api := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "API %s from %s", r.URL.Path, r.RemoteAddr[:strings.LastIndex(r.RemoteAddr, ":")])
	})}
	go func() { _ = api.Serve(n.API()) }()
	t.Cleanup(func() { _ = api.Close() })
	l := newLabWith(t, process.Options{Network: n})
	f := l.bootstrap()
	var got map[string]string
	l.answer(t, f, `{"probe":["file:/proc/net/dev"]}`, &got)
	if !strings.Contains(got["file:/proc/net/dev"], "godwit") && tunnel {
		t.Skip("this machine has no namespaces or no tunnels for us")
	}
	return l, n
}

// answer invokes a function and reads what it answers.
func (l *lab) answer(t testing.TB, f function.Target, event string, into any) {
	t.Helper()
	out := l.invoke(t, f, event)
	if err := json.Unmarshal(out.Payload, into); err != nil || out.FunctionError != "" {
		t.Fatalf("%v %s %s", err, out.Payload, out.LogTail)
	}
}

// wantProbes has a function try addresses and compares what comes of it.
func (l *lab) wantProbes(t *testing.T, f function.Target, want map[string]string) {
	t.Helper()
	event, err := json.Marshal(map[string]any{"probe": slices.Sorted(maps.Keys(want))})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	l.answer(t, f, string(event), &got)
	for target, text := range want {
		if got[target] != text {
			t.Errorf("%s: %q, want %q", target, got[target], text)
		}
	}
}

// ownAddress is an address of this machine that is not loopback's.
func ownAddress(t testing.TB) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			return ip.String()
		}
	}
	t.Skip("this machine has loopback only")
	return ""
}

// listenEcho sends back what comes, at an address.
func listenEcho(t testing.TB, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, 256<<10))
			}()
		}
	}()
	return l.Addr().String()
}

// A function reaches AWS's API by whatever leads to the server, and nothing else of it.
func TestServerAsAFunctionSeesIt(t *testing.T) {
	own := ownAddress(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	everywhere := listenEcho(t, "0.0.0.0:0")
	_, port, _ := net.SplitHostPort(everywhere)
	name := fmt.Sprintf("godwit-test-%d", os.Getpid())
	abstract, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	l, _ := labIn(t, network.Options{Mode: network.Private}, true)
	l.wantProbes(t, l.bootstrap(), map[string]string{
		"http://127.0.0.1:4566/a":         "200 API /a from 127.0.0.1",
		"http://[::1]:4566/a":             "200 API /a from 127.0.0.1",
		"http://localhost:4566/a":         "200 API /a from 127.0.0.1",
		"http://127.9.9.9:4566/a":         "200 API /a from 127.0.0.1",
		"http://" + own + ":4566/a":       "200 API /a from 127.0.0.1",
		"http://" + host + ":4566/a":      "200 API /a from 127.0.0.1",
		"ports://127.0.0.1":               "4566 9001", // its own
		web.URL:                           "refused",
		"tcp://" + own + ":" + port:       "refused",
		"tcp://" + host + ":" + port:      "refused",
		"tcp://" + own + ":9001":          "refused",
		"udp://" + own + ":4566/x":        "silence",
		"abstract://" + name:              "refused",
		"tcp://169.254.169.254:80":        "refused",
		"tcp://169.254.170.2:80":          "refused",
		"tcp://168.63.129.16:80":          "refused",
		"tcp://100.100.100.200:80":        "refused",
		"tcp://[fd00:ec2::254]:80":        "refused",
		"tcp://[fe80::a9fe:a9fe%25lo]:80": "unreachable",
		"tcp://[64:ff9b::7f00:1]:" + port: "refused",
		"name://" + host:                  "127.0.0.1 ::1",
	})
}

// What a function needs of the machine is there when somebody says so, at the port
// that it has there.
func TestAllowed(t *testing.T) {
	own := ownAddress(t)
	loopback, elsewhere, other := listenEcho(t, "127.0.0.1:0"), listenEcho(t, own+":0"), listenEcho(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(loopback)
	for _, mode := range []network.Mode{network.None, network.Public, network.Private} {
		t.Run(string(mode), func(t *testing.T) {
			l, _ := labIn(t, network.Options{Mode: mode, Allow: []string{"localhost:" + port, elsewhere}}, true)
			l.wantProbes(t, l.bootstrap(), map[string]string{
				"tcp://" + loopback + "/hello":         "hello",
				"tcp://localhost:" + port + "/hello":   "hello",
				"tcp://" + elsewhere + "/hello":        "hello",
				"tcp://" + other:                       "refused",
				"tcp://" + net.JoinHostPort(own, port): "refused",
			})
		})
	}
}

// Where there is no network but AWS's API, there is not even a route.
func TestNoNetwork(t *testing.T) {
	own := ownAddress(t)
	l, _ := labIn(t, network.Options{Mode: network.None}, false)
	f := l.bootstrap()
	var got map[string]string
	l.answer(t, f, `{"probe":["file:/proc/net/route"]}`, &got)
	if strings.Count(got["file:/proc/net/route"], "\n") > 1 {
		t.Skip("this machine has no namespaces for us")
	}
	l.wantProbes(t, f, map[string]string{
		"http://localhost:4566/a":      "200 API /a from 127.0.0.1",
		"tcp://" + own + ":80":         "unreachable",
		"tcp://8.8.8.8:53":             "unreachable",
		"tcp://[2001:4860:4860::1]:53": "unreachable",
		"file:/etc/resolv.conf":        "",
	})
}

// No function takes another's events: the other's Runtime API is in another network,
// or, without isolation, answers the function's own processes only.
func TestEventsAreNotStolen(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		victim, thief := l.bootstrap("WHO", "victim"), l.bootstrap("WHO", "thief")
		thief.Function = arn.Function("us-east-1", "123456789012", "thief") // the victim continues beside it
		victim.Timeout = 20 * time.Second
		var environment []string
		l.answer(t, victim, `{"env":true}`, &environment)
		address := ""
		for _, v := range environment {
			if s, ok := strings.CutPrefix(v, "AWS_LAMBDA_RUNTIME_API="); ok {
				address = s
			}
		}
		stolen := make(chan string, 1)
		if c, err := net.Dial("tcp", address); err != nil {
			stolen <- "" // it is not there, outside
		} else {
			fmt.Fprint(c, "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\n\r\n")
			go func() {
				_ = c.SetReadDeadline(clock.System.Now().Add(victim.Timeout))
				answer, _ := io.ReadAll(c)
				c.Close()
				stolen <- string(answer)
			}()
		}
		next := "http://" + address + "/2018-06-01/runtime/invocation/next"
		var got map[string]string
		event, _ := json.Marshal(map[string]any{"probe": []string{next}})
		l.answer(t, thief, string(event), &got)
		// At the same address in its own network it finds its own.
		if text := got[next]; strings.HasPrefix(text, "200") || text == "silence" {
			t.Errorf("it waits for another's events: %s", text)
		}
		for range 3 {
			l.want(t, victim, `{"mine":1}`, "", `{"mine":1}`)
		}
		if text := <-stolen; text != "" {
			t.Errorf("who is no function is answered: %s", text)
		}
	})
}

// elsewhere is set for a test in a network of its own.
const elsewhere = "GODWIT_TEST_ELSEWHERE"

// The addresses of the network of TestModes, beyond this machine's own end.
const (
	privateServer = "10.99.0.2"
	publicServer  = "9.9.9.9"
	sharedServer  = "100.64.0.9"
	privateSix    = "fd99::2"
	metadata      = "169.254.169.254"
)

// What the modes let through is tried in a network that has addresses of each kind.
func TestModes(t *testing.T) {
	t.Parallel()
	if os.Getenv(elsewhere) == "" {
		inOwnNetwork(t)
		return
	}
	makeNetwork(t)
	tcp := func(a string) string { return "tcp://" + net.JoinHostPort(a, "7") + "/hello" }
	udp := func(a string) string { return "udp://" + net.JoinHostPort(a, "7") + "/hello" }
	for mode, reached := range map[network.Mode]string{
		network.None: "", network.Public: publicServer,
		network.Private: strings.Join([]string{publicServer, privateServer, sharedServer, privateSix}, " "),
	} {
		t.Run(string(mode), func(t *testing.T) {
			want := map[string]string{}
			for _, a := range []string{publicServer, privateServer, sharedServer, privateSix, metadata} {
				switch {
				case slices.Contains(strings.Fields(reached), a):
					want[tcp(a)], want[udp(a)] = "hello", "hello"
				case mode == network.None:
					want[tcp(a)], want[udp(a)] = "unreachable", "unreachable"
				default:
					want[tcp(a)], want[udp(a)] = "refused", "silence"
				}
			}
			if mode != network.None {
				want["name://db.test"] = privateServer + " " + privateSix
				want["name://rebound.test"] = metadata
				want["tcp://rebound.test:7"] = "refused"
			}
			l, _ := labIn(t, network.Options{Mode: mode}, mode != network.None)
			l.wantProbes(t, l.bootstrap(), want)
		})
	}
}

// inOwnNetwork runs a test again, in namespaces for the network and for mounts.
func inOwnNetwork(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make networks")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), elsewhere+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this machine lets us make no networks: ", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("%s", out)
	}
}

// makeNetwork connects this process, which must be in a network of its own, with
// another one, in which each address sends back what comes.
func makeNetwork(t *testing.T) {
	t.Helper()
	check := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	up := func(name string, addresses ...string) {
		t.Helper()
		link, err := netlink.LinkByName(name)
		check(err)
		for _, a := range addresses {
			address, err := netlink.ParseAddr(a)
			check(err)
			address.Flags = unix.IFA_F_NODAD
			check(netlink.AddrAdd(link, address))
		}
		check(netlink.LinkSetUp(link))
	}
	up("lo")
	other, connected, done := make(chan *os.File), make(chan struct{}), make(chan struct{})
	go func() { // on a thread in the other network, which ends with it
		defer close(done)
		runtime.LockOSThread()
		check(unix.Unshare(unix.CLONE_NEWNET))
		f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		check(err)
		other <- f
		<-connected
		up("lo")
		up("there", privateServer+"/24", publicServer+"/32", sharedServer+"/32", metadata+"/32", privateSix+"/64")
		for _, a := range []string{privateServer, publicServer, sharedServer, metadata, privateSix} {
			listenEcho(t, net.JoinHostPort(a, "7"))
			c, err := net.ListenPacket("udp", net.JoinHostPort(a, "7"))
			check(err)
			t.Cleanup(func() { c.Close() })
			go func() {
				b := make([]byte, 1500)
				for {
					n, from, err := c.ReadFrom(b)
					if err != nil {
						return
					}
					_, _ = c.WriteTo(b[:n], from)
				}
			}()
		}
	}()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there", PeerNamespace: netlink.NsFd(int((<-other).Fd()))}
	check(netlink.LinkAdd(veth))
	close(connected)
	<-done
	up("here", "10.99.0.1/24", "fd99::1/64")
	link, err := netlink.LinkByName("here")
	check(err)
	for _, a := range []string{publicServer, sharedServer, metadata} {
		check(netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: &net.IPNet{IP: net.ParseIP(a).To4(), Mask: net.CIDRMask(32, 32)}}))
	}
	check(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for path, text := range map[string]string{
		"/etc/hosts":         privateServer + " db.test\n" + privateSix + " db.test\n" + metadata + " rebound.test\n",
		"/etc/resolv.conf":   "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
	} {
		file := filepath.Join(t.TempDir(), "file")
		check(os.WriteFile(file, []byte(text), 0o644))
		if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// What a function sends and gets back, through its tunnel and through a port of
// loopback.
func BenchmarkLoad(b *testing.B) {
	const size = 256 << 20
	own := ownAddress(b)
	for name, at := range map[string]string{"tunnel": own + ":0", "port": "127.0.0.1:0"} {
		b.Run(name, func(b *testing.B) {
			address := listenEcho(b, at)
			l, _ := labIn(b, network.Options{Mode: network.None, Allow: []string{address}}, name == "tunnel")
			f := l.bootstrap()
			f.MemoryMB = 1769
			b.SetBytes(size)
			for b.Loop() {
				var ms int64
				l.answer(b, f, fmt.Sprintf(`{"load":%q,"size":%d}`, address, size), &ms)
			}
		})
	}
}
