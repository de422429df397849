package topic

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/topic/settings"
)

// MaxMessageSize bounds a message and its attributes, and all those of a batch together, in
// bytes: 1,024 to 1,048,576.
func (t *Topic) MaxMessageSize() int {
	size, err := strconv.Atoi(t.Attribute(settings.MaxSize))
	if err != nil {
		return settings.DefaultMessageSize
	}
	return size
}

// large reports that the topic takes messages that not every protocol does.
func (t *Topic) large() bool { return t.MaxMessageSize() > settings.DefaultMessageSize }

// admitSize checks that the topic's subscriptions, pending ones too, allow a MaximumMessageSize.
func (t *Topic) admitSize(value string) error {
	if size, err := strconv.Atoi(value); err != nil || size <= settings.DefaultMessageSize {
		return nil //nolint:nilerr // settings.Check has refused what is no number
	}
	if len(t.subscriptions.Items) > settings.MaxLargeSubscriptions {
		return ErrLargeSubscriptions.With(settings.DefaultMessageSize, settings.MaxLargeSubscriptions)
	}
	small := map[string]bool{}
	for _, sub := range t.subscriptions.Items {
		if !sub.Protocol.Large() {
			small[sub.Protocol.String()] = true
		}
	}
	if len(small) > 0 {
		return ErrLargeProtocols.With(settings.DefaultMessageSize, strings.Join(slices.Sorted(maps.Keys(small)), ", "))
	}
	return nil
}
