package simulated_test

import (
	"testing"

	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/cluster/replog/logtest"
	"godwit.dev/godwit/internal/cluster/replog/simulated"
)

func TestLog(t *testing.T) {
	logtest.Run(t, func(*testing.T) replog.Log { return simulated.New().Node() })
}
