package topic_test

import (
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/topic"
)

func init() { topic.Said = refusal.Text }
