package limit

import (
	"context"
	"errors"
	"net"
	"testing"
)

func TestSlots(t *testing.T) {
	s := NewSlots("s", 1)
	dials := 0
	dial := s.Dial(func(context.Context, string, string) (net.Conn, error) {
		if dials++; dials == 2 {
			return nil, net.ErrClosed
		}
		c, _ := net.Pipe()
		return c, nil
	})
	c, err := dial(t.Context(), "tcp", "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dial(ctx, "tcp", "a"); !errors.Is(err, context.Canceled) || dials != 1 {
		t.Error(err, dials)
	}
	if got := s.Stats(); got.Used != 1 || got.Limit != 1 || got.Refused != 1 || got.Waited != 1 {
		t.Errorf("%+v", got)
	}
	c.Close()
	c.Close()
	if _, err := dial(t.Context(), "tcp", "a"); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if got := s.Stats(); got.Used != 0 {
		t.Errorf("%+v", got)
	}
	var none *Slots
	if none.Acquire(t.Context()) != nil || none.Len() != 0 {
		t.Error("no slots bound something")
	}
	none.Release()
}

func TestShare(t *testing.T) {
	for _, descriptors := range []int{0, 200, 256, 1024, 4096, 20_000, 1 << 20} {
		for _, c := range [][2]int{{0, 1}, {10, 1}, {1 << 30, 1}, {0, 3}, {1 << 30, 5}} {
			asked, nodes := c[0], c[1]
			s := Share(descriptors, asked, nodes)
			sum := s.Store + s.Connections*nodes + s.Outgoing + s.Functions // all nodes' clients come to the owner
			if descriptors > 0 && sum+ownDescriptors > descriptors {
				t.Errorf("%d are divided into %+v by one of %d nodes", descriptors, s, nodes)
			}
			if s.Store < minStore || s.Connections < 10/nodes || s.Outgoing < 1 || s.Functions < 1 {
				t.Errorf("of %d somebody gets nothing: %+v", descriptors, s)
			}
			if s.Clients(descriptors, asked, nodes) != s.Connections {
				t.Errorf("of as many nodes %d connections, and %d before", s.Clients(descriptors, asked, nodes), s.Connections)
			}
			for others := 1; others < 8 && descriptors > 0; others++ { // few descriptors are one for each at least
				n := s.Clients(descriptors, asked, others)
				if sum := s.Store + n*others + s.Outgoing + s.Functions; n > 1 && sum+ownDescriptors > descriptors || n > Share(descriptors, asked, others).Connections {
					t.Errorf("%d by one of %d nodes are divided into %+v, and then %d connections by one of %d", descriptors, nodes, s, n, others)
				}
			}
			if asked == 10 && s.Connections != asked {
				t.Errorf("%+v, want 10 connections", s)
			}
		}
	}
	if s := Share(20_000, 0, 1); s.Connections < 5000 {
		t.Errorf("%+v: 5,000 pollers have no room", s)
	}
	if n := Descriptors(); n < 64 {
		t.Errorf("%d descriptors", n)
	}
	if got := DefaultBytes(0); got != maxBytes {
		t.Error(got)
	}
	if got := DefaultBytes(512 * mb); got != 64*mb {
		t.Error(got)
	}
}
