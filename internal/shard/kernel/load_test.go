package kernel

import (
	"errors"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// damagedStore has a record that cannot be read, and reads past it.
type damagedStore struct {
	store.Store
	hole keyspace.Span
}

func (s damagedStore) DamageIn(lower, upper []byte) error {
	if s.hole.Meets(keyspace.Span{Lower: lower, Upper: upper}) {
		return store.ErrDamaged
	}
	return nil
}

// TestDamagedLoad: a start does not take what cannot be read for deleted where that would
// allow what was denied, or give a number twice; and continues where only messages, or what
// is observed, are lost.
func TestDamagedLoad(t *testing.T) {
	for name, c := range map[string]struct {
		at      []byte
		refused bool
	}{
		"queue":                  {keyspace.Shard(3, keyspace.Queues), true},
		"state of a shard":       {keyspace.Shard(3, keyspace.StreamState), true},
		"state of another owner": {keyspace.Shard(keyspace.MetricStream, keyspace.StreamState), true},
		"identity":               {[]byte{keyspace.IdentitySpace, keyspace.IdentityEntities, 'a'}, true},
		"key":                    {[]byte{keyspace.KMSSpace, keyspace.KeyRecords, 'a'}, true},
		"who wants no texts":     {[]byte{keyspace.SMSSpace, 'c', 'a'}, true},
		"source of posts":        {[]byte{keyspace.SourceSpace, keyspace.SourceRecords, 'a'}, true},
		"delivery stream":        {[]byte{keyspace.FirehoseSpace, keyspace.DeliveryStreams, 'a'}, true},
		"message":                {keyspace.Shard(3, keyspace.Data), false},
		"record of a stream":     {[]byte{keyspace.FirehoseSpace, keyspace.FirehoseRecords, 'a'}, false},
		"datapoint":              {[]byte{keyspace.MetricSpace, 'p', 'a'}, false},
		"event of a log":         {[]byte{keyspace.LogSpace, keyspace.LogEvents, 'a'}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := damagedStore{memory.New(), keyspace.Span{Lower: c.at, Upper: append(slices.Clip(c.at), 0)}}
			j := journal.Open(journal.Options{Store: s})
			defer j.Close()
			k := New(Options{Journal: j, Clock: clock.System, Fatal: func(err error) { t.Error(err) }})
			err := k.Load()
			if refused := errors.Is(err, store.ErrDamaged); refused != c.refused || err != nil && !refused {
				t.Errorf("the start says %v", err)
			}
		})
	}
}
