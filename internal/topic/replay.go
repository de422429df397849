package topic

import (
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/topic/settings"
)

// ReplayStatus is the status of a replay, in AWS's words.
type ReplayStatus string

// The states of a replay. A subscription without a replay policy has the empty one.
const (
	ReplayPending   ReplayStatus = "Pending"
	ReplayRunning   ReplayStatus = "In progress"
	ReplayCompleted ReplayStatus = "Completed"
	ReplayFailed    ReplayStatus = "Failed" // the archive was removed during the replay
)

// Replay is the progress of a subscription's replay.
type Replay struct {
	Status ReplayStatus
	Number uint64 // counts the subscription's replays
	// From is the sequence of the topic's first message that the subscription gets by the
	// replay, instead of or in addition to its publish.
	From uint64
	// Until is, after the end of the replay, the sequence of the topic's first message that is
	// delivered at its publish again.
	Until uint64
}

// active reports that the replay has not ended.
func (r Replay) active() bool { return r.Status == ReplayPending || r.Status == ReplayRunning }

// Wants reports that the subscription gets the message with a sequence at its publish, and not
// by a replay or not at all. A standard topic's messages have the sequence 0.
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

// Replaying reports that a replay is in progress, or about to begin.
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

// admitReplay checks that a replay may begin now, for the subscription with the settings next.
// Its errors of a policy do not name the attribute yet.
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

// beginReplay begins the replay that the subscription's policy asks for, or ends a replay in
// progress if there is no policy. next is the sequence of the topic's next message.
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

// progress updates the progress of the replay, and the count of replays in progress.
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

// EndReplay notes that a replay has ended. next is the sequence of the topic's next message:
// unless the policy has an end, that one is delivered at its publish.
func (s *State) EndReplay(sub *Subscription, status ReplayStatus, next uint64, b *mutation.Batch) {
	r := sub.Progress()
	r.Status, r.Until = status, next
	sub.progress(r)
	s.putSubscription(b, sub)
}

// FailReplays ends the replays of a topic whose archive is removed, and returns the
// subscriptions.
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

// Replays yields the subscriptions with replays in progress, in no order.
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
