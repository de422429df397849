package server

import (
	"reflect"
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
