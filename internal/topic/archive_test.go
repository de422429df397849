package topic

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// The archive begins with its policy, and later with the end of its retention. No change of the
// policy brings back what a shorter retention, or none, has removed.
func TestArchiveBegins(t *testing.T) {
	const day = 24 * time.Hour
	w := newWorld()
	name := arn.Topic(region, account, "a.fifo")
	_, err := w.CreateTopic(w.now, CreateTopic{ARN: name, Attributes: map[string]string{
		"FifoTopic": "true", "ArchivePolicy": `{"MessageRetentionPeriod":"2"}`,
	}}, &w.batch)
	w.checked(t, err)
	created := w.now
	for _, step := range []struct {
		after  time.Duration // since the creation
		policy string        // which is set then; -: it is not changed
		begins time.Duration // since the creation; negative: there is no archive
	}{
		{0, "-", 0},
		{day, `{"MessageRetentionPeriod":"3"}`, 0},
		{4 * day, "-", day},
		{4 * day, `{"MessageRetentionPeriod":"1"}`, 3 * day},
		{4 * day, `{"MessageRetentionPeriod":"365"}`, 3 * day},
		{9 * day, "-", 3 * day},
		{9 * day, "", -1},
		{10 * day, `{"MessageRetentionPeriod":"365"}`, 10 * day},
		{11 * day, `{"MessageRetentionPeriod":"30"}`, 10 * day},
	} {
		w.now = created.Add(step.after)
		if step.policy != "-" {
			w.checked(t, w.SetTopicAttribute(w.now, name, "ArchivePolicy", step.policy, &w.batch))
		}
		topic, err := w.topic(name)
		if err != nil {
			t.Fatal(err)
		}
		at, ok := topic.ArchiveBegins(w.now)
		if ok != (step.begins >= 0) || ok && !at.Equal(created.Add(step.begins)) {
			t.Errorf("after %v, set to %s: it begins at %v (%v), want %v later than the topic", step.after, step.policy, at, ok, step.begins)
		}
	}
}
