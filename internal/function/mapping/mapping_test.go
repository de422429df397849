package mapping

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// disk is what batches have written.
type disk map[string][]byte

func (d disk) write(t testing.TB, b *mutation.Batch) {
	t.Helper()
	err := b.Each(func(op mutation.Op, key, value []byte) error {
		if op == mutation.Set {
			d[string(key)] = slices.Clone(value)
		} else {
			delete(d, string(key))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
}

// After any history, what is read back is what was there, and it completes in the
// same order.
func TestReloadEquals(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, d, b, now := New(7), disk{}, &mutation.Batch{}, start
		for range 100 {
			now = now.Add(time.Duration(rng.IntN(700)) * time.Millisecond)
			a := ARN("us-east-1", "000000000000", fmt.Sprint(rng.IntN(8)))
			set := Settings{BatchSize: 1 + rng.IntN(10), Window: time.Duration(rng.IntN(3)) * time.Second, ReportFailures: rng.IntN(2) == 0, Concurrency: rng.IntN(3)}
			if rng.IntN(2) == 0 {
				set.Filters = []string{`{"body":["a"]}`}
			}
			_, err := s.Mapping(a)
			switch rng.IntN(5) {
			case 0:
				if err != nil {
					queue := arn.ARN{Service: "sqs", Region: "us-east-1", Account: "000000000000", Resource: "q"}
					s.Create(now, now.Add(time.Second), Mapping{
						ARN: a, Queue: queue, Function: arn.Function("us-east-1", "000000000000", "f"), Settings: set, Enabled: rng.IntN(3) > 0,
					}, b)
				}
			case 1:
				_, _ = s.Update(now, now.Add(time.Second), Update{ARN: a, Settings: set, Enabled: rng.IntN(2) == 0}, b)
			case 2:
				_, _ = s.Delete(now, now.Add(time.Second), a, b)
			case 3:
				_ = s.Tag(a, map[string]string{fmt.Sprint(rng.IntN(4)): "x"}, []string{fmt.Sprint(rng.IntN(4))}, b)
			case 4:
				s.CompleteChanges(now, 1+rng.IntN(3), b)
			}
			d.write(t, b)
		}
		again := New(7)
		for key, value := range d {
			if err := again.Load([]byte(key), value); err != nil {
				t.Fatal(err)
			}
		}
		for _, later := range []time.Duration{0, 500 * time.Millisecond, time.Hour} {
			if diff := cmp.Diff(s, again, cmp.AllowUnexported(State{}, Mapping{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, read back (-was +is):\n%s", seed, diff)
			}
			got, want := again.CompleteChanges(now.Add(later), 100, b), s.CompleteChanges(now.Add(later), 100, b)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: completed %v, not %v", seed, got, want)
			}
			b.Reset()
		}
	}
}

func TestActive(t *testing.T) {
	s, b := New(1), &mutation.Batch{}
	a := ARN("us-east-1", "000000000000", "u")
	m := s.Create(start, start.Add(time.Second), Mapping{ARN: a, Enabled: true}, b)
	check := func(state string, active bool) {
		t.Helper()
		if m.State() != state || m.Active() != active {
			t.Errorf("%s, active %t; want %s, %t", m.State(), m.Active(), state, active)
		}
	}
	now := start
	complete := func() {
		t.Helper()
		if s.CompleteChanges(now.Add(time.Second-1), 10, b) != nil {
			t.Error("it completed early")
		}
		now = now.Add(time.Second)
		if at, ok := s.NextCompletion(); !ok || !at.Equal(now) {
			t.Errorf("it completes at %v", at)
		}
		s.CompleteChanges(now, 10, b)
	}
	change := func(enabled bool) {
		t.Helper()
		if _, err := s.Update(now, now.Add(time.Second), Update{ARN: a, Enabled: enabled}, b); err != nil {
			t.Error(err)
		}
	}
	check(Creating, false)
	_, err := s.Update(now, now, Update{ARN: a}, b)
	if fault.KindOf(err) != fault.ResourceInUse {
		t.Errorf("an update while it is created: %v", err)
	}
	complete()
	check(Enabled, true)
	change(true)
	check(Updating, true)
	complete()
	change(false)
	check(Disabling, false)
	complete()
	check(Disabled, false)
	change(false)
	check(Updating, false)
	complete()
	change(true)
	check(Enabling, false)
	complete()
	if _, err := s.Delete(now, now.Add(time.Second), a, b); err != nil {
		t.Error(err)
	}
	check(Deleting, false)
	complete()
	if _, err := s.Mapping(a); fault.KindOf(err) != fault.ResourceNotFound {
		t.Errorf("after its deletion: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	s, b := New(3), &mutation.Batch{}
	a := arn.ARN{Service: "sqs", Region: "us-east-1", Account: "000000000000", Resource: "q"}
	s.Create(start, start, Mapping{ARN: ARN("us-east-1", "000000000000", "u"), Queue: a, Function: arn.Function("us-east-1", "000000000000", "f"), Enabled: true}, b)
	d := disk{}
	d.write(f, b)
	for key, value := range d {
		f.Add([]byte(key), value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s, d, b := New(3), disk{}, &mutation.Batch{}
		if s.Load(key, value) != nil {
			return
		}
		for m := range s.All { // what can be read can be written, and read again
			s.put(b, m)
		}
		d.write(t, b)
		again := New(3)
		for key, value := range d {
			if err := again.Load([]byte(key), value); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(State{}, Mapping{}), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
