package sqs

import (
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// systemAttributes is a set of message system attributes.
type systemAttributes uint16

const (
	senderID systemAttributes = 1 << iota
	sentTimestamp
	receiveCount
	firstReceiveTimestamp
	sequenceNumber
	deduplicationID
	groupID
	trace
	deadLetterSource

	everySystemAttribute systemAttributes = 1<<iota - 1
)

const (
	nameSenderID         = "SenderId"
	nameSentTimestamp    = "SentTimestamp"
	nameReceiveCount     = "ApproximateReceiveCount"
	nameFirstReceive     = "ApproximateFirstReceiveTimestamp"
	nameSequenceNumber   = "SequenceNumber"
	nameDeduplicationID  = "MessageDeduplicationId"
	nameGroupID          = "MessageGroupId"
	nameDeadLetterSource = "DeadLetterQueueSourceArn"
	selectAll            = "All"
)

func systemAttribute(name string) systemAttributes {
	switch name {
	case selectAll:
		return everySystemAttribute
	case nameSenderID:
		return senderID
	case nameSentTimestamp:
		return sentTimestamp
	case nameReceiveCount:
		return receiveCount
	case nameFirstReceive:
		return firstReceiveTimestamp
	case nameSequenceNumber:
		return sequenceNumber
	case nameDeduplicationID:
		return deduplicationID
	case nameGroupID:
		return groupID
	case traceHeader:
		return trace
	case nameDeadLetterSource:
		return deadLetterSource
	}
	return 0
}

// selectSystem reads the system attributes of both lists of a receive request. Names of queue
// attributes select nothing: AWS's model has them in AttributeNames. Errors:
// fault.InvalidAttributeName for a name that is neither.
func selectSystem(lists ...[]string) (systemAttributes, error) {
	var set systemAttributes
	for _, list := range lists {
		for _, name := range list {
			bit := systemAttribute(name)
			if bit == 0 && !attribute.Known(name) {
				return 0, fault.Newf(fault.InvalidAttributeName, "Unknown Attribute %s.", name)
			}
			set |= bit
		}
	}
	return set, nil
}

// of returns the selected attributes that r has.
func (set systemAttributes) of(r *shard.Received) api.Pairs {
	if set == 0 {
		return nil
	}
	pairs := make(api.Pairs, 0, 5)
	add := func(bit systemAttributes, name, value string) {
		if set&bit != 0 && value != "" {
			pairs = append(pairs, api.Pair{Name: name, Value: value})
		}
	}
	add(senderID, nameSenderID, r.Sender)
	if set&sentTimestamp != 0 {
		add(sentTimestamp, nameSentTimestamp, strconv.FormatInt(r.Sent, 10))
	}
	if set&receiveCount != 0 {
		add(receiveCount, nameReceiveCount, strconv.Itoa(r.Receives))
	}
	if set&firstReceiveTimestamp != 0 {
		add(firstReceiveTimestamp, nameFirstReceive, strconv.FormatInt(r.FirstReceived, 10))
	}
	if r.FIFO {
		add(sequenceNumber, nameSequenceNumber, message.NumberFrom(r.Origin, r.Sequence))
	}
	add(deduplicationID, nameDeduplicationID, r.Dedup)
	add(groupID, nameGroupID, r.Group)
	add(trace, traceHeader, r.Trace)
	add(deadLetterSource, nameDeadLetterSource, r.Source)
	return pairs
}

// userAttributes selects message attributes. The zero value selects none.
type userAttributes struct {
	all      bool
	names    []string
	prefixes []string
}

// selectUser reads MessageAttributeNames: names, "All" and ".*" for all, "prefix.*" and
// "prefix*" for the names with that prefix.
func selectUser(selectors []string) userAttributes {
	var u userAttributes
	for _, s := range selectors {
		prefix, wild := strings.CutSuffix(s, "*")
		prefix = strings.TrimSuffix(prefix, ".")
		switch {
		case s == selectAll, wild && prefix == "":
			return userAttributes{all: true}
		case wild:
			u.prefixes = append(u.prefixes, prefix)
		default:
			u.names = append(u.names, s)
		}
	}
	return u
}

func (u *userAttributes) match(name string) bool {
	return u.all || slices.Contains(u.names, name) ||
		slices.ContainsFunc(u.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// of returns the selected attributes of m and their digest. It covers only these, so that the
// client can verify what it received.
func (u *userAttributes) of(m *message.Message) (map[string]MessageAttributeValue, string) {
	if len(m.Attributes) == 0 || !u.all && u.names == nil && u.prefixes == nil {
		return nil, ""
	}
	selected := m.Attributes
	if !u.all {
		selected = slices.DeleteFunc(slices.Clone(selected), func(a message.Attribute) bool { return !u.match(a.Name) })
	}
	if len(selected) == 0 {
		return nil, ""
	}
	sum := m.AttributesMD5
	if len(selected) < len(m.Attributes) {
		sum = message.AttributesMD5(selected)
	}
	values := make(map[string]MessageAttributeValue, len(selected))
	for i := range selected {
		a := &selected[i]
		v := MessageAttributeValue{DataType: a.Type}
		if a.Binary() {
			v.BinaryValue = a.Value
		} else {
			text := string(a.Value)
			v.StringValue = &text
		}
		values[a.Name] = v
	}
	return values, digest(sum)
}
