package cluster_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/soak"
)

// network is three machines, each in a network namespace of its own, at a bridge. The test,
// and clients, are at the bridge, too.
type network struct {
	*machines
	*supervisor
	tag string // in the names of what the kernel has
	r   *rand.Rand
}

// How long TestNetwork goes on: until there were so many faults, and so many messages were
// acknowledged, or until its time is over.
var (
	campaignFaults   = flag.Int("faults", 0, "faults of TestNetwork; 0: each kind once, or 200 when soaking")
	campaignMessages = flag.Int("messages", 0, "messages that TestNetwork sends at least")
	campaignLoad     = flag.Int("load", 1, "so many times nine clients send to TestNetwork's nodes, and as many receive")
	campaignCalm     = flag.Duration("calm", 0, "for how long all nodes of TestNetwork serve between two faults")
	campaignTime     = flag.Duration("for", 0, "after which TestNetwork begins no further fault; 0: it has no end")
)

// diskSize is what a machine's disk has; it is in memory.
const diskSize = "1g"

func (n *network) client(node int) *sqs.Client {
	return n.machines.client(names[node], n.key.SecretAccessKey)
}

func (n *network) space(node string) string { return "godwit" + n.tag + node }
func (n *network) link(node string) string  { return "gw" + n.tag + node }
func (n *network) bridge() string           { return "gwb" + n.tag }

// ip runs the program of that name.
func (n *network) ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (n *network) must(args ...string) {
	n.t.Helper()
	if err := n.ip(args...); err != nil {
		n.t.Error(err)
	}
}

// wire makes the machines.
func (n *network) wire(subnet string) error {
	err := n.ip("link", "add", n.bridge(), "type", "bridge")
	n.t.Cleanup(func() { _ = n.ip("link", "delete", n.bridge()) })
	err = errors.Join(err, n.ip("address", "add", subnet+".254/24", "dev", n.bridge()), n.ip("link", "set", n.bridge(), "up"))
	for i, node := range names {
		n.on[node] = fmt.Sprintf("%s.%d", subnet, i+1)
		space, link := n.space(node), n.link(node)
		err = errors.Join(err, n.ip("netns", "add", space))
		n.t.Cleanup(func() { _ = n.ip("netns", "delete", space) })
		err = errors.Join(err, n.ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space),
			n.ip("link", "set", link, "master", n.bridge()), n.ip("link", "set", link, "up"),
			n.ip("-n", space, "address", "add", n.on[node]+"/24", "dev", "eth0"),
			n.ip("-n", space, "link", "set", "eth0", "up"), n.ip("-n", space, "link", "set", "lo", "up"))
		disk := n.path("data-" + node)
		err = errors.Join(err, os.Mkdir(disk, 0o700))
		if err == nil {
			err = syscall.Mount("tmpfs", disk, "tmpfs", 0, "mode=0700,size="+diskSize)
			n.t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		}
	}
	return err
}

// fault happens to a node, and to another one; heal ends it.
type fault struct {
	what string
	do   func(n *network, node, other string) (heal func())
}

// stopping is the fault that may last longest: what others took from a node that is stopped
// is another's when it goes on.
const stopping = "it is stopped"

var faults = []fault{
	{"its link is down", func(n *network, node, _ string) func() {
		n.must("link", "set", n.link(node), "down")
		return func() { n.must("link", "set", n.link(node), "up") }
	}},
	{"it cannot send to another", func(n *network, node, other string) func() {
		n.must("-n", n.space(node), "route", "add", "blackhole", n.on[other]+"/32")
		return func() { n.must("-n", n.space(node), "route", "delete", "blackhole", n.on[other]+"/32") }
	}},
	{"it can send to no other node, and hears them", func(n *network, node, _ string) func() {
		route := func(what string) {
			for _, other := range names {
				if other != node {
					n.must("-n", n.space(node), "route", what, "blackhole", n.on[other]+"/32")
				}
			}
		}
		route("add")
		return func() { route("delete") }
	}},
	{"it and another are cut off from each other", func(n *network, node, other string) func() {
		isolate := func(how string) {
			for _, at := range []string{node, other} {
				n.must("link", "set", n.link(at), "type", "bridge_slave", "isolated", how)
			}
		}
		isolate("on")
		return func() { isolate("off") }
	}},
	{"it is killed", func(n *network, node, _ string) func() {
		n.signal(node, syscall.SIGKILL)
		return func() {}
	}},
	{"it and another are killed", func(n *network, node, other string) func() {
		n.signal(node, syscall.SIGKILL)
		n.signal(other, syscall.SIGKILL)
		return func() {}
	}},
	{"all are killed", func(n *network, _, _ string) func() {
		for _, node := range names {
			n.signal(node, syscall.SIGKILL)
		}
		return func() {}
	}},
	{stopping, func(n *network, node, _ string) func() {
		n.signal(node, syscall.SIGSTOP)
		return func() { n.signal(node, syscall.SIGCONT) }
	}},
	{"its store is damaged, and it is killed", func(n *network, node, _ string) func() {
		n.signal(node, syscall.SIGSTOP)
		damage(n.t, filepath.Join(n.path("data-"+node), "store"))
		n.signal(node, syscall.SIGKILL)
		return func() {}
	}},
	{"its disk is full", func(n *network, node, _ string) func() {
		ballast := filepath.Join(n.path("data-"+node), "ballast")
		f, err := os.Create(ballast)
		if err != nil {
			n.t.Error(err)
			return func() {}
		}
		defer f.Close()
		if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
			n.t.Errorf("the disk is not full: %v", err)
		}
		return func() {
			if err := os.Remove(ballast); err != nil {
				n.t.Error(err)
			}
		}
	}},
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestNetwork: links go down, packets get lost in one direction or between two nodes only,
// nodes are killed, one, two and all at once, and stopped, and disks fill, while clients send
// and receive through all nodes. Nothing that was acknowledged is lost, nothing is invented,
// and FIFO queues are such queues. In between all nodes come back and have all.
func TestNetwork(t *testing.T) {
	programs.Need(t, "ip")
	if os.Geteuid() != 0 {
		programs.Skip(t, "networks of their own are for root to make")
	}
	seed := soak.Seed(t)
	n := &network{
		machines: &machines{t: t, dir: t.TempDir(), port: 14_560, running: map[string]*exec.Cmd{}, on: map[string]string{}},
		tag:      fmt.Sprintf("%06x", os.Getpid()&0xffffff), r: soak.Rand(seed, 0),
	}
	if err := json.Unmarshal([]byte(n.machines.must("init", "--dir", n.dir, "--data", n.path("data"), "-o", "json")), &n.key); err != nil {
		t.Fatal(err)
	}
	if err := n.wire(fmt.Sprintf("10.213.%d", os.Getpid()%250)); err != nil {
		programs.Skip(t, fmt.Sprintf("networks cannot be made here: %v", err))
	}
	n.under = func(node string) []string { return []string{"ip", "netns", "exec", n.space(node)} }
	n.args = func(string) []string { return []string{"--allow-plain-http"} }
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the nodes told:\n%s", n.out.String())
		}
	})
	t.Cleanup(n.machines.stop)
	n.join()
	n.supervisor = n.supervise()
	l := newLoad(t, n, *campaignLoad)
	c := &campaign{network: n, load: l, order: n.r.Perm(len(faults)), seed: seed, began: time.Now(), count: map[string]int{}}
	for c.goesOn(cmp.Or(*campaignFaults, soak.Rounds(t, len(faults), 200))) {
		c.fault()
	}
	n.eventually("all nodes are back", status.whole)
	l.runOut()
	t.Log(c)
}

// campaign is what TestNetwork has done.
type campaign struct {
	*network
	load  *load
	order []int // of the kinds of faults
	seed  uint64
	began time.Time
	done  int
	count map[string]int // of faults, by kind
	owner int            // how many met the owner
}

func (c *campaign) goesOn(faults int) bool {
	if *campaignTime > 0 && time.Since(c.began) > *campaignTime || c.t.Failed() {
		return false
	}
	return c.done < faults || c.load.sent() < *campaignMessages
}

// fault has something happen to a node, every other time to the owner, and waits until it is
// over.
func (c *campaign) fault() {
	c.eventually("all nodes are back", status.whole)
	time.Sleep(*campaignCalm)
	s := c.eventually("all nodes are back", status.whole)
	at := c.r.Perm(len(names))
	node, other := names[at[0]], names[at[1]]
	if c.done%2 == 0 {
		node = s.serving().Name
		other = names[(slices.Index(names, node)+1+c.r.IntN(len(names)-1))%len(names)]
	}
	f := faults[c.order[c.done%len(faults)]]
	d := time.Duration(1000+c.r.IntN(4000)) * time.Millisecond
	if f.what == stopping && soak.Enabled() && c.r.IntN(3) == 0 {
		d = time.Duration(5+c.r.IntN(56)) * time.Second
	}
	c.t.Logf("%v, %d messages: node %s, which is %s (the other is %s): %s, for %v",
		time.Since(c.began).Round(time.Second), c.load.sent(), node, s.state(node), other, f.what, d)
	c.done++
	c.count[f.what]++
	if s.state(node) == "serving" {
		c.owner++
	}
	heal := f.do(c.network, node, other)
	time.Sleep(d)
	heal()
}

// String is what was done, for docs/reliability.md.
func (c *campaign) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d faults in %v, %d of them at the owner", c.seed, c.done, time.Since(c.began).Round(time.Second), c.owner)
	for _, f := range faults {
		fmt.Fprintf(&b, "\n  %3d  %s", c.count[f.what], f.what)
	}
	return b.String()
}
