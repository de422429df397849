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
	size, _ := strconv.Atoi(t.Attribute(settings.MaxSize)) // settings.Check has taken it, or it is the default
	return size
}

// large reports that the topic takes messages that not every protocol does.
func (t *Topic) large() bool { return t.MaxMessageSize() > settings.DefaultMessageSize }

// admitSize checks that the topic's subscriptions, pending ones too, allow a MaximumMessageSize.
func (t *Topic) admitSize(value string) error {
	if size, _ := strconv.Atoi(value); size <= settings.DefaultMessageSize { // settings.Check has taken it
		return nil
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
