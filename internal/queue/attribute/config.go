package attribute

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
)

// Check applies the rules between the attributes of the queue self, all of
// whose values are canonical: a dead-letter queue is of the same kind, account
// and region; one kind of encryption is on at a time; the limit by message
// group needs deduplication by message group.
//
// Errors: InvalidAttributeName (encryption), InvalidParameter (the RedrivePolicy),
// InvalidAttributeValue.
func Check(self arn.ARN, attrs map[string]string) error {
	if doc := attrs[RedrivePolicy]; doc != "" {
		r, err := ParseRedrive(doc)
		if err != nil {
			return err
		}
		switch {
		case r.DeadLetter.Account != self.Account:
			return ErrRedriveAccount.With(doc)
		case r.DeadLetter.Region != self.Region:
			return ErrRedriveRegion.With(doc)
		case r.DeadLetter.FIFO() != self.FIFO():
			return ErrRedriveType.With(doc)
		}
	}
	if attrs[KmsMasterKeyID] != "" && attrs[SqsManagedSseEnabled] == trueText {
		return ErrTwoEncryptions
	}
	if value(attrs, FifoThroughputLimit) == limitPerGroup && value(attrs, DeduplicationScope) != scopeGroup {
		return ErrLimitPerGroup
	}
	return nil
}

// Config gives a queue's canonical attributes, with defaults for those that
// are absent, in the form that the state machine goes by.
//
// Errors: InvalidAttributeValue or InvalidParameter for a map that Canonical did not make.
func Config(attrs map[string]string) (queue.Config, error) {
	var c queue.Config
	for _, f := range [...]struct {
		name string
		to   *time.Duration
	}{
		{DelaySeconds, &c.Delay},
		{VisibilityTimeout, &c.Visibility},
		{ReceiveMessageWaitTimeSeconds, &c.Wait},
		{MessageRetentionPeriod, &c.Retention},
		{KmsDataKeyReusePeriodSeconds, &c.KeyReuse},
	} {
		n, ok := integer(value(attrs, f.name))
		if !ok {
			return queue.Config{}, ErrValue.With(f.name)
		}
		*f.to = time.Duration(n) * time.Second
	}
	size, ok := integer(value(attrs, MaximumMessageSize))
	if !ok {
		return queue.Config{}, ErrValue.With(MaximumMessageSize)
	}
	c.MaxMessageSize = size
	c.ContentDedup = value(attrs, ContentBasedDeduplication) == trueText
	c.GroupDedup = value(attrs, DeduplicationScope) == scopeGroup
	c.Key = attrs[KmsMasterKeyID]
	c.Managed = c.Key == "" && value(attrs, SqsManagedSseEnabled) == trueText
	if doc := attrs[RedrivePolicy]; doc != "" {
		r, err := ParseRedrive(doc)
		if err != nil {
			return queue.Config{}, err
		}
		c.DeadLetter, c.MaxReceives = r.DeadLetter, r.MaxReceives
	}
	return c, nil
}

// value is the attribute as set, or its default.
func value(attrs map[string]string, name string) string {
	if v, ok := attrs[name]; ok && v != "" {
		return v
	}
	return table[name].def
}
