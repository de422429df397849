package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
)

// TestRestart: nodes are restarted one after the other, the owner last, also those whose end cuts
// off the answer, and those that are not reached for a moment.
func TestRestart(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		for _, name := range []string{"a", "b", "c"} {
			f := b.add(name)
			f.post = func(http.ResponseWriter, *http.Request) {
				b.begins(name)
				if name == "b" {
					panic(http.ErrAbortHandler)
				}
			}
			if name == "c" {
				b.set(address(name), nil)
				go func() {
					pause(t.Context(), time.Second)
					b.set(address(name), f)
				}()
			}
		}
		wants(t, b.client.Restart(t.Context(), b.line))
		if got := strings.Join(b.told, "\n"); len(b.told) != 6 || !strings.HasPrefix(b.told[4], "Node a ends") {
			t.Errorf("it tells:\n%s", got)
		}
	})
}

// TestRestartRefused: what a node refuses is not waited for, and the reason is told.
func TestRestartRefused(t *testing.T) {
	for name, fails := range map[string]error{
		"not as this node":  nil,
		"a bad certificate": &tls.CertificateVerificationError{Err: errors.New("the certificate is of another authority")},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, b *bed) {
				for _, name := range []string{"a", "b", "c"} {
					f := b.add(name)
					f.fails = fails
					f.post = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "peers only", http.StatusForbidden) }
				}
				began := clock.System.Now()
				err := b.client.Restart(t.Context(), b.line)
				reason := "peers only"
				if fails != nil {
					reason = fails.Error()
				}
				wants(t, err, "node b does not end", reason)
				if took := clock.System.Now().Sub(began); took > 0 {
					t.Errorf("it is waited for %v", took)
				}
			})
		})
	}
}

// TestRestartUntrusted: a command whose certificate is not trusted any more, once a node has ended,
// does not wait for that.
func TestRestartUntrusted(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		for _, name := range []string{"a", "b", "c"} {
			b.add(name).post = func(http.ResponseWriter, *http.Request) {
				for _, name := range []string{"a", "b", "c"} {
					b.set(address(name), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						http.Error(w, "peers only", http.StatusForbidden)
					}))
				}
			}
		}
		began := clock.System.Now()
		wants(t, b.client.Restart(t.Context(), b.line), "peers only")
		if took := clock.System.Now().Sub(began); took > 0 {
			t.Errorf("it is waited for %v", took)
		}
	})
}

// TestRestartSilent: a node that answers nothing is told of soon, and not taken for one that ends;
// one that answers late has ended.
func TestRestartSilent(t *testing.T) {
	for _, comes := range []bool{false, true} {
		within(t, func(t *testing.T, b *bed) {
			for _, name := range []string{"a", "b", "c"} {
				var asked atomic.Int64
				b.add(name).post = func(_ http.ResponseWriter, r *http.Request) {
					if n := asked.Add(1); name == "b" && (!comes || n < 3) {
						<-r.Context().Done()
						return
					}
					b.begins(name)
				}
			}
			began := clock.System.Now()
			err := b.client.Restart(t.Context(), b.line)
			if comes {
				wants(t, err)
				return
			}
			wants(t, err, "node b does not end", "does not answer")
			if took := clock.System.Now().Sub(began); took > knowTime+nodeapi.HandOverTime {
				t.Errorf("it is waited for %v", took)
			}
		})
	}
}

// TestRestartDoesNotComeBack: a node that nothing starts again is waited for, and what it lacks is
// told.
func TestRestartDoesNotComeBack(t *testing.T) {
	within(t, func(t *testing.T, b *bed) {
		for _, name := range []string{"a", "b", "c"} {
			b.add(name).post = func(http.ResponseWriter, *http.Request) {}
		}
		began := clock.System.Now()
		wants(t, b.client.Restart(t.Context(), b.line), "node b does not come back", "has not ended")
		if took := clock.System.Now().Sub(began); took < comeBackTime {
			t.Errorf("it is waited for %v", took)
		}
		if got := fmt.Sprint(b.told); !strings.Contains(got, "Node b ends") {
			t.Errorf("it tells %s", got)
		}
	})
}
