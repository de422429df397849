package sse

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/clock"
)

// A stream ends by itself, so that its caller has to say again who he is; and at once where
// he may not see any more what it reports.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		e := New(Options{Clock: clock.System})
		asked, refuse := 0, 1<<30
		one := func() []*poll {
			return []*poll{{name: "queue", action: "godwit:GetQueue", about: "arn", ask: func(context.Context) (*Event, error) {
				asked++
				return &Event{Queue: &catalog.QueueDetail{NoisyGroups: asked}}, nil
			}}}
		}
		call := &rest.Call{May: func(_ context.Context, action, resource string) error {
			if action != "godwit:GetQueue" || resource != "arn" {
				t.Errorf("%s is asked for on %s", action, resource)
			}
			if asked >= refuse {
				return errors.New("no more")
			}
			return nil
		}}
		follow := func() (string, error) {
			w := httptest.NewRecorder()
			call.Writer = w
			_, err := e.follow(ctx, call, one())
			return w.Body.String(), err
		}
		began := clock.System.Now()
		text, err := follow()
		if n := strings.Count(text, "event: queue\n"); err != nil || n != maxPolls || clock.System.Now().Sub(began) != maxPolls*every {
			t.Errorf("%d events in %v, %v", n, clock.System.Now().Sub(began), err)
		}
		asked, refuse = 0, 2
		if text, err = follow(); err != nil || strings.Count(text, "event: queue\n") != 2 || !strings.HasSuffix(text, "event: gone\ndata: \"queue\"\n\n") {
			t.Errorf("once it is refused: %q, %v", text, err)
		}
		refuse = 0
		if text, err = follow(); err == nil || text != "" {
			t.Errorf("refused from the start: %q, %v", text, err)
		}
	})
}
