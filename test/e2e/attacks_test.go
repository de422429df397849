//go:build linux

package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/test/soak"
)

// peer is a connection that a test misuses.
type peer struct{ net.Conn }

func dialPeer(t *testing.T, addr string) peer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if !soak.Enabled() { // then it may last
		_ = c.SetDeadline(time.Now().Add(3 * testTimeout))
	}
	return peer{c}
}

// post is a request's head and what is sent of its body.
func post(path string, header map[string]string, length int, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n", path, length)
	for name, value := range header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	return b.String() + "\r\n" + body
}

func sqsPost(operation string, in any) string {
	body, _ := json.Marshal(in)
	return post("/", sqsJSON.header(operation), len(body), string(body))
}

// memory is what a process has resident now, and at most had, in bytes.
func (p *process) memory(t *testing.T) (now, most int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) int64 {
		n, _ := strconv.ParseInt(regexp.MustCompile(name + `:\s+(\d+) kB`).FindStringSubmatch(string(text))[1], 10, 64)
		return n << 10
	}
	return value("VmRSS"), value("VmHWM")
}

// limitOf reads a limit's value from the metrics.
func (p *process) limitOf(t *testing.T, value, limit string) int64 {
	t.Helper()
	a, err := p.call(t.Context(), http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^godwit_limit_` + value + `\{limit="` + limit + `"\} (\S+)$`).FindSubmatch(a.body)
	if found == nil {
		t.Fatalf("no godwit_limit_%s of %s", value, limit)
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(n)
}

// serves sees that a queue of its own takes and gives messages.
func (p *process) serves(t *testing.T, queue string) {
	t.Helper()
	p.send(t, queue, "still there")
	got, err := p.receive(t.Context(), queue, 5)
	if err != nil || len(got) == 0 {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	for _, m := range got {
		p.mustSQS(t, "DeleteMessage", object{"QueueUrl": queue, "ReceiptHandle": m.ReceiptHandle}, nil)
	}
}

func (p *process) send(t *testing.T, queue, body string) {
	t.Helper()
	p.mustSQS(t, "SendMessage", object{"QueueUrl": queue, "MessageBody": body}, nil)
}

// Connections that receive ten messages of 1 MB each and read nothing of them take
// bounded memory and time from the others, and get cut off. What they were given is
// received again, and counts.
func TestReceiversThatDoNotRead(t *testing.T) {
	connections := soak.Rounds(t, 12, 300)
	var flags []string
	if !soak.Enabled() {
		flags = []string{"--max-bytes-in-flight", "134217728", "--transfer-window", "1s"}
	}
	p := start(t, flags...)
	large, other := p.createQueue(t, "large"), p.createQueue(t, "other")
	for i := range 10 {
		p.send(t, large, strings.Repeat(string(rune('a'+i)), 1<<20-1))
	}
	before, _ := p.memory(t)
	most := int64(0) // of what was reserved for answers
	for n := range connections {
		c := dialPeer(t, p.addr)
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := io.WriteString(c, sqsPost("ReceiveMessage", object{"QueueUrl": large, "MaxNumberOfMessages": 10, "VisibilityTimeout": 0})); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			continue
		}
		// The first is given all ten messages: the others would share them, and have so
		// little each that the kernel takes it.
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		most = p.limitOf(t, "used", "answer_bytes")
		eventually(t, "the messages can be received again", func() (bool, error) {
			var out struct{ Attributes map[string]string }
			p.mustSQS(t, "GetQueueAttributes", object{"QueueUrl": large, "AttributeNames": []string{"ApproximateNumberOfMessages"}}, &out)
			return out.Attributes["ApproximateNumberOfMessages"] == "10", fmt.Errorf("%v", out.Attributes)
		})
	}
	began, slowest := time.Now(), time.Duration(0)
	for over := false; !over; {
		at := time.Now()
		p.serves(t, other)
		slowest = max(slowest, time.Since(at))
		most = max(most, p.limitOf(t, "used", "answer_bytes"))
		done := p.limitOf(t, "used", "answer_bytes") == 0
		over = done && time.Since(began) > 3*time.Second || time.Since(began) > testTimeout
	}
	t.Logf("over after %s; others waited up to %s; up to %d MiB were reserved, %d connections cut to make room, %d receives refused",
		time.Since(began), slowest, most>>20, p.limitOf(t, "cut_total", "answer_bytes"), p.limitOf(t, "refused_total", "answer_bytes"))
	// Of an answer of 10 MB the kernel takes 3 to 4 MB.
	if limit := p.limitOf(t, "max", "answer_bytes"); most > limit || most < 4<<20 {
		t.Errorf("%d bytes were reserved, of %d", most, limit)
	}
	if left := p.limitOf(t, "used", "answer_bytes"); left != 0 {
		t.Errorf("%d bytes are still reserved", left)
	}
	_, peak := p.memory(t)
	t.Logf("%d MiB before, %d MiB at most", before>>20, peak>>20)
	if peak > 1<<30 {
		t.Errorf("the server had %d MiB", peak>>20)
	}
	if soak.Enabled() {
		eventually(t, "the memory is given back", func() (bool, error) {
			now, _ := p.memory(t)
			return now < 200<<20, fmt.Errorf("%d MiB", now>>20)
		})
		now, _ := p.memory(t)
		t.Logf("%d MiB after %s", now>>20, time.Since(began))
		if time.Since(began) > time.Minute+30*time.Second {
			t.Error("memory was not given back in a minute")
		}
	}
	count := 0
	for deadline := time.Now().Add(testTimeout); count < 10 && time.Now().Before(deadline); {
		var out struct {
			Messages []struct {
				ReceiptHandle string
				Attributes    map[string]string
			}
		}
		p.mustSQS(t, "ReceiveMessage", object{
			"QueueUrl": large, "MaxNumberOfMessages": 10, "MessageSystemAttributeNames": []string{"All"},
		}, &out)
		for _, m := range out.Messages {
			count++
			if n, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); n < 2 {
				t.Errorf("received %d times", n)
			}
		}
	}
	if count != 10 {
		t.Errorf("%d messages are left", count)
	}
}

// By HTTP/2, answers that are not read are given up one by one, although their
// connection continues with others; over TLS without it, their connections are cut off.
func TestReceiversThatDoNotReadOverTLS(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			connections := soak.Rounds(t, 8, 300)
			a := newAuthority(t)
			cert, key := a.files(t, t.TempDir())
			flags := []string{"--tls-cert", cert, "--tls-key", key}
			if !soak.Enabled() {
				flags = append(flags, "--max-bytes-in-flight", "134217728", "--transfer-window", "2s")
			}
			addr := freeAddress(t)
			p := launch(t, addr, exec.Command(binary, arguments(addr, filepath.Join(t.TempDir(), "data"), flags...)...))
			attack := &http.Transport{
				TLSClientConfig: a.trust(), ForceAttemptHTTP2: proto == "HTTP/2.0",
				HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 1 << 20},
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					if err == nil && proto == "HTTP/1.1" { // else the windows of streams bound what is taken
						_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
					}
					return c, err
				},
			}
			defer attack.CloseIdleConnections()
			p.client = newClient(addr)
			p.base, p.http = "https://"+addr, &http.Client{Transport: &http.Transport{TLSClientConfig: a.trust(), ForceAttemptHTTP2: true}}
			p.awaitReady(t)
			large, other := p.createQueue(t, "large"), p.createQueue(t, "other")
			for i := range 10 {
				p.send(t, large, strings.Repeat(string(rune('a'+i)), 1<<20-1))
			}
			body, _ := json.Marshal(object{"QueueUrl": large, "MaxNumberOfMessages": 10, "VisibilityTimeout": 0})
			most := int64(0)
			for range connections {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+"/", strings.NewReader(string(body)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/x-amz-json-1.0")
				r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
				r.Header.Set("Authorization", signed("sqs"))
				answer, err := attack.RoundTrip(r)
				if err != nil {
					continue // cut off to make room
				}
				defer answer.Body.Close() // it is not read
				if answer.Proto != proto {
					t.Fatalf("it is %s", answer.Proto)
				}
				most = max(most, p.limitOf(t, "used", "answer_bytes"))
				p.serves(t, other)
			}
			eventually(t, "what is not read is given up", func() (bool, error) {
				p.serves(t, other)
				used := p.limitOf(t, "used", "answer_bytes")
				most = max(most, used)
				return used == 0, fmt.Errorf("%d bytes are reserved", used)
			})
			_, peak := p.memory(t)
			t.Logf("up to %d MiB were reserved, %d MiB at most resident", most>>20, peak>>20)
			if limit := p.limitOf(t, "max", "answer_bytes"); most > limit || most < 4<<20 {
				t.Errorf("%d bytes were reserved, of %d", most, limit)
			}
			if peak > 1<<30 {
				t.Errorf("the server had %d MiB", peak>>20)
			}
		})
	}
}

// Uploads that stall hold what has come of them, keep nobody waiting, and are cut off.
func TestUploadsThatStall(t *testing.T) {
	connections, sent := soak.Rounds(t, 6, 100), 9<<20
	var flags []string
	if !soak.Enabled() {
		flags = []string{"--max-bytes-in-flight", "67108864", "--transfer-window", "5s"}
	}
	p := start(t, flags...)
	queue := p.createQueue(t, "other")
	header := map[string]string{"Content-Type": "application/json", "Authorization": signed("lambda")}
	head, piece := post("/2015-03-31/functions", header, 40<<20, ""), strings.Repeat("x", sent)
	var wg sync.WaitGroup
	var took atomic.Int64
	began := time.Now()
	for range connections {
		c := dialPeer(t, p.addr)
		wg.Go(func() {
			if _, err := io.WriteString(c, head); err != nil {
				return
			}
			n, _ := io.WriteString(c, piece)
			took.Add(int64(n))
			_, _ = io.Copy(io.Discard, c) // until it is cut off
		})
	}
	pass(t.Context(), time.Second)
	p.serves(t, queue)
	// Another upload of that size has its turn.
	at := time.Now()
	for {
		a, err := p.call(t.Context(), http.MethodPost, "/2015-03-31/functions", header, []byte(`{"Code":"`+piece+`"}`))
		if err == nil && a.status == http.StatusServiceUnavailable && time.Since(at) < testTimeout {
			continue
		}
		if err != nil || a.status != http.StatusBadRequest {
			t.Errorf("%d %.200s %v", a.status, a.body, err)
		}
		break
	}
	t.Logf("another upload took %s", time.Since(at))
	if time.Since(at) > 45*time.Second {
		t.Error("it was kept waiting")
	}
	_, peak := p.memory(t)
	wg.Wait()
	now, _ := p.memory(t)
	t.Logf("%d MiB were sent; %d MiB resident at most, %d MiB when the last was cut off, after %s", took.Load()>>20, peak>>20, now>>20, time.Since(began))
	if peak > 1<<30 {
		t.Errorf("the server had %d MiB", peak>>20)
	}
	if left := p.limitOf(t, "used", "request_bytes"); left != 0 {
		t.Errorf("%d bytes are still reserved", left)
	}
}

// stalled is a body that gives what it has, and then nothing until the end.
type stalled struct {
	text io.Reader
	over <-chan struct{}
}

func (s *stalled) Read(p []byte) (int, error) {
	if n, err := s.text.Read(p); err == nil {
		return n, nil
	}
	<-s.over
	return 0, io.ErrUnexpectedEOF
}

// Uploads that stall on one connection of HTTP/2 stay within their budget, and others are
// served meanwhile, on other connections; in the end they are cut off.
func TestUploadsThatStallByHTTP2(t *testing.T) {
	const size = 1 << 20
	a := newAuthority(t)
	cert, key := a.files(t, t.TempDir())
	addr := freeAddress(t)
	flags := []string{"--tls-cert", cert, "--tls-key", key, "--max-bytes-in-flight", "67108864"}
	if !soak.Enabled() {
		flags = append(flags, "--transfer-window", "3s")
	}
	p := launch(t, addr, exec.Command(binary, arguments(addr, filepath.Join(t.TempDir(), "data"), flags...)...))
	p.client = newClient(addr)
	p.base, p.http = "https://"+addr, &http.Client{Transport: &http.Transport{TLSClientConfig: a.trust(), ForceAttemptHTTP2: true}}
	p.awaitReady(t)
	queue := p.createQueue(t, "other")
	attack := &http.Transport{TLSClientConfig: a.trust(), ForceAttemptHTTP2: true}
	defer attack.CloseIdleConnections()
	piece, over := strings.Repeat("x", size), make(chan struct{})
	var all sync.WaitGroup
	var answered atomic.Int64
	for range 100 {
		all.Go(func() {
			body := &stalled{strings.NewReader(piece), over}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+"/2015-03-31/functions", body)
			if err != nil {
				t.Error(err)
				return
			}
			r.ContentLength = 40 << 20
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", signed("lambda"))
			answer, err := attack.RoundTrip(r)
			if err != nil {
				return // cut off
			}
			answered.Add(1)
			if answer.ProtoMajor != 2 || answer.StatusCode < 400 {
				t.Errorf("%s %s", answer.Proto, answer.Status)
			}
			answer.Body.Close()
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	most, rounds := int64(0), 0
	began := time.Now()
	for open := true; open; rounds++ {
		p.serves(t, queue)
		most = max(most, p.limitOf(t, "used", "request_bytes"))
		select {
		case <-done:
			open = false
		default:
			if time.Since(began) > 2*testTimeout {
				t.Fatalf("they are not cut off within %v", 2*testTimeout)
			}
		}
	}
	close(over)
	_, peak := p.memory(t)
	t.Logf("%d of 100 were answered; up to %d MiB were reserved, %d MiB at most resident, and others were served %d times meanwhile",
		answered.Load(), most>>20, peak>>20, rounds)
	if limit := p.limitOf(t, "max", "request_bytes"); most > limit || most < 4*size {
		t.Errorf("%d bytes were reserved, of %d", most, limit)
	}
	if peak > 512<<20 {
		t.Errorf("the server had %d MiB", peak>>20)
	}
	eventually(t, "all of it is given back", func() (bool, error) {
		used, streams := p.limitOf(t, "used", "request_bytes"), p.limitOf(t, "used", "http2_requests")
		return used == 0 && streams <= 1, fmt.Errorf("%d bytes, %d requests", used, streams) // the one that asks
	})
}

// dials is how the test's binary is told to hold connections: ADDRESS,COUNT.
const dials = "GODWIT_E2E_DIALS"

// TestMainOfDialer is no test: it is what crowd runs, as one process cannot hold as
// many connections as a server can.
func TestMainOfDialer(t *testing.T) {
	addr, count, ok := strings.Cut(os.Getenv(dials), ",")
	if !ok {
		t.Skip("only run by other tests")
	}
	n, _ := strconv.Atoi(count)
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			fmt.Println("dialed", err)
			return
		}
		defer c.Close()
	}
	fmt.Println("dialed")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// crowd opens idle connections from other processes, until the test ends.
func crowd(t *testing.T, addr string, connections int) {
	t.Helper()
	const each = 10_000
	for ; connections > 0; connections -= each {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMainOfDialer$", "-test.v")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s,%d", dials, addr, min(each, connections)))
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			_ = cmd.Wait()
		})
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "dialed"); ok {
				if text != "" {
					t.Log(text)
				}
				break
			}
		}
		go func() { _, _ = io.Copy(io.Discard, out) }()
	}
}

// However many connections there are, those that ask for something are served.
func TestIdleConnections(t *testing.T) {
	connections := soak.Rounds(t, 300, 20_000)
	var flags []string
	if !soak.Enabled() {
		flags = []string{"--max-connections", "100"}
	}
	p := start(t, flags...)
	queue := p.createQueue(t, "other")
	crowd(t, p.addr, connections)
	for range 50 {
		p.serves(t, queue)
		p.client = newClient(p.addr) // a new connection
	}
	now, peak := p.memory(t)
	t.Logf("%d connections of %d, %d were closed for others; %d MiB, at most %d MiB", p.limitOf(t, "used", "connections"),
		p.limitOf(t, "max", "connections"), p.limitOf(t, "cut_total", "connections"), now>>20, peak>>20)
	if used, most := p.limitOf(t, "used", "connections"), p.limitOf(t, "max", "connections"); used > most {
		t.Errorf("%d connections of %d", used, most)
	}
}

// A server with 256 file descriptors serves, and keeps enough of them for its store and
// for endpoints.
func TestFewDescriptors(t *testing.T) {
	dir, addr := filepath.Join(t.TempDir(), "data"), freeAddress(t)
	p := launch(t, addr, exec.Command("sh", append([]string{"-c", `ulimit -n 256 && exec "$@"`, "sh", binary}, arguments(addr, dir)...)...))
	p.awaitReady(t)
	if !strings.Contains(p.stderr.String(), "the limit of open files is 256") {
		t.Errorf("it does not say that the limit is low: %s", p.stderr.String())
	}
	queue := p.createQueue(t, "q")
	topic := p.createTopic(t, "t")
	var delivered atomic.Int64
	for range 40 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var in struct{ Type, SubscribeURL string }
			if json.NewDecoder(r.Body).Decode(&in) == nil && in.Type == "SubscriptionConfirmation" {
				go func() {
					if a, err := http.Get(in.SubscribeURL); err == nil {
						a.Body.Close()
					}
				}()
				return
			}
			delivered.Add(1)
		})}
		go srv.Serve(l)
		t.Cleanup(func() { srv.Close() })
		p.subscribe(t, topic, "http", "http://"+l.Addr().String())
	}
	held := make([]net.Conn, 0, 400)
	for range cap(held) {
		if c, err := net.Dial("tcp", addr); err == nil {
			held = append(held, c)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Log(err)
		}
	}
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	p.client = newClient(addr) // the connection that it has may be closed for one of those at any moment
	publish := func() {
		if err := p.sns(t.Context(), "Publish", params{"TopicArn": topic, "Message": "news"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	body := fillerText(100_000)
	for i := range soak.Rounds(t, 600, 6000) { // several logs and tables
		p.send(t, queue, body)
		if i%100 == 0 {
			publish()
			p.client = newClient(addr)
		}
	}
	eventually(t, "web hooks are called", func() (bool, error) { publish(); return delivered.Load() >= 40, nil })
	p.serves(t, p.createQueue(t, "other"))
	select {
	case <-p.ended:
		t.Fatalf("the server ended: %s", p.cmd.ProcessState)
	default:
	}
	if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)); err == nil {
		t.Logf("%d descriptors", len(files))
	}
}
