package topic

import (
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/topic/settings"
)

// ReplayStatus says how far a replay is, in AWS's words.
type ReplayStatus string

// The states of a replay. The empty one is that of a subscription without a
// replay policy.
const (
	ReplayPending   ReplayStatus = "Pending"
	ReplayRunning   ReplayStatus = "In progress"
	ReplayCompleted ReplayStatus = "Completed"
	ReplayFailed    ReplayStatus = "Failed" // the archive went before it was over
)

// Replay is where a subscription's replay stands.
type Replay struct {
	Status ReplayStatus
	Number uint64 // counts the subscription's replays
	// From is the sequence of the topic's first message that the subscription
	// gets by the replay and not, or not only, when it is published.
	From uint64
	// Until is, once the replay is over, the sequence of the topic's first message
	// that is delivered when it is published again.
	Until uint64
}

// active reports that the replay has not ended.
func (r Replay) active() bool { return r.Status == ReplayPending || r.Status == ReplayRunning }

// Wants reports that the subscription gets the message with a sequence when it
// is published, and not by a replay or not at all. A standard topic's messages
// have the sequence 0.
func (sub *Subscription) Wants(sequence uint64) bool {
	r := sub.replay
	switch {
	case r == nil || r.Status == "" || sequence < r.From:
		return true
	case r.active():
		return false
	}
	return sub.Replay.End.IsZero() && sequence >= r.Until
}

// Replaying reports that a replay is under way, or about to begin.
func (sub *Subscription) Replaying() bool { return sub.replay != nil && sub.replay.active() }

func setReplay(sub *change, into *Settings, value string) error {
	into.Replay = nil
	if value == "" {
		return nil
	}
	policy, err := settings.ParseReplay(value)
	if err != nil || policy == nil {
		return err
	}
	if !sub.topic.ARN.FIFO() {
		return settings.ErrFIFOOnly.With(settings.Replay)
	}
	if sub.topic.Retention == 0 {
		return ErrNoArchive
	}
	into.Replay = policy
	return nil
}

// admitReplay says whether a replay may begin now, for the subscription with
// the settings next. Its refusals of a policy do not say where it was given yet.
func (s *State) admitReplay(now time.Time, sub *Subscription, next Settings) error {
	p := next.Replay
	switch {
	case p == nil:
		return nil
	case p.Start.After(now):
		return ErrReplayFuture.With("StartingPoint")
	case p.End.After(now):
		return ErrReplayFuture.With("EndingPoint")
	}
	return s.limits.admitReplay(sub)
}

func (l Limits) admitReplay(sub *Subscription) error {
	if l.Replays > 0 && !sub.Pending && !sub.Replaying() && sub.topic.replaying >= l.Replays {
		return ErrTooManyReplays
	}
	return nil
}

// beginReplay begins what the subscription's policy asks for, or ends what is
// under way if there is none. next is the sequence of the topic's next message.
func (sub *Subscription) beginReplay(next uint64) {
	if sub.Pending {
		return // when it is confirmed
	}
	number := sub.Progress().Number
	sub.progress(Replay{Number: number})
	if sub.Replay != nil {
		sub.progress(Replay{Status: ReplayPending, Number: number + 1, From: next})
	}
}

// progress changes where the replay stands, and counts those under way.
func (sub *Subscription) progress(r Replay) {
	if sub.Replaying() {
		sub.topic.replaying--
	}
	if sub.replay = nil; r != (Replay{}) {
		sub.replay = &r
	}
	if r.active() {
		sub.topic.replaying++
	}
}

// ContinueReplay notes that a replay has begun to deliver.
func (s *State) ContinueReplay(sub *Subscription, b *mutation.Batch) {
	if sub.Progress().Status == ReplayPending {
		sub.replay.Status = ReplayRunning
		s.putSubscription(b, sub)
	}
}

// EndReplay notes that a replay is over. next is the sequence of the topic's
// next message: unless the policy has an end, that one is delivered again when
// it is published.
func (s *State) EndReplay(sub *Subscription, status ReplayStatus, next uint64, b *mutation.Batch) {
	r := sub.Progress()
	r.Status, r.Until = status, next
	sub.progress(r)
	s.putSubscription(b, sub)
}

// FailReplays ends the replays of a topic whose archive goes, and gives back
// the subscriptions.
func (s *State) FailReplays(t *Topic, next uint64, b *mutation.Batch) (failed []*Subscription) {
	if t.replaying == 0 {
		return nil
	}
	for _, sub := range t.subscriptions.Items {
		if sub.Replaying() {
			s.EndReplay(sub, ReplayFailed, next, b)
			failed = append(failed, sub)
		}
	}
	return failed
}

// Replays yields the subscriptions whose replays are under way, in no order.
func (s *State) Replays(f func(*Subscription)) {
	for _, t := range s.order.Items {
		if t.replaying == 0 {
			continue
		}
		for _, sub := range t.subscriptions.Items {
			if sub.Replaying() {
				f(sub)
			}
		}
	}
}
