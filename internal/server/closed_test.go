package server

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/config"
)

// TestClosedPorts: functions on a node of a cluster do not reach where other nodes ask nobody who he is.
func TestClosedPorts(t *testing.T) {
	for replicated, want := range map[bool][]uint16{true: {6060, 4567}, false: nil} {
		n, err := newNetwork(Deps{
			Config: config.Config{AdminListen: "10.0.0.1:4567", Pprof: "10.0.0.1:6060"}, Log: slog.New(slog.DiscardHandler), World: World{Replicated: replicated},
			OnStop: func(_ string, stop func(context.Context) error) { t.Cleanup(func() { _ = stop(context.Background()) }) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(n.Closed, want) {
			t.Errorf("of a cluster %t: %d", replicated, n.Closed)
		}
	}
}
