// Package plan presents retry policies to people: as a table with a chart, and as a picture.
package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/topic/retry"
)

// Plan is a policy and its name.
type Plan struct {
	Name   string // such as the file that it was read from
	Policy retry.Policy
	// MaxReceivesPerSecond is the throttle; 0: there is none.
	MaxReceivesPerSecond int
}

// Of parses a DeliveryPolicy document of a topic or a subscription. Missing members have their
// defaults. Errors: those of SNS.
func Of(name, document string) (Plan, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(document), &members); err != nil || members == nil {
		return Plan{}, errors.New("want a JSON object: a DeliveryPolicy of a topic or of a subscription")
	}
	var e retry.Effective
	if _, ok := members["http"]; ok {
		p, err := retry.ParseTopic(document)
		if err != nil {
			return Plan{}, err
		}
		e = retry.Resolve(p, nil, true)
	} else {
		p, err := retry.ParseSubscription(document, true)
		if err != nil {
			return Plan{}, err
		}
		e = retry.Resolve(nil, p, true)
	}
	return Plan{Name: name, Policy: e.Policy, MaxReceivesPerSecond: e.MaxReceivesPerSecond}, nil
}

// OfProtocol is the policy of a protocol of SNS, for http and https the default.
func OfProtocol(protocol string) (p Plan, ok bool) {
	switch protocol {
	case "sqs", "lambda", "firehose":
		return Plan{Name: protocol + ", AWS-managed", Policy: retry.AWSManaged}, true
	case "email", "email-json", "sms", "application":
		return Plan{Name: protocol + ", customer-managed", Policy: retry.CustomerManaged}, true
	case "http", "https":
		return Plan{Name: protocol + ", by default", Policy: retry.DefaultHTTP}, true
	}
	return Plan{}, false
}

// step is a run of retries of one phase with the same delay.
type step struct {
	first, last int // numbers of the retries, from 1
	phase       retry.Phase
	delay       time.Duration
	from, until time.Duration // times of the first and the last, since the first attempt
}

func (s *step) count() int { return s.last - s.first + 1 }

func stepsOf(p retry.Policy) (all []step) {
	at := time.Duration(0)
	for i := 0; ; i++ {
		delay, ok := p.Delay(i)
		if !ok {
			return all
		}
		at += delay
		if n := len(all); n > 0 && all[n-1].phase == p.Phase(i) && all[n-1].delay == delay {
			all[n-1].last, all[n-1].until = i+1, at
			continue
		}
		all = append(all, step{i + 1, i + 1, p.Phase(i), delay, at, at})
	}
}

// phase is a phase of a policy that has retries.
type phase struct {
	phase   retry.Phase
	retries int
	words   string
}

func phasesOf(p retry.Policy) (all []phase) {
	add := func(ph retry.Phase, n int, words string) {
		if n > 0 {
			all = append(all, phase{ph, n, words})
		}
	}
	low, high := seconds(p.MinDelayTarget), seconds(p.MaxDelayTarget)
	add(retry.Immediate, p.NumNoDelayRetries, "without delay")
	add(retry.PreBackoff, p.NumMinDelayRetries, low+" apart")
	n := p.NumRetries - p.NumNoDelayRetries - p.NumMinDelayRetries - p.NumMaxDelayRetries
	switch {
	case low == high || n == 1:
		add(retry.BackoffPhase, n, low+" apart")
	default:
		add(retry.BackoffPhase, n, p.Backoff.String()+", "+low+" to "+high)
	}
	add(retry.PostBackoff, p.NumMaxDelayRetries, high+" apart")
	return all
}

// seconds formats a delay, to a tenth of a second.
func seconds(d time.Duration) string { return tenths(d.Round(100*time.Millisecond).Seconds()) + " s" }

func tenths(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

// moment formats a time of any length with its two largest units.
func moment(d time.Duration) string {
	switch {
	case d < time.Minute:
		return seconds(d)
	case d < time.Hour:
		return both(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return both(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	default:
		return both(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
	}
}

func both(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	out := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		out += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return out
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// summary is the policy in one line.
func (p Plan) summary() string {
	if p.Policy.NumRetries == 0 {
		return "no retries: the first attempt is the only one"
	}
	total := p.Policy.Total()
	out := fmt.Sprintf("%s after the first attempt, over %s", counted(p.Policy.NumRetries, "retry", "retries"), moment(total))
	if total >= time.Minute {
		out += fmt.Sprintf(" (%s s)", thousands(int(total.Round(time.Second)/time.Second)))
	}
	return out
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}
