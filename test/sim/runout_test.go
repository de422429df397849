package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// runOut lets everything end, empties all queues and checks what was found.
func (w *world) runOut() {
	w.finish()
	for w.machine.dead.Load() { // a start may fail, too
		w.restart()
	}
	w.disk.set(func(d *disk) { d.calm() })
	w.network.mu.Lock()
	w.network.well, w.network.down = true, map[string]bool{}
	w.network.mu.Unlock()
	w.log("runOut")
	for range 10 {
		w.pass(time.Minute)
	}
	w.settleServices()
	w.settleStreams()
	w.settleMails()
	families := map[string]int{}
	for i := range queues {
		q := &queues[i]
		if q.dead == "" && !strings.HasSuffix(q.name, "-dead") && q.name != "dead.fifo" || q.dead != "" {
			families[q.name] = w.waiting(q)
			if q.dead != "" {
				families[q.name] += w.waiting(queueOf(q.dead))
			}
		} else if !slices.ContainsFunc(queues, func(of queue) bool { return of.dead == q.name }) {
			families[q.name] = w.waiting(q)
		}
	}
	found := map[string]int{}
	for again := true; again; {
		again = false
		for i := range queues {
			if n := w.empty(&queues[i], found); n > 0 {
				again = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if families[name] != found[name] && len(w.ledger.broken) == 0 {
			w.ledger.fail("%s and its dead-letter queue say that they have %d messages, and have %d", name, families[name], found[name])
		}
	}
	w.ledger.close(w.now(), func(to string) int {
		w.network.mu.Lock()
		defer w.network.mu.Unlock()
		return w.network.refused[to+".sim"]
	})
}

// waiting asks a queue how many messages it has, all of which can be received.
func (w *world) waiting(q *queue) (n int) {
	in := map[string]any{"QueueUrl": queueURL(q.name), "AttributeNames": []string{"All"}}
	w.ask("count "+q.name, queueRequest("GetQueueAttributes", in), func(a *answer) {
		attributes := parse[struct{ Attributes map[string]string }](a).Attributes
		for _, name := range []string{"ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
			if attributes[name] != "0" {
				w.ledger.fail("%s of %s is %s, and none has been received for long", name, q.name, attributes[name])
			}
		}
		var err error
		if n, err = strconv.Atoi(attributes["ApproximateNumberOfMessages"]); err != nil {
			w.ledger.fail("%s says that it has %q messages", q.name, attributes["ApproximateNumberOfMessages"])
		}
	})
	return n
}

// empty receives and deletes all that a queue has.
func (w *world) empty(q *queue, found map[string]int) (n int) {
	// A receive that only finds dead letters gives nothing, and the next one what they
	// have held up: in a FIFO group that may be another dead letter.
	const emptyReceives = 15
	for nothing := 0; nothing == 0 || nothing < emptyReceives && w.waiting(q) > 0; {
		got := 0
		now := w.now()
		in := map[string]any{"QueueUrl": queueURL(q.name), "MaxNumberOfMessages": 10, "AttributeNames": []string{"All"}}
		var receipts []*receipt
		w.ask("empty "+q.name, queueRequest("ReceiveMessage", in), func(a *answer) {
			receipts = w.received(q, a, now, q.visibility)
			got = len(receipts)
		})
		for _, r := range receipts {
			r.letter.found++
			found[family(r.letter, q)]++
		}
		w.deleteThese(receipts)
		w.finish()
		n += got
		if nothing++; got > 0 {
			nothing = 0
		} else {
			time.Sleep(time.Second)
		}
	}
	if left := w.waiting(q); left > 0 && len(w.ledger.broken) == 0 {
		w.ledger.fail("%s says that it has %d messages, and gives none", q.name, left)
	}
	return n
}

// family is where the messages of a letter are counted.
func family(c *letter, q *queue) string {
	for i := range queues {
		if queues[i].dead == q.name {
			return queues[i].name
		}
	}
	return fmt.Sprint(q.name)
}
