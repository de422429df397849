package replica_test

import (
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// ends fails the test unless f ends while the store still waits.
func ends(t *testing.T, what string, f func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	over, stop := clock.After(clock.System, 10*time.Second)
	defer stop()
	select {
	case <-ended:
	case <-over:
		t.Fatalf("%s: it waits for the disk", what)
	}
}

// An owner whose store holds a record that has come back steps down by its time, and when it is told
// to: it acknowledges nothing from then on, and its server is stopped on what it has read and written.
// The store gets what the log has once there is room.
func TestStepDownOfABlockedStore(t *testing.T) {
	const patience = time.Hour
	told := errors.New("a test says so")
	for name, c := range map[string]struct {
		down   func(*replica.Owner, *clock.Virtual) error
		reason error // nil: any
	}{
		"the round trip's time passes": {down: func(_ *replica.Owner, virtual *clock.Virtual) error {
			_, err := virtual.Advance(t.Context(), patience)
			return err
		}},
		"it is told to": {reason: told, down: func(o *replica.Owner, _ *clock.Virtual) error {
			o.StepDown(told)
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual, failed := clock.NewVirtual(time.Unix(0, 0)), make(chan error, 1)
			st := storetest.NewFull(memory.New())
			n := own(t, st, replica.OwnerOptions{Clock: virtual, RoundTrip: patience, Detach: true, Failed: func(err error) { failed <- err }})
			t.Cleanup(st.Free)
			if err := n.Apply(store.Sync, set("k", "0")); err != nil {
				t.Fatal(err)
			}
			st.Fill()
			confirmed := make(chan error, 1)
			go func() {
				_ = n.Apply(store.Sync, set("k", "1"))
				confirmed <- n.Confirm(t.Context())
			}()
			until(t, "the store waits", st.Waits)
			ends(t, "a write", func() {
				if err := n.Apply(store.NoSync, set("k", "2")); err != nil {
					t.Error(err)
				}
			})
			ends(t, "the end of the ownership", func() {
				if err := c.down(n.Owner, virtual); err != nil {
					t.Error(err)
				}
				if err := <-failed; err == nil || !errors.Is(err, c.reason) && c.reason != nil {
					t.Errorf("it steps down for %v", err)
				}
				if err := <-confirmed; err == nil {
					t.Error("what the store does not have is acknowledged")
				}
			})
			ends(t, "the end of the server", func() {
				if err := n.Apply(store.Sync, set("later", "3")); err != nil {
					t.Error(err)
				}
				if k, later := get(t, n, "k"), get(t, n, "later"); k != "2" || later != "3" {
					t.Errorf("it has %s and %s", k, later)
				}
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
			if got := get(t, st, "k"); got != "0" {
				t.Errorf("the store that waits has %q", got)
			}
			takeover(t, n.log.Node(), 2, "another")
			st.Free()
			until(t, "the replica follows", func() bool { return n.replica.Fence().Epoch == 2 })
			if k, later := get(t, st, "k"), get(t, st, "later"); k != "2" || later != "nothing" {
				t.Errorf("the store has %s and %s", k, later)
			}
		})
	}
}
