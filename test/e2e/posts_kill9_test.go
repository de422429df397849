package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestPostsKill9 kills the server while providers post to it: what was answered with 202 is
// there, once on a FIFO queue although each provider sends again what was not answered, and
// the messages of one provider are in its order.
func TestPostsKill9(t *testing.T) {
	t.Parallel()
	const providers, rounds = 4, 4
	addr, posts, dir := freeAddress(t), freeAddress(t), t.TempDir()
	begin := func() *process { return startAt(t, addr, dir, "--ingest-listen", posts) }
	p := begin()
	fifo := p.createQueue(t, "orders.fifo", "FifoQueue", "true")
	plain := p.createQueue(t, "orders")
	for name, queue := range map[string]string{"exact": "orders.fifo", "plain": "orders"} {
		p.admin(t, http.MethodPost, "v1/sources", object{
			"name": name, "target": queueARN(queue), "secrets": []string{"a key of some length"},
			"verification": object{"kind": "api-key", "idHeader": "X-Event"}, "mapping": object{"groupId": "/provider"},
		}, http.StatusOK, nil)
	}
	to := newClient(posts)
	post := func(ctx context.Context, source, event string, body []byte) bool {
		a, err := to.call(ctx, http.MethodPost, "/in/"+source, map[string]string{
			"Content-Type": "application/json", "X-Api-Key": "a key of some length", "X-Event": event,
		}, body)
		if err == nil && a.status != http.StatusAccepted && a.status != http.StatusServiceUnavailable {
			t.Errorf("a post: %d %s", a.status, a.body)
		}
		return err == nil && a.status == http.StatusAccepted
	}
	var next [providers]int // of each the first that was not answered
	for range rounds {
		var clients sync.WaitGroup
		var answered atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		for n := range providers {
			clients.Go(func() {
				for {
					name := fmt.Sprint("p", n)
					body := fmt.Appendf(nil, `{"provider":%q,"n":%d}`, name, next[n])
					event := fmt.Sprint(name, "-", next[n])
					if !post(ctx, "exact", event, body) || !post(ctx, "plain", event, body) {
						return
					}
					next[n]++
					answered.Add(1)
				}
			})
		}
		pass(ctx, 400*time.Millisecond)
		eventually(t, "posts are answered", func() (bool, error) { return answered.Load() > 0, nil })
		p.kill()
		cancel()
		clients.Wait()
		p = begin()
	}
	type order struct {
		Provider string
		N        int
	}
	drain := func(queue string) (all []order) {
		for began := time.Now(); ; {
			if time.Since(began) > 2*testTimeout {
				t.Fatalf("%s is not empty within %v: %v", queue, 2*testTimeout, p.counts(t, queue))
			}
			got, err := p.receive(t.Context(), queue, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				return all
			}
			for _, m := range got {
				var one order
				if err := json.Unmarshal([]byte(m.Body), &one); err != nil {
					t.Fatalf("%q: %v", m.Body, err)
				}
				all = append(all, one)
				p.mustSQS(t, "DeleteMessage", object{"QueueUrl": queue, "ReceiptHandle": m.ReceiptHandle}, nil)
			}
		}
	}
	exact, acknowledged := map[string]int{}, 0
	for _, one := range drain(fifo) {
		if one.N != exact[one.Provider] {
			t.Fatalf("%s: message %d where %d is due", one.Provider, one.N, exact[one.Provider])
		}
		exact[one.Provider]++
	}
	seen := map[order]bool{}
	for _, one := range drain(plain) {
		seen[one] = true
	}
	for n := range providers {
		name := fmt.Sprint("p", n)
		if got := exact[name]; got < next[n] || got > next[n]+1 {
			t.Errorf("%s: %d messages, %d were answered", name, got, next[n])
		}
		for i := range next[n] {
			if !seen[order{name, i}] {
				t.Errorf("%s: message %d was answered and is not there", name, i)
			}
		}
		acknowledged += next[n]
	}
	t.Logf("%d posts of each kind were answered", acknowledged)
}
