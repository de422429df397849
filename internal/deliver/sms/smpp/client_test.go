package smpp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/sendertest"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/deliver/sms/smpp"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

// smsc is one that a test writes: it knows as much of SMPP as it needs.
type smsc struct {
	l        net.Listener
	password string

	mu     sync.Mutex
	parts  [][]byte // of submits, with their headers, in the order of arrival
	binds  int
	conns  []net.Conn
	submit func(n int) reaction // of the n-th submit, from 0
	hung   chan struct{}        // told of each request that it never answers
	bind   reaction
}

// reaction is what the SMSC does about a request.
type reaction struct {
	status uint32
	hang   bool // it never answers
	die    bool // it closes the connection
	raw    []byte
}

func newSMSC(t *testing.T) *smsc {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return openSMSC(t, l)
}

// openSMSC serves at a listener, which it closes.
func openSMSC(t *testing.T, l net.Listener) *smsc {
	t.Helper()
	s := &smsc{l: l, password: "s3cr3t", submit: func(int) reaction { return reaction{} }, hung: make(chan struct{}, 100)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.kill()
		wg.Wait()
	})
	return s
}

// kill closes all connections.
func (s *smsc) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

func (s *smsc) react(f func(n int) reaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.submit = f
}

func (s *smsc) received() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.parts...)
}

func (s *smsc) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var head [16]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:])-16)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		command, sequence := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[12:])
		var r reaction
		answer := []byte("SMSC\x00")
		s.mu.Lock()
		switch command {
		case 0x09:
			s.binds++
			r = s.bind
			if fields := bytes.SplitN(body, []byte{0}, 3); string(fields[0]) != "godwit" || string(fields[1]) != s.password {
				r.status = 0x0e
			}
		case 0x04:
			r = s.submit(len(s.parts))
			s.parts = append(s.parts, body)
			answer = []byte("id\x00")
		default:
			answer = nil
		}
		s.mu.Unlock()
		switch {
		case r.die:
			return
		case r.hang:
			s.hung <- struct{}{}
			continue
		case r.raw != nil:
			_, _ = conn.Write(r.raw)
			continue
		}
		if command&0x8000_0000 == 0 {
			s.tell(conn, command|0x8000_0000, r.status, sequence, answer)
		}
	}
}

func (s *smsc) tell(conn net.Conn, command, status, sequence uint32, body []byte) {
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.BigEndian.AppendUint32(b, command)
	b = binary.BigEndian.AppendUint32(b, status)
	b = binary.BigEndian.AppendUint32(b, sequence)
	_, _ = conn.Write(append(b, body...))
}

func newClient(t *testing.T, s *smsc, change ...func(o *smpp.Options)) *smpp.Client {
	t.Helper()
	o := smpp.Options{Address: s.l.Addr().String(), SystemID: "godwit", Password: "s3cr3t"}
	for _, f := range change {
		f(&o)
	}
	c := smpp.New(o)
	t.Cleanup(c.Close)
	return c
}

// ledger takes all that it is asked for.
type ledger struct{ texts.Terms }

func (l ledger) Reserve(texts.Charge) (texts.Terms, sms.Refusal) { return l.Terms, "" }
func (ledger) Spend(texts.Charge, sms.MicroUSD) (m sms.MicroUSD) { return m }
func (ledger) OptOutEverywhere(string)                           {}

func TestConformance(t *testing.T) {
	sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
		s := newSMSC(t)
		reactions := map[sendertest.Behaviour]reaction{
			sendertest.Takes: {}, sendertest.Fails: {status: 0x58}, sendertest.Refuses: {status: 0x0b}, sendertest.Hangs: {hang: true},
		}
		s.react(func(int) reaction { return reactions[b] })
		return sendertest.Target{
			Sender:   smssender.New(smssender.Options{Carrier: newClient(t, s), Ledger: ledger{}}),
			Protocol: topic.SMS, Endpoint: "+15551234567", Received: s.received,
		}
	})
}

func text(t *testing.T, body string) *smssender.Text {
	t.Helper()
	cut, ok := sms.Cut(body)
	if !ok {
		t.Fatal("too long")
	}
	return &smssender.Text{To: "+4917012345678", From: "Godwit", Body: body, Text: cut, ID: [16]byte{0xab}}
}

// Every answer is the fault of whom the specification says, and what was sent without one
// is reported.
func TestClasses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		r       reaction
		class   deliver.Class
		unknown int
		detail  string
	}{
		{"invalid length", reaction{status: 0x01}, deliver.ClientError, 0, "refused the message: 0x00000001"},
		{"invalid source", reaction{status: 0x0a}, deliver.ClientError, 0, "refused"},
		{"invalid destination", reaction{status: 0x0b}, deliver.ClientError, 0, "refused"},
		{"submit failed", reaction{status: 0x45}, deliver.ClientError, 0, "refused"},
		{"system error", reaction{status: 0x08}, deliver.ServerError, 0, "refused"},
		{"queue full", reaction{status: 0x14}, deliver.ServerError, 0, "refused"},
		{"throttled", reaction{status: 0x58}, deliver.ServerError, 0, "refused the message: 0x00000058"},
		{"of the vendor's", reaction{status: 0x400}, deliver.ServerError, 0, "refused"},
		{"dies", reaction{die: true}, deliver.ServerError, 1, "may have taken"},
		{"garbage", reaction{raw: []byte("HTTP/1.1 400 Bad Request\r\n\r\n")}, deliver.ServerError, 1, "may have taken"},
		{"hangs", reaction{hang: true}, deliver.ServerError, 1, "may have taken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSMSC(t)
			c := newClient(t, s)
			s.react(func(n int) reaction {
				if n == 0 {
					return tt.r
				}
				return reaction{}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.r.hang {
				go func() {
					<-s.hung
					cancel()
				}()
			}
			got := c.Deliver(ctx, text(t, "hello"))
			if got.Class != tt.class || got.Unknown != tt.unknown || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("%+v", got)
			}
			// The next goes through, whatever became of this one.
			if got := c.Deliver(t.Context(), text(t, "hello")); got.Class != deliver.Success {
				t.Errorf("the next: %+v", got)
			}
			if n := len(s.received()); n != 2 {
				t.Errorf("%d submits", n)
			}
		})
	}
}

// An SMSC that takes no bind was sent nothing.
func TestBindsThatFail(t *testing.T) {
	for name, change := range map[string]func(s *smsc){
		"a wrong password": func(s *smsc) { s.password = "another" },
		"garbage":          func(s *smsc) { s.bind.raw = bytes.Repeat([]byte("garbage "), 10) },
		"a closed door":    func(s *smsc) { s.bind.die = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSMSC(t)
			change(s)
			c := newClient(t, s)
			for range 3 {
				if got := c.Deliver(t.Context(), text(t, "hello")); got.Class != deliver.ServerError || got.Unknown != 0 || got.Detail == "" {
					t.Errorf("%+v", got)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.parts) > 0 {
				t.Errorf("%d binds, %d submits", s.binds, len(s.parts))
			}
		})
	}
	s := newSMSC(t)
	s.bind.hang = true
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := newClient(t, s).Deliver(ctx, text(t, "hello")); got.Class != deliver.ServerError || got.Unknown != 0 {
		t.Errorf("a bind without an answer: %+v", got)
	}
	gone := newSMSC(t)
	gone.l.Close()
	if got := newClient(t, gone).Deliver(t.Context(), text(t, "hello")); got.Class != deliver.ServerError || got.Unknown != 0 {
		t.Errorf("nobody there: %+v", got)
	}
}

// A text of several parts has headers that belong together, and what was taken of it is
// not sent again.
func TestParts(t *testing.T) {
	s := newSMSC(t)
	c := newClient(t, s)
	s.react(func(n int) reaction {
		if n == 1 {
			return reaction{status: 0x14}
		}
		return reaction{}
	})
	long := text(t, strings.Repeat("a word ", 60))
	if len(long.Parts) != 3 {
		t.Fatalf("%d parts", len(long.Parts))
	}
	got := c.Deliver(t.Context(), long)
	taken := 0
	for _, done := range got.Sent {
		if done {
			taken++
		}
	}
	if got.Class != deliver.ServerError || taken != 2 {
		t.Fatalf("%+v", got)
	}
	long.Sent = got.Sent
	if got := c.Deliver(t.Context(), long); got.Class != deliver.Success {
		t.Fatalf("%+v", got)
	}
	parts := s.received()
	if len(parts) != 4 {
		t.Fatalf("%d submits", len(parts))
	}
	count := map[byte]int{}
	whole := map[byte]string{}
	for _, p := range parts {
		at := bytes.Index(p, []byte{5, 0, 3, 0xab, 3})
		if at < 0 {
			t.Fatalf("no header in %q", p)
		}
		count[p[at+5]]++
		whole[p[at+5]] = string(p[at+6:])
		if !bytes.HasPrefix(p, []byte("\x00\x05\x00Godwit\x00\x01\x014917012345678\x00\x40\x00\x00\x00\x00\x01\x00\x00\x00")) {
			t.Errorf("the submit begins %q", p[:at])
		}
	}
	if whole[1]+whole[2]+whole[3] != long.Body || count[1]+count[2]+count[3] != 4 || max(count[1], count[2], count[3]) != 2 {
		t.Errorf("%v %q", count, whole)
	}
}

// What is not in the alphabet of GSM goes as UCS-2.
func TestUCS2(t *testing.T) {
	s := newSMSC(t)
	if got := newClient(t, s).Deliver(t.Context(), text(t, "Привет")); got.Class != deliver.Success {
		t.Fatalf("%+v", got)
	}
	if p := s.received()[0]; !bytes.HasSuffix(p, []byte("\x01\x00\x08\x00\x0c\x04\x1f\x04\x40\x04\x38\x04\x32\x04\x35\x04\x42")) {
		t.Errorf("%q", p)
	}
}

// An SMSC that dies in the middle of many has each of them once, but for those whose
// answers were lost, which are counted; and they are as many as the window at most.
func TestDiesInTheMiddle(t *testing.T) {
	s := newSMSC(t)
	const window, all = 4, 40
	c := newClient(t, s, func(o *smpp.Options) { o.Window = window })
	s.react(func(n int) reaction { return reaction{die: n == 9} })
	unknown, sent := 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range all {
		wg.Go(func() {
			for {
				got := c.Deliver(t.Context(), text(t, "hello"))
				mu.Lock()
				unknown += got.Unknown
				if got.Class == deliver.Success {
					sent++
					mu.Unlock()
					return
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := len(s.received()); sent != all || unknown == 0 || unknown > window || n > all+unknown {
		t.Errorf("%d sent, %d unknown, %d submits", sent, unknown, n)
	}
}

// Messages from phones and receipts come by the same bind, and what the SMSC asks is
// answered.
func TestFromTheSMSC(t *testing.T) {
	s := newSMSC(t)
	type came struct{ from, text string }
	got := make(chan came, 10)
	c := newClient(t, s, func(o *smpp.Options) {
		o.Received = func(from, text string) { got <- came{from, text} }
		o.Receipt = func(id, state string) { got <- came{"receipt " + id, state} }
	})
	if got := c.Deliver(t.Context(), text(t, "hello")); got.Class != deliver.Success || !slices.Equal(got.IDs, []string{"id"}) {
		t.Fatalf("%+v", got)
	}
	s.mu.Lock()
	conn := s.conns[0]
	s.mu.Unlock()
	body := func(class, coding byte, text string) []byte {
		b := []byte("\x00\x01\x014917012345678\x00\x00\x00123\x00")
		b = append(b, class, 0, 0, 0, 0, 0, 0, coding, 0, byte(len(text)))
		return append(b, text...)
	}
	s.tell(conn, 0x05, 0, 1, body(0, 0, "STOP"))
	s.tell(conn, 0x05, 0, 2, body(0x04, 0, "id:1 sub:001 dlvrd:001 submit date:2605040302 done date:2605040302 stat:DELIVRD err:000 text:"))
	s.tell(conn, 0x05, 0, 7, append(body(0x04, 0, "stat:UNDELIV"), "\x04\x27\x00\x01\x05\x00\x1e\x00\x04000A"...))
	s.tell(conn, 0x05, 0, 8, append(body(0x04, 0, "id:0000"), "\x00\x1e\x00\x09short"...))
	s.tell(conn, 0x05, 0, 3, []byte("short"))
	s.tell(conn, 0x15, 0, 4, nil)
	s.tell(conn, 0x99, 0, 5, nil)
	s.tell(conn, 0x05, 0, 6, body(0, 8, "\x04\x1f"))
	for _, want := range []came{{"+4917012345678", "STOP"}, {"receipt 1", "DELIVRD"}, {"receipt a", "UNDELIV"}, {"receipt 0000", ""}, {"+4917012345678", "П"}} {
		if one := <-got; one != want {
			t.Errorf("%v, want %v", one, want)
		}
	}
	if got := c.Deliver(t.Context(), text(t, "hello")); got.Class != deliver.Success {
		t.Errorf("%+v", got)
	}
}

// Over TLS, with whom the client believes to be the SMSC, and with nobody else.
func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // which has a certificate
	defer web.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := openSMSC(t, tls.NewListener(l, &tls.Config{Certificates: web.TLS.Certificates}))
	trust := x509.NewCertPool()
	trust.AddCert(web.Certificate())
	for _, tt := range []struct {
		trust *x509.CertPool
		class deliver.Class
	}{{trust, deliver.Success}, {x509.NewCertPool(), deliver.ServerError}} {
		c := newClient(t, s, func(o *smpp.Options) { o.TLS = &tls.Config{RootCAs: tt.trust} })
		if got := c.Deliver(t.Context(), text(t, "hello")); got.Class != tt.class || got.Unknown != 0 {
			t.Errorf("%+v", got)
		}
	}
}
