package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// network is what lies between the server and its endpoints. What happens to a request
// follows from the seed, the host, what it carries and how often that came before, and
// not from the order in which requests come.
type network struct {
	seed  uint64
	hosts map[string]endpoint

	mu      sync.Mutex // guards what follows
	well    bool       // nothing fails any more
	down    map[string]bool
	tries   map[string]int // by host and what is carried
	refused map[string]int // dials by host
	note    func(attempt)
}

// endpoint answers what it is sent: status and body, of a request that arrived.
type endpoint func(r *request) (status int, header http.Header, body string)

type request struct {
	host, path string
	header     http.Header
	body       []byte
	fate       fate
}

// attempt is one request as the network saw it.
type attempt struct {
	host, key string
	try       int
	fate      fate
	status    int // that the endpoint answered; 0: none
	answered  bool
	came      time.Time // the clock's
	at        time.Time // bubble's, of its end
}

// fate is what becomes of a request.
type fate int

const (
	arrives  fate = iota
	fails         // with a server's error
	forbids       // with a client's error, which is not retried
	hangs         // without an answer
	cuts          // the connection ends before the answer
	halves        // in the middle of the answer
	loses         // after the endpoint has done its work
	perishes      // as the server does
)

func (f fate) String() string {
	return [...]string{"arrives", "fails", "forbids", "hangs", "cuts", "halves", "loses", "perishes"}[f]
}

func newNetwork(seed uint64, note func(attempt)) *network {
	return &network{
		seed: seed, hosts: map[string]endpoint{}, down: map[string]bool{}, tries: map[string]int{}, refused: map[string]int{}, note: note,
	}
}

func (n *network) draw(parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, n.seed)
	for _, p := range parts {
		fmt.Fprint(h, "|", p)
	}
	x := h.Sum64()
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// dialer makes connections for a machine that may die.
func (n *network) dialer(dead func() bool, now func() time.Time) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.hosts[host] == nil || n.down[host] || dead() {
			if !dead() {
				n.refused[host]++
			}
			return nil, syscall.ECONNREFUSED
		}
		ours, theirs := net.Pipe()
		go n.serve(host, theirs, dead, now)
		return ours, nil
	}
}

// serve answers one request, since what happens to the next must not depend on this
// connection.
func (n *network) serve(host string, c net.Conn, dead func() bool, now func() time.Time) {
	defer c.Close()
	in, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	body, err := io.ReadAll(in.Body)
	if err != nil || dead() {
		return
	}
	key := carried(body)
	n.mu.Lock()
	at := host + " " + key
	n.tries[at]++
	try := n.tries[at]
	n.mu.Unlock()
	a := attempt{host: host, key: key, try: try, came: now()}
	drawn := n.draw(host, key, try)
	a.fate = arrives
	n.mu.Lock()
	if !n.well && drawn%2 == 0 {
		a.fate = fate(drawn / 2 % uint64(perishes))
		if a.fate == forbids && drawn/64%4 > 0 {
			a.fate = fails
		}
	}
	answer := n.hosts[host]
	n.mu.Unlock()
	// No two of the world's answers come at the same moment.
	time.Sleep(time.Duration(drawn>>20%uint64(40*time.Millisecond)) + time.Duration(try))
	a.status = n.answer(host, in, body, a.fate, answer, c, &a, dead)
	a.at = time.Now()
	if dead() {
		a.fate = perishes
	}
	n.note(a)
}

func (n *network) answer(host string, in *http.Request, body []byte, f fate, e endpoint, c net.Conn, a *attempt, dead func() bool) int {
	if dead() {
		return 0
	}
	switch f {
	case hangs:
		_, _ = io.Copy(io.Discard, c) // until the server has had enough
		return 0
	case cuts:
		return 0
	default:
	}
	status, header, text := e(&request{host: host, path: in.URL.Path, header: in.Header, body: body, fate: f})
	if f == loses {
		return status
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d Simulated\r\nContent-Length: %d\r\nConnection: close\r\n", status, len(text))
	_ = header.Write(&out)
	out.WriteString("\r\n" + text)
	whole := out.Bytes()
	if f == halves {
		whole = whole[:10]
	}
	if _, err := c.Write(whole); err == nil && f != halves {
		a.answered = true
	}
	return status
}

// carried names what a request carries: the token of a message, or tokens of a batch.
func carried(body []byte) string {
	var b struct {
		Message string
		RawData []byte `json:"rawData"` // of the first line of an object
		Records []struct {
			Data []byte `json:"data"`
			Body string `json:"body"`
			Sns  struct{ Message string }
		}
	}
	line, _, _ := bytes.Cut(body, []byte("\n"))
	if json.Unmarshal(body, &b) == nil || json.Unmarshal(line, &b) == nil {
		if len(b.RawData) > 0 {
			return token(string(b.RawData))
		}
		if len(b.Records) > 0 {
			var tokens []string
			for _, r := range b.Records {
				tokens = append(tokens, token(string(r.Data)+r.Body+r.Sns.Message))
			}
			return strings.Join(tokens, "+")
		}
		if b.Message != "" {
			return token(b.Message)
		}
		var text string
		if json.Unmarshal(body, &text) == nil {
			return token(text)
		}
	}
	return token(string(body))
}

// requestID names a request of a delivery stream.
const requestID = "X-Amz-Firehose-Request-Id"

// token is what a message's body begins with, and names it.
func token(body string) string {
	t, _, _ := strings.Cut(body, " ")
	return strings.Trim(t, `"`)
}
