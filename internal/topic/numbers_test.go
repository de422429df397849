package topic

import (
	"maps"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/arn"
)

const plainNumber, spelledNumber = "+15551234567", "+1-555-123-4567"

// A phone number is subscribed once, however it is written, and shown as it was given.
func TestSpellingsOfNumbers(t *testing.T) {
	for _, spellings := range [][2]string{{plainNumber, spelledNumber}, {spelledNumber, plainNumber}} {
		w := newWorld()
		topic := mustCreate(t, w, "Orders")
		subscribe := func(number string) Subscribed {
			t.Helper()
			got, err := w.subscribe(Subscribe{Topic: topic, Owner: account, Protocol: "sms", Endpoint: number})
			if err != nil {
				t.Fatal(err)
			}
			w.checked(t, nil)
			return got
		}
		first := subscribe(spellings[0])
		if again := subscribe(spellings[1]); again.Created || again.Subscription != first.Subscription || again.Subscription.Endpoint != spellings[0] {
			t.Errorf("%s after %s: %+v", spellings[1], spellings[0], again.Subscription)
		}
		if _, err := w.unsubscribe(first.Subscription.ARN, true, ""); err != nil {
			t.Fatal(err)
		}
		if anew := subscribe(spellings[1]); !anew.Created {
			t.Errorf("%s is still subscribed", spellings[1])
		}
	}
}

// Two that an earlier version has subscribed are both kept, and removed one by one in whichever
// order. The number stays subscribed as long as one of them is there.
func TestSpellingsOfBefore(t *testing.T) {
	for first := range 2 {
		w, topic := subscribedTwice(t)
		both, _ := w.Subscriptions(account, region, topic, 10)
		if len(both) != 2 {
			t.Fatalf("%d are there, want 2", len(both))
		}
		one, other := both[first], both[1-first]
		if _, err := w.unsubscribe(one.ARN, true, ""); err != nil {
			t.Fatal(err)
		}
		w.checked(t, nil)
		again, err := w.subscribe(Subscribe{Topic: topic, Owner: account, Protocol: "sms", Endpoint: one.Endpoint})
		if err != nil || again.Created || again.Subscription != other {
			t.Errorf("%s after it was removed, with %s subscribed: %+v, %v", one.Endpoint, other.Endpoint, again.Subscription, err)
		}
		if _, err := w.unsubscribe(other.ARN, true, ""); err != nil {
			t.Fatal(err)
		}
		w.checked(t, nil)
		if got, err := w.subscribe(Subscribe{Topic: topic, Owner: account, Protocol: "sms", Endpoint: plainNumber}); err != nil || !got.Created {
			t.Errorf("neither is there, and %s is not subscribed anew: %+v, %v", plainNumber, got, err)
		}
	}
}

// subscribedTwice has a topic as an earlier version left it, with two spellings of a number.
func subscribedTwice(t *testing.T) (ids *world, topic arn.ARN) {
	t.Helper()
	loaded, ids := New(shard, Limits{}), newWorld()
	topic = mustCreate(t, ids, "Orders")
	for _, number := range []string{plainNumber, spelledNumber} {
		w := newWorld()
		w.ids = ids.ids
		mustCreate(t, w, "Orders")
		if _, err := w.subscribe(Subscribe{Topic: topic, Owner: account, Protocol: "sms", Endpoint: number}); err != nil {
			t.Fatal(err)
		}
		w.checked(t, nil)
		ids.ids = w.ids
		maps.Copy(ids.records, w.records)
	}
	for _, key := range slices.Sorted(maps.Keys(ids.records)) {
		if err := loaded.Load([]byte(key), ids.records[key]); err != nil {
			t.Fatal(err)
		}
	}
	if err := loaded.Loaded(); err != nil {
		t.Fatal(err)
	}
	ids.State = loaded
	return ids, topic
}
