package values

import (
	"encoding/json"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/layout"
)

// Names tells whose records are that carry an incarnation or a number in the place
// of a name. The zero value knows none.
type Names struct {
	incarnations map[place]arn.ARN
	logGroups    map[uint64]arn.ARN
}

type place struct {
	shard       uint16
	incarnation layout.Incarnation
}

// Add learns from a record that tells a name; others are passed over, and so is one
// that cannot be read.
func (n *Names) Add(key, value []byte) {
	k, err := keyspace.Parse(key)
	if err != nil {
		return
	}
	switch k.ID {
	case keyspace.KindLogGroup:
		if a, ok := nameIn(&k); ok && len(value) >= 8 {
			if n.logGroups == nil {
				n.logGroups = map[uint64]arn.ARN{}
			}
			n.logGroups[layout.Number(value[:8])] = a
		}
	case keyspace.KindQueue, keyspace.KindTopic, keyspace.KindSubscription, keyspace.KindFunction, keyspace.KindPlatformApplication, keyspace.KindDirect:
		a, ok := nameIn(&k)
		var record struct {
			Incarnation layout.Incarnation   `json:"incarnation"`
			First       layout.Incarnation   `json:"first"`
			Former      []layout.Incarnation `json:"former"`
		}
		if !ok || len(value) == 0 || json.Unmarshal(value[1:], &record) != nil {
			return
		}
		if n.incarnations == nil {
			n.incarnations = map[place]arn.ARN{}
		}
		shard, _ := k.Shard()
		for _, inc := range append(record.Former, record.First, record.Incarnation) {
			if inc != 0 {
				n.incarnations[place{shard, inc}] = a
			}
		}
	default:
	}
}

// Of is the queue, topic, subscription, function, mapping, log group or alarm that a
// record belongs to; a transfer's mark belongs to its source. What a key tells by a
// number only is known once Add has seen the record of that name. ok is false for what belongs to none, or to one that Add has not seen.
func (n *Names) Of(k *keyspace.Key) (a arn.ARN, ok bool) {
	if a, ok = nameIn(k); ok {
		return a, true
	}
	if k.ID == keyspace.KindTransfer {
		return n.queue(k, keyspace.PartSourceShard, keyspace.PartSource)
	}
	if a, ok = n.queue(k, keyspace.PartShard, keyspace.PartIncarnation); ok {
		return a, true
	}
	if group, ok := k.Number(keyspace.PartGroup); ok {
		a, ok = n.logGroups[group]
		return a, ok
	}
	return a, false
}

func (n *Names) queue(k *keyspace.Key, ofShard, ofIncarnation string) (a arn.ARN, ok bool) {
	shard, _ := k.Number(ofShard)
	inc, ok := k.Number(ofIncarnation)
	if ok {
		a, ok = n.incarnations[place{uint16(shard), layout.Incarnation(inc)}]
	}
	return a, ok
}

// nameIn reads the name that stands in a key.
func nameIn(k *keyspace.Key) (a arn.ARN, ok bool) {
	account, _ := k.Text(keyspace.PartAccount)
	region, _ := k.Text(keyspace.PartRegion)
	name, ok := k.Text(keyspace.PartName)
	if !ok {
		return a, false
	}
	switch k.ID {
	case keyspace.KindQueue, keyspace.KindMoveTask:
		return arn.Queue(region, account, name), true
	case keyspace.KindTopic:
		return arn.Topic(region, account, name), true
	case keyspace.KindDirect:
		return arn.Direct(region, account, name), true
	case keyspace.KindSubscription:
		id, _ := k.Text(keyspace.PartID)
		return arn.Topic(region, account, name).Subscription(id), true
	case keyspace.KindFunction, keyspace.KindVersion, keyspace.KindAlias, keyspace.KindDeletedFunction:
		return arn.Function(region, account, name), true
	case keyspace.KindLayer, keyspace.KindLayerVersion:
		return arn.Layer(region, account, name), true
	case keyspace.KindPlatformApplication:
		platform, name, _ := strings.Cut(name, "/")
		return arn.PlatformApplication(region, account, platform, name), true
	case keyspace.KindLogGroup:
		return arn.LogGroup(region, account, name), true
	case keyspace.KindMapping:
		return mapping.ARN(region, account, name), true
	case keyspace.KindAlarm, keyspace.KindAlarmIndex:
		return arn.Alarm(region, account, name), true
	default:
		return a, false
	}
}
