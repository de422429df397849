package cluster_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"godwit.dev/godwit/test/output"
	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/sdkhttp"
)

// machines are three nodes as production runs them, each with a certificate of its own.
type machines struct {
	t       *testing.T
	dir     string
	port    int
	running map[string]*exec.Cmd
	args    func(node string) []string // more of them; nil: none
	on      map[string]string          // addresses of the nodes; nil: loopback
	under   func(node string) []string // the command that runs a node; nil: none
	version map[string]string          // the programs of nodes that run another one; nil: none does
	out     output.Buffer
	key     struct{ AccessKeyID, SecretAccessKey string }
}

var names = []string{"a", "b", "c"}

// port of a node: of clients, or of its log, with that of peers behind it.
func (m *machines) clients(node string) int { return m.port + strings.Index("abcde", node) }
func (m *machines) peers(node string) int   { return m.port + 10 + 2*strings.Index("abcde", node) }

func (m *machines) path(parts ...string) string {
	return filepath.Join(append([]string{m.dir}, parts...)...)
}

// host is the address of a node's machine.
func (m *machines) host(node string) string {
	if at, ok := m.on[node]; ok {
		return at
	}
	return "127.0.0.1"
}

// address of a node, as --cluster-peers has it.
func (m *machines) address(node string) string {
	return fmt.Sprintf("%s=%s:%d", node, m.host(node), m.peers(node))
}

// list is the --cluster-peers of a node: one that comes later has itself, too.
func (m *machines) list(node string) string {
	var all []string
	for _, node := range names {
		all = append(all, m.address(node))
	}
	if !slices.Contains(names, node) {
		all = append(all, m.address(node))
	}
	return strings.Join(all, ",")
}

// godwit runs a command, and returns what it prints.
func (m *machines) godwit(args ...string) (string, error) { return m.within(testTimeout, args...) }

// within is godwit for a command that may take so long.
func (m *machines) within(d time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), d)
	defer cancel()
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = fmt.Errorf("it does not end within %v: %w", d, err)
	}
	if err != nil {
		err = fmt.Errorf("godwit %s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(string(out)), err
}

func (m *machines) must(args ...string) string {
	m.t.Helper()
	out, err := m.godwit(args...)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// start starts a node.
func (m *machines) start(node string) {
	m.t.Helper()
	cmd := exec.Command(cmp.Or(m.version[node], binary), "serve", "--config", m.path("godwit.yaml"), "--data", m.path("data-"+node),
		"--listen", fmt.Sprintf("%s:%d", m.host(node), m.clients(node)), "--log-level", "info",
		"--cluster-peers", m.list(node), "--node", node, "--cluster-dir", m.path("identity-"+node))
	if !slices.Contains(names, node) {
		cmd.Args = append(cmd.Args, "--cluster-join")
	}
	if m.args != nil {
		cmd.Args = append(cmd.Args, m.args(node)...)
	}
	if m.under != nil {
		cmd = exec.Command(m.under(node)[0], append(m.under(node)[1:], cmd.Args...)...)
	}
	cmd.Stdout, cmd.Stderr = &m.out, &m.out
	cmd.WaitDelay = testTimeout // for its output, which a process that it has started may hold open
	if err := cmd.Start(); err != nil {
		m.t.Error(err)
		return
	}
	m.running[node] = cmd
}

func (m *machines) stop() {
	for _, cmd := range m.running {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	for node, cmd := range m.running {
		over := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(over)
		}()
		select {
		case <-over:
		case <-time.After(testTimeout):
			m.t.Errorf("node %s did not stop", node)
			_ = cmd.Process.Kill()
			<-over
		}
	}
}

func (m *machines) status(node string) (s status) {
	// One that is stopped does not answer; others are asked then.
	out, err := m.within(20*time.Second, "cluster", "status", "--dir", m.path("identity-a"), "--node", "a", "--from", fmt.Sprintf("%s=%s:%d", node, m.host(node), m.peers(node)), "-o", "json")
	if err != nil || json.Unmarshal([]byte(out), &s) != nil {
		return status{}
	}
	return s
}

func (m *machines) eventually(what string, stands func(status) bool) status {
	m.t.Helper()
	over := time.Now().Add(testTimeout)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var last status
		for _, node := range names {
			s := m.status(node)
			if stands(s) {
				return s
			}
			if len(s.Nodes) > 0 {
				last = s
			}
		}
		if time.Now().After(over) {
			m.t.Fatalf("%s: not within %v; last: %+v", what, testTimeout, last)
		}
		<-tick.C
	}
}

func (m *machines) client(node, secret string) *sqs.Client {
	return sqs.New(sqs.Options{
		HTTPClient:   sdkhttp.Of(bounded),
		BaseEndpoint: aws.String(fmt.Sprintf("http://%s:%d", m.host(node), m.clients(node))), Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(m.key.AccessKeyID, secret, ""),
	})
}

// TestSecured: three nodes of production that know each other by certificates. Any of them
// answers who signs with a known key, and no other; strangers learn nothing at the ports
// that nodes have for each other; a node that is killed comes back.
func TestSecured(t *testing.T) {
	programs.Allow(t)
	m := &machines{t: t, dir: t.TempDir(), port: freePorts(t), running: map[string]*exec.Cmd{}}
	if err := json.Unmarshal([]byte(m.must("init", "--dir", m.dir, "--data", m.path("data"), "-o", "json")), &m.key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.stop()
		if t.Failed() {
			t.Logf("what the nodes told:\n%s", m.out.String())
		}
	})
	m.join()

	secret := m.key.SecretAccessKey
	out, err := m.client("a", secret).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range names {
		if _, err := m.client(node, secret).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: aws.String("through " + node)}); err != nil {
			t.Errorf("a message through %s: %v", node, err)
		}
		_, err := m.client(node, secret+"x").SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: aws.String("forged")})
		if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != "SignatureDoesNotMatch" {
			t.Errorf("a wrong signature, to %s: %v", node, err)
		}
	}
	m.strangers()
	m.clientsGetNoCertificate()

	victim := m.eventually("a node serves", func(s status) bool { return s.serving() != nil }).serving().Name
	_ = m.running[victim].Process.Kill()
	_ = m.running[victim].Wait()
	m.start(victim)
	m.eventually("all nodes are back", status.whole)
	want := map[string]bool{"through a": true, "through b": true, "through c": true}
	if others := receiveAll(t, m.client(victim, secret), out.QueueUrl, want); slices.Contains(others, "forged") {
		t.Error("a forged message is there")
	}
}

// join makes the nodes' certificates and starts them.
func (m *machines) join() {
	m.t.Helper()
	m.must("cluster", "init", "--dir", m.path("identity-a"), "--node", "a")
	m.start("a")
	m.eventually("the first node answers", func(s status) bool { return len(s.Nodes) == 3 })
	for _, node := range []string{"b", "c"} {
		token := m.letIn(node)
		if _, err := m.godwit("cluster", "join", "--dir", m.path("again-"+node), "--node", node, "--from", fmt.Sprintf("%s:%d", m.host("a"), m.peers("a")), "--token", token); err == nil {
			m.t.Error("a token is of use twice")
		}
		m.start(node)
	}
	m.eventually("all nodes follow", status.whole)
}

// letIn makes a node's certificate.
func (m *machines) letIn(node string) (token string) {
	m.t.Helper()
	token = m.must("cluster", "token", "--dir", m.path("identity-a"), "--node", node)
	m.must("cluster", "join", "--dir", m.path("identity-"+node), "--node", node, "--from", fmt.Sprintf("%s:%d", m.host("a"), m.peers("a")), "--token", token)
	return token
}

// strangers asks, at the port that a node has for peers, what only peers may.
func (m *machines) strangers() {
	m.t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for _, path := range []string{"/_godwit/v1/cluster", "/snapshot", "/", "/?Action=ListQueues"} {
		for _, forwarded := range []string{"", "b"} {
			r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d%s", m.peers("a")+1, path), nil)
			if err != nil {
				m.t.Fatal(err)
			}
			if forwarded != "" {
				r.Header.Set("X-Godwit-Forwarded", forwarded)
				r.Header.Set("X-Godwit-Source", "127.0.0.1:1")
			}
			answer, err := client.Do(r)
			if err != nil {
				continue // no answer at all
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusForbidden {
				m.t.Errorf("a stranger asks %s: %s %s", path, answer.Status, text)
			}
		}
	}
}

// clientsGetNoCertificate asks, at the ports for clients, for certificates of all nodes, which only nodes
// get from the one that has the authority: also where that one owns the state, and gets the question
// from a node that forwards it.
func (m *machines) clientsGetNoCertificate() {
	m.t.Helper()
	for range 5 {
		if m.owner() != "a" {
			m.change("step-down")
		}
	}
	if owner := m.owner(); owner != "a" {
		m.t.Fatalf("%s owns the state, and not the node with the authority", owner)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, at := range names {
		for _, of := range names {
			question, err := json.Marshal(map[string]any{"node": of, "request": request})
			if err != nil {
				m.t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/renew", m.clients(at)), bytes.NewReader(question))
			if err != nil {
				m.t.Fatal(err)
			}
			answer, err := bounded.Do(r)
			if err != nil {
				m.t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK || bytes.Contains(text, []byte("CERTIFICATE")) {
				m.t.Errorf("a client at %s asks for a certificate of %s: %s %s", at, of, answer.Status, text)
			}
		}
	}
}
