package retry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// seconds collects the delays of a policy, rounded to a tenth of a second.
func seconds(p Policy) []float64 {
	var all []float64
	for i := 0; ; i++ {
		d, ok := p.Delay(i)
		if !ok {
			return all
		}
		all = append(all, float64(d.Round(100*time.Millisecond))/float64(time.Second))
	}
}

func TestBackoffCurves(t *testing.T) {
	want := map[Backoff][]float64{
		Linear:      {5, 33.3, 61.7, 90, 118.3, 146.7, 175, 203.3, 231.7, 260},
		Arithmetic:  {5, 10.7, 22, 39, 61.7, 90, 124, 163.7, 209, 260},
		Geometric:   {5, 7.8, 12, 18.7, 28.9, 44.9, 69.7, 108.1, 167.6, 260},
		Exponential: {5, 5.5, 6.5, 8.5, 12.5, 20.5, 36.4, 68.4, 132.3, 260},
	}
	for b, delays := range want {
		got := seconds(Policy{NumRetries: 10, MinDelayTarget: 5 * time.Second, MaxDelayTarget: 260 * time.Second, Backoff: b})
		if diff := cmp.Diff(delays, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", b, diff)
		}
	}
}

func TestSchedules(t *testing.T) {
	minute := time.Minute
	for name, tt := range map[string]struct {
		policy Policy
		want   []float64
	}{
		"worked example": {
			Policy{NumRetries: 3, MinDelayTarget: 20 * time.Second, MaxDelayTarget: 40 * time.Second},
			[]float64{20, 30, 40},
		},
		"default":             {DefaultHTTP, []float64{20, 20, 20}},
		"no retries":          {Policy{MinDelayTarget: minute, MaxDelayTarget: minute}, nil},
		"one backoff retry":   {Policy{NumRetries: 1, MinDelayTarget: minute, MaxDelayTarget: 2 * minute}, []float64{60}},
		"fixed phases only":   {Policy{NumRetries: 3, NumNoDelayRetries: 1, NumMinDelayRetries: 1, NumMaxDelayRetries: 1, MinDelayTarget: time.Second, MaxDelayTarget: minute}, []float64{0, 1, 60}},
		"all four, in order":  {Policy{NumRetries: 6, NumNoDelayRetries: 1, NumMinDelayRetries: 1, NumMaxDelayRetries: 2, MinDelayTarget: time.Second, MaxDelayTarget: minute}, []float64{0, 1, 1, 60, 60, 60}},
		"flat geometric":      {Policy{NumRetries: 3, MinDelayTarget: minute, MaxDelayTarget: minute, Backoff: Geometric}, []float64{60, 60, 60}},
		"two backoff retries": {Policy{NumRetries: 2, MinDelayTarget: time.Second, MaxDelayTarget: minute, Backoff: Exponential}, []float64{1, 60}},
	} {
		if diff := cmp.Diff(tt.want, seconds(tt.policy)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestManagedPolicies(t *testing.T) {
	got := seconds(AWSManaged)
	if len(got) != 100_015 {
		t.Fatalf("AWS-managed endpoints get %d retries", len(got))
	}
	wantHead := []float64{0, 0, 0, 1, 1, 1, 1, 1.1, 1.3, 1.6, 2.2, 3.3, 5.7, 10.5, 20, 20, 20}
	if diff := cmp.Diff(wantHead, got[:len(wantHead)]); diff != "" {
		t.Errorf("AWS-managed (-want +got):\n%s", diff)
	}
	if days := int(AWSManaged.Total() / (24 * time.Hour)); days != 23 {
		t.Errorf("AWS-managed takes %d days", days)
	}
	got = seconds(CustomerManaged)
	if len(got) != 50 || got[0] != 10 || got[1] != 10 || got[11] != 600 || got[49] != 600 {
		t.Errorf("customer-managed: %v", got)
	}
	if hours := int(CustomerManaged.Total() / time.Hour); hours != 6 {
		t.Errorf("customer-managed takes %d hours", hours)
	}
}

// The documented sample: 51 requests over 2,229 s.
func TestDocumentedSample(t *testing.T) {
	p := Policy{
		NumRetries: 50, NumNoDelayRetries: 3, NumMinDelayRetries: 2, NumMaxDelayRetries: 35,
		MinDelayTarget: time.Second, MaxDelayTarget: time.Minute, Backoff: Exponential,
	}
	if requests := 1 + len(seconds(p)); requests != 51 {
		t.Errorf("%d requests", requests)
	}
	if total := p.Total().Round(time.Second); total != 2229*time.Second {
		t.Errorf("total %v", total)
	}
}

func TestPhasesAndFloors(t *testing.T) {
	p := Policy{
		NumRetries: 6, NumNoDelayRetries: 1, NumMinDelayRetries: 1, NumMaxDelayRetries: 2,
		MinDelayTarget: time.Second, MaxDelayTarget: time.Minute,
	}
	wantPhase := []Phase{Exhausted, Immediate, PreBackoff, BackoffPhase, BackoffPhase, PostBackoff, PostBackoff, Exhausted}
	wantFloor := []time.Duration{0, 0, time.Second, time.Second, time.Second, time.Minute, time.Minute, 0}
	for i := range wantPhase {
		if got := p.Phase(i - 1); got != wantPhase[i] {
			t.Errorf("retry %d is %v, want %v", i-1, got, wantPhase[i])
		}
		if got := p.Floor(i - 1); got != wantFloor[i] {
			t.Errorf("floor of retry %d is %v, want %v", i-1, got, wantFloor[i])
		}
	}
}

func TestDelayDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { AWSManaged.Delay(99_999); AWSManaged.Delay(9) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func drawPolicy(t *rapid.T) Policy {
	p := Policy{
		NumNoDelayRetries:  rapid.IntRange(0, 20).Draw(t, "immediate"),
		NumMinDelayRetries: rapid.IntRange(0, 20).Draw(t, "pre-backoff"),
		NumMaxDelayRetries: rapid.IntRange(0, 20).Draw(t, "post-backoff"),
		MinDelayTarget:     time.Duration(rapid.IntRange(1, 3600).Draw(t, "min")) * time.Second,
		Backoff:            Backoff(rapid.IntRange(0, len(curves)-1).Draw(t, "function")),
	}
	p.MaxDelayTarget = time.Duration(rapid.IntRange(int(p.MinDelayTarget/time.Second), 3600).Draw(t, "max")) * time.Second
	p.NumRetries = p.NumNoDelayRetries + p.NumMinDelayRetries + p.NumMaxDelayRetries + rapid.IntRange(0, 2000).Draw(t, "backoff")
	return p
}

// Delays never fall, meet both ends of the backoff phase, count to NumRetries
// and sum to Total.
func TestDelaysAreMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		var last, total time.Duration
		count := 0
		for {
			d, ok := p.Delay(count)
			if !ok {
				break
			}
			if d < last {
				t.Fatalf("retry %d waits %v after one of %v", count, d, last)
			}
			if d < p.Floor(count) {
				t.Fatalf("retry %d waits %v, under its floor %v", count, d, p.Floor(count))
			}
			if p.Phase(count) == BackoffPhase {
				if p.Phase(count-1) != BackoffPhase && d != p.MinDelayTarget {
					t.Fatalf("backoff begins with %v", d)
				}
				if p.backoffRetries() > 1 && p.Phase(count+1) != BackoffPhase && d != p.MaxDelayTarget {
					t.Fatalf("backoff ends with %v", d)
				}
			}
			last, total = d, total+d
			count++
		}
		if count != p.NumRetries || total != p.Total() {
			t.Fatalf("%d retries over %v, want %d over %v", count, total, p.NumRetries, p.Total())
		}
	})
}

func TestJitter(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		delay, floor time.Duration
		share, r     float64
		want         time.Duration
	}{
		{0, 0, 0.5, 0.9, 0},             // immediate stays immediate
		{20 * s, 5 * s, 0, 0.9, 20 * s}, // off
		{20 * s, 5 * s, 0.1, 0, 18 * s},
		{20 * s, 5 * s, 0.1, 0.5, 20 * s},
		{20 * s, 20 * s, 0.1, 0, 20 * s}, // at the floor only upwards
		{20 * s, 20 * s, 0.1, 0.5, 21 * s},
		{20 * s, 19 * s, 0.1, 0, 19 * s}, // narrowed by the floor, not cut off
		{20 * s, 19 * s, 0.1, 0.5, 20500 * time.Millisecond},
	} {
		if got := Jitter(tt.delay, tt.floor, tt.share, tt.r).Round(time.Millisecond); got != tt.want {
			t.Errorf("Jitter(%v, %v, %v, %v) = %v, want %v", tt.delay, tt.floor, tt.share, tt.r, got, tt.want)
		}
	}
}

func TestJitterStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		i := rapid.IntRange(0, p.NumRetries).Draw(t, "retry")
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		r := rapid.Float64Range(0, 0.999999).Draw(t, "r")
		d, _ := p.Delay(i)
		got := Jitter(d, p.Floor(i), share, r)
		if got < p.Floor(i) || float64(got) > float64(d)*(1+share)+1 || (d == 0) != (got == 0) {
			t.Fatalf("%v became %v, floor %v", d, got, p.Floor(i))
		}
	})
}
