package jetstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replog"
)

// Timeouts of a log. A reader that gets nothing for twice its heartbeat is opened again.
const (
	answerTime = 5 * time.Second // for the answer to an append
	askTime    = 2 * time.Second // for the answer to a question
	heartbeat  = 500 * time.Millisecond
	longBeat   = 8 * time.Second // the longest heartbeat, of a reader whose record takes long
	pullTime   = 5 * time.Second
	idleReader = 30 * time.Second // after which the server forgets a reader that does not ask
)

// placeTries bounds how often a reader's consumer is made again to get it on this node: with
// three nodes, one in 16,000 is elsewhere after so many tries.
const placeTries = 24

// How much is fetched at once: at most so many records and bytes.
const (
	pullRecords = 256
	pullBytes   = 2 * record.MaxSize
)

// Log is a stream as a replog.Log.
type Log struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	node    string // the server's name
	subject string
	inbox   string // prefix of the subjects that answers are sent to

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]*appending
	missed  missed
}

// missed is how often in succession readers got nothing in time where the record at is next.
type missed struct {
	at    uint64
	times int
}

// beat is the heartbeat for a reader from a position on. It is doubled from the second time on
// that nothing came there: a record of megabytes takes longer than two heartbeats where the
// machine or the network is slow, and would never come otherwise.
func (l *Log) beat(from uint64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	beat := heartbeat
	if l.missed.at == from {
		for n := 1; n < l.missed.times && beat < longBeat; n++ {
			beat *= 2
		}
	}
	return beat
}

// miss notes that a reader got nothing in time.
func (l *Log) miss(at uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed.at != at {
		l.missed = missed{at: at}
	}
	l.missed.times++
}

var (
	_ replog.Log        = (*Log)(nil)
	_ replog.Elected    = (*Log)(nil)
	_ replog.Replicated = (*Log)(nil)
	_ replog.Membership = (*Log)(nil)
)

// appending is an append without an answer yet.
type appending struct {
	done  func(uint64, error)
	timer clock.Timer
}

func newLog(conn *nats.Conn, js jetstream.JetStream, node string, stream jetstream.Stream, subject string) (*Log, error) {
	l := &Log{conn: conn, js: js, stream: stream, node: node, subject: subject, inbox: nats.NewInbox() + ".", waiting: map[uint64]*appending{}}
	if _, err := conn.Subscribe(l.inbox+"*", l.answered); err != nil {
		return nil, fmt.Errorf("the replicated log: %w", err)
	}
	return l, nil
}

// Append implements replog.Log.
func (l *Log) Append(data []byte, done func(position uint64, err error)) {
	l.mu.Lock()
	l.next++
	token := l.next
	l.waiting[token] = &appending{done: done, timer: clock.System.AfterFunc(answerTime, func() { l.conclude(token, 0, replog.ErrUnknown) })}
	l.mu.Unlock()
	if err := l.conn.PublishRequest(l.subject, l.inbox+strconv.FormatUint(token, 10), data); err != nil {
		// It may be buffered, and be sent once the connection is back.
		l.conclude(token, 0, fmt.Errorf("%w: %w", replog.ErrUnknown, err))
	}
}

func (l *Log) conclude(token, position uint64, err error) {
	l.mu.Lock()
	a := l.waiting[token]
	delete(l.waiting, token)
	l.mu.Unlock()
	if a != nil {
		a.timer.Stop()
		a.done(position, err)
	}
}

// answered handles the stream's answer to an append. "No responders" means that no server has
// seen it; after any other error one may have.
func (l *Log) answered(m *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, l.inbox), 10, 64)
	if err != nil {
		return
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		l.conclude(token, 0, replog.ErrRefused)
		return
	}
	var said struct {
		Seq   uint64          `json:"seq"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &said); err != nil || said.Error != nil || said.Seq == 0 {
		l.conclude(token, 0, fmt.Errorf("%w: %s", replog.ErrUnknown, m.Data))
		return
	}
	l.conclude(token, said.Seq, nil)
}

// info asks the stream's leader for its state. Errors: ErrUnavailable.
func (l *Log) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	info, err := l.stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	return info, nil
}

// Extent implements replog.Log.
func (l *Log) Extent(ctx context.Context) (replog.Extent, error) {
	info, err := l.info(ctx)
	if err != nil {
		return replog.Extent{}, err
	}
	return l.extent(info), nil
}

func (l *Log) extent(info *jetstream.StreamInfo) replog.Extent {
	e := replog.Extent{First: info.State.FirstSeq, Last: info.State.LastSeq, Bytes: info.State.Bytes, Leader: l.node}
	if info.State.Msgs == 0 { // then First is Last, or 0
		e.First = e.Last + 1
	}
	if info.Cluster != nil { // nil: there is one node
		e.Leader = info.Cluster.Leader
	}
	return e
}

// TransferLeadership implements replog.Elected. If the leader has not changed within leaveAsk,
// it is asked to step down again: a request during an election may get no answer, and the node
// that steps down may be elected again.
func (l *Log) TransferLeadership(ctx context.Context) error {
	for {
		asking, cancel := context.WithTimeout(ctx, leaveAsk)
		left, err := l.tryTransfer(asking)
		cancel()
		switch {
		case left:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", replog.ErrUnavailable, cmp.Or(err, ctx.Err()))
		}
	}
}

// tryTransfer is one try of TransferLeadership; left: another node leads.
func (l *Log) tryTransfer(ctx context.Context) (left bool, err error) {
	for asked := false; ; {
		info, err := l.stream.Info(ctx)
		switch {
		case err != nil:
		case info.Config.Replicas == 1 || info.Cluster == nil:
			return true, nil // there is one node
		case info.Cluster.Leader == "":
		case info.Cluster.Leader != l.node:
			return true, nil
		case !asked:
			asked = true
			if _, err := l.conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+info.Config.Name, nil); err != nil {
				return false, err
			}
		}
		if err := pause(ctx, leavePoll); err != nil {
			return false, err
		}
	}
}

const (
	leavePoll = 5 * time.Millisecond // how often it is polled whether there is another leader
	leaveAsk  = time.Second          // after which the leader is asked again
)

// CaughtUp implements replog.Replicated.
func (l *Log) CaughtUp(ctx context.Context) (bool, error) {
	info, err := l.info(ctx)
	switch {
	case err != nil:
		return false, err
	case info.Config.Replicas == 1 || info.Cluster == nil:
		return true, nil
	case info.Cluster.Leader == l.node:
		return true, nil
	}
	for _, r := range info.Cluster.Replicas {
		if r.Name == l.node {
			return r.Current && !r.Offline && r.Lag == 0, nil
		}
	}
	return false, nil
}

// Trim implements replog.Log.
func (l *Log) Trim(ctx context.Context, below uint64) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if below <= 1 {
		return nil
	}
	if err := l.stream.Purge(ctx, jetstream.WithPurgeSequence(below)); err != nil {
		return fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	return nil
}

// Read implements replog.Log.
func (l *Log) Read(ctx context.Context, from uint64) (replog.Reader, error) {
	info, err := l.info(ctx)
	if err != nil {
		return nil, err
	}
	has := l.extent(info)
	switch {
	case from < has.First:
		return nil, fmt.Errorf("%w: it begins at %d, and %d is needed", replog.ErrTrimmed, has.First, from)
	case from > has.Last+1:
		return nil, fmt.Errorf("%w: it ends at %d, and %d would be next", replog.ErrLost, has.Last, from)
	}
	consumer, err := l.newConsumer(ctx, from, l.keeps(info.Cluster))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	beat := l.beat(from)
	messages, err := consumer.Messages(
		jetstream.PullMaxMessagesWithBytesLimit(pullRecords, pullBytes), jetstream.PullExpiry(max(pullTime, 4*beat)), jetstream.PullHeartbeat(beat))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	return &reader{log: l, consumer: consumer.CachedInfo().Name, messages: messages, next: from, patient: beat > heartbeat}, nil
}

// newConsumer makes a reader's consumer. The log places it on a random node. On another node than
// this one, all records would cross the network once more, and reading would end with that
// node. So the consumer is made again, up to placeTries times, until it is on this node.
func (l *Log) newConsumer(ctx context.Context, from uint64, again bool) (made jetstream.Consumer, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for tries := 1; ; tries++ {
		c, err := l.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
			AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: idleReader,
		})
		switch {
		case err != nil && made == nil:
			return nil, err
		case err != nil:
			return made, nil
		}
		if made != nil {
			l.forget(made.CachedInfo().Name)
		}
		made = c
		if at := c.CachedInfo().Cluster; !again || at == nil || at.Leader == l.node || tries == placeTries {
			return made, nil
		}
	}
}

// keeps reports that this node has a replica of the log.
func (l *Log) keeps(of *jetstream.ClusterInfo) bool {
	return of != nil && (of.Leader == l.node || slices.ContainsFunc(of.Replicas, func(p *jetstream.PeerInfo) bool { return p.Name == l.node && !p.Offline }))
}

// forget removes a consumer, without waiting: the server removes idle ones anyway.
func (l *Log) forget(consumer string) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	go func() {
		defer cancel()
		_ = l.stream.DeleteConsumer(ctx, consumer)
	}()
}

// reader reads a stream by a consumer of its own.
type reader struct {
	log      *Log
	consumer string
	messages jetstream.MessagesContext
	next     uint64
	patient  bool // its heartbeat is longer, for the sake of the first record alone
	got      bool // a record
	once     sync.Once
}

// Next implements replog.Reader.
func (r *reader) Next(ctx context.Context) (position uint64, data []byte, err error) {
	if r.patient && r.got { // another one finds out sooner that its node is gone
		return 0, nil, fmt.Errorf("%w: the reader waited for a record that took long", replog.ErrUnavailable)
	}
	m, err := r.messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil, context.Cause(ctx)
		}
		if errors.Is(err, jetstream.ErrNoHeartbeat) {
			r.log.miss(r.next)
		}
		return 0, nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	meta, err := m.Metadata()
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	if position = meta.Sequence.Stream; position != r.next {
		return 0, nil, fmt.Errorf("%w: %d came where %d is next", replog.ErrUnavailable, position, r.next)
	}
	r.next++
	r.got = true
	return position, m.Data(), nil
}

// Close implements replog.Reader.
func (r *reader) Close() {
	r.once.Do(func() {
		r.messages.Stop()
		r.log.forget(r.consumer)
	})
}
