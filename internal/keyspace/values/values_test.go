package values_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/keyspace/values"
	"godwit.dev/godwit/internal/queue/layout"
)

// keyOf makes a key of a kind whose numbers are n.
func keyOf(id keyspace.ID, n byte) (key []byte) {
	for _, p := range keyspace.Table[id].Key {
		switch {
		case p.Name == "":
			key = append(key, p.End)
		case p.Size > 0:
			part := make([]byte, p.Size)
			part[p.Size-1] = n
			key = append(key, part...)
		default:
			key = append(key, "name"...)
			if p.Ends {
				key = append(key, p.End)
			}
		}
	}
	return key
}

// Every kind has its decoder: none takes both of two values that are not its own.
func TestNoKindIsUndecoded(t *testing.T) {
	for id := range keyspace.Table {
		key := keyOf(keyspace.ID(id), 0)
		k, empty := values.Check(key, nil)
		_, garbage := values.Check(key, bytes.Repeat([]byte{0xff}, 1<<17))
		if k.ID != keyspace.ID(id) || empty == nil && garbage == nil {
			t.Errorf("the value of a %s is not looked at", keyspace.Table[id].Name)
		}
		for _, err := range []error{empty, garbage} {
			if errors.Is(err, keyspace.ErrUnknown) {
				t.Errorf("%s: %v", keyspace.Table[id].Name, err)
			}
		}
	}
	if _, err := values.Check([]byte("?"), nil); !errors.Is(err, keyspace.ErrUnknown) {
		t.Errorf("a key of no kind: %v", err)
	}
}

func TestNames(t *testing.T) {
	const region, account = "us-east-1", "000000000000"
	var names values.Names
	queue := binary.BigEndian.AppendUint16(nil, 5)
	queue = append(append(queue, keyspace.Queues), account+"\x00"+region+"\x00orders"...)
	names.Add(queue, []byte("\x01"+`{"incarnation":9,"former":[7,8],"first":7}`))
	topic := append(keyspace.Shard(5, keyspace.Topics), account+"/"+region+"/events.fifo"...)
	names.Add(topic, []byte("\x01"+`{"incarnation":10}`))
	sub := append(keyspace.Shard(5, keyspace.Subscriptions), account+"/"+region+"/events\x00id"...)
	names.Add(sub, []byte("\x01"+`{"incarnation":11}`))
	fn := append(append(keyspace.Shard(5, keyspace.Functions), keyspace.FunctionRecords), account+"/"+region+"/f"...)
	names.Add(fn, []byte("\x01"+`{"incarnation":12}`))
	group := append([]byte{keyspace.LogSpace, keyspace.LogGroups}, account+"\x00"+region+"\x00g"...)
	names.Add(group, append(binary.BigEndian.AppendUint64(nil, 3), make([]byte, 8)...))
	for _, bad := range [][]byte{nil, {1}, []byte("\x01{")} {
		names.Add(queue, bad) // changes nothing
	}
	lease := func(shard uint16, inc layout.Incarnation) []byte {
		keys := layout.NewKeys(shard, inc)
		return bytes.Clone(keys.Lease(1))
	}
	mark := append(keyspace.Shard(2, keyspace.Transfers), 0, 5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1)
	for _, c := range []struct {
		key  []byte
		want arn.ARN
	}{
		{queue, arn.Queue(region, account, "orders")},
		{lease(5, 9), arn.Queue(region, account, "orders")},
		{lease(5, 7), arn.Queue(region, account, "orders")}, // what a purge ended
		{lease(4, 9), arn.ARN{}},                            // another shard's
		{lease(5, 99), arn.ARN{}},
		{mark, arn.Queue(region, account, "orders")},
		{topic, arn.Topic(region, account, "events.fifo")},
		{binary.BigEndian.AppendUint64(keyspace.Shard(5, keyspace.TopicSequences), 10), arn.Topic(region, account, "events.fifo")},
		{lease(5, 11), arn.Topic(region, account, "events").Subscription("id")},
		{lease(5, 12), arn.Function(region, account, "f")},
		{binary.BigEndian.AppendUint64([]byte{keyspace.LogSpace, keyspace.LogTotals}, 3), arn.LogGroup(region, account, "g")},
		{binary.BigEndian.AppendUint64([]byte{keyspace.LogSpace, keyspace.LogTotals}, 4), arn.ARN{}},
		{keyspace.Shard(5, keyspace.StreamState), arn.ARN{}},
	} {
		k, err := keyspace.Parse(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := names.Of(&k); got != c.want || ok != (c.want != arn.ARN{}) {
			t.Errorf("%q is of %v, want %v", c.key, got, c.want)
		}
	}
}
