package admin

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// TestOtherChangeUnderWay: a change waits, and tells so once, until another one has ended, such as
// that of a command that was broken off. The wait is bounded, and its end tells what is under way.
func TestOtherChangeUnderWay(t *testing.T) {
	const other = "node d is being added, since 2026-01-02T03:04:05Z"
	for _, times := range []int{5, 1 << 30} {
		within(t, func(t *testing.T, b *bed) {
			a := b.add("a")
			a.change = func(n int, _ nodeapi.Change, w http.ResponseWriter, _ *http.Request) {
				if n < times {
					nodeapi.RefuseBusy(w, other)
					return
				}
				nodeapi.TellEnd(w, nil)
			}
			began := clock.System.Now()
			err := b.client.AddNode(t.Context(), "d=host-d:4570", b.line)
			if took := clock.System.Now().Sub(began); took > time.Minute {
				t.Errorf("it is waited for %v", took)
			}
			if times == 5 {
				wants(t, err)
			} else {
				wants(t, err, other)
			}
			if got := strings.Join(b.told, "\n"); strings.Count(got, other) != 1 {
				t.Errorf("it tells:\n%s", got)
			}
		})
	}
}

// TestChangeRefused: what a node refuses for good is not asked for again.
func TestChangeRefused(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		a.change = func(_ int, _ nodeapi.Change, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "nodes without certificates are three", http.StatusConflict)
		}
		wants(t, b.client.RemoveNode(t.Context(), "b", b.line), "are three")
		a.change = func(_ int, _ nodeapi.Change, w http.ResponseWriter, _ *http.Request) {
			nodeapi.TellEnd(w, errors.New("there is no node b"))
		}
		wants(t, b.client.RemoveNode(t.Context(), "b", b.line), "there is no node b")
		if got := a.did(); got != "remove remove" {
			t.Errorf("it was asked to %s", got)
		}
	})
}

// TestNextOwnerGoesOn: where the owner is replaced in the middle of a change, the next one is
// asked: the one before has ended, or goes on without the state, or is stopped and keeps its
// connections open.
func TestNextOwnerGoesOn(t *testing.T) {
	for name, lose := range map[string]func(b *bed, r *http.Request){
		"it has ended":                 func(*bed, *http.Request) { panic(http.ErrAbortHandler) },
		"it does not own it any more":  func(*bed, *http.Request) {},
		"it is stopped":                func(b *bed, r *http.Request) { b.is("a", status.Unreachable); <-r.Context().Done() },
		"it is stopped without a line": func(b *bed, r *http.Request) { b.is("a", status.Unreachable); <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, b *bed) {
				a, next := b.add("a"), b.add("b")
				a.change = func(_ int, _ nodeapi.Change, w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(name, "without a line") {
						nodeapi.Tell(w, "The nodes let d in.")
					}
					b.owns("b")
					lose(b, r)
				}
				next.change = func(_ int, _ nodeapi.Change, w http.ResponseWriter, _ *http.Request) {
					nodeapi.Tell(w, "Node d is one of 4 nodes.")
					nodeapi.TellEnd(w, nil)
				}
				wants(t, b.client.AddNode(t.Context(), "d=host-d:4570", b.line))
				if got := strings.Join(b.told, "\n"); a.did() != "add" || next.did() != "add" || !strings.Contains(got, "the next owner is asked") || !strings.Contains(got, "one of 4") {
					t.Errorf("a was asked to %s and b to %s:\n%s", a.did(), next.did(), got)
				}
			})
		})
	}
}

// TestSlowOwnerIsFollowed: an owner that misses some questions, takes long, or hands over and goes on
// with the change, is not given up.
func TestSlowOwnerIsFollowed(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		a.change = func(_ int, _ nodeapi.Change, w http.ResponseWriter, r *http.Request) {
			b.owns("b")
			b.is("a", status.Unreachable)
			pause(r.Context(), 2*watchTime)
			b.is("a", "")
			pause(r.Context(), comeBackTime)
			nodeapi.TellEnd(w, nil)
		}
		wants(t, b.client.RemoveNode(t.Context(), "b", b.line))
		if got := a.did(); got != "remove" {
			t.Errorf("it was asked to %s", got)
		}
	})
}

// TestDoneBeforeLost: a change that was done, and whose end was lost, counts as done, also where the
// nodes that are asked learn of it later than the next owner.
func TestDoneBeforeLost(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(b *bed, t *testing.T) error
		done func(*roster.List)
	}{
		"an addition": {
			func(b *bed, t *testing.T) error { return b.client.AddNode(t.Context(), "d=host-d:4570", b.line) },
			func(l *roster.List) { l.Nodes = append(l.Nodes, roster.Member{Name: "d", Route: "host-d:4570"}) },
		},
		"a removal": {
			func(b *bed, t *testing.T) error { return b.client.RemoveNode(t.Context(), "c", b.line) },
			func(l *roster.List) { l.Nodes, l.Removed = l.Nodes[:2], []string{"c"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, b *bed) {
				a, next := b.add("a"), b.add("b")
				a.change = func(int, nodeapi.Change, http.ResponseWriter, *http.Request) {
					b.owns("b")
					panic(http.ErrAbortHandler)
				}
				next.change = func(_ int, _ nodeapi.Change, w http.ResponseWriter, _ *http.Request) {
					go func() {
						pause(t.Context(), 10*look)
						b.changes(c.done)
					}()
					nodeapi.TellEnd(w, errors.New("it is done already"))
				}
				wants(t, c.ask(b, t))
				// Without a loss, it is a mistake of whoever asks.
				wants(t, c.ask(b, t), "already")
			})
		})
	}
}

// TestOwnersEndOfChange: a change that each owner ends of is not given to all.
func TestOwnersEndOfChange(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		a := b.add("a")
		a.change = func(int, nodeapi.Change, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		wants(t, b.client.AddNode(t.Context(), "d=host-d:4570", b.line), nodeapi.ErrLost.Error(), "given again")
		if got := strings.Count(a.did(), "add"); got != 4 {
			t.Errorf("it was asked %d times", got)
		}
	})
}
