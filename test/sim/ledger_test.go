package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ledger is what the world knows of every message, from what clients asked, what they
// were told and what endpoints saw. What an answer that never came would have told is
// either way.
type ledger struct {
	copies  map[string]*letter // by token and home
	order   []*letter
	flights map[string]*flight // by token and endpoint
	worked  map[string]bool    // tokens that the worker has surely done
	done    map[string]bool    // or may have done
	purged  map[string]bool    // FIFO queues whose deduplication may be forgotten
	redrive map[string]bool    // dead-letter queues that were redriven
	slack   time.Duration      // how long a standard queue's lease or delete may be lost by a crash
	broken  []string           // what was promised and is not so
}

// truth is what is known of something.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// place is where a letter is.
type place int

const (
	atHome place = iota
	inEither
	inDead
)

// letter is one message in one queue, and in its dead-letter queue.
type letter struct {
	token, home string
	id          string
	group       string
	dedup       string
	sequence    string
	accepted    truth // no: it was refused
	twin        *letter
	sent        time.Time // the clock's
	ready       time.Time // not before
	at          place
	surely      int // receives here, at least
	perhaps     int // and these
	until       time.Time
	recent      []time.Time // bubble's, of receives and changes
	gone        truth
	goneAt      time.Time // bubble's
	relaxed     bool      // it was redriven, or may have been
	handle      string    // of the latest receive
	unsure      bool      // until is not known: a change of it was not answered
	found       int       // at the end
}

// receipt is a handle that a client has.
type receipt struct {
	letter *letter
	queue  *queue
	handle string
}

// flight is a delivery to an endpoint.
type flight struct {
	token, to string
	accepted  truth
	tries     int
	delivered truth
	forbidden bool
	lastAt    time.Time // the clock's, of the latest attempt
	lastEnd   time.Time // bubble's
	crash     int       // the number of crashes at the latest attempt
	lost      int       // attempts that a crash may have forgotten
	dead      int       // letters in the dead-letter queue
	perished  int       // attempts in the middle of which the server crashed
}

func newLedger() *ledger {
	return &ledger{
		copies: map[string]*letter{}, flights: map[string]*flight{}, worked: map[string]bool{}, done: map[string]bool{},
		purged: map[string]bool{}, redrive: map[string]bool{}, slack: 12 * time.Millisecond,
	}
}

func (l *ledger) fail(format string, args ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
}

// write begins a letter whose fate is open.
func (l *ledger) write(token string, home *queue, now time.Time, delay time.Duration) *letter {
	c := &letter{token: token, home: home.name, accepted: maybe, sent: now, ready: now.Add(max(delay, home.delay))}
	if l.redrive[home.dead] {
		c.relaxed = true
	}
	l.copies[token+"@"+home.name] = c
	l.order = append(l.order, c)
	return c
}

// depart begins a delivery whose fate is open.
func (l *ledger) depart(token, to string) *flight {
	f := &flight{token: token, to: to, accepted: maybe}
	l.flights[token+"@"+to] = f
	return f
}

// find is the letter that a message in a queue must be.
func (l *ledger) find(token, in string) *letter {
	if c := l.copies[token+"@"+in]; c != nil {
		return c
	}
	for _, q := range queues {
		if q.dead == in {
			if c := l.copies[token+"@"+q.name]; c != nil {
				return c
			}
		}
	}
	return nil
}

// message is one of a receive's answer.
type message struct {
	MessageId     string
	ReceiptHandle string
	Body          string
	Attributes    map[string]string
}

// received checks and notes what a receive gave.
func (l *ledger) received(q *queue, ms []message, now, at time.Time, visibility time.Duration) (receipts []*receipt) {
	var together []*letter
	for i := range ms {
		m := &ms[i]
		tok := carriedBy(q, m.Body)
		if f := l.flights[tok+"@"+strings.TrimSuffix(q.name, "-dead")]; f != nil && l.copies[tok+"@"+q.name] == nil {
			// A delivery that was given up has become a letter here.
			l.arrivedDead(f)
			c := l.write(tok, q, now, 0)
			c.accepted, c.id = yes, m.MessageId
		}
		c := l.find(tok, q.name)
		if c == nil {
			l.fail("%s gave %q, which nobody sent there", q.name, m.Body[:min(40, len(m.Body))])
			continue
		}
		l.check(q, c, m, now)
		l.blocked(q, c, m, now, together)
		together = append(together, c)
		c.until, c.handle, c.unsure, c.recent = now.Add(visibility), m.ReceiptHandle, false, append(c.recent, at)
		if c.accepted != yes {
			c.accepted, c.id = yes, m.MessageId
		}
		receipts = append(receipts, &receipt{c, q, m.ReceiptHandle})
	}
	return receipts
}

func (l *ledger) check(q *queue, c *letter, m *message, now time.Time) {
	what := c.token + " in " + q.name
	switch {
	case c.accepted == no:
		l.fail("%s was refused, and is there", what)
	case c.gone == yes:
		l.fail("%s was deleted or purged, and is there", what)
	case now.Before(c.ready):
		l.fail("%s comes %s before its delay is over", what, c.ready.Sub(now))
	case now.Before(c.until):
		l.fail("%s is leased for another %s, and was received", what, c.until.Sub(now))
	case q.retention > 0 && now.After(c.sent.Add(q.retention+time.Second)):
		l.fail("%s has expired, and was received", what)
	}
	count, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	if err != nil {
		l.fail("%s has no receive count", what)
	}
	if q.max > 0 && count > q.max {
		l.fail("%s was received %d times, and belongs to %s", what, count, q.dead)
	}
	here := atHome
	if q.name != c.home {
		here = inDead
	}
	switch {
	case c.relaxed:
	case here == inDead && c.at == atHome:
		if limit := queueOf(c.home).max; c.surely+c.perhaps < limit && c.home != "jobs" {
			l.fail("%s is a dead letter after at most %d receives, not %d", what, c.surely+c.perhaps, limit)
		}
		c.sequence = ""
	case here == atHome && c.at == inDead:
		l.fail("%s was a dead letter, and is back", what)
	case here != c.at: // dead letters may be redriven
	case count <= c.surely || count > c.surely+c.perhaps+1:
		l.fail("%s says that it was received %d times, which is not %d to %d", what, count, c.surely+1, c.surely+c.perhaps+1)
	}
	if c.at != here || c.relaxed {
		c.sequence = ""
	}
	c.at, c.surely, c.perhaps = here, count, 0
	if s := m.Attributes["SequenceNumber"]; s != "" {
		if c.sequence != "" && c.sequence != s {
			l.fail("%s has the sequence number %s, and had %s", what, s, c.sequence)
		}
		c.sequence = s
	}
}

// blocked checks that nothing of a FIFO group was passed over.
func (l *ledger) blocked(q *queue, c *letter, m *message, now time.Time, together []*letter) {
	if !q.fifo {
		return
	}
	if g := m.Attributes["MessageGroupId"]; c.group != "" && g != c.group {
		l.fail("%s is of group %s, and was sent to %s", c.token, g, c.group)
	}
	for _, other := range l.order {
		switch {
		case other == c || other.home != c.home || other.at != c.at || other.relaxed || other.group != c.group:
		case other.accepted != yes || other.gone != no || other.sequence == "" || other.sequence > c.sequence:
		case slices.Contains(together, other):
		case q.max > 0 && other.surely+other.perhaps >= q.max && !now.Before(other.until): // may be a dead letter by now
		default:
			l.fail("%s of group %s in %s came before %s", c.token, c.group, q.name, other.token)
		}
	}
	for _, before := range together {
		if before.group == c.group && before.sequence > c.sequence {
			l.fail("%s came behind %s in one answer", c.token, before.token)
		}
	}
}

// unheard notes a receive whose answer never came.
func (l *ledger) unheard(q *queue) {
	for _, c := range l.order {
		if c.home == q.name || queueOf(c.home).dead == q.name {
			c.perhaps++
		}
	}
}

// crashed notes what a crash may have undone.
func (l *ledger) crashed(at time.Time, crashes int) {
	for _, c := range l.order {
		lost := 0
		for _, t := range c.recent {
			if at.Sub(t) < l.slack {
				lost++
			}
		}
		c.recent = nil
		if fifo := strings.HasSuffix(c.home, ".fifo"); fifo {
			continue
		}
		if lost > 0 {
			lost = min(lost, c.surely)
			c.surely, c.perhaps, c.until = c.surely-lost, c.perhaps+lost, time.Time{}
		}
		if c.gone == yes && at.Sub(c.goneAt) < l.slack {
			c.gone = maybe
		}
	}
	for _, f := range l.flights {
		if f.tries > 0 && at.Sub(f.lastEnd) < l.slack+50*time.Millisecond {
			f.lost++
			if f.delivered == yes {
				f.delivered = maybe
			}
		}
	}
}

// holds reports that a receipt is the latest of a message that is leased.
func (r *receipt) holds(now time.Time) bool {
	return r.letter.handle == r.handle && now.Before(r.letter.until)
}

// deleting notes that a delete has begun, and says whether it must be refused.
func (l *ledger) deleting(r *receipt, now time.Time) (must bool) {
	c := r.letter
	if c.gone != no {
		return false
	}
	dead := r.queue.max > 0 && c.surely+c.perhaps >= r.queue.max // or may be: what is not there can be deleted
	must = r.queue.fifo && !c.relaxed && !c.unsure && !dead && !r.holds(now)
	if !must {
		c.gone = maybe
	}
	return must
}

// deleted notes that a delete was answered.
func (l *ledger) deleted(r *receipt, ok, must, held bool, at time.Time) {
	c := r.letter
	switch {
	case must && ok && c.gone == no:
		l.fail("an old handle of %s in %s has deleted it", c.token, r.queue.name)
		c.gone = maybe
	case must || !ok:
	case held && c.gone == maybe, held && c.gone == no:
		c.gone, c.goneAt = yes, at
	case c.relaxed: // the handle may be of a message that is one no longer
	case r.queue.max > 0 && c.surely+c.perhaps >= r.queue.max: // it may be a dead letter by now
	case (c.at == atHome) == (r.queue.name == c.home):
		c.gone, c.goneAt = yes, at
	}
}

// sentTo notes an attempt at an endpoint.
func (l *ledger) sentTo(a attempt, now time.Time, crashes int) {
	to, _, _ := strings.Cut(a.host, ".")
	if to == "worker" {
		if a.fate == perishes {
			return
		}
		for tok := range strings.SplitSeq(a.key, "+") {
			if c := l.copies[tok+"@jobs"]; c == nil {
				l.fail("the worker was given %q, which nobody sent", tok)
			} else if c.gone == yes {
				l.fail("the worker was given %q, which was purged", tok)
			}
			if a.status == 200 && a.fate == arrives {
				l.worked[tok] = l.worked[tok] || a.answered
			}
			if a.fate == arrives || a.fate == halves || a.fate == loses {
				l.done[tok] = true
			}
		}
		return
	}
	f := l.flights[a.key+"@"+to]
	if f == nil {
		l.fail("%s was sent %q, which nobody published", to, a.key)
		return
	}
	if f.accepted == no {
		l.fail("%s was sent %s, which was refused", to, a.key)
	}
	if a.fate == perishes {
		f.perished++
		return
	}
	if to == "mill" && (a.fate == cuts || a.fate == halves || a.fate == loses) {
		f.perished++ // the function could not be reached, which is no attempt
		f.delivered = max(f.delivered, maybeIf(a.fate != cuts))
		return
	}
	f.tries++
	most := 1 + hookRetries
	if to == "mill" {
		most = 1 + eventRetries
	}
	if f.tries > most+f.lost {
		l.fail("%s was sent %s %d times, and %d are allowed", to, a.key, f.tries, most+f.lost)
	}
	if f.delivered == yes {
		l.fail("%s was sent %s again after it had taken it", to, a.key)
	}
	if f.forbidden && f.lost == 0 {
		l.fail("%s was sent %s again after it had forbidden it", to, a.key)
	}
	if wait := now.Sub(f.lastAt); f.tries > 1 && f.crash == crashes && to != "mill" && wait < hookDelay {
		l.fail("%s was sent %s again after %s, not %s", to, a.key, wait, hookDelay)
	}
	f.lastAt, f.lastEnd, f.crash = now, a.at, crashes
	switch {
	case a.fate == arrives && a.answered:
		f.delivered = yes
	case a.fate == arrives || a.fate == halves || a.fate == loses:
		f.delivered = max(f.delivered, maybe)
	case a.fate == forbids && to != "mill":
		f.forbidden = true
	}
}

func maybeIf(is bool) truth {
	if is {
		return maybe
	}
	return no
}

func (l *ledger) arrivedDead(f *flight) {
	if f.dead++; f.dead > 1 {
		l.fail("%s is twice in the dead-letter queue of %s", f.token, f.to)
	}
	if f.delivered == yes {
		l.fail("%s is a dead letter of %s, which has taken it", f.token, f.to)
	}
}

// carriedBy is the token of a message in a queue.
func carriedBy(q *queue, body string) string {
	if q.name == "mill-dead" {
		var record struct{ RequestPayload string }
		if json.Unmarshal([]byte(body), &record) == nil {
			return token(record.RequestPayload)
		}
	}
	return carried([]byte(body))
}

// close checks that every message is accounted for, once everything has ended and all
// queues were emptied. refused reports how many dials to a host were refused.
func (l *ledger) close(now time.Time, refused func(to string) int) {
	for _, c := range l.order {
		q := queueOf(c.home)
		expired := q.retention > 0 && now.After(c.sent.Add(q.retention))
		worked := c.home == "jobs" && l.done[c.token]
		switch {
		case c.found > 1:
			l.fail("%s of %s was there %d times", c.token, c.home, c.found)
		case c.found > 0 && c.home == "jobs" && l.worked[c.token] && c.gone == no && c.at == atHome && len(c.recent) == 0:
		case c.found == 0 && c.accepted == yes && c.gone == no && !expired && !worked:
			l.fail("%s of %s is lost (received %d to %d times)", c.token, c.home, c.surely, c.surely+c.perhaps)
		}
	}
	for _, f := range l.flights {
		most := 1 + hookRetries
		if f.to == "mill" {
			most = 1 + eventRetries
		}
		switch {
		case f.accepted == yes && f.delivered == no && f.dead == 0:
			l.fail("%s was neither delivered to %s nor is it a dead letter, after %d attempts", f.token, f.to, f.tries)
		case f.dead > 0 && !f.forbidden && f.tries+f.perished+refused(f.to) < most:
			l.fail("%s was given up by %s after %d attempts, not %d", f.token, f.to, f.tries, most)
		}
	}
	slices.Sort(l.broken)
}
