// Package confirmations limits the confirmation mails of subscriptions.
package confirmations

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// The limits on confirmation mails; the requester need not own the mail box. An address that
// has not confirmed gets the next mail, of any topic, topic.MailConfirmationGap after the last
// one. Mails can be scheduled up to ahead. An account may cause perHour mails in an hour.
const (
	ahead   = 24 * time.Hour
	perHour = 1000
)

// Counts count the confirmation mails. The counts are written with the commits that cause the
// mails, so that a restart knows all mails that were sent. The zero value is empty; it may be
// used concurrently.
type Counts struct {
	mu        sync.Mutex
	boxes     map[box]asked
	order     uint64         // number of the latest record
	hour      int64          // the hour that bySources counts, in hours since the epoch
	bySources map[string]int // mails by account
	// swept is when the expired records of a shard were last removed, in epoch milliseconds.
	swept [keyspace.Shards]int64
}

// box is a mail box: the beginning of its address's digest.
type box [16]byte

// asked is the state of a mail box that has not confirmed.
type asked struct {
	next  int64 // when it may get the next mail, in epoch milliseconds
	order uint64
}

// Admit fails with topic.ErrConfirmations if an account may not cause another mail to an
// address now.
func (c *Counts) Admit(account, address string, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.boxes[boxOf(address)].next-now.UnixMilli() >= ahead.Milliseconds() || c.hour == hourOf(now.UnixMilli()) && c.bySources[account] >= perHour {
		return topic.ErrConfirmations
	}
	return nil
}

// Reserve counts a mail, and returns when it may be sent. Its writes to out must be committed
// with the command that sends the mail.
func (c *Counts) Reserve(shard uint16, out *mutation.Batch, account, address string, now time.Time) (due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now.UnixMilli()
	c.forget(at)
	c.count(account, at)
	of := boxOf(address)
	start := max(at, c.boxes[of].next)
	c.write(shard, out, start+topic.MailConfirmationGap.Milliseconds(), record{at: at, box: of, account: account}, at)
	return time.UnixMilli(start).In(now.Location())
}

// Answered notes that an address has confirmed: its owner wants the mails. out is as Reserve's.
func (c *Counts) Answered(shard uint16, out *mutation.Batch, address string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, at := boxOf(address), now.UnixMilli()
	if last := c.boxes[of]; last.next > at {
		// The records that this one overrides are in several shards, and have expired by
		// last.next.
		c.write(shard, out, last.next, record{at: at, box: of, answered: true}, at)
	}
}

// forget removes the boxes that may get a mail again, once an hour.
func (c *Counts) forget(now int64) {
	if c.hour == hourOf(now) {
		return
	}
	for of, last := range c.boxes {
		if last.next <= now {
			delete(c.boxes, of)
		}
	}
}

// count counts a mail of an account. Only the latest hour is kept.
func (c *Counts) count(account string, at int64) {
	switch hour := hourOf(at); {
	case hour > c.hour || c.bySources == nil:
		c.hour, c.bySources = hour, map[string]int{}
	case hour < c.hour:
		return
	}
	c.bySources[strings.Clone(account)]++
}

func hourOf(at int64) int64 { return at / time.Hour.Milliseconds() }

// write writes a record that expires at until, and applies it.
func (c *Counts) write(shard uint16, out *mutation.Batch, until int64, r record, now int64) {
	prefix := keyspace.Shard(shard, keyspace.Confirmations)
	if now-c.swept[shard] >= time.Hour.Milliseconds() {
		c.swept[shard] = now
		out.DeleteRange(prefix, binary.BigEndian.AppendUint64(slices.Clip(prefix), uint64(now)))
	}
	c.order++
	key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(prefix, uint64(until)), c.order)
	out.Set(key, r.encode())
	c.note(&r, until, c.order)
}

// note applies a record, unless a later one is known.
func (c *Counts) note(r *record, until int64, order uint64) {
	if c.boxes == nil {
		c.boxes = map[box]asked{}
	}
	if last := c.boxes[r.box]; last.order > order {
		return
	}
	if r.answered {
		until = 0
	}
	c.boxes[r.box] = asked{until, order}
}

// Load reads the records of a shard.
func (c *Counts) Load(from store.Reader, shard uint16) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	prefix := keyspace.Shard(shard, keyspace.Confirmations)
	return store.EachOf(from, keyspace.KindConfirmation, keyspace.Prefix(prefix), func(k *keyspace.Key, value []byte) error {
		r, err := decode(value)
		if err != nil {
			return err
		}
		until, _ := k.Number(keyspace.PartUntil)
		order, _ := k.Number(keyspace.PartOrder)
		c.order = max(c.order, order)
		if !r.answered {
			c.count(r.account, r.at)
		}
		c.note(&r, int64(until), order)
		return nil
	})
}

// boxOf is the box of an address, without the distinctions that most servers ignore.
func boxOf(address string) (b box) {
	sum := sha256.Sum256([]byte(strings.ToLower(address)))
	copy(b[:], sum[:])
	return b
}

// record is a mail that an account has caused, or the confirmation of a box.
type record struct {
	at       int64 // epoch milliseconds
	box      box
	account  string
	answered bool
}

const version = 1

// head is the size of a record without its account: version, whether it is a confirmation, time
// and box.
const head = 1 + 1 + 8 + len(box{})

func (r *record) encode() []byte {
	v := append(make([]byte, 0, head+len(r.account)), version, 0)
	if r.answered {
		v[1] = 1
	}
	v = binary.BigEndian.AppendUint64(v, uint64(r.at))
	return append(append(v, r.box[:]...), r.account...)
}

var errRecord = errors.New("confirmations: a record cannot be read")

func decode(v []byte) (r record, err error) {
	if len(v) < head || v[0] != version || v[1] > 1 {
		return r, errRecord
	}
	r.answered, r.at = v[1] == 1, int64(binary.BigEndian.Uint64(v[2:]))
	copy(r.box[:], v[2+8:])
	r.account = string(v[head:])
	return r, nil
}

// CheckRecord reports whether a record can be read.
func CheckRecord(value []byte) error {
	_, err := decode(value)
	return err
}
