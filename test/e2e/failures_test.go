package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/test/soak"
)

// hazard is a server with a topic and a FIFO topic, whose subscribers fail at
// random: a web hook, a queue and a FIFO queue, each with a dead-letter queue.
type hazard struct {
	p           *process
	topic, fifo string
	hook        *sink
	waiting     map[string]string // subscriptions by what they end in
	dying       atomic.Bool

	mu     sync.Mutex
	round  int
	acked  map[string]bool // bodies of publishes that were acknowledged, of the FIFO topic with a group
	taken  map[string]int  // by body: the round of the hook's first 200
	seed   uint64
	asked  map[string]int // by body: the round of the hook's latest request
	wrong  []string
	rounds struct{ failed, succeeded int } // of the hook's answers
}

const failRounds = 3

// TestHalfOfAllAttemptsFail kills the server three times while half of all
// attempts fail, some for good: each publish that was acknowledged ends in each
// subscriber or in its dead-letter queue, and in but one of them.
func TestHalfOfAllAttemptsFail(t *testing.T) {
	t.Parallel()
	soak.Campaign(t, 1, func(t *testing.T, seed uint64) {
		addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
		h := &hazard{seed: seed, acked: map[string]bool{}, taken: map[string]int{}, asked: map[string]int{}, waiting: map[string]string{}}
		r := soak.Rand(seed, 0)
		h.hook = newSink(t, func(body string) int { return h.answer(r, body) })
		h.p = startAt(t, addr, data)
		h.prepare(t)
		var numbers atomic.Int64
		for range failRounds {
			h.fight(t, &numbers)
			h.mu.Lock()
			h.round++
			h.mu.Unlock()
			h.p = startAt(t, addr, data)
		}
		h.runOut(t)
		h.account(t)
	})
}

// answer fails half of the attempts; of those, one in eight for good.
func (h *hazard) answer(r *rand.Rand, body string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[body] = h.round
	switch r.IntN(16) {
	case 0:
		h.rounds.failed++
		return http.StatusNotFound
	case 1, 2, 3, 4, 5, 6, 7:
		h.rounds.failed++
		return http.StatusServiceUnavailable
	}
	h.rounds.succeeded++
	if _, ok := h.taken[body]; !ok {
		h.taken[body] = h.round
	}
	return http.StatusOK
}

func (h *hazard) prepare(t *testing.T) {
	redrive := func(name string) []string {
		return []string{"RawMessageDelivery", "true", "RedrivePolicy", `{"deadLetterTargetArn":"` + queueARN(name) + `"}`}
	}
	h.topic = h.p.createTopic(t, "news")
	var out struct {
		ARN string `xml:"CreateTopicResult>TopicArn"`
	}
	h.p.mustSNS(t, "CreateTopic", params{"Name": "news.fifo"}.attributes("FifoTopic", "true"), &out)
	h.fifo = out.ARN
	for _, name := range []string{"hook-dead", "q", "q-dead"} {
		h.p.createQueue(t, name)
	}
	for _, name := range []string{"q.fifo", "q-dead.fifo"} {
		h.p.createQueue(t, name, "FifoQueue", "true")
	}
	h.waiting["q"] = h.p.subscribe(t, h.topic, "sqs", queueARN("q"), redrive("q-dead")...)
	h.waiting["q.fifo"] = h.p.subscribe(t, h.fifo, "sqs", queueARN("q.fifo"), redrive("q-dead.fifo")...)
	h.waiting["hook"] = h.p.subscribeSink(t, h.topic, h.hook, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("hook-dead")+`"}`,
		"DeliveryPolicy", `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":3,"numNoDelayRetries":2}}`)
}

// fight publishes for a while, while the queues come and go.
func (h *hazard) fight(t *testing.T, numbers *atomic.Int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.dying.Store(false)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for ctx.Err() == nil && h.publish(ctx, fmt.Sprintf("%d-%06d", i, numbers.Add(1)), i%2 == 0) {
			}
		})
	}
	r := soak.Rand(h.seed, uint64(1+h.round))
	clients.Go(func() {
		for n := 0; ctx.Err() == nil && h.explain(h.trouble(ctx, r, n)); n++ {
			pass(ctx, time.Duration(5+r.IntN(30))*time.Millisecond)
		}
	})
	pass(ctx, 1500*time.Millisecond)
	eventually(t, "there is load", func() (bool, error) { // also on a machine that is slow
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.acked) >= 60*(h.round+1), fmt.Errorf("%d publishes in %d rounds; %q", len(h.acked), h.round+1, h.wrong)
	})
	h.dying.Store(true)
	h.p.kill()
	cancel()
	clients.Wait()
}

// explain says whether to continue. Only the kill is a good reason not to.
func (h *hazard) explain(err error) bool {
	_, refused := errors.AsType[*refusal](err)
	if err != nil && (refused || !h.dying.Load()) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.wrong = append(h.wrong, err.Error())
	}
	return err == nil
}

// publish publishes one body, whose first part is its group on the FIFO topic.
func (h *hazard) publish(ctx context.Context, body string, ordered bool) bool {
	in := params{"TopicArn": h.topic, "Message": body}
	if ordered {
		group, _, _ := strings.Cut(body, "-")
		in["TopicArn"], in["MessageGroupId"], in["MessageDeduplicationId"] = h.fifo, group, body
	}
	if !h.explain(h.p.sns(ctx, "Publish", in, nil)) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked[body] = ordered
	return true
}

// trouble lets a queue be out of reach, or forbid the topics, half of the time. Each
// begins by forbidding them, so that a slow machine sees dead letters, too.
func (h *hazard) trouble(ctx context.Context, r *rand.Rand, n int) error {
	names := []string{"q", "q.fifo"}
	name, kind := names[r.IntN(len(names))], r.IntN(8)
	if n < len(names) {
		name, kind = names[n], 0
	}
	fault, policy := "none", ""
	switch kind {
	case 0:
		policy = `{"Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}]}`
	case 1, 2, 3:
		fault = "unavailable"
	}
	if err := h.p.try(ctx, http.MethodPost, "faults", object{"arn": queueARN(name), "fault": "none"}, nil); err != nil {
		return err
	}
	err := h.p.sqs(ctx, "SetQueueAttributes", object{"QueueUrl": h.p.queueURL(name), "Attributes": object{"Policy": policy}}, nil)
	if err != nil {
		return err
	}
	return h.p.try(ctx, http.MethodPost, "faults", object{"arn": queueARN(name), "fault": fault}, nil)
}

// runOut lets all deliveries come to their end. The hook continues as before.
func (h *hazard) runOut(t *testing.T) {
	for _, name := range []string{"q", "q.fifo"} {
		h.p.mustSQS(t, "SetQueueAttributes", object{"QueueUrl": h.p.queueURL(name), "Attributes": object{"Policy": ""}}, nil)
	}
	for name, subscription := range h.waiting {
		eventually(t, "deliveries to "+name+" end", func() (bool, error) {
			h.p.admin(t, http.MethodPost, "deliveries/retry", object{"subscription": subscription, "all": true}, http.StatusOK, nil)
			n := h.p.pending(t, subscription)
			return n == 0, fmt.Errorf("%d are pending", n)
		})
	}
}

// drain empties a queue and gives its bodies, in order.
func (h *hazard) drain(t *testing.T, name string, enveloped bool) (bodies []string) {
	t.Helper()
	url := h.p.queueURL(name)
	for began := time.Now(); ; {
		if time.Since(began) > 2*testTimeout {
			t.Fatalf("%s is not empty within %v: %v", name, 2*testTimeout, h.p.counts(t, url))
		}
		got, err := h.p.receive(t.Context(), url, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			if counts := h.p.counts(t, url); counts != [3]int{} {
				t.Fatalf("%s holds %v, and gives nothing", name, counts)
			}
			return bodies
		}
		entries := make([]object, len(got))
		for i, m := range got {
			body := m.Body
			if enveloped {
				n, err := openEnvelope(body)
				if err != nil {
					t.Fatal(err)
				}
				body = n.Message
			}
			bodies = append(bodies, body)
			entries[i] = object{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle}
		}
		h.p.mustSQS(t, "DeleteMessageBatch", object{"QueueUrl": url, "Entries": entries}, nil)
	}
}

// account finds each publish where it ended.
func (h *hazard) account(t *testing.T) {
	count := func(bodies []string) map[string]int {
		n := map[string]int{}
		for _, body := range bodies {
			n[body]++
		}
		return n
	}
	inOrder := h.drain(t, "q.fifo", false)
	delivered := map[bool]map[string]int{false: count(h.drain(t, "q", false)), true: count(inOrder)}
	dead := map[bool]map[string]int{false: count(h.drain(t, "q-dead", false)), true: count(h.drain(t, "q-dead.fifo", false))}
	hookDead := count(h.drain(t, "hook-dead", true))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range h.wrong {
		t.Error(text)
	}
	again := 0
	for body, ordered := range h.acked {
		if n, m := delivered[ordered][body], dead[ordered][body]; n+m != 1 {
			t.Errorf("%s, in order %v: delivered %d times, and %d dead letters", body, ordered, n, m)
		}
		if ordered {
			continue
		}
		round, taken := h.taken[body]
		switch n := hookDead[body]; {
		case n > 1 || !taken && n == 0:
			t.Errorf("%s: the hook took it: %v, and there are %d dead letters", body, taken, n)
		case taken && n == 1:
			// Its success was not known yet when the server was killed.
			if again++; h.asked[body] == round {
				t.Errorf("%s is a dead letter, but the hook took it in round %d and was not asked again later", body, round)
			}
		}
	}
	for _, all := range []map[string]int{delivered[false], delivered[true], dead[false], dead[true], hookDead} {
		for body, n := range all {
			if n > 1 {
				t.Errorf("%s is there %d times", body, n)
			}
		}
	}
	last := map[string]string{}
	for _, body := range inOrder {
		group, _, _ := strings.Cut(body, "-")
		if body < last[group] {
			t.Errorf("%s comes behind %s", body, last[group])
		}
		last[group] = body
	}
	t.Logf("%d publishes; of the hook's answers %d failed and %d succeeded, with %d dead letters (%d of them delivered, too, around a kill); queues: %d and %d delivered, %d and %d dead letters",
		len(h.acked), h.rounds.failed, h.rounds.succeeded, len(hookDead), again,
		len(delivered[false]), len(delivered[true]), len(dead[false]), len(dead[true]))
	if len(h.acked) < 100 || len(hookDead) == 0 || len(dead[false]) == 0 || len(dead[true]) == 0 || len(delivered[false]) == 0 || len(delivered[true]) == 0 {
		t.Error("there was hardly any load: the run proves nothing")
	}
}
