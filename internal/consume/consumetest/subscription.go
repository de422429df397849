package consumetest

import (
	"strings"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

// OfSubscription is what the kinds of all subscriptions have in common: all but Create, which sets
// sub, Plug, Behave, Attempts and Hanging. The reason of a delivery that its endpoint has refused
// begins with refused.
func OfSubscription(sub *arn.ARN, refused string) Kind {
	return Kind{
		Service: "sns",
		Submit: func(w *World) {
			t, _, _ := sub.SplitSubscription()
			_, err := w.Engine.Publish(w.Context(), t, shard.Publication{ID: message.ID(uuid.New()), Body: []byte("text")})
			w.Must(err)
		},
		Delete: func(w *World) {
			w.Must(w.Engine.Unsubscribe(w.Context(), topic.Unsubscribe{Subscription: *sub, Authenticated: true}))
		},
		Left: func(w *World) int64 {
			info, err := w.Engine.Backlog(w.Context(), *sub)
			if fault.KindOf(err) == fault.NotFound {
				return 0
			}
			w.Must(err)
			return info.Due + info.Waiting + info.InFlight
		},
		Dead: func(w *World, m *message.Message) {
			infos, err := w.Engine.Deliveries(w.Context(), *sub, 10)
			w.Must(err)
			dead := infos[0] // the latest
			if !strings.HasPrefix(dead.Reason, refused) || dead.State != shard.DeliveryDeadLetter || len(dead.History) != 1 {
				w.Errorf("the dead letter %q ended as %+v", m.Body, dead)
			}
		},
	}
}
