package backlog_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if an engine leaves a goroutine behind when it is closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
