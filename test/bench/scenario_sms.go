package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	smsRate       = 1000.0 // texts a second over one bind
	smsPublishers = 8
)

// runSMS publishes to phone numbers, and lets an SMSC in this process take the texts by
// one bind. The SMSC lets the first wait until all are published.
func runSMS(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	center, err := newSMSC()
	if err != nil {
		return err
	}
	defer center.close()
	password := filepath.Join(b.dir, "smsc.password")
	if err := os.WriteFile(password, []byte("password\n"), 0o600); err != nil {
		return err
	}
	sp := specs[0]
	sp.argv = append(slices.Clip(sp.argv), "--sms-smsc", "smpp://bench@"+center.l.Addr().String(), "--sms-password-file", password)
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	s := servers[0]
	c := newConn(s.host)
	defer c.close()
	if _, err := query(c, "", "SetSMSAttributes", url.Values{"attributes.entry.1.key": {"MonthlySpendLimit"}, "attributes.entry.1.value": {"1000000"}}); err != nil {
		return err
	}
	t := &table{
		title:  "Text messages",
		note:   "Published to phone numbers, and taken by an SMSC over one bind; from the moment when it answers the first until it has all.",
		header: []string{"texts", "per s", "server µs/text", "RSS MB", "twice"},
	}
	b.report.tables = append(b.report.tables, t)
	var rates []float64
	for range b.rounds {
		one, twice, err := b.textsOnce(ctx, s, center)
		if err != nil {
			return err
		}
		rates = append(rates, one.Throughput)
		t.add(strconv.Itoa(b.posts), figure(one.Throughput), figure(one.ServerCPU), figure(one.RSS), strconv.FormatInt(twice, 10))
		b.judge(twice == 0, fmt.Sprintf("%d came twice", twice), "text messages: each comes once")
	}
	rate := median(rates)
	b.judge(rate >= smsRate, figure(rate)+"/s", "text messages over one bind: at least %.0f/s", smsRate)
	return nil
}

func (b *bench) textsOnce(ctx context.Context, s *server, center *smsc) (one sample, twice int64, err error) {
	center.hold()
	defer center.release()
	before := center.taken.Load()
	failed := make(chan error, smsPublishers)
	for p := range smsPublishers {
		go func() {
			c := newConn(s.host)
			defer c.close()
			for i := p; i < b.posts; i += smsPublishers {
				if _, err := query(c, "", "Publish", url.Values{"PhoneNumber": {fmt.Sprintf("+1555%07d", i)}, "Message": {"The press has stopped"}}); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range smsPublishers {
		if e := <-failed; e != nil {
			err = e
		}
	}
	if err != nil {
		return one, 0, err
	}
	begin := readUsage(s.pid)
	center.release()
	for center.taken.Load()-before < int64(b.posts) {
		if err := pause(ctx, time.Millisecond); err != nil {
			return one, 0, err
		}
		if time.Since(begin.at) > 2*time.Minute {
			return one, 0, fmt.Errorf("of %d text messages %d came", b.posts, center.taken.Load()-before)
		}
	}
	end := readUsage(s.pid)
	one = sample{Throughput: float64(b.posts) / end.at.Sub(begin.at).Seconds()}
	one.ServerCPU = microseconds(end.server-begin.server) / float64(b.posts)
	one.RSS, _ = memory(s.pid)
	return one, center.taken.Load() - before - int64(b.posts), nil
}

// smsc takes text messages by SMPP.
type smsc struct {
	l     net.Listener
	taken atomic.Int64

	mu    sync.Mutex
	gate  chan struct{} // closed while it answers
	open  bool
	conns []net.Conn
}

func newSMSC() (*smsc, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &smsc{l: l, gate: make(chan struct{})}
	s.release()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			go s.serve(conn)
		}
	}()
	return s, nil
}

func (s *smsc) close() {
	s.release()
	_ = s.l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// hold has submits wait for their answers until release.
func (s *smsc) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate, s.open = make(chan struct{}), false
}

func (s *smsc) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		s.open = true
		close(s.gate)
	}
}

func (s *smsc) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		var head [16]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		if _, err := in.Discard(int(binary.BigEndian.Uint32(head[:])) - len(head)); err != nil {
			return
		}
		const submit = 4
		command := binary.BigEndian.Uint32(head[4:])
		if command == submit {
			s.mu.Lock()
			gate := s.gate
			s.mu.Unlock()
			<-gate
			s.taken.Add(1)
		}
		answer := binary.BigEndian.AppendUint32(nil, uint32(len(head))+1)
		answer = binary.BigEndian.AppendUint32(answer, command|1<<31)
		answer = binary.BigEndian.AppendUint32(answer, 0)
		answer = append(append(answer, head[12:]...), 0)
		if _, err := out.Write(answer); err != nil {
			return
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}
