package sdk_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/config"
)

// repeated are n delays of the same length, in seconds.
func repeated(n int, seconds float64) []float64 { return slices.Repeat([]float64{seconds}, n) }

// doubling are the delays of an exponential phase.
func doubling(n int, low, high float64) (delays []float64) {
	for i := range n {
		delays = append(delays, low+(high-low)*(math.Exp2(float64(i))-1)/(math.Exp2(float64(n-1))-1))
	}
	return delays
}

// TestSchedulesOfEndpoints: each attempt at an endpoint that is down comes at its
// millisecond, none is left out and none is too many, and the message is a dead
// letter with the last. Delays are in seconds; the tables are those of AWS's
// documentation and of docs/architecture.md.
func TestSchedulesOfEndpoints(t *testing.T) {
	curve := func(function string) string {
		return `{"minDelayTarget":5,"maxDelayTarget":260,"numRetries":10,"backoffFunction":"` + function + `"}`
	}
	for _, tc := range []struct {
		name, policy string
		delays       []float64
		roughly      float64 // how much the delays are rounded here
	}{
		{name: "default", delays: repeated(3, 20)},
		{name: "worked example", policy: `{"minDelayTarget":20,"maxDelayTarget":40,"numRetries":3,"backoffFunction":"linear"}`, delays: []float64{20, 30, 40}},
		{
			name: "linear", policy: curve("linear"), roughly: 0.05,
			delays: []float64{5, 33.3, 61.7, 90, 118.3, 146.7, 175, 203.3, 231.7, 260},
		},
		{
			name: "arithmetic", policy: curve("arithmetic"), roughly: 0.05,
			delays: []float64{5, 10.7, 22, 39, 61.7, 90, 124, 163.7, 209, 260},
		},
		{
			name: "geometric", policy: curve("geometric"), roughly: 0.05,
			delays: []float64{5, 7.8, 12, 18.7, 28.9, 44.9, 69.7, 108.1, 167.6, 260},
		},
		{
			name: "exponential", policy: curve("exponential"), roughly: 0.05,
			delays: []float64{5, 5.5, 6.5, 8.5, 12.5, 20.5, 36.4, 68.4, 132.3, 260},
		},
		{
			name: "the four phases", policy: `{"minDelayTarget":2,"maxDelayTarget":9,"numRetries":9,"numNoDelayRetries":2,"numMinDelayRetries":3,
				"numMaxDelayRetries":2,"backoffFunction":"linear"}`, delays: []float64{0, 0, 2, 2, 2, 2, 9, 9, 9},
		},
		{
			name: "one retry in the backoff phase", policy: `{"minDelayTarget":2,"maxDelayTarget":9,"numRetries":2,"numMaxDelayRetries":1}`,
			delays: []float64{2, 9},
		},
		{
			name: "documented sample", policy: `{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,"numNoDelayRetries":3,"numMinDelayRetries":2,
				"numMaxDelayRetries":35,"backoffFunction":"exponential"}`,
			delays: slices.Concat(repeated(3, 0), repeated(2, 1), doubling(10, 1, 60), repeated(35, 60)),
		},
		{name: "as long as may be", policy: `{"minDelayTarget":36,"maxDelayTarget":36,"numRetries":100}`, delays: repeated(100, 36)},
		{name: "none", policy: `{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":0}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newFallenWorld(t)
			policy := ""
			if tc.policy != "" {
				policy = `{"healthyRetryPolicy":` + tc.policy + `}`
			}
			_, sub := w.subscribeUnreliable(t, "http", status(http.StatusServiceUnavailable), "DeliveryPolicy", policy)
			id := *must(w.topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &w.topic, Message: aws.String("hello")}))(t).MessageId
			advance(t, w.endpoint, "3h")
			d := w.delivery(t, sub, id)
			at := attemptTimes(t, d)
			want := []float64{0} // when each attempt is made
			for i, delay := range tc.delays {
				want = append(want, want[i]+delay)
			}
			made := len(want)
			if made > 100 { // of so many, some are not shown
				want = slices.Delete(want, 20, made-80)
			}
			if len(at) != len(want) || d["attempt"] != float64(made) || d["state"] != "dead-letter" {
				t.Fatalf("%d attempts are shown of %v, want %d of %d; state %v", len(at), d["attempt"], len(want), made, d["state"])
			}
			for i, when := range want {
				if got := at[i].Sub(at[0]).Seconds(); math.Abs(got-when) > float64(i)*(tc.roughly+0.0011) {
					t.Errorf("attempt %d of those shown came after %v s, want %v", i+1, got, when)
				}
			}
			last := at[len(at)-1]
			if tc.name == "documented sample" && math.Round(last.Sub(at[0]).Seconds()) != 2229 {
				t.Errorf("it took %s", last.Sub(at[0]))
			}
			if ended := must(time.Parse(time.RFC3339Nano, d["finishedAt"].(string)))(t); last.Sub(ended).Abs() > time.Millisecond {
				t.Errorf("it ended at %s, and its last attempt was at %s", ended, last)
			}
			takeMessage(t, w.queues, w.dead)
		})
	}
}

func newFallenWorld(t *testing.T) *fallenWorld {
	t.Helper()
	w := &fallenWorld{endpoint: startWith(t, func(c *config.Config) { c.RetryAfter, c.DeliveryHistory = true, 30*24*time.Hour })}
	w.queues, w.topics = client(w.endpoint), topicsClient(w.endpoint)
	w.topic, w.dead = createTopic(t, w.topics, "t"), createQueue(t, w.queues, "dead")
	w.redrive = `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`
	return w
}

// delivery is what is shown of a message's delivery.
func (w *fallenWorld) delivery(t *testing.T, subscription, id string) map[string]any {
	t.Helper()
	for _, d := range admin(t, w.endpoint+"/_godwit/deliveries?limit=1000&subscription="+subscription, "")["deliveries"].([]any) {
		if d := d.(map[string]any); d["messageId"] == id {
			return d
		}
	}
	t.Fatalf("the delivery of %s is not shown", id)
	return nil
}

// attemptTimes are those of the attempts that are shown.
func attemptTimes(t *testing.T, delivery map[string]any) (at []time.Time) {
	t.Helper()
	for _, a := range delivery["attempts"].([]any) {
		at = append(at, must(time.Parse(time.RFC3339Nano, a.(map[string]any)["at"].(string)))(t))
	}
	return at
}

// TestPolicyChangesUnderWay: a policy that is set while a delivery is under way
// holds from its next attempt on, be it the topic's or the subscription's.
func TestPolicyChangesUnderWay(t *testing.T) {
	every := func(seconds, retries int) string {
		return fmt.Sprintf(`{"minDelayTarget":%d,"maxDelayTarget":%[1]d,"numRetries":%d}`, seconds, retries)
	}
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, w *attributeWorld)
		want   []float64 // when attempts are made; the change comes after 25 s
		state  string
	}{
		{"none", func(*testing.T, *attributeWorld) {}, []float64{0, 20, 40, 60}, "exhausted after 4"},
		{
			"the subscription's, more often", func(t *testing.T, w *attributeWorld) {
				w.set(t, w.viaHook, "DeliveryPolicy", `{"healthyRetryPolicy":`+every(5, 6)+`}`)
			},
			[]float64{0, 20, 40, 45, 50, 55, 60},
			"exhausted after 7",
		},
		{
			"the topic's", func(t *testing.T, w *attributeWorld) {
				w.setTopic(t, "DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":`+every(7, 4)+`}}`)
			},
			[]float64{0, 20, 40, 47, 54},
			"exhausted after 5",
		},
		{
			"the topic's over the subscription's", func(t *testing.T, w *attributeWorld) {
				w.set(t, w.viaHook, "DeliveryPolicy", `{"healthyRetryPolicy":`+every(5, 6)+`}`)
				w.setTopic(t, "DeliveryPolicy", `{"http":{"defaultHealthyRetryPolicy":`+every(7, 4)+`,"disableSubscriptionOverrides":true}}`)
			},
			[]float64{0, 20, 40, 47, 54},
			"exhausted after 5",
		},
		{
			"fewer than were made", func(t *testing.T, w *attributeWorld) {
				w.set(t, w.viaHook, "DeliveryPolicy", `{"healthyRetryPolicy":`+every(5, 1)+`}`)
			},
			[]float64{0, 20, 40},
			"exhausted after 3",
		},
		{
			"no retries any more, and then some", func(t *testing.T, w *attributeWorld) {
				w.set(t, w.viaHook, "DeliveryPolicy", `{"healthyRetryPolicy":`+every(5, 0)+`}`)
				w.set(t, w.viaHook, "DeliveryPolicy", "")
			},
			[]float64{0, 20, 40, 60},
			"exhausted after 4",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newAttributeWorld(t)
			w.hook.answer(http.StatusServiceUnavailable)
			w.publish(t, "hello")
			advance(t, w.endpoint, "25s")
			tc.change(t, w)
			advance(t, w.endpoint, "10m")
			d := admin(t, w.endpoint+"/_godwit/deliveries?subscription="+w.viaHook, "")["deliveries"].([]any)[0].(map[string]any)
			at := attemptTimes(t, d)
			var got []float64
			for _, a := range at {
				got = append(got, math.Round(a.Sub(at[0]).Seconds()*100)/100)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !strings.Contains(fmt.Sprint(d["reason"]), tc.state) {
				t.Errorf("%v, attempts (-want +got):\n%s", d["reason"], diff)
			}
		})
	}
}

// TestThrottleHoldsForAMinute: a subscription with maxReceivesPerSecond gets that
// many requests a second, retries included, in order, for as long as there are
// messages, and no retry is used up by waiting.
func TestThrottleHoldsForAMinute(t *testing.T) {
	const rate, messages = 5, 330
	w := newAttributeWorld(t)
	w.set(t, w.viaHook, "RawMessageDelivery", "true")
	w.set(t, w.viaHook, "DeliveryPolicy", fmt.Sprintf(`{"throttlePolicy":{"maxReceivesPerSecond":%d},"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":1}}`, rate))
	first := map[string]bool{}
	var order []string
	total := 0
	take := func() (n int) {
		for {
			select {
			case r := <-w.hook.requests:
				if !first[r.Body] {
					order = append(order, r.Body)
				}
				first[r.Body] = true
				n++
			default:
				total += n
				return n
			}
		}
	}
	w.hook.answer(http.StatusServiceUnavailable) // the first second fails, and is retried
	for i := range messages {
		w.publish(t, fmt.Sprintf("%03d", i))
	}
	advance(t, w.endpoint, "900ms")
	take()
	w.hook.answer(http.StatusOK)
	for second := 1; second < 60; second++ {
		advance(t, w.endpoint, "1s")
		if n := take(); n > rate {
			t.Errorf("%d requests within second %d", n, second)
		}
	}
	if least := 60 * rate * 95 / 100; total < least || total > 60*rate*105/100 {
		t.Errorf("%d requests in a minute at %d a second", total, rate)
	}
	if !slices.IsSorted(order) {
		t.Errorf("first attempts came in the order %v", order)
	}
	advance(t, w.endpoint, "1m")
	take()
	for _, d := range admin(t, w.endpoint+"/_godwit/deliveries?limit=1000&subscription="+w.viaHook, "")["deliveries"].([]any) {
		if d := d.(map[string]any); d["state"] != "delivered" || d["attempt"].(float64) > 2 {
			t.Errorf("%v after %v attempts: %v", d["state"], d["attempt"], d["reason"])
		}
	}
	if total != messages+rate || len(order) != messages {
		t.Errorf("%d requests for %d messages, want the first %d twice", total, len(order), rate)
	}
}
