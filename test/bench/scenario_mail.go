package main

import (
	"context"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

const (
	mailRate = 500.0 // mails a second
	// mailBoxes are the subscribers: each gets at most ten mails a second.
	mailBoxes = 200
)

// runMail publishes to subscribers by mail, and lets a relay in this process take the mails.
// The relay lets the first wait until all are published.
func runMail(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	relay, err := newRelay()
	if err != nil {
		return err
	}
	defer relay.close()
	sp := specs[0]
	sp.argv = append(slices.Clip(sp.argv), "--mail-relay", "smtp://"+relay.l.Addr().String())
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	s := servers[0]
	c := newConn(s.host)
	defer c.close()
	boxes := min(mailBoxes, b.posts/10)
	topicARN, err := subscribeByMail(ctx, c, relay, boxes)
	if err != nil {
		return err
	}
	t := &table{
		title: "Mail",
		note: fmt.Sprintf("Published to %d subscribers, and taken by a relay on the same machine; from the moment when it answers the first until it has all. "+
			"No subscriber gets more than ten mails a second.", boxes),
		header: []string{"mails", "per s", "server µs/mail", "connections", "RSS MB", "twice"},
	}
	b.report.tables = append(b.report.tables, t)
	var rates []float64
	for range b.rounds {
		one, twice, err := b.mailsOnce(ctx, s, relay, c, topicARN, boxes)
		if err != nil {
			return err
		}
		rates = append(rates, one.Throughput)
		t.add(strconv.Itoa(mailsOf(b, boxes)), figure(one.Throughput), figure(one.ServerCPU), strconv.FormatInt(relay.most.Load(), 10), figure(one.RSS), strconv.FormatInt(twice, 10))
		b.judge(twice == 0, fmt.Sprintf("%d came twice", twice), "mails: each comes once")
	}
	rate := median(rates)
	b.judge(rate >= mailRate, figure(rate)+"/s", "mails to a local relay: at least %.0f/s", mailRate)
	return nil
}

// mailsOf is how many mails a round has.
func mailsOf(b *bench, boxes int) int { return max(b.posts/4/boxes, 1) * boxes }

// subscribeByMail makes a topic and its subscribers, who confirm.
func subscribeByMail(ctx context.Context, c *conn, relay *relay, boxes int) (topicARN string, err error) {
	if topicARN, err = makeTopic(c, "mails"); err != nil {
		return "", err
	}
	for i := range boxes {
		in := url.Values{"TopicArn": {topicARN}, "Protocol": {"email"}, "Endpoint": {fmt.Sprintf("box%d@example.com", i)}}
		if _, err := query(c, "", "Subscribe", in); err != nil {
			return "", err
		}
	}
	for range boxes {
		var link string
		select {
		case link = <-relay.links:
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Minute):
			return "", fmt.Errorf("not all of %d subscribers were asked to confirm", boxes)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, link, http.NoBody)
		if err != nil {
			return "", err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return "", fmt.Errorf("confirming: %s", resp.Status)
		}
	}
	return topicARN, nil
}

func (b *bench) mailsOnce(ctx context.Context, s *server, relay *relay, c *conn, topicARN string, boxes int) (one sample, twice int64, err error) {
	relay.hold()
	defer relay.release()
	before, mails := relay.taken.Load(), mailsOf(b, boxes)
	for range mails / boxes {
		if _, err := query(c, "", "Publish", url.Values{"TopicArn": {topicARN}, "Message": {"The press has stopped"}}); err != nil {
			return one, 0, err
		}
	}
	begin := readUsage(s.pid)
	relay.release()
	for relay.taken.Load()-before < int64(mails) {
		if err := pause(ctx, time.Millisecond); err != nil {
			return one, 0, err
		}
		if time.Since(begin.at) > 2*time.Minute {
			return one, 0, fmt.Errorf("of %d mails %d came", mails, relay.taken.Load()-before)
		}
	}
	end := readUsage(s.pid)
	one = sample{Throughput: float64(mails) / end.at.Sub(begin.at).Seconds()}
	one.ServerCPU = microseconds(end.server-begin.server) / float64(mails)
	one.RSS, _ = memory(s.pid)
	return one, relay.taken.Load() - before - int64(mails), nil
}

// relay takes mails by SMTP.
type relay struct {
	l      net.Listener
	server *smtp.Server
	links  chan string // of confirmations

	taken, open, most atomic.Int64

	mu   sync.Mutex
	gate chan struct{} // closed while it answers
}

func newRelay() (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{l: l, links: make(chan string, mailBoxes), gate: make(chan struct{})}
	r.release()
	r.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		n := r.open.Add(1)
		for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); most = r.most.Load() {
		}
		return relaySession{r}, nil
	}))
	r.server.Domain = "relay.example.com"
	go func() { _ = r.server.Serve(l) }() // until close
	return r, nil
}

func (r *relay) close() {
	r.release()
	_ = r.server.Close()
}

// hold has mails wait for their answers until release.
func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = make(chan struct{})
}

func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.gate:
	default:
		close(r.gate)
	}
}

type relaySession struct{ *relay }

func (relaySession) Mail(string, *smtp.MailOptions) error { return nil }
func (relaySession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (relaySession) Reset()                               {}

func (s relaySession) Logout() error {
	s.open.Add(-1)
	return nil
}

func (s relaySession) Data(in io.Reader) error {
	m, err := mail.ReadMessage(in)
	if err != nil {
		return err
	}
	if !strings.Contains(m.Header.Get("Subject"), "Confirmation") {
		if _, err := io.Copy(io.Discard, m.Body); err != nil {
			return err
		}
		s.mu.Lock()
		gate := s.gate
		s.mu.Unlock()
		<-gate
		s.taken.Add(1)
		return nil
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		return err
	}
	s.links <- regexp.MustCompile(`http://\S+`).FindString(string(text))
	return nil
}
