package clustered

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
)

// failing are connections whose first changes fail.
type failing struct {
	left, set, reconnected, routes int
}

func (f *failing) SetTLS(*tls.Config) error { return f.change(&f.set) }

func (f *failing) Reconnect(context.Context, *tls.Config) error { return f.change(&f.reconnected) }

func (f *failing) change(count *int) error {
	if f.left--; f.left >= 0 {
		return errors.New("broken off")
	}
	*count++
	return nil
}

func (f *failing) SetRoutes([]string) error { f.routes++; return nil }

// TestConnectAgain: the connections of a log that do not go by a list that is known already are
// changed by the next look, once.
func TestConnectAgain(t *testing.T) {
	k, f := &members{newTLS: true, dropped: true}, &failing{left: 1}
	if err := k.connect(t.Context(), f, nil, nil); err == nil {
		t.Error("a failure is not told")
	}
	for range 2 {
		if err := k.connect(t.Context(), f, nil, nil); err != nil {
			t.Error(err)
		}
	}
	if f.set != 0 || f.reconnected != 1 || f.routes != 3 {
		t.Errorf("%+v", f)
	}
}
