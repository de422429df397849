package functionurl

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/wire"
)

// probe is a body that looks at what its reading holds once a part has come.
type probe struct {
	io.Reader
	look func()
}

func (p *probe) Read(b []byte) (n int, err error) {
	p.look()
	return p.Reader.Read(b)
}

// Memory is reserved for what has come of a body, not for what a client says that will come.
func TestMemoryComesWithBody(t *testing.T) {
	for _, length := range []int64{maxBody, -1} {
		budget := limit.NewBudget("test", 256<<20, 0)
		h := New(Options{Requests: budget})
		body := strings.Repeat("x", 1<<20)
		var came, most int64
		look := func() { most = max(most, budget.Stats().Used-2*held*came) }
		parts := &probe{io.TeeReader(io.MultiReader(strings.NewReader(body[:10]), strings.NewReader(body[10:])), counter{&came}), look}
		r := httptest.NewRequest(http.MethodPost, "/", parts)
		r.ContentLength = length
		var a asked
		var memory limit.Reservation
		if no := h.receive(httptest.NewRecorder(), r, &a, &memory); no != nil || string(a.body) != body {
			t.Fatalf("length %d: %v, %d bytes", length, no, len(a.body))
		}
		if most > held*first {
			t.Errorf("length %d: up to %d bytes were reserved ahead of the body", length, most)
		}
		if used := budget.Stats().Used; used < 2*int64(len(body)) {
			t.Errorf("length %d: %d bytes are reserved for %d and their event", length, used, len(body))
		}
		memory.Release()
		if used := budget.Stats().Used; used != 0 {
			t.Errorf("length %d: %d bytes stay reserved", length, used)
		}
	}
}

type counter struct{ n *int64 }

func (c counter) Write(p []byte) (int, error) {
	*c.n += int64(len(p))
	return len(p), nil
}

// What comes of a body that cannot be had.
func TestBodyRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		body   io.Reader
		length int64
		want   int
	}{
		{"too large", bytes.NewReader(make([]byte, maxBody+1)), -1, http.StatusRequestEntityTooLarge},
		{"said to be too large", strings.NewReader(""), maxBody + 1, http.StatusRequestEntityTooLarge},
		{"cut off", io.MultiReader(strings.NewReader("x"), failing{}), 10, http.StatusBadRequest},
		{"as large as it may be", bytes.NewReader(make([]byte, maxBody)), -1, 0},
	} {
		h := New(Options{Pace: wire.DefaultPace})
		r := httptest.NewRequest(http.MethodPost, "/", c.body)
		r.ContentLength = c.length
		got := 0
		if no := h.receive(httptest.NewRecorder(), r, &asked{}, &limit.Reservation{}); no != nil {
			got = no.status
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// still is a client that sends nothing more.
type still struct{ cut chan struct{} }

func (still) Moved() int64 { return 0 }
func (s still) CutRead()   { close(s.cut) }
func (s still) Cut()       { close(s.cut) }

// A client that is cut off while it is given more time, which moves the deadline that cuts it off, is not waited for.
func TestCutWhileTimeIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := limit.NewBudget("test", 1<<20, 0)
		var elsewhere, memory limit.Reservation
		elsewhere.Of(budget)
		memory.Of(budget)
		defer elsewhere.Release()
		defer memory.Release()
		if !elsewhere.TryGrow(512 << 10) {
			t.Fatal("there is no memory")
		}
		peer := still{make(chan struct{})}
		u := upload{h: New(Options{Requests: budget}), memory: &memory, peer: peer}
		u.until = func(time.Time) error {
			if len(u.body) > 0 && !memory.WasCut() {
				go func() {
					var other limit.Reservation
					other.Of(budget)
					_ = other.Grow(t.Context(), 512<<10)
					other.Release()
				}()
				<-peer.cut
			}
			return nil
		}
		after := 0
		body := &probe{io.MultiReader(strings.NewReader(strings.Repeat("x", first-10)), strings.NewReader("more")), func() {
			if memory.WasCut() {
				after++
			}
		}}
		if err := u.read(t.Context(), body, -1); !errors.Is(err, limit.ErrFull) || after > 0 {
			t.Errorf("got %v, and %d reads", err, after)
		}
	})
}
