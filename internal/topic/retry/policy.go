// Package retry converts delivery policies to schedules: how long to wait before each retry,
// and when to give up. It also reads and writes the DeliveryPolicy documents of topics and
// subscriptions.
//
// A schedule has four phases, in this order: immediate retries without a delay, pre-backoff
// retries at the minimum delay, backoff retries from the minimum to the maximum delay, and
// post-backoff retries at the maximum. The package is pure: time and randomness are arguments.
package retry

import "time"

// Policy is a complete schedule of retries. The first attempt is not part of it. The sum of the
// counts of the three fixed phases must not exceed NumRetries; the rest is the backoff phase.
type Policy struct {
	NumRetries         int // all phases together
	NumNoDelayRetries  int // immediate phase
	NumMinDelayRetries int // pre-backoff phase
	NumMaxDelayRetries int // post-backoff phase
	MinDelayTarget     time.Duration
	MaxDelayTarget     time.Duration
	Backoff            Backoff
}

// The policies that cannot be configured, and the default of HTTP/S endpoints.
var (
	// AWSManaged is for sqs, lambda and firehose: 100,015 retries over 23 days.
	AWSManaged = Policy{
		NumRetries: 100_015, NumNoDelayRetries: 3, NumMinDelayRetries: 2, NumMaxDelayRetries: 100_000,
		MinDelayTarget: time.Second, MaxDelayTarget: 20 * time.Second, Backoff: Exponential,
	}
	// CustomerManaged is for email, sms, mobile push and throttled firehose
	// deliveries: 50 retries over 6 hours.
	CustomerManaged = Policy{
		NumRetries: 50, NumMinDelayRetries: 2, NumMaxDelayRetries: 38,
		MinDelayTarget: 10 * time.Second, MaxDelayTarget: 600 * time.Second, Backoff: Exponential,
	}
	// DefaultHTTP is for http and https: 3 retries, 20 s apart.
	DefaultHTTP = Policy{
		NumRetries: 3, MinDelayTarget: 20 * time.Second, MaxDelayTarget: 20 * time.Second, Backoff: Linear,
	}
)

// Phase is one of the four parts of a schedule, or the end of it.
type Phase uint8

// The phases, in order.
const (
	Immediate Phase = iota
	PreBackoff
	BackoffPhase
	PostBackoff
	Exhausted
)

var phaseNames = [...]string{"immediate", "pre-backoff", "backoff", "post-backoff", "exhausted"}

func (p Phase) String() string { return phaseNames[p] }

// Phase is the phase of a retry. Retries count from 0 over all phases; a number outside [0,
// NumRetries) is Exhausted.
func (p Policy) Phase(retry int) Phase {
	phase, _ := p.locate(retry)
	return phase
}

// Delay is the wait before the given retry, counted from 0 over all phases, from the end of the
// attempt before it. ok is false if the policy has no such retry: the delivery has failed
// permanently. Delays are whole milliseconds if the targets are.
func (p Policy) Delay(retry int) (delay time.Duration, ok bool) {
	switch phase, i := p.locate(retry); phase {
	case Immediate:
		return 0, true
	case PreBackoff:
		return p.MinDelayTarget, true
	case BackoffPhase:
		return p.Backoff.delay(i, p.backoffRetries(), p.MinDelayTarget, p.MaxDelayTarget), true
	case PostBackoff:
		return p.MaxDelayTarget, true
	default:
		return 0, false
	}
}

// Floor is the minimum of the wait before the given retry after jitter: the minimum delay of
// its phase. It is 0 for immediate retries.
func (p Policy) Floor(retry int) time.Duration {
	switch p.Phase(retry) {
	case PreBackoff, BackoffPhase:
		return p.MinDelayTarget
	case PostBackoff:
		return p.MaxDelayTarget
	default:
		return 0
	}
}

// Total is the sum of all delays, without jitter and the duration of attempts.
func (p Policy) Total() time.Duration {
	total := time.Duration(p.NumMinDelayRetries)*p.MinDelayTarget +
		time.Duration(p.NumMaxDelayRetries)*p.MaxDelayTarget
	n := p.backoffRetries()
	for i := range n {
		total += p.Backoff.delay(i, n, p.MinDelayTarget, p.MaxDelayTarget)
	}
	return total
}

// locate is the phase of a retry and its number within that phase.
func (p Policy) locate(retry int) (Phase, int) {
	if retry < 0 {
		return Exhausted, 0
	}
	lengths := [...]int{p.NumNoDelayRetries, p.NumMinDelayRetries, p.backoffRetries(), p.NumMaxDelayRetries}
	for phase, n := range lengths {
		if retry < n {
			return Phase(phase), retry
		}
		retry -= n
	}
	return Exhausted, 0
}

func (p Policy) backoffRetries() int {
	return max(0, p.NumRetries-p.NumNoDelayRetries-p.NumMinDelayRetries-p.NumMaxDelayRetries)
}

// Jitter spreads a delay so that deliveries that failed together are not retried together. r is
// a random number in [0, 1). The result is uniform over [delay·(1−share), delay·(1+share)], but
// the range begins at floor if that is higher: it is narrowed, not clamped, so that values do
// not accumulate at the floor. A share of 0 disables jitter, and a delay of 0 stays 0.
func Jitter(delay, floor time.Duration, share, r float64) time.Duration {
	if delay <= 0 || share <= 0 {
		return delay
	}
	low := max(float64(delay)*(1-share), float64(floor))
	high := max(float64(delay)*(1+share), low)
	return time.Duration(low + (high-low)*r)
}
