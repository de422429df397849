package server

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/publicnet"
)

// No delivery may lead to where the process listens, nor, in a cluster, to where another node asks nobody
// who he is.
func TestOwnPorts(t *testing.T) {
	d := Deps{
		Port: 1, World: World{Ports: []uint16{2, 3}},
		Config: config.Config{Pprof: "127.0.0.1:4", AdminListen: ":5", ACMEHTTP: "", IngestListen: "[::1]:6"},
	}
	want := publicnet.Ports{Machine: []uint16{1, 2, 3, 4, 5, 6}}
	if got := d.ownPorts(); !reflect.DeepEqual(got, want) {
		t.Errorf("of one process: %+v, want %+v", got, want)
	}
	d.World.Replicated, want.Network = true, []uint16{4, 5}
	if got := d.ownPorts(); !reflect.DeepEqual(got, want) {
		t.Errorf("of a node: %+v, want %+v", got, want)
	}
}

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
