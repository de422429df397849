package sns

import (
	"context"
	"errors"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

// foreign is an Engine whose one subscription, to another account's topic, is owner's.
type foreign struct {
	recorder
	owner string
}

func (f *foreign) SubscriptionAttributes(ctx context.Context, _ arn.ARN) (map[string]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.owner == "" {
		return nil, topic.ErrNoSubscription
	}
	return map[string]string{"Owner": f.owner}, nil
}

// TestSubscriptionsAccount: who subscribed to another account's topic manages the subscription
// as its account's; and a caller who has hung up is not taken for somebody else.
func TestSubscriptionsAccount(t *testing.T) {
	const topics, subscribers = "111111111111", "000000000000"
	in := &UnsubscribeInput{SubscriptionArn: "arn:aws:sns:us-east-1:" + topics + ":orders:" + firstID}
	for owner, want := range map[string]string{subscribers: subscribers, topics: topics, "": topics} {
		access := New(Options{Engine: &foreign{owner: owner}}).access()["Unsubscribe"]
		needs, err := access(t.Context(), signed("Unsubscribe"), in)
		if err != nil || len(needs) != 1 || needs[0].Account != want {
			t.Errorf("a subscription of %q: %+v, %v", owner, needs, err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := access(ended, signed("Unsubscribe"), in); !errors.Is(err, context.Canceled) {
			t.Errorf("a subscription of %q, of a caller who has hung up: %v", owner, err)
		}
	}
}
