package mailsender_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/deliver/sendertest"
	"godwit.dev/godwit/internal/topic"
)

// script is a relay that answers commands with lines of its own; what it has none for it
// takes. "hang" answers nothing until the end of the test, "close" ends the connection.
type script struct {
	late chan struct{} // closed: what is answered late is answered now
	hung chan struct{} // told of each command that is never answered
	said atomic.Int64  // bytes of talk
	t    *testing.T
	l    net.Listener

	mu          sync.Mutex
	answers     map[string]string // by commands; "" is the banner, "." the end of a mail
	first       map[string]string // for the next such command alone
	mails       [][]byte
	connections int
	over        chan struct{}
}

func newScript(t *testing.T, answers map[string]string) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, l: l, answers: answers, first: map[string]string{}, over: make(chan struct{}), late: make(chan struct{}), hung: make(chan struct{}, 100)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.connections++
			s.mu.Unlock()
			all.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		close(s.over)
		l.Close()
		all.Wait()
	})
	return s
}

// set has a command answered by a line from now on; empty: it is taken.
func (s *script) set(command, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[command] = line
}

// once has the next such command answered so.
func (s *script) once(command, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first[command] = line
}

func (s *script) received() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.mails...)
}

func (s *script) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

func (s *script) serve(conn net.Conn) {
	defer conn.Close()
	go func() {
		<-s.over
		conn.Close()
	}()
	in := bufio.NewReader(conn)
	// answer reports whether to continue.
	answer := func(command, line string) bool {
		s.mu.Lock()
		if own := s.answers[command]; own != "" {
			line = own
		}
		if own, ok := s.first[command]; ok {
			line = own
			delete(s.first, command)
		}
		s.mu.Unlock()
		switch line {
		case "hang":
			s.hung <- struct{}{}
			<-s.over
			return false
		case "late":
			<-s.late
			line = "250 2.0.0 taken"
		case "talk":
			for {
				n, err := io.WriteString(conn, "250-"+strings.Repeat("x", 500)+"\r\n")
				if s.said.Add(int64(n)); err != nil {
					return false
				}
			}
		case "close":
			return false
		}
		_, err := io.WriteString(conn, line+"\r\n")
		return err == nil
	}
	if !answer("", "220 relay ESMTP") {
		return
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		command := strings.ToUpper(strings.TrimSpace(line))
		if len(command) > 4 {
			command = command[:4]
		}
		ok := map[string]string{"EHLO": "250-relay\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE 2000", "DATA": "354 go on", "QUIT": "221 bye"}[command]
		if ok == "" {
			ok = "250 2.0.0 ok"
		}
		if !answer(command, ok) {
			return
		}
		s.mu.Lock()
		begun := command == "DATA" && (s.answers["DATA"] == "")
		s.mu.Unlock()
		if !begun {
			continue
		}
		var mail []byte
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line == ".\r\n" {
				break
			}
			mail = append(mail, strings.TrimPrefix(line, ".")...)
		}
		s.mu.Lock()
		s.mails = append(s.mails, mail)
		s.mu.Unlock()
		if !answer(".", "250 2.0.0 taken") {
			return
		}
	}
}

func newRelay(t *testing.T, address string) *mailsender.Relay {
	t.Helper()
	r := mailsender.NewRelay(mailsender.RelayOptions{Address: address, Security: mailsender.Plain, Name: "godwit.example.com"})
	t.Cleanup(r.Close)
	return r
}

var aMail = &mailsender.Mail{From: "no-reply@example.com", To: "s3cr3t@example.com", Message: []byte("Subject: x\r\n\r\nhi\r\n.dot\r\n")}

// TestConformance is the test of all senders.
func TestConformance(t *testing.T) {
	sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
		answers := map[sendertest.Behaviour]map[string]string{
			sendertest.Takes: {}, sendertest.Fails: {"RCPT": "450 4.2.1 later, s3cr3t@example.com"},
			sendertest.Refuses: {"RCPT": "550 5.1.1 no s3cr3t@example.com here"}, sendertest.Hangs: {"DATA": "hang"},
		}
		s := newScript(t, answers[b])
		return sendertest.Target{
			Sender: mailsender.New(mailsender.Options{Transport: newRelay(t, s.l.Addr().String())}), Protocol: topic.Email,
			Endpoint: sendertest.Secret + "@example.com", Received: s.received,
		}
	})
}

// Every answer at every stage is the fault of whom the specification says.
func TestClasses(t *testing.T) {
	permanent, temporary := "550 5.7.1 no, s3cr3t@example.com", "451 4.3.0 later, s3cr3t@example.com"
	for _, tt := range []struct {
		command, line string
		class         deliver.Class
		wait          time.Duration
		detail        string
	}{
		{"", "554 no", deliver.ServerError, 0, "the relay refused the connection: 554"},
		{"", "421 busy", deliver.ServerError, 0, "the relay refused the connection: 421"},
		{"", "garbage", deliver.ServerError, 0, "the connection to the relay failed"},
		{"", "close", deliver.ServerError, 0, "the connection to the relay failed"},
		{"", "hang", deliver.ServerError, 0, "the relay did not answer in time"},
		{"MAIL", permanent, deliver.ClientError, 0, "the relay refused the sender: 550 5.7.1"},
		{"MAIL", temporary, deliver.ServerError, 0, "the relay refused the sender: 451 4.3.0"},
		{"MAIL", "garbage", deliver.ServerError, 0, "the connection to the relay failed"},
		{"MAIL", "close", deliver.ServerError, 0, "the connection to the relay failed"},
		{"MAIL", "hang", deliver.ServerError, 0, "the relay did not answer in time"},
		{"RCPT", permanent, deliver.ClientError, 0, "the relay refused the recipient: 550 5.7.1"},
		{"RCPT", temporary, deliver.ServerError, 0, "the relay refused the recipient: 451 4.3.0"},
		{"RCPT", "421 4.3.2 going away", deliver.ServerError, 0, "the relay refused the recipient: 421 4.3.2"},
		{"RCPT", "close", deliver.ServerError, 0, "the connection to the relay failed"},
		{"RCPT", "hang", deliver.ServerError, 0, "the relay did not answer in time"},
		{"DATA", permanent, deliver.ClientError, 0, "the relay refused a mail: 550 5.7.1"},
		{"DATA", temporary, deliver.ServerError, 0, "the relay refused a mail: 451 4.3.0"},
		{"DATA", "250 2.0.0 what", deliver.ServerError, 0, "the relay refused a mail: 250 2.0.0"},
		{"DATA", "close", deliver.ServerError, 0, "the connection to the relay failed"},
		{"DATA", "hang", deliver.ServerError, 0, "the relay did not answer in time"},
		{".", permanent, deliver.ClientError, 0, "the relay refused the mail: 550 5.7.1"},
		{".", "552 5.3.4 large", deliver.ClientError, 0, "the relay refused the mail: 552 5.3.4"},
		{".", temporary, deliver.ServerError, 0, "the relay refused the mail: 451 4.3.0"},
		{".", "garbage", deliver.ServerError, 10 * time.Minute, "the relay did not confirm the mail, and may have taken it"},
		{".", "close", deliver.ServerError, 10 * time.Minute, "the relay did not confirm the mail, and may have taken it"},
		{".", "hang", deliver.ServerError, 10 * time.Minute, "the relay did not confirm the mail, and may have taken it"},
	} {
		t.Run(tt.command+" "+tt.line, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, map[string]string{tt.command: tt.line})
			r := newRelay(t, s.l.Addr().String())
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			if tt.line == "hang" {
				go func() {
					select {
					case <-s.hung:
						cancel()
					case <-ctx.Done():
					}
				}()
			}
			out := r.Deliver(ctx, aMail)
			if out.Class != tt.class || out.RetryAfter != tt.wait || out.Detail != tt.detail {
				t.Errorf("%+v", out)
			}
			// The next mail goes through, whatever became of this one.
			s.set(tt.command, "")
			if out := r.Deliver(t.Context(), aMail); out.Class != deliver.Success {
				t.Errorf("the next mail: %+v", out)
			}
		})
	}
}

const testTimeout = time.Minute

// A relay that is slow gets each mail once: the time of a mail begins when a connection is
// free, and behind the last dot the relay may take its time.
func TestSlowRelay(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newScript(t, map[string]string{".": "late"})
	const within = 5 * time.Second // longer than all else that it waits for takes
	r := mailsender.NewRelay(mailsender.RelayOptions{Address: s.l.Addr().String(), Security: mailsender.Plain, Connections: 1, Answer: within})
	t.Cleanup(r.Close)
	clock.System.AfterFunc(within+within/4, func() { close(s.late) })
	out := make(chan deliver.Outcome)
	for range 3 {
		go func() { out <- r.Deliver(t.Context(), aMail) }()
	}
	for range 3 {
		if o := <-out; o.Class != deliver.Success {
			t.Errorf("%+v", o)
		}
	}
	if n := len(s.received()); n != 3 {
		t.Errorf("the relay got %d mails, want 3", n)
	}
}

// A relay whose reply does not end is left.
func TestTalkingRelay(t *testing.T) {
	s := newScript(t, map[string]string{"EHLO": "talk"})
	if out := newRelay(t, s.l.Addr().String()).Deliver(t.Context(), aMail); out.Class != deliver.ServerError {
		t.Errorf("%+v", out)
	}
	if n := s.said.Load(); n > 64<<20 { // what the system's buffers take, and more
		t.Errorf("%d bytes of a reply were taken", n)
	}
}

// A mail that is larger than the relay says is not sent; where there is no relay, or it is
// busy, another attempt follows.
func TestMailsThatAreNotSent(t *testing.T) {
	s := newScript(t, map[string]string{})
	r := newRelay(t, s.l.Addr().String())
	large := *aMail
	large.Message = make([]byte, 2001)
	if out := r.Deliver(t.Context(), &large); out.Class != deliver.ClientError || !strings.Contains(out.Detail, "larger") {
		t.Errorf("%+v", out)
	}
	if out := r.Deliver(t.Context(), aMail); out.Class != deliver.Success || s.connected() != 1 {
		t.Errorf("%+v by %d connections", out, s.connected())
	}
	s.l.Close()
	gone := newRelay(t, s.l.Addr().String())
	if out := gone.Deliver(t.Context(), aMail); out.Class != deliver.ServerError {
		t.Errorf("%+v", out)
	}
	if out := mailsender.New(mailsender.Options{}).Send(t.Context(), sendertest.Request(sendertest.Target{Protocol: topic.Email, Endpoint: "a@example.com"})); out.Class != deliver.ServerError {
		t.Errorf("%+v", out)
	}
}

// Connections are used again, also after a refusal; one that the relay has closed
// meanwhile costs nothing.
func TestConnectionsAreKept(t *testing.T) {
	s := newScript(t, map[string]string{})
	r := newRelay(t, s.l.Addr().String())
	deliverOne := func(want deliver.Class) {
		t.Helper()
		if out := r.Deliver(t.Context(), aMail); out.Class != want {
			t.Errorf("%+v", out)
		}
	}
	for range 3 {
		deliverOne(deliver.Success)
	}
	s.set("RCPT", "550 5.1.1 no")
	deliverOne(deliver.ClientError)
	s.set("RCPT", "")
	deliverOne(deliver.Success)
	if got := s.connected(); got != 1 {
		t.Errorf("%d connections", got)
	}
	for _, end := range []string{"close", "421 4.4.2 idle for too long"} {
		before := s.connected()
		s.once("MAIL", end)
		deliverOne(deliver.Success)
		if got := s.connected(); got != before+1 {
			t.Errorf("%s: %d connections after %d", end, got, before)
		}
	}
}

// backend is a real server's.
type backend struct {
	mu    sync.Mutex
	mails []string
	from  []string
}

type session struct {
	*backend
	authenticated bool
	tls           bool
}

func (b *backend) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, secure := c.TLSConnectionState()
	return &session{backend: b, tls: secure}, nil
}

func (s *session) AuthMechanisms() []string {
	if !s.tls {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "godwit" || password != "s3cr3t" {
			return errors.New("no")
		}
		s.authenticated = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.authenticated {
		return smtp.ErrAuthRequired
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = append(s.from, from)
	return nil
}

func (s *session) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, string(text))
	return err
}

func (s *session) Reset() {}

func (s *session) Logout() error { return nil }

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.System.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// Over TLS, and with a password, as relays want it.
func TestSecuredRelay(t *testing.T) {
	pair, trust := certificate(t)
	for _, tt := range []struct {
		name     string
		security mailsender.Security
		offers   bool // TLS
		password string
		trust    *x509.CertPool
		want     deliver.Class
	}{
		{"STARTTLS", mailsender.StartTLS, true, "s3cr3t", trust, deliver.Success},
		{"TLS from the start", mailsender.ImplicitTLS, true, "s3cr3t", trust, deliver.Success},
		{"a wrong password", mailsender.StartTLS, true, "wrong", trust, deliver.ServerError},
		{"an unknown certificate", mailsender.StartTLS, true, "s3cr3t", x509.NewCertPool(), deliver.ServerError},
		{"no STARTTLS", mailsender.StartTLS, false, "s3cr3t", trust, deliver.ServerError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &backend{}
			srv := smtp.NewServer(b)
			srv.Domain = "relay.example.com"
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if tt.offers {
				srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
			}
			if tt.security == mailsender.ImplicitTLS {
				l = tls.NewListener(l, srv.TLSConfig)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = srv.Serve(l)
			}()
			t.Cleanup(func() {
				_ = srv.Close()
				<-done
			})
			r := mailsender.NewRelay(mailsender.RelayOptions{
				Address: l.Addr().String(), Security: tt.security, User: "godwit", Password: tt.password, TLS: &tls.Config{RootCAs: tt.trust},
			})
			t.Cleanup(r.Close)
			out := r.Deliver(t.Context(), aMail)
			if out.Class != tt.want || strings.Contains(fmt.Sprint(out), "s3cr3t") {
				t.Errorf("%+v", out)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if (len(b.mails) == 1 && b.mails[0] == string(aMail.Message)) != (tt.want == deliver.Success) {
				t.Errorf("%q", b.mails)
			}
		})
	}
}
