package sns

import (
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// TestRefusedPublishesCostNothing: what one bound refuses does not count for the other.
func TestRefusedPublishesCostNothing(t *testing.T) {
	sent, full := 0, false
	refusal := errors.New("too many bytes")
	q := newQuota(maxEntries, func(_ string, n int) error {
		if full {
			return refusal
		}
		sent += n
		return nil
	})
	call := &api.Call{Account: "000000000000", Region: "us-east-1", Time: time.Unix(1e9, 0)}
	full = true
	for range 2 * maxEntries {
		if err := q.take(call, 7); !errors.Is(err, refusal) {
			t.Fatalf("with too many bytes: %v", err)
		}
	}
	full = false
	for i := range maxEntries {
		if err := q.take(call, 7); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := q.take(call, 7); fault.KindOf(err) != fault.Throttled || sent != 7*maxEntries {
		t.Errorf("beyond the rate: %v, and %d bytes are counted, want %d", err, sent, 7*maxEntries)
	}
	call.Time = call.Time.Add(time.Second)
	if err := q.take(call, 7); err != nil {
		t.Errorf("a second later: %v", err)
	}
}
