package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Group is a log group.
type Group struct {
	ARN         arn.ARN
	Created     int64 // epoch milliseconds
	Retention   int   // days; 0: for ever
	StoredBytes int64 // messages, and 26 bytes for each
	Class       string
	Protected   bool // from deletion
	Tags        map[string]string
	Filters     []MetricFilter // by name
}

// NewGroup are the properties of a group to be created.
type NewGroup struct {
	ARN       arn.ARN
	Class     string // STANDARD if empty
	Protected bool
	Tags      map[string]string
}

// MaxTags is how many tags a group may have.
const MaxTags = 50

const standard = "STANDARD"

// CreateGroup makes a group. It fails with ResourceAlreadyExists, and with
// InsufficientStorage.
func (l *Logs) CreateGroup(n NewGroup) error {
	if l.kernel.Full() {
		return ErrFull
	}
	return l.run(func() error { return l.createGroup(n) })
}

func (l *Logs) createGroup(n NewGroup) error {
	k := groupKey(n.ARN)
	if _, ok, err := l.reader.Get(nil, k); err != nil || ok {
		if ok {
			err = ErrGroupExists
		}
		return err
	}
	id := l.take(1)
	var b mutation.Batch
	g := groupRecord{id: id, created: int64(l.now()), details: encodeDetails(details{Class: n.Class, Protected: n.Protected, Tags: n.Tags})}
	b.Set(k, g.encode())
	b.Set(key(tagTotals, id), totals{}.encode())
	l.apply(&b)
	return nil
}

func encodeDetails(d details) []byte {
	if d.Class == standard {
		d.Class = ""
	}
	text, _ := json.Marshal(d) // strings and finite numbers always marshal
	return text
}

func (g groupRecord) read() (d details) {
	_ = json.Unmarshal(g.details, &d) // our own encoding
	return d
}

// DeleteGroup removes a group with its streams and events. It fails with ResourceNotFound, and
// with ValidationFailed while the group is protected.
func (l *Logs) DeleteGroup(group arn.ARN) error {
	l.sink.flush()
	return l.run(func() error { return l.deleteGroup(group) })
}

func (l *Logs) deleteGroup(group arn.ARN) error {
	g, err := l.unprotected(group)
	if err != nil {
		return err
	}
	t, err := l.totals(g.id)
	if err != nil {
		return err
	}
	var b mutation.Batch
	err = l.each(key(tagBucket, g.id), key(tagBucket, g.id+1), func(k, _ []byte) error {
		b.Delete(key(tagOldest, number(k, 1), g.id))
		return nil
	})
	if err != nil {
		return err
	}
	b.Delete(groupKey(group))
	b.Delete(key(tagTotals, g.id))
	if t.due != 0 {
		b.Delete(key(tagDue, t.due, g.id))
	}
	delete(l.subscribers, g.id)
	for _, tag := range []byte{tagStream, tagName, tagLatest, tagEvent, tagIndex, tagBucket, tagDeleted, tagPut, tagCursor} {
		b.DeleteRange(key(tag, g.id), key(tag, g.id+1))
	}
	l.disk.Add(-t.disk())
	l.apply(&b)
	return nil
}

// unprotected finds a group if it, or its content, may be deleted.
func (l *Logs) unprotected(group arn.ARN) (g groupRecord, err error) {
	if g, err = l.find(group); err == nil && g.read().Protected {
		err = ErrProtected
	}
	return g, err
}

// change changes the details of a group.
func (l *Logs) change(group arn.ARN, f func(groupRecord, *details) error) error {
	return l.run(func() error {
		g, err := l.find(group)
		if err != nil {
			return err
		}
		d := g.read()
		if err := f(g, &d); err != nil {
			return err
		}
		g.details = encodeDetails(d)
		l.shard.Batch.Set(groupKey(group), g.encode())
		return nil
	})
}

// Protect allows or forbids to delete a group and its streams.
func (l *Logs) Protect(group arn.ARN, on bool) error {
	return l.change(group, func(_ groupRecord, d *details) error {
		d.Protected = on
		return nil
	})
}

// Tag adds tags to a group, or changes their values. It fails with TooManyTags.
func (l *Logs) Tag(group arn.ARN, tags map[string]string) error {
	return l.change(group, func(_ groupRecord, d *details) error {
		if d.Tags == nil {
			d.Tags = map[string]string{}
		}
		maps.Copy(d.Tags, tags)
		if len(d.Tags) > MaxTags {
			return ErrTooManyTags.With(MaxTags)
		}
		return nil
	})
}

// Untag removes tags from a group; unknown keys are ignored.
func (l *Logs) Untag(group arn.ARN, keys []string) error {
	return l.change(group, func(_ groupRecord, d *details) error {
		for _, k := range keys {
			delete(d.Tags, k)
		}
		return nil
	})
}

// Tags are those of a group.
func (l *Logs) Tags(group arn.ARN) (map[string]string, error) {
	defer l.shard.AwaitReads()
	g, err := l.find(group)
	if err != nil {
		return nil, err
	}
	return g.read().Tags, nil
}

// Retain sets the retention of a group in days; 0 is for ever. Older events are hidden at once.
func (l *Logs) Retain(group arn.ARN, days int) error {
	return l.run(func() error {
		g, err := l.find(group)
		if err != nil {
			return err
		}
		return l.retain(g.id, uint64(days))
	})
}

func (l *Logs) retain(group, days uint64) error {
	t, err := l.totals(group)
	if err != nil {
		return err
	}
	t.retention = days
	var b mutation.Batch
	if err := l.schedule(&b, group, &t, 0); err != nil {
		return err
	}
	b.Set(key(tagTotals, group), t.encode())
	l.apply(&b)
	return nil
}

// Page selects a part of a list: up to a limit, after a name.
type Page struct {
	After string // empty: the beginning
	Limit int
}

// maxLooked bounds how many groups one list reads.
const maxLooked = 10_000

// GroupFilter selects groups for Groups. Empty and nil fields select all.
type GroupFilter struct {
	Region, Account string // never empty
	Prefix, Class   string
	Name            func(name string) bool
	Tags            func(tags map[string]string) bool
	Filtered        bool // those with metric filters
}

// Groups lists the groups that a filter accepts, by name. next is the name to continue after;
// empty: there are no others. A list may be short, or empty, and still have a next.
func (l *Logs) Groups(f GroupFilter, p Page) (found []Group, next string, err error) {
	l.sink.flush()
	defer l.shard.AwaitReads()
	all := groupPrefix(f.Region, f.Account)
	low := append(bytes.Clone(all), max(f.Prefix, p.After)...)
	if p.After != "" && p.After >= f.Prefix {
		low = append(low, 0)
	}
	at, looked := "", 0
	err = l.each(low, behind(append(bytes.Clone(all), f.Prefix...)), func(k, v []byte) error {
		if len(found) == p.Limit || looked == maxLooked {
			next = at
			return store.ErrStop
		}
		at = string(k[len(all):])
		looked++
		if f.Name != nil && !f.Name(at) {
			return nil
		}
		g, _ := decodeGroup(v)
		d := g.read()
		if d.Class == "" {
			d.Class = standard
		}
		if f.Class != "" && d.Class != f.Class || f.Tags != nil && !f.Tags(d.Tags) || f.Filtered && len(d.Filters) == 0 {
			return nil
		}
		t, err := l.totals(g.id)
		if errors.Is(err, ErrNoGroup) { // removed meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		found = append(found, Group{
			ARN: groupOf(k), Created: g.created, Retention: int(t.retention), StoredBytes: t.stored(),
			Class: d.Class, Protected: d.Protected, Tags: d.Tags, Filters: d.Filters,
		})
		return nil
	})
	return found, next, err
}
