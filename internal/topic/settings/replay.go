package settings

import (
	"maps"
	"slices"
	"time"
)

// ReplayPolicy is a request to deliver archived messages of the topic again.
type ReplayPolicy struct {
	// Start and End bound the publish time of the messages, both inclusive. The zero End is the
	// present: when the replay reaches it, new messages follow. With another End no new ones
	// follow.
	Start, End time.Time
	document   string
}

// Document is the policy as it was set, without spaces.
func (p *ReplayPolicy) Document() string { return p.document }

// maxReplay bounds the text of a replay policy, in bytes.
const maxReplay = 4096

// ParseReplay reads a replay policy; nil if it is an empty object.
func ParseReplay(value string) (*ReplayPolicy, error) {
	object := members(value)
	if object == nil || len(value) > maxReplay {
		return nil, ErrDocument.With(Replay)
	}
	if len(object) == 0 {
		return nil, nil
	}
	p := &ReplayPolicy{document: Compact(value)}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		given, ok := text(object[name])
		var err error
		switch name {
		case "PointType":
			ok = ok && given == "Timestamp"
		case "StartingPoint":
			p.Start, err = time.Parse(time.RFC3339Nano, given)
		case "EndingPoint":
			p.End, err = time.Parse(time.RFC3339Nano, given)
		default:
			return nil, ErrMember.With(Replay, name)
		}
		if !ok || err != nil {
			return nil, ErrReplayValue.With(name)
		}
	}
	for _, name := range []string{"PointType", "StartingPoint"} {
		if _, ok := object[name]; !ok {
			return nil, ErrReplayLacks.With(name)
		}
	}
	if _, bounded := object["EndingPoint"]; bounded && !p.End.After(p.Start) {
		return nil, ErrReplayOrder
	}
	return p, nil
}
