package topic

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/topic/filter"
)

const (
	shard   = 7
	account = "000000000000"
	region  = "us-east-1"
)

// world is a state with the records that its mutations left behind.
type world struct {
	*State
	now     time.Time
	ids     int
	told    int
	batch   mutation.Batch
	records map[string][]byte
}

func newWorld() *world {
	return &world{
		State:   New(shard, Limits{}),
		now:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		records: map[string][]byte{},
	}
}

func (w *world) subscribe(cmd Subscribe) (Subscribed, error) {
	w.ids++
	cmd.ID = fmt.Sprintf("%08x-0000-4000-8000-000000000000", uint32(w.ids)*2654435761) // in no order
	cmd.Incarnation = uint64(w.ids)
	if cmd.Token == "" {
		cmd.Token = fmt.Sprintf("token-%d", w.ids)
	}
	return w.Subscribe(w.now, cmd, &w.batch)
}

func (w *world) unsubscribe(sub arn.ARN, signed bool, token string) (Unsubscribed, error) {
	w.told++
	if token == "" {
		token = fmt.Sprintf("regret-%d", w.told)
	}
	cmd := Unsubscribe{Subscription: sub, Authenticated: signed, Token: token, Incarnation: uint64(2000 + w.told)}
	return w.Unsubscribe(w.now, cmd, &w.batch)
}

// checked applies the mutations of a command, and fails unless a state loaded
// from the records equals the live one, a refused command wrote nothing, and
// all indexes agree, the live state's and the loaded one's.
func (w *world) checked(t interface {
	Helper()
	Fatalf(string, ...any)
}, err error,
) {
	t.Helper()
	if err != nil && w.batch.Len() > 0 {
		t.Fatalf("a command that was refused (%v) wrote", err)
	}
	_ = w.batch.Each(func(op mutation.Op, key, value []byte) error {
		switch op {
		case mutation.Set:
			w.records[string(key)] = bytes.Clone(value)
		case mutation.DeleteRange:
			maps.DeleteFunc(w.records, func(k string, _ []byte) bool { return k >= string(key) && k < string(value) })
		default:
			delete(w.records, string(key))
		}
		return nil
	})
	w.batch.Reset()
	loaded := New(shard, Limits{})
	for _, key := range slices.Sorted(maps.Keys(w.records)) {
		if err := loaded.Load([]byte(key), w.records[key]); err != nil {
			t.Fatalf("load: %v", err)
		}
	}
	if err := loaded.Loaded(); err != nil {
		t.Fatalf("load: %v", err)
	}
	if diff := cmp.Diff(dump(w.State), dump(loaded)); diff != "" {
		t.Fatalf("the loaded state differs (-live +loaded):\n%s", diff)
	}
	for _, s := range []*State{w.State, loaded} {
		if err := consistent(s); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// dump is all that can be seen of a state, and what commands depend on.
func dump(s *State) map[string]any {
	all := map[string]any{}
	for _, t := range s.order.Items {
		all[t.ARN.String()] = map[string]any{"attributes": t.Attributes(), "created": t.Created, "tags": fmt.Sprint(t.Tags), "delivery": t.Delivery.Document()}
		for i, sub := range t.subscriptions.Items {
			all[sub.ARN.String()] = map[string]any{
				"position": i, "attributes": sub.Attributes(), "created": sub.Created, "incarnation": sub.Incarnation,
				"endpoint": sub.Endpoint, "authenticate": sub.AuthenticateOnUnsubscribe, "confirmation": sub.confirmation,
				"policy": sub.RetryPolicy(), "type": sub.ContentType(),
			}
		}
	}
	for i, sub := range expiring(s) {
		if sub.removed {
			all["removed "+sub.ARN.String()] = map[string]any{
				"position": i, "attributes": sub.Attributes(), "incarnation": sub.Incarnation, "endpoint": sub.Endpoint, "confirmation": sub.confirmation,
			}
		}
	}
	for at, list := range s.owned {
		var arns []string
		for _, own := range list.Items {
			for _, sub := range own.subscriptions.Items {
				arns = append(arns, sub.ARN.String())
			}
		}
		all["owned by "+at.account+" in "+at.region] = arns
	}
	return all
}

// expiring are the subscriptions that may expire, topic by topic.
func expiring(s *State) (all []*Subscription) {
	for _, t := range s.expiring.Items {
		all = append(all, t.expiring.Items...)
	}
	return all
}

func consistent(s *State) error {
	owned, pending := 0, 0
	for at, list := range s.owned {
		if !slices.IsSortedFunc(list.Items, compareShares) {
			return fmt.Errorf("what %v owns is not in order", at)
		}
		for _, own := range list.Items {
			owned += len(own.subscriptions.Items)
			if own.topic.shares[at.account] != own || s.topics[own.topic.ARN] != own.topic || len(own.subscriptions.Items) == 0 {
				return fmt.Errorf("%v owns what is not there of %v", at, own.topic.ARN)
			}
		}
	}
	for at, list := range s.owned {
		if err := pages(s, at, list.Items); err != nil {
			return err
		}
	}
	for _, t := range s.expiring.Items {
		if len(t.expiring.Items) == 0 || !slices.IsSortedFunc(t.expiring.Items, compareExpiries) || s.topics[t.ARN] != t {
			return fmt.Errorf("what expires of %v is not in order", t.ARN)
		}
	}
	for _, t := range s.order.Items {
		confirmed, tokens, filtered := 0, 0, 0
		pending += t.Pending
		for _, sub := range t.subscriptions.Items {
			owned--
			if !sub.Pending {
				confirmed++
				if sub.Filter != nil {
					filtered++
				}
			} else if !slices.Contains(t.expiring.Items, sub) {
				return fmt.Errorf("%v does not expire", sub.ARN)
			}
			if sub.confirmation != nil {
				tokens++
				if t.tokens[sub.confirmation.Token] != sub {
					return fmt.Errorf("%v is not found by its token", sub.ARN)
				}
			}
			if found, ok := s.Subscription(sub.ARN); !ok || found != sub {
				return fmt.Errorf("%v is not found", sub.ARN)
			}
			if t.endpoints[sub.address()] != sub {
				return fmt.Errorf("%v is not found by its endpoint", sub.ARN)
			}
		}
		for id, sub := range t.removed {
			tokens++
			pending++
			if found, ok := s.Deliverable(sub.ARN); t.tokens[sub.confirmation.Token] != sub || sub.ID() != id || !ok || found != sub {
				return fmt.Errorf("%v, removed, is not found", sub.ARN)
			}
			if _, ok := s.Subscription(sub.ARN); ok {
				return fmt.Errorf("%v is found though it is removed", sub.ARN)
			}
		}
		n := len(t.subscriptions.Items)
		if len(t.endpoints) != n || len(t.tokens) != tokens || t.Confirmed != confirmed || t.Pending != n-confirmed || t.filtered != filtered {
			return fmt.Errorf("%v: indexes of %d subscriptions disagree", t.ARN, n)
		}
		if s.topics[t.ARN] != t {
			return fmt.Errorf("%v is not found", t.ARN)
		}
		if err := matches(s, t); err != nil {
			return err
		}
	}
	if n := len(expiring(s)); n != pending || !slices.IsSortedFunc(s.expiring.Items, s.expiring.Compare) {
		return fmt.Errorf("%d subscriptions expire, %d are pending", n, pending)
	}
	if owned != 0 || len(s.topics) != len(s.order.Items) {
		return fmt.Errorf("%d subscriptions are listed too often, %d topics for %d", owned, len(s.topics), len(s.order.Items))
	}
	return nil
}

// pages compares what an account lists page by page, across topics, with what it owns.
func pages(s *State, at place, owned []*share) error {
	var want, got []*Subscription
	for _, own := range owned {
		want = append(want, own.subscriptions.Items...)
	}
	for after, more := (arn.ARN{}), true; more; {
		var page []*Subscription
		if page, more = s.Subscriptions(at.account, at.region, after, 2); len(page) == 0 || more && len(page) < 2 {
			return fmt.Errorf("a page of %d subscriptions behind %v, more: %v", len(page), after, more)
		}
		got = append(got, page...)
		after = page[len(page)-1].ARN
	}
	inOrder := slices.IsSortedFunc(got, func(a, b *Subscription) int { return CompareSubscriptions(a.ARN, b.ARN) })
	if !slices.Equal(got, want) || !inOrder {
		return fmt.Errorf("the pages of %v show %d subscriptions of %d, in order: %v", at, len(got), len(want), inOrder)
	}
	return nil
}

// matches compares what the index of policies finds with what a check of every
// subscription does.
func matches(s *State, t *Topic) error {
	text := func(name, value string) filter.Attribute {
		return filter.Attribute{Name: name, Type: "String", Value: value}
	}
	for _, m := range []*filter.Message{
		filter.NewMessage(nil, nil),
		filter.NewMessage([]filter.Attribute{text("a", "x"), text("b", "x")}, []byte(`{"a":{"b":["x","y"]},"b":true}`)),
		filter.NewMessage([]filter.Attribute{text("b", "x")}, []byte(`{"a":["x",1]}`)),
		filter.NewMessage([]filter.Attribute{{Name: "a", Type: "Number", Value: "1"}}, []byte(`{"a":"y","b":true}`)),
	} {
		filtered := 0
		slow := slices.Collect(matchEach(s, t.ARN, "", m, func(*Subscription, filter.Verdict) { filtered++ }))
		if fast := slices.Collect(s.Match(t.ARN, "", m)); !slices.Equal(fast, slow) {
			return fmt.Errorf("%v: the index finds %d subscriptions, a check of each %d", t.ARN, len(fast), len(slow))
		}
		if len(slow)+filtered != t.Confirmed {
			return fmt.Errorf("%v: %d pass and %d do not of %d", t.ARN, len(slow), filtered, t.Confirmed)
		}
	}
	return nil
}

func mustCreate(t testing.TB, w *world, name string) arn.ARN {
	t.Helper()
	topic, err := w.CreateTopic(w.now, CreateTopic{ARN: arn.Topic(region, account, name)}, &w.batch)
	if err != nil {
		t.Fatal(err)
	}
	return topic.ARN
}

func mustSubscribe(t testing.TB, w *world, cmd Subscribe) *Subscription {
	t.Helper()
	if cmd.Owner == "" {
		cmd.Owner = account
	}
	got, err := w.subscribe(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return got.Subscription
}

func queue(n int) string { return arn.Queue(region, account, fmt.Sprintf("q%d", n)).String() }

// TestRecordsAreBounded: nothing of any length gets into a record but what has a bound of
// its own, since a record is to fit into a commit.
func TestRecordsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	w := newWorld()
	name := mustCreate(t, w, "Orders")
	archived, err := w.CreateTopic(w.now, CreateTopic{ARN: arn.Topic(region, account, "a.fifo"), Attributes: map[string]string{
		"FifoTopic": "true", "ArchivePolicy": `{"MessageRetentionPeriod":"1"}`,
	}}, &w.batch)
	if err != nil {
		t.Fatal(err)
	}
	w.checked(t, nil)
	for what, command := range map[string]func() error{
		"the ARN of a role": func() error {
			return w.SetTopicAttribute(w.now, name, "SQSSuccessFeedbackRoleArn", "arn:aws:iam::000000000000:role/"+long, &w.batch)
		},
		"a content type": func() error {
			return w.SetTopicAttribute(w.now, name, "DeliveryPolicy", `{"http":{"defaultRequestPolicy":{"headerContentType":"text/plain; a=`+long+`"}}}`, &w.batch)
		},
		"an endpoint": func() error {
			_, err := w.subscribe(Subscribe{Topic: name, Owner: account, Protocol: "https", Endpoint: "https://host/" + long})
			return err
		},
		"a queue": func() error {
			_, err := w.subscribe(Subscribe{Topic: name, Owner: account, Protocol: "sqs", Endpoint: queue(1) + long})
			return err
		},
		"a dead-letter queue": func() error {
			_, err := w.subscribe(Subscribe{Topic: name, Owner: account, Protocol: "sqs", Endpoint: queue(1), Attributes: map[string]string{
				"RedrivePolicy": `{"deadLetterTargetArn":"` + queue(1) + long + `"}`,
			}})
			return err
		},
		"a replay": func() error {
			_, err := w.subscribe(Subscribe{Topic: archived.ARN, Owner: account, Protocol: "sqs", Endpoint: queue(1) + ".fifo", Attributes: map[string]string{
				"ReplayPolicy": `{` + strings.Repeat(`"PointType":"Timestamp",`, 500) + `"StartingPoint":"2000-01-01T00:00:00.000Z"}`,
			}})
			return err
		},
	} {
		if err := command(); fault.KindOf(err) != fault.InvalidParameter {
			t.Errorf("%s of any length is taken: %v", what, err)
		}
		if w.batch.Len() > 0 {
			t.Errorf("%s that was refused changes something", what)
			w.checked(t, nil)
		}
	}
}

// A walk through pages of any size shows everything once, in order, also when
// what the cursor names has been removed meanwhile.
func TestPaging(t *testing.T) {
	w := newWorld()
	topics := []arn.ARN{mustCreate(t, w, "b"), mustCreate(t, w, "a"), mustCreate(t, w, "a0"), mustCreate(t, w, "B")}
	for _, elsewhere := range []arn.ARN{arn.Topic("eu-west-1", account, "a"), arn.Topic("us-west-2", account, "a"), arn.Topic(region, "111111111111", "a")} {
		if _, err := w.CreateTopic(w.now, CreateTopic{ARN: elsewhere}, &w.batch); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		mustSubscribe(t, w, Subscribe{Topic: topics[i%3], Protocol: "sqs", Endpoint: queue(i)})
	}
	foreign := mustSubscribe(t, w, Subscribe{Topic: topics[0], Protocol: "sqs", Endpoint: arn.Queue(region, "111111111111", "q").String(), Owner: "111111111111"})
	w.checked(t, nil)

	for limit := 1; limit < 25; limit++ {
		var names []string
		for after, more := "", true; more; {
			var page []*Topic
			page, more = w.Topics(account, region, after, limit)
			for _, topic := range page {
				names = append(names, topic.ARN.Resource)
			}
			after = names[len(names)-1]
		}
		if diff := cmp.Diff([]string{"B", "a", "a0", "b"}, names); diff != "" {
			t.Fatalf("topics by %d:\n%s", limit, diff)
		}
		var subs []*Subscription
		for after, more := (arn.ARN{}), true; more; {
			var page []*Subscription
			page, more = w.Subscriptions(account, region, after, limit)
			subs = append(subs, page...)
			after = subs[len(subs)-1].ARN
		}
		inOrder := slices.IsSortedFunc(subs, func(a, b *Subscription) int { return CompareSubscriptions(a.ARN, b.ARN) })
		if len(subs) != 20 || !inOrder || slices.Contains(subs, foreign) {
			t.Fatalf("%d subscriptions by %d, in order: %v", len(subs), limit, inOrder)
		}
		count := 0
		for after, more := "", true; more; {
			var page []*Subscription
			var err error
			page, more, err = w.SubscriptionsByTopic(topics[0], after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, sub := range page {
				if sub.ID() <= after {
					t.Fatalf("%s behind %s", sub.ID(), after)
				}
				after = sub.ID()
				count++
			}
		}
		if count != 8 {
			t.Fatalf("%d subscriptions of a topic by %d", count, limit)
		}
	}

	page, more := w.Subscriptions("111111111111", region, arn.ARN{}, 10)
	if len(page) != 1 || page[0] != foreign || more {
		t.Errorf("another account sees %v", page)
	}
	first, _ := w.Subscriptions(account, region, arn.ARN{}, 2)
	if _, err := w.unsubscribe(first[0].ARN, true, ""); err != nil {
		t.Fatal(err)
	}
	if next, _ := w.Subscriptions(account, region, first[0].ARN, 1); next[0] != first[1] {
		t.Errorf("behind a removed one comes %v", next[0].ARN)
	}
	if _, _, err := w.SubscriptionsByTopic(arn.Topic(region, account, "none"), "", 10); fault.KindOf(err) != fault.NotFound {
		t.Errorf("subscriptions of no topic: %v", err)
	}
}

// A fan-out that stops anywhere and resumes reaches each subscription once.
func TestMatchResumes(t *testing.T) {
	w := newWorld()
	topic := mustCreate(t, w, "Orders")
	want := 0
	for i := range 30 {
		attributes := map[string]string{}
		switch i % 3 {
		case 0:
			attributes["FilterPolicy"] = `{"order-status":["confirmed"]}`
			want++
		case 1:
			attributes["FilterPolicy"] = `{"order-status":["canceled"]}`
		default:
			want++
		}
		mustSubscribe(t, w, Subscribe{Topic: topic, Protocol: "sqs", Endpoint: queue(i), Attributes: attributes})
	}
	mustSubscribe(t, w, Subscribe{Topic: topic, Protocol: "http", Endpoint: "http://pending.example"})

	// By a check of each that counts what is filtered out, and by the index.
	for chunk := 1; chunk <= want+1; chunk++ {
		m := filter.NewMessage([]filter.Attribute{{Name: "order-status", Type: "String", Value: "confirmed"}}, nil)
		out := map[filter.Verdict]int{}
		for _, match := range []func(after string) iter.Seq[*Subscription]{
			func(after string) iter.Seq[*Subscription] {
				return matchEach(w.State, topic, after, m, func(_ *Subscription, v filter.Verdict) { out[v]++ })
			},
			func(after string) iter.Seq[*Subscription] { return w.Match(topic, after, m) },
		} {
			reached := map[string]bool{}
			after := ""
			for {
				n := 0
				for sub := range match(after) {
					if sub.ID() <= after || reached[sub.ID()] || sub.Pending {
						t.Fatalf("%s behind %s", sub.ID(), after)
					}
					reached[sub.ID()] = true
					after = sub.ID()
					if n++; n == chunk {
						break
					}
				}
				if n < chunk {
					break
				}
			}
			// What was filtered out is counted once too.
			if len(reached) != want || out[filter.AttributesMismatch] != 10 || len(out) != 1 {
				t.Fatalf("by %d: reached %d of %d, filtered %v", chunk, len(reached), want, out)
			}
		}
	}
	for range w.Match(arn.Topic(region, account, "none"), "", filter.NewMessage(nil, nil)) {
		t.Fatal("a topic that is not there has a subscription")
	}
}

// A subscription that is gone is not found by a policy that it once had.
func TestMatchForgetsOldPolicies(t *testing.T) {
	w := newWorld()
	topic := mustCreate(t, w, "Orders")
	sub := mustSubscribe(t, w, Subscribe{Topic: topic, Protocol: "sqs", Endpoint: queue(1), Attributes: map[string]string{"FilterPolicy": `{"a":["x"]}`}})
	m := filter.NewMessage([]filter.Attribute{{Name: "a", Type: "String", Value: "x"}, {Name: "b", Type: "String", Value: "x"}}, nil)
	for _, policy := range []string{`{"b":["y"]}`, "", `{"b":["x"]}`} {
		if err := w.SetSubscriptionAttribute(w.now, SetSubscriptionAttribute{Subscription: sub.ARN, Name: "FilterPolicy", Value: policy, Next: 1}, &w.batch); err != nil {
			t.Fatal(err)
		}
		want := policy != `{"b":["y"]}`
		if got := len(slices.Collect(w.Match(topic, "", m))) == 1; got != want {
			t.Errorf("with %s: %v", policy, got)
		}
	}
	if _, err := w.unsubscribe(sub.ARN, true, ""); err != nil {
		t.Fatal(err)
	}
	for range w.Match(topic, "", m) {
		t.Error("found though it is gone")
	}
}

// A caller that gave no token has made a subscription that none confirms.
func TestEmptyTokenConfirmsNothing(t *testing.T) {
	w := newWorld()
	topic := mustCreate(t, w, "Orders")
	if _, err := w.Subscribe(w.now, Subscribe{Topic: topic, Owner: account, ID: "x", Protocol: "http", Endpoint: "http://h"}, &w.batch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ConfirmSubscription(w.now, Confirm{Topic: topic}, &w.batch); fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("confirmed: %v", err)
	}
}

func TestLoadRefusesWhatItDidNotWrite(t *testing.T) {
	w := newWorld()
	topic := mustCreate(t, w, "Orders")
	mustSubscribe(t, w, Subscribe{Topic: topic, Protocol: "sqs", Endpoint: queue(1)})
	w.checked(t, nil)
	for key, value := range w.records {
		for name, record := range map[string][2][]byte{
			"other shard":   {append([]byte{0, 8}, key[2:]...), value},
			"other kind":    {append([]byte{0, 7, 'X'}, key[3:]...), value},
			"short key":     {[]byte{0, 7}, value},
			"later version": {[]byte(key), append([]byte{2}, value[1:]...)},
			"no JSON":       {[]byte(key), []byte{1, '{'}},
			"empty":         {[]byte(key), nil},
		} {
			if err := New(shard, Limits{}).Load(record[0], record[1]); err == nil {
				t.Errorf("%s was loaded", name)
			}
		}
	}
	alone := New(shard, Limits{})
	if err := alone.Load(w.subscriptionKey(topic.Subscription("x")), []byte("\x01"+`{"protocol":"sqs","endpoint":"e"}`)); err != nil {
		t.Fatal(err)
	}
	if alone.Loaded() == nil {
		t.Error("a subscription without its topic passes for complete")
	}
}

// Whatever the record, loading it fails or gives a state that writes a record
// which loads to the same again.
func FuzzLoad(f *testing.F) {
	f.Add(byte('T'), account+"/"+region+"/Orders", `{"created":1,"attributes":{"DeliveryPolicy":"{\"http\":{}}"}}`)
	f.Add(byte('S'), account+"/"+region+"/Orders\x00id", `{"protocol":"https","endpoint":"https://u@h/","filter":"{}","redrive":"arn:aws:sqs:r:a:q","token":"AAAA"}`)
	f.Add(byte('S'), account+"/"+region+"/Orders\x00id", `{"protocol":"http","endpoint":"http://h/","removed":true,"expires":1,"token":"`+strings.Repeat("A", 43)+`="}`)
	f.Add(byte('S'), account+"/"+region+"/Orders\x00", `{}`)
	f.Fuzz(func(t *testing.T, kind byte, name, value string) {
		s := New(shard, Limits{})
		if s.Load(append([]byte{0, shard, kind}, name...), append([]byte{version}, value...)) != nil {
			return
		}
		again := New(shard, Limits{})
		var b mutation.Batch
		for _, topic := range s.order.Items {
			s.put(&b, topic)
			for _, sub := range topic.subscriptions.Items {
				s.putSubscription(&b, sub)
			}
			for _, sub := range topic.removed {
				s.putSubscription(&b, sub)
			}
		}
		err := b.Each(func(_ mutation.Op, key, value []byte) error { return again.Load(key, value) })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dump(s), dump(again)); diff != "" {
			t.Fatal(diff)
		}
		if err := consistent(again); err != nil {
			t.Fatal(err)
		}
	})
}
