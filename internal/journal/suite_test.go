package journal_test

import (
	"testing"

	"godwit.dev/godwit/internal/journal/journaltest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

func TestOnOneMachine(t *testing.T) {
	journaltest.Run(t, func(testing.TB) store.Store { return memory.New() }, func([]byte) bool { return false })
}
