package sim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var (
	clientQueues = []string{"std", "std", "delayed", "brief", "fifo.fifo", "fifo.fifo", "plain.fifo", "jobs"}
	readQueues   = []string{
		"std", "std", "std-dead", "delayed", "brief", "fifo.fifo", "fifo.fifo", "dead.fifo", "plain.fifo", "jobs-dead",
		"news-a", "news-b", "order-a.fifo", "order-b", "hook-a-dead", "wide-3",
	}
	purgeQueues = []string{"std", "delayed", "fifo.fifo", "plain.fifo", "news-a"}
)

func pick[T any](w *world, from []T) T { return from[w.rand.IntN(len(from))] }

// act is one thing that happens.
func (w *world) act() {
	switch n := w.rand.IntN(130); {
	case n < 20:
		w.send()
	case n < 42:
		w.receive(queueOf(pick(w, readQueues)))
	case n < 52:
		w.delete()
	case n < 58:
		w.changeVisibility()
	case n < 66:
		w.publish()
	case n < 70:
		w.invoke()
	case n < 71:
		w.purge()
	case n < 73:
		w.redrive(pick(w, []string{"std-dead", "dead.fifo"}))
	case n < 88:
		w.pass(pick(w, []time.Duration{time.Millisecond, time.Second, 5 * time.Second, 12 * time.Second, 31 * time.Second}))
	case n < 92:
		w.finish()
	case n < 96:
		w.armCrash()
	case n < 97:
		if w.rand.IntN(3) == 0 {
			w.reboot()
		} else {
			w.redriveWell()
		}
	case n < 99:
		w.weather()
	case n < 100:
		w.fillDisk()
	case n < 114:
		w.change()
	case n < 119:
		w.pour()
	case n < 121:
		w.encrypt()
	case n < 123:
		w.line()
	case n < 126:
		w.mail()
	default:
		w.armFailure()
	}
	if len(w.calls) >= 4 || w.rand.IntN(3) == 0 {
		w.finish()
	}
}

// weather changes how quick the disk is and which hosts are up.
func (w *world) weather() {
	slow := pick(w, []time.Duration{0, 0, time.Millisecond, 50 * time.Millisecond})
	if slow > time.Millisecond { // what was answered before it was known to be slow may take that long
		w.mu.Lock()
		w.ledger.slack = max(w.ledger.slack, 12*time.Millisecond+2*slow)
		w.mu.Unlock()
	}
	w.disk.set(func(d *disk) { d.slow = slow })
	host := pick(w, []string{"hook-a.sim", "hook-b.sim", "worker.sim", "mill.sim", "lake.sim", "bucket.sim"})
	w.network.mu.Lock()
	w.network.down[host] = !w.network.down[host]
	down := w.network.down[host]
	w.network.mu.Unlock()
	w.log("%s weather: syncs take up to %s, %s is down: %t", stamp(w.now()), slow, host, down)
}

// armCrash has the machine die at one of the next batches or syncs.
func (w *world) armCrash() {
	applies, syncs := 0, 0
	if w.rand.IntN(2) == 0 {
		applies = 1 + w.rand.IntN(12)
	} else {
		syncs = 1 + w.rand.IntN(6)
	}
	w.disk.set(func(d *disk) { d.applies, d.syncs = applies, syncs })
	w.log("%s it will crash after %d batches, %d syncs", stamp(w.now()), applies, syncs)
}

// fillDisk leaves no room, for a while.
func (w *world) fillDisk() {
	w.finish()
	full := w.rand.IntN(2) == 0
	w.disk.set(func(d *disk) {
		if full {
			d.full = true
		} else {
			d.full, d.low = false, false
		}
	})
	w.log("%s the disk is full: %t", stamp(w.now()), full)
}

func (w *world) token(kind string) string {
	w.tokens++
	return fmt.Sprintf("%s%d", kind, w.tokens)
}

func (w *world) padding() string {
	n := w.rand.IntN(40)
	if w.rand.IntN(20) == 0 {
		n = 3000
	}
	return " " + strings.Repeat("x", n)
}

// entry is one message of a send.
type entry struct {
	Id                     string `json:",omitempty"`
	QueueUrl               string `json:",omitempty"`
	MessageBody            string
	DelaySeconds           *int   `json:",omitempty"`
	MessageGroupId         string `json:",omitempty"`
	MessageDeduplicationId string `json:",omitempty"`

	letter *letter
}

type sendResult struct{ Id, MessageId, SequenceNumber string }

func (w *world) send() {
	q := queueOf(pick(w, clientQueues))
	entries := make([]entry, 1)
	if w.rand.IntN(3) == 0 {
		entries = make([]entry, 1+w.rand.IntN(10))
	}
	var tokens []string
	for i := range entries {
		e := &entries[i]
		tok := w.token("m")
		var delay time.Duration
		if !q.fifo && w.rand.IntN(6) == 0 {
			seconds := w.rand.IntN(20)
			e.DelaySeconds, delay = &seconds, time.Duration(seconds)*time.Second
		}
		e.MessageBody = tok + w.padding()
		e.letter = w.ledger.write(tok, q, w.now(), delay)
		if e.DelaySeconds != nil {
			e.letter.ready = w.now().Add(delay)
		}
		if q.fifo {
			e.MessageGroupId, e.MessageDeduplicationId = fmt.Sprint("g", w.rand.IntN(3)), tok
			if len(w.recent) > 0 && w.rand.IntN(4) == 0 {
				if twin := pick(w, w.recent); twin.home == q.name {
					e.MessageDeduplicationId, e.letter.twin = twin.dedup, twin
				}
			}
			e.letter.group, e.letter.dedup = e.MessageGroupId, e.MessageDeduplicationId
		} else if w.rand.IntN(8) == 0 && q.name == "std" {
			e.MessageGroupId = fmt.Sprint("t", w.rand.IntN(3))
			e.letter.group = e.MessageGroupId
		}
		if e.letter.twin != nil {
			tok += "=" + e.letter.twin.token
		}
		tokens = append(tokens, tok)
	}
	sent := w.now()
	low := w.disk.isLow()
	if len(entries) == 1 {
		e := &entries[0]
		e.QueueUrl = queueURL(q.name)
		w.begin(fmt.Sprintf("send %s to %s", tokens, q.name), queueRequest("SendMessage", e), func(a *answer) {
			r := parse[sendResult](a)
			w.sent(e.letter, a, r.MessageId, r.SequenceNumber, sent, low)
		})
		return
	}
	for i := range entries {
		entries[i].Id = fmt.Sprint(i)
	}
	in := map[string]any{"QueueUrl": queueURL(q.name), "Entries": entries}
	w.begin(fmt.Sprintf("send %s to %s", tokens, q.name), queueRequest("SendMessageBatch", in), func(a *answer) {
		r := parse[struct{ Successful []sendResult }](a)
		for i := range entries {
			if !a.ok() {
				w.sent(entries[i].letter, a, "", "", sent, low)
				continue
			}
			one := answer{status: http.StatusBadRequest, body: a.body, at: a.at}
			var id, sequence string
			for _, s := range r.Successful {
				if s.Id == fmt.Sprint(i) {
					one.status, id, sequence = http.StatusOK, s.MessageId, s.SequenceNumber
				}
			}
			w.sent(entries[i].letter, &one, id, sequence, sent, low)
		}
	})
}

// sent notes how a send was answered.
func (w *world) sent(c *letter, a *answer, id, sequence string, at time.Time, low bool) {
	switch {
	case a.refused():
		c.accepted = no
		if !low && !w.disk.isLow() {
			w.ledger.fail("%s was refused: %s", c.token, a.body)
		}
	case !a.ok():
		if c.twin != nil {
			w.ledger.purged[c.home+c.dedup] = true // which of the two was taken is open
		}
	default:
		w.duplicate(c, id, sequence, at)
	}
	if c.twin == nil && c.group != "" && strings.HasSuffix(c.home, ".fifo") && c.accepted == yes {
		if w.recent = append(w.recent, c); len(w.recent) > 6 {
			w.recent = w.recent[1:]
		}
	}
}

// duplicate tells a message that was taken from one that was known already.
func (w *world) duplicate(c *letter, id, sequence string, at time.Time) {
	const window = 5 * time.Minute
	first := c.twin
	if first == nil {
		c.accepted, c.id, c.sequence = yes, id, sequence
		w.taken[id] = c
		return
	}
	if other := w.taken[id]; other != nil && other != first { // of two that came behind a purge the first is taken
		if c.accepted = no; other.dedup != c.dedup || other.home != c.home {
			w.ledger.fail("%s was taken for %s, which has another deduplication id", c.token, other.token)
		}
		return
	}
	same := id == first.id
	age := at.Sub(first.sent)
	switch {
	case w.ledger.purged[c.home] || w.ledger.purged[c.home+c.dedup]:
	case same && age > window+10*time.Second:
		w.ledger.fail("%s was taken for %s after %s", c.token, first.token, age)
	case !same && age < window-10*time.Second:
		w.ledger.fail("%s was taken although %s had its deduplication id %s before", c.token, first.token, age)
	}
	if same {
		c.accepted = no
		return
	}
	c.accepted, c.id, c.sequence = yes, id, sequence
	w.taken[id] = c
	w.ledger.purged[c.home+c.dedup] = true // the next one may be of either
}

func (w *world) receive(q *queue) {
	most := 1 + w.rand.IntN(10)
	visibility := q.visibility
	in := map[string]any{
		"QueueUrl": queueURL(q.name), "MaxNumberOfMessages": most, "AttributeNames": []string{"All"}, "WaitTimeSeconds": 0,
	}
	if w.rand.IntN(4) == 0 {
		visibility = time.Duration(w.rand.IntN(60)) * time.Second
		in["VisibilityTimeout"] = int(visibility / time.Second)
	}
	now := w.now()
	w.begin(fmt.Sprintf("receive %d of %s for %s", most, q.name, visibility), queueRequest("ReceiveMessage", in), func(a *answer) {
		w.received(q, a, now, visibility)
	})
}

// received notes what a receive gave.
func (w *world) received(q *queue, a *answer, now time.Time, visibility time.Duration) []*receipt {
	if !a.ok() {
		if a.refused() {
			w.ledger.fail("a receive of %s was refused: %s", q.name, a.body)
		}
		w.ledger.unheard(q)
		return nil
	}
	ms := parse[struct{ Messages []message }](a).Messages
	got := w.ledger.received(q, ms, now, a.at, visibility)
	for i := range ms {
		line := fmt.Sprintf("    %s, %s times", token(ms[i].Body), ms[i].Attributes["ApproximateReceiveCount"])
		fmt.Fprintln(w.hash, line)
		w.lines = append(w.lines, line)
	}
	w.count["message received"] += len(ms)
	if w.receipts = append(w.receipts, got...); len(w.receipts) > 60 {
		w.receipts = w.receipts[len(w.receipts)-60:]
	}
	return got
}

// hold chooses receipts of one queue, mostly recent ones.
func (w *world) hold(most int) (chosen []*receipt) {
	if len(w.receipts) == 0 {
		return nil
	}
	from := len(w.receipts) - 1 - min(w.rand.IntN(len(w.receipts)), w.rand.IntN(len(w.receipts)))
	first := w.receipts[from]
	seen := map[*letter]bool{}
	for _, r := range w.receipts[from:] {
		if len(chosen) < most && r.queue == first.queue && !seen[r.letter] {
			chosen = append(chosen, r)
			seen[r.letter] = true
		}
	}
	return chosen
}

func (w *world) delete() { w.deleteThese(w.hold(1 + w.rand.IntN(4))) }

func (w *world) deleteThese(rs []*receipt) {
	if len(rs) == 0 {
		return
	}
	now := w.now()
	must, held := make([]bool, len(rs)), make([]bool, len(rs))
	var tokens []string
	for i, r := range rs {
		held[i] = r.holds(now)
		must[i] = w.ledger.deleting(r, now)
		tokens = append(tokens, r.letter.token)
	}
	what := fmt.Sprintf("delete %s of %s", tokens, rs[0].queue.name)
	if len(rs) == 1 {
		in := map[string]any{"QueueUrl": queueURL(rs[0].queue.name), "ReceiptHandle": rs[0].handle}
		w.begin(what, queueRequest("DeleteMessage", in), func(a *answer) {
			if a.status != 0 {
				w.ledger.deleted(rs[0], a.ok(), must[0], held[0], a.at)
			}
		})
		return
	}
	var entries []map[string]any
	for i, r := range rs {
		entries = append(entries, map[string]any{"Id": fmt.Sprint(i), "ReceiptHandle": r.handle})
	}
	in := map[string]any{"QueueUrl": queueURL(rs[0].queue.name), "Entries": entries}
	w.begin(what, queueRequest("DeleteMessageBatch", in), func(a *answer) {
		if a.status == 0 {
			return
		}
		ok := map[string]bool{}
		for _, s := range parse[struct{ Successful []struct{ Id string } }](a).Successful {
			ok[s.Id] = true
		}
		for i, r := range rs {
			w.ledger.deleted(r, ok[fmt.Sprint(i)], must[i], held[i], a.at)
		}
	})
}

func (w *world) changeVisibility() {
	rs := w.hold(1)
	if len(rs) == 0 {
		return
	}
	r, now := rs[0], w.now()
	c := r.letter
	if c.handle != r.handle || !now.Before(c.until) || c.gone != no {
		return
	}
	if r.queue.retention > 0 && !now.Before(c.sent.Add(r.queue.retention)) {
		return
	}
	timeout := pick(w, []time.Duration{0, 5 * time.Second, 40 * time.Second})
	before := c.until
	c.until, c.unsure = time.Time{}, true
	in := map[string]any{"QueueUrl": queueURL(r.queue.name), "ReceiptHandle": r.handle, "VisibilityTimeout": int(timeout / time.Second)}
	w.begin(fmt.Sprintf("hide %s of %s for %s", c.token, r.queue.name, timeout), queueRequest("ChangeMessageVisibility", in), func(a *answer) {
		switch {
		case a.ok() && c.handle == r.handle:
			c.until, c.unsure = now.Add(timeout), false
			c.recent = append(c.recent, a.at)
		case a.refused() && c.gone == no && before.After(now) && c.handle == r.handle:
			w.ledger.fail("the visibility of %s in %s cannot be changed: %s", c.token, r.queue.name, a.body)
		}
	})
}

func (w *world) publish() {
	topic := pick(w, []string{"news", "news", "news", "order.fifo", "order.fifo", "wide"})
	if topic == "wide" && w.rand.IntN(2) > 0 {
		topic = "news"
	}
	tok := w.token("p")
	pairs := []string{"TopicArn", topicARN(topic)}
	body := tok + w.padding()
	if topic == "wide" {
		body = tok + " " + strings.Repeat("w", 200<<10)
	}
	group := ""
	if topic == "order.fifo" {
		group = fmt.Sprint("g", w.rand.IntN(2))
		pairs = append(pairs, "MessageGroupId", group, "MessageDeduplicationId", tok)
	}
	pairs = append(pairs, "Message", body)
	var letters []*letter
	var flights []*flight
	for _, name := range topicQueues[topic] {
		c := w.ledger.write(tok, queueOf(name), w.now(), 0)
		if c.group = ""; queueOf(name).fifo {
			c.group = group
		}
		letters = append(letters, c)
	}
	if topic == "news" {
		for _, hook := range hooks {
			flights = append(flights, w.ledger.depart(tok, hook))
		}
	}
	low := w.disk.isLow()
	w.begin(fmt.Sprintf("publish %s to %s", tok, topic), topicRequest("Publish", pairs...), func(a *answer) {
		accepted := maybe
		switch {
		case a.ok():
			accepted = yes
		case a.refused():
			accepted = no
			if !low && !w.disk.isLow() {
				w.ledger.fail("%s was refused: %s", tok, a.body)
			}
		}
		for _, c := range letters {
			if c.accepted == maybe {
				c.accepted = accepted
			}
		}
		for _, f := range flights {
			f.accepted = accepted
		}
	})
}

// invoke sends a function an event.
func (w *world) invoke() {
	tok := w.token("e")
	f := w.ledger.depart(tok, "mill")
	r := functionRequest(http.MethodPost, "/2015-03-31/functions/mill/invocations", tok+w.padding())
	r.Header.Set("X-Amz-Invocation-Type", "Event")
	low := w.disk.isLow()
	w.begin("invoke "+tok, r, func(a *answer) {
		switch {
		case a.ok():
			f.accepted = yes
		case a.refused():
			f.accepted = no
			if !low && !w.disk.isLow() {
				w.ledger.fail("%s was refused: %s", tok, a.body)
			}
		}
	})
}

// purge empties a queue. Nothing else is under way meanwhile, and what is on its way to
// the queue may come behind it.
func (w *world) purge() {
	w.finish()
	q := queueOf(pick(w, purgeQueues))
	var all []*letter
	for _, c := range w.ledger.order {
		if c.home == q.name && c.gone == no && c.accepted != no {
			all = append(all, c)
		}
	}
	sure := func(c *letter) bool {
		return c.at == atHome && !c.relaxed && c.accepted == yes && q.name != "news-a" && (q.max == 0 || c.surely+c.perhaps < q.max)
	}
	for _, c := range all {
		if c.at != inDead || c.relaxed {
			c.gone = maybe
		}
	}
	w.ledger.purged[q.name] = true
	w.ask("purge "+q.name, queueRequest("PurgeQueue", map[string]any{"QueueUrl": queueURL(q.name)}), func(a *answer) {
		for _, c := range all {
			if a.ok() && sure(c) {
				c.gone = yes // durable, so that no crash brings it back
			}
		}
	})
}

// redrive begins to move the dead letters of a queue home.
func (w *world) redrive(dead string) {
	w.finish()
	w.markRedriven(dead)
	in := map[string]any{"SourceArn": queueARN(dead)}
	if w.rand.IntN(2) == 0 {
		in["MaxNumberOfMessagesPerSecond"] = 1 + w.rand.IntN(3)
	}
	w.ask("redrive "+dead, queueRequest("StartMessageMoveTask", in), func(*answer) {})
}

// redriveWell makes dead letters, and moves them home while nothing else continues but
// crashes: the task must report all of them.
func (w *world) redriveWell() {
	const dead = "std-dead"
	q := queueOf("std")
	in := map[string]any{"QueueUrl": queueURL(q.name), "MaxNumberOfMessages": 10, "AttributeNames": []string{"All"}, "VisibilityTimeout": 0}
	for range 5 {
		w.finish()
		now := w.now()
		w.ask("receive 10 of std for 0s", queueRequest("ReceiveMessage", in), func(a *answer) { w.received(q, a, now, 0) })
	}
	time.Sleep(time.Second)
	visible, moving := "", false
	count := map[string]any{"QueueUrl": queueURL(dead), "AttributeNames": []string{"All"}}
	w.ask("count "+dead, queueRequest("GetQueueAttributes", count), func(a *answer) {
		attributes := parse[struct{ Attributes map[string]string }](a).Attributes
		visible, moving = attributes["ApproximateNumberOfMessages"], attributes["ApproximateNumberOfMessagesNotVisible"] != "0"
	})
	n, err := strconv.Atoi(visible)
	if err != nil || n < 2 || moving || w.machine.dead.Load() {
		return
	}
	w.markRedriven(dead)
	started := false
	start := map[string]any{"SourceArn": queueARN(dead), "MaxNumberOfMessagesPerSecond": 1}
	w.ask("redrive "+dead, queueRequest("StartMessageMoveTask", start), func(a *answer) { started = a.ok() })
	for range n + 5 {
		if !started || len(w.ledger.broken) > 0 {
			return
		}
		if w.rand.IntN(5) == 0 {
			w.armCrash()
		}
		w.pass(time.Second)
		if w.machine.dead.Load() {
			w.restart()
		}
		if w.over {
			return
		}
	}
	w.ask("tell of the redrive", queueRequest("ListMessageMoveTasks", map[string]any{"SourceArn": queueARN(dead)}), func(a *answer) {
		type task struct {
			Status                           string
			ApproximateNumberOfMessagesMoved int
		}
		all := parse[struct{ Results []task }](a).Results
		if a.ok() && len(all) > 0 && all[0].Status == "COMPLETED" && all[0].ApproximateNumberOfMessagesMoved < n {
			w.ledger.fail("a redrive of %d messages has moved %d", n, all[0].ApproximateNumberOfMessagesMoved)
		}
	})
}

// markRedriven notes that the dead letters of a queue may be at home again.
func (w *world) markRedriven(dead string) {
	for _, c := range w.ledger.order {
		if queueOf(c.home).dead == dead {
			c.relaxed = true
		}
	}
	w.ledger.redrive[dead] = true
}
