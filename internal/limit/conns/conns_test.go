package conns

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit"
)

func listen(t *testing.T, o Options) *Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	return Listen(inner, o)
}

// connect returns both ends of a new connection; the server's is nil if it was
// refused.
func connect(t *testing.T, l *Listener) (client net.Conn, server *Conn) {
	t.Helper()
	type accepted struct {
		c   net.Conn
		err error
	}
	ready := make(chan accepted, 1)
	refused := l.refused.Load() + l.refusedAddress.Load()
	go func() {
		c, err := l.Accept()
		ready <- accepted{c, err}
	}()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	for {
		select {
		case a := <-ready:
			if a.err != nil {
				t.Fatal(a.err)
			}
			return client, a.c.(*Conn)
		case <-passed(time.Millisecond):
			if l.refused.Load()+l.refusedAddress.Load() > refused {
				go func() { // the Accept that continues
					if a := <-ready; a.c != nil {
						a.c.Close()
					}
				}()
				return client, nil
			}
		}
	}
}

func (l *Listener) stat(t *testing.T, name string) limit.Stats {
	t.Helper()
	for _, s := range l.Stats() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no %s", name)
	return limit.Stats{}
}

func isOpen(c net.Conn) bool {
	for range 2 { // the time may be over before the first begins to read
		_ = c.SetReadDeadline(clock.System.Now().Add(20 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
	}
	return true
}

func TestIdleOnesMakeRoom(t *testing.T) {
	l := listen(t, Options{Max: 3})
	first, a := connect(t, l)
	second, b := connect(t, l)
	third, c := connect(t, l)
	State(a, http.StateActive)
	State(b, http.StateActive)
	State(c, http.StateActive)
	State(c, http.StateIdle)
	State(b, http.StateIdle) // both since the same connection: whichever
	State(b, http.StateActive)
	fourth, d := connect(t, l)
	if d == nil || !isOpen(first) || !isOpen(second) || isOpen(third) || !isOpen(fourth) {
		t.Fatal("not the idle one was closed")
	}
	State(d, http.StateActive)
	State(a, http.StateIdle)
	State(b, http.StateIdle)
	_, e := connect(t, l)
	if e == nil || isOpen(first) == isOpen(second) {
		t.Fatal("not one of two was closed")
	}
	if s := l.stat(t, "connections"); s.Used != 3 || s.Limit != 3 || s.Cut != 2 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

func TestLongestIdleGoes(t *testing.T) {
	l := listen(t, Options{Max: 10})
	clients := make([]net.Conn, 10)
	for i := range clients {
		clients[i], _ = connect(t, l) // idle from when it is there
	}
	connect(t, l)
	for i, c := range clients {
		if open := isOpen(c); open != (i > 0) {
			t.Errorf("connection %d: open %v", i, open)
		}
	}
}

// A lower bound closes idle connections at once, and busy ones when they become idle; a higher one counts at once.
func TestSetBounds(t *testing.T) {
	l := listen(t, Options{Max: 1})
	clients, conns := make([]net.Conn, 4), make([]*Conn, 4)
	for i := range clients {
		l.SetBounds(i+1, 0)
		if clients[i], conns[i] = connect(t, l); conns[i] == nil {
			t.Fatalf("connection %d is not taken", i)
		}
		if i < 2 {
			State(conns[i], http.StateActive)
		}
	}
	l.SetBounds(3, 0)
	if !isOpen(clients[0]) || !isOpen(clients[1]) || isOpen(clients[2]) == isOpen(clients[3]) {
		t.Error("of the four, not an idle one was closed")
	}
	l.SetBounds(1, 0)
	if !isOpen(clients[0]) || !isOpen(clients[1]) || isOpen(clients[2]) || isOpen(clients[3]) {
		t.Error("not the busy ones are left")
	}
	if s := l.stat(t, "connections"); s.Used != 2 || s.Limit != 1 || s.Cut != 2 {
		t.Errorf("%+v", s)
	}
	for range 2 { // the second time it is closed already
		State(conns[0], http.StateIdle)
		State(conns[0], http.StateActive)
	}
	State(conns[1], http.StateIdle)
	if isOpen(clients[0]) || !isOpen(clients[1]) {
		t.Error("of two, not the first that became idle was closed")
	}
	if s := l.stat(t, "connections"); s.Used != 1 || s.Cut != 3 {
		t.Errorf("%+v", s)
	}
	if _, c := connect(t, l); c == nil || isOpen(clients[1]) {
		t.Error("an idle one does not make room for a new one")
	} else {
		State(c, http.StateActive)
	}
	if _, c := connect(t, l); c != nil {
		t.Error("a second one is taken")
	}
}

func TestSetBoundsOfAnAddress(t *testing.T) {
	l := listen(t, Options{Max: 9, PerAddress: 9})
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var conns []*Conn
	for i, address := range []netip.Addr{one, one, one, two, two} {
		inner, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := &Conn{tcp: inner.(socket), listener: l, address: address}
		t.Cleanup(func() { c.Close() })
		if _, full := l.admit(c); full != "" {
			t.Fatal(full)
		}
		if i != 1 && i != 2 {
			State(c, http.StateActive)
		}
		conns = append(conns, c)
	}
	open := func() (n []int) {
		for i, c := range conns {
			if c.state.Load() != closed {
				n = append(n, i)
			}
		}
		return n
	}
	l.SetBounds(9, 1)
	if got := open(); !slices.Equal(got, []int{0, 3, 4}) {
		t.Error("open are", got)
	}
	State(conns[3], http.StateIdle)
	State(conns[4], http.StateIdle)
	State(conns[0], http.StateIdle)
	if got := open(); !slices.Equal(got, []int{0, 4}) {
		t.Error("open are", got)
	}
	if s := l.stat(t, "connections_of_address"); s.Cut != 3 {
		t.Errorf("%+v", s)
	}
	l.SetBounds(9, 0)
	State(conns[4], http.StateActive)
	State(conns[4], http.StateIdle)
	if got := open(); len(got) != 2 {
		t.Error("without a bound, open are", got)
	}
}

func TestExcessIsRefused(t *testing.T) {
	l := listen(t, Options{Max: 1})
	first, a := connect(t, l)
	State(a, http.StateActive)
	second, refused := connect(t, l)
	if refused != nil || !isOpen(first) {
		t.Fatal("taken in")
	}
	r, err := http.ReadResponse(bufio.NewReader(second), nil)
	if err != nil || r.StatusCode != http.StatusServiceUnavailable || !r.Close {
		t.Fatal(r, err)
	}
	if text, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(text), "(--max-connections)") {
		t.Errorf("%q %v", text, err)
	}
	if s := l.stat(t, "connections"); s.Used != 1 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	a.Close()
	a.Close()
	if s := l.stat(t, "connections"); s.Used != 0 {
		t.Errorf("%+v", s)
	}
}

func TestConnectionsOfAnAddress(t *testing.T) {
	l := listen(t, Options{Max: 100, PerAddress: 2, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}})
	for address, want := range map[string]string{
		"127.0.0.1": "", "::1": "", "::ffff:127.0.0.5": "", "10.1.2.3": "", "::ffff:10.1.2.3": "", "fd00::1": "",
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "2001:db8:1:2::9": "2001:db8:1:2::", "fe80::1%eth0": "fe80::",
	} {
		from := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1))
		got := ""
		if a := l.counted(from); a.IsValid() {
			got = a.String()
		}
		if got != want {
			t.Errorf("%s counts as %q, want %q", address, got, want)
		}
	}
	one := netip.MustParseAddr("192.0.2.1")
	conns := []*Conn{{listener: l, address: one}, {listener: l, address: one}, {listener: l, address: one}, {listener: l}}
	for i, want := range []refusal{"", "", fullOfAddress, ""} {
		State(conns[i], http.StateActive)
		if old, full := l.admit(conns[i]); full != want || old != nil {
			t.Errorf("connection %d: %q, instead of %v", i, full, old)
		}
	}
	l.forget(conns[0])
	if _, full := l.admit(conns[2]); full != "" {
		t.Error("no room after one has gone")
	}
	l.forget(conns[1])
	l.forget(conns[2])
	if len(l.addresses) != 0 || len(l.all.conns) != 1 || l.refusedAddress.Load() != 1 {
		t.Error(l.addresses, len(l.all.conns), l.refusedAddress.Load())
	}
}

// A full address gets a new connection for an idle one of its own, never for another's.
func TestIdleOnesOfAnAddressMakeRoom(t *testing.T) {
	l := listen(t, Options{Max: 4, PerAddress: 2})
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	take := func(c *Conn) *Conn {
		t.Helper()
		l.taken.Add(1)
		c.listener = l
		c.since.Store(l.taken.Load())
		old, full := l.admit(c)
		if full != "" {
			t.Fatal(full)
		}
		if len(old) == 0 {
			return nil
		}
		return old[0]
	}
	other, first, second, third, fourth := &Conn{address: two}, &Conn{address: one}, &Conn{address: one}, &Conn{address: one}, &Conn{address: one}
	if take(other) != nil || take(first) != nil || take(second) != nil {
		t.Fatal("closed without need")
	}
	if take(third) != first {
		t.Error("not the one that was idle for longest was closed")
	}
	State(second, http.StateActive)
	if take(fourth) != third || third.state.Load() != closed {
		t.Error("not the idle one was closed")
	}
	State(fourth, http.StateActive)
	if _, full := l.admit(&Conn{listener: l, address: one}); full != fullOfAddress || other.state.Load() != idle {
		t.Errorf("%q, the other address's connection is %d", full, other.state.Load())
	}
	if s := l.stat(t, "connections_of_address"); s.Cut != 2 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	if s := l.stat(t, "connections"); s.Used != 3 || s.Cut != 0 {
		t.Errorf("%+v", s)
	}
}

func TestHeadsAreBounded(t *testing.T) {
	l := listen(t, Options{HeadBytes: 10_000})
	read := func(c net.Conn, s *Conn, n int) error {
		if _, err := c.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		_, err := io.ReadFull(s, make([]byte, n))
		return err
	}
	first, a := connect(t, l)
	second, b := connect(t, l)
	if err := read(first, a, freeHead+8000); err != nil {
		t.Fatal(err)
	}
	if err := read(second, b, freeHead+1000); err != nil || l.heads.Load() != 9000 {
		t.Fatal(err, l.heads.Load())
	}
	State(b, http.StateActive)
	if err := read(second, b, 5000); err != nil || l.heads.Load() != 9000 {
		t.Fatal("a body counts", err, l.heads.Load())
	}
	State(b, http.StateIdle)
	if l.heads.Load() != 8000 {
		t.Error(l.heads.Load())
	}
	if err := read(second, b, freeHead+3000); err == nil {
		t.Error("a head beyond the bound was read")
	}
	a.Close()
	b.Close()
	if l.heads.Load() != 0 || l.refusedHeads.Load() != 1 {
		t.Error(l.heads.Load(), l.refusedHeads.Load())
	}
}

// Who does not read loses the connection; who reads at the rate does not, however long
// it takes.
func TestSlowReaders(t *testing.T) {
	l := listen(t, Options{Window: 500 * time.Millisecond, Rate: 1})
	silent, s := connect(t, l)
	_ = silent.(*net.TCPConn).SetReadBuffer(4 << 10)
	if n, err := s.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were written: %v", n, err)
	}
	large := net.Buffers{make([]byte, 10), make([]byte, 64<<20)}
	if n, err := s.WriteBuffers(&large); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes were written: %v", n, err)
	}

	slow, s := connect(t, l)
	// The kernel wakes a writer when a third of its buffer is free: that is to be a few reads.
	_ = s.tcp.(*net.TCPConn).SetWriteBuffer(128 << 10)
	const size = 12 << 20
	done := make(chan error, 1)
	go func() {
		defer s.Close()
		_, err := s.Write(make([]byte, size))
		done <- err
	}()
	p := make([]byte, 64<<10)
	for read := 0; read < size; {
		n, err := slow.Read(p)
		if err != nil {
			t.Fatal(read, err)
		}
		read += n
		sleep(5 * time.Millisecond) // some seconds in all
	}
	if err := <-done; err != nil || s.Moved() != size {
		t.Error(err, s.Moved())
	}
}

func TestDeadlinesOfTheServer(t *testing.T) {
	l := listen(t, Options{Window: time.Minute})
	client, s := connect(t, l)
	_ = client.(*net.TCPConn).SetReadBuffer(4 << 10)
	done := make(chan error, 1)
	_ = s.SetWriteDeadline(clock.System.Now().Add(time.Hour))
	go func() {
		_, err := s.Write(make([]byte, 64<<20))
		done <- err
	}()
	for s.Moved() == 0 { // the first piece is out
		sleep(time.Millisecond)
	}
	_ = s.SetWriteDeadline(clock.System.Now().Add(10 * time.Millisecond))
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	_ = s.SetWriteDeadline(time.Time{})
	_ = s.SetReadDeadline(clock.System.Now())
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestCut(t *testing.T) {
	l := listen(t, Options{})
	client, s := connect(t, l)
	done := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		done <- err
	}()
	s.CutRead()
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if _, err := s.Write([]byte("bye")); err != nil {
		t.Error("no answer can be given:", err)
	}
	go func() {
		_, err := s.Write(make([]byte, 64<<20))
		done <- err
	}()
	for s.Moved() < 100 {
		sleep(time.Millisecond)
	}
	s.Cut()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, client); err == nil {
		t.Error("the connection ended as if all was sent")
	}
	if Context(t.Context(), s) == t.Context() || limit.PeerOf(Context(t.Context(), s)) != limit.Peer(s) {
		t.Error("not the peer of its requests")
	}
}

// passed is closed in d.
func passed(d time.Duration) <-chan struct{} {
	over, _ := clock.After(clock.System, d)
	return over
}

func sleep(d time.Duration) { <-passed(d) }
