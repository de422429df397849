package topic

import "testing"

// Who subscribed is kept with a subscription; records of earlier versions name nobody.
func TestPrincipalIsKept(t *testing.T) {
	const root = "arn:aws:iam::000000000000:root"
	w := newWorld()
	topic := mustCreate(t, w, "Orders")
	want := map[string]string{}
	for i, principal := range []string{"arn:aws:iam::000000000000:user/AKIAIOSFODNN7EXAMPLE", "arn:aws:iam::000000000000:user/test", "", root} {
		sub := mustSubscribe(t, w, Subscribe{Topic: topic, Protocol: "sqs", Endpoint: queue(i), Principal: principal})
		if want[sub.Endpoint] = principal; principal == "" {
			want[sub.Endpoint] = root
		}
	}
	w.checked(t, nil)
	loaded := New(shard, Limits{})
	for key, value := range w.records {
		if err := loaded.Load([]byte(key), value); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*State{w.State, loaded} {
		page, _, err := s.SubscriptionsByTopic(topic, "", len(want)+1)
		if err != nil || len(page) != len(want) {
			t.Fatalf("%d subscriptions, %v", len(page), err)
		}
		for _, sub := range page {
			if sub.Principal() != want[sub.Endpoint] {
				t.Errorf("%s subscribed %s, want %s", sub.Principal(), sub.Endpoint, want[sub.Endpoint])
			}
		}
	}
}
