package jetstream

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/replog"
)

// A position where nothing came in time is read with a longer heartbeat from the second time on,
// and others as ever.
func TestBeat(t *testing.T) {
	l := new(Log)
	expect := func(at uint64, want time.Duration) {
		t.Helper()
		if got := l.beat(at); got != want {
			t.Errorf("after %d at %d: %v at %d, want %v", l.missed.times, l.missed.at, got, at, want)
		}
	}
	expect(0, heartbeat)
	for _, factor := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		l.miss(7)
		expect(7, min(factor*heartbeat, longBeat))
		expect(8, heartbeat)
	}
	l.miss(8)
	expect(8, heartbeat)
	expect(7, heartbeat) // it has come since
	l.miss(8)
	expect(8, 2*heartbeat)
}

// An append has a position only where the log says which, and was refused only where no server has
// seen it. After any other answer it may be in the log. It is concluded once.
func TestAnswered(t *testing.T) {
	refusal := nats.Header{"Status": {"503"}}
	for name, c := range map[string]struct {
		data   string
		header nats.Header
		at     uint64
		err    error
	}{
		"a position":                      {`{"stream":"s","seq":7}`, nil, 7, nil},
		"no position":                     {`{"stream":"s"}`, nil, 0, replog.ErrUnknown},
		"an error":                        {`{"error":{"code":503},"seq":0}`, nil, 0, replog.ErrUnknown},
		"an error beside a position":      {`{"error":{"code":503},"seq":7}`, nil, 0, replog.ErrUnknown},
		"half an answer":                  {`{"seq":7`, nil, 0, replog.ErrUnknown},
		"nothing":                         {``, nil, 0, replog.ErrUnknown},
		"no server":                       {``, refusal, 0, replog.ErrRefused},
		"an error of a server, with text": {`busy`, refusal, 0, replog.ErrUnknown},
	} {
		l, concluded := &Log{inbox: "inbox.", waiting: map[uint64]*appending{}}, 0
		l.waiting[3] = &appending{timer: clock.System.AfterFunc(time.Hour, func() {}), done: func(at uint64, err error) {
			concluded++
			if at != c.at || !errors.Is(err, c.err) {
				t.Errorf("%s: at %d, %v", name, at, err)
			}
		}}
		for _, subject := range []string{"inbox.x", "inbox.4", "inbox.3", "inbox.3"} {
			l.answered(&nats.Msg{Subject: subject, Data: []byte(c.data), Header: c.header})
			if (concluded == 1) != (subject == "inbox.3") {
				t.Errorf("%s: after %s concluded %d times", name, subject, concluded)
			}
		}
	}
}

// An empty log goes on after its last record, whatever the engine calls the first.
func TestExtentOfEmpty(t *testing.T) {
	l := &Log{node: "a"}
	for _, c := range []struct {
		state  jetstream.StreamState
		leader *jetstream.ClusterInfo
		want   replog.Extent
	}{
		{jetstream.StreamState{}, nil, replog.Extent{First: 1, Leader: "a"}},
		{jetstream.StreamState{FirstSeq: 8, LastSeq: 8}, nil, replog.Extent{First: 9, Last: 8, Leader: "a"}},
		{jetstream.StreamState{FirstSeq: 8, LastSeq: 8, Msgs: 1, Bytes: 5}, &jetstream.ClusterInfo{Leader: "b"}, replog.Extent{First: 8, Last: 8, Bytes: 5, Leader: "b"}},
		{jetstream.StreamState{FirstSeq: 1, LastSeq: 8, Msgs: 8}, &jetstream.ClusterInfo{}, replog.Extent{First: 1, Last: 8}},
	} {
		if got := l.extent(&jetstream.StreamInfo{State: c.state, Cluster: c.leader}); got != c.want {
			t.Errorf("%+v is %+v, want %+v", c.state, got, c.want)
		}
	}
}
