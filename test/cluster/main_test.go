// Package cluster_test drives a cluster of three processes from outside, with real disks
// and the real log: it kills and stops nodes while clients send and receive, and holds
// the answers against what comes out.
//
// What is random comes from a seed, and the command that draws the same again is
// printed. How the machine interleaves it is not repeated.
package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/built"
	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/sdkhttp"
)

const nodes = 3

// testTimeout bounds every wait for something that takes some seconds, on a machine that may
// have much else to do.
const testTimeout = 2 * time.Minute

var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "godwit-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = built.Server(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// cluster is three nodes, and the process that keeps them.
type cluster struct {
	t        *testing.T
	port     int
	cmd      *exec.Cmd
	out      output.Buffer
	over     chan struct{}
	attempts int // of a client at a request; 0: as many as the SDK makes by itself
}

// blocks counts the blocks of ports that were given to tests, from a random one on.
var blocks atomic.Int64

func init() { blocks.Store(rand.Int64N(blockCount)) }

// Other packages, which run at the same time, take the ports from 15,000 on.
const (
	firstBlock = 10_000
	blockSize  = 25
	blockCount = 200
)

// freePorts finds a port such that all that nodes take from there on are free, and that
// the kernel does not give to outgoing connections: they must be free after a restart.
func freePorts(t *testing.T) int {
	t.Helper()
	first, last := 32_768, 60_999
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &first, &last)
	}
search:
	for range 1000 {
		port := firstBlock + blockSize*int(blocks.Add(1)%blockCount)
		if first-20 <= port && port <= last && last-first < 50_000 {
			continue
		}
		for _, behind := range []int{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+behind))
			if err != nil {
				continue search
			}
			l.Close()
		}
		return port
	}
	t.Fatal("no free ports")
	return 0
}

// start starts a cluster on a directory, with more flags.
func start(t *testing.T, port int, data string, flags ...string) *cluster {
	t.Helper()
	return startBy(t, port, exec.Command(binary, append([]string{"dev", "--nodes", fmt.Sprint(nodes), "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--data", data, "--log-level", "info"}, flags...)...))
}

// startBy starts a cluster by a command.
func startBy(t *testing.T, port int, cmd *exec.Cmd) *cluster {
	t.Helper()
	c := &cluster{t: t, port: port, cmd: cmd, over: make(chan struct{})}
	c.run()
	c.eventually("a node serves", func(s status) bool { return s.serving() != nil })
	return c
}

// run starts the process, and ends it with the test.
func (c *cluster) run() {
	c.t.Helper()
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.out
	c.cmd.WaitDelay = testTimeout // for its output, which a process that it has started may hold open
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.over)
	}()
	c.t.Cleanup(func() {
		c.stop()
		if c.t.Failed() {
			c.t.Logf("what the nodes told:\n%s", c.out.String())
		}
	})
}

// stop ends all nodes, as Ctrl-C does.
func (c *cluster) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.over:
	case <-time.After(testTimeout):
		c.t.Error("the cluster did not stop")
		_ = c.cmd.Process.Kill()
		<-c.over
	}
}

type nodeStatus struct {
	Name, URL, State  string
	PID               int
	Number, Lag       uint64
	Needs             uint64
	Fresh, LogStopped bool
}

type status struct {
	Nodes []nodeStatus
	Cells []struct {
		Owner         string
		Epoch, Number uint64
		LogFirst      uint64
	}
}

func (s status) serving() *nodeStatus {
	for i := range s.Nodes {
		if s.Nodes[i].State == "serving" {
			return &s.Nodes[i]
		}
	}
	return nil
}

// epoch counts the owners of the state so far.
func (s status) epoch() uint64 {
	if len(s.Cells) == 0 {
		return 0
	}
	return s.Cells[0].Epoch
}

// whole reports that every node is there and has all there is.
func (s status) whole() bool {
	for _, n := range s.Nodes {
		if n.State != "serving" && n.State != "following" || n.Lag > 100 || n.LogStopped {
			return false
		}
	}
	return s.serving() != nil
}

func (c *cluster) url(node int) string { return fmt.Sprintf("http://127.0.0.1:%d", c.port+node) }

// status asks any node that answers.
func (c *cluster) status() (s status) {
	for node := range nodes {
		client := http.Client{Timeout: 3 * time.Second}
		answer, err := client.Get(c.url(node) + "/_godwit/v1/cluster")
		if err != nil {
			continue
		}
		err = json.NewDecoder(answer.Body).Decode(&s)
		answer.Body.Close()
		if err == nil {
			return s
		}
	}
	return s
}

// eventually waits until the cluster stands as it should.
func (c *cluster) eventually(what string, stands func(status) bool) status {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s := c.status()
		if stands(s) {
			return s
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatalf("%s: not within %v; last: %+v", what, testTimeout, s)
		}
	}
}

// bounded is the HTTP client of all others: a request that a node never answers fails, and does
// not end the test with go test's time. Its connections serve all, however many clients there are.
var bounded = &http.Client{Timeout: testTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}}

// receiveAll receives from a queue until all that is wanted has come, or nothing new for long:
// how long all of it takes depends on how much was sent, and on the machine. It returns what
// else came, or came again.
func receiveAll(t *testing.T, client *sqs.Client, queue *string, want map[string]bool) (others []string) {
	t.Helper()
	for over := time.Now().Add(testTimeout); len(want) > 0; {
		got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 2, VisibilityTimeout: 1800})
		if err != nil {
			t.Fatalf("%d messages are missing: %v", len(want), err)
		}
		before := len(want)
		for _, m := range got.Messages {
			if !want[*m.Body] {
				others = append(others, *m.Body)
			}
			delete(want, *m.Body)
		}
		if len(want) < before {
			over = time.Now().Add(testTimeout)
		} else if time.Now().After(over) {
			t.Fatalf("%d messages are missing, such as %q", len(want), slices.Sorted(maps.Keys(want))[0])
		}
	}
	return others
}

// client is an SDK's client of one node, which tries again as SDKs do.
func (c *cluster) client(node int) *sqs.Client {
	return sqs.New(sqs.Options{
		HTTPClient:   sdkhttp.Of(bounded),
		BaseEndpoint: aws.String(c.url(node)), Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		RetryMaxAttempts: c.attempts,
	})
}
