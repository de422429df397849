package messages

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestMain fails if an engine leaves a goroutine behind when it is closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *Messages {
	t.Helper()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start)})
	t.Cleanup(func() { _ = e.Close() })
	return New(Options{Engine: e, Inspect: inspect.New(e.Queues, e.Functions)})
}

func (m *Messages) queue(t *testing.T, name string, attributes map[string]string) string {
	t.Helper()
	a := shardtest.QueueARN(name)
	if err := m.Engine.CreateQueue(t.Context(), queues.QueueSpec{ARN: a, Attributes: attributes}); err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func (m *Messages) send(t *testing.T, name string, id int, body string) {
	t.Helper()
	if _, err := m.Engine.Send(t.Context(), shardtest.QueueARN(name), []queues.SendEntry{{Message: shardtest.NewMessage(id, body)}}); err != nil {
		t.Fatal(err)
	}
}

// A list continues where it ended, finds what is searched for, and changes nothing.
func TestList(t *testing.T) {
	m := open(t)
	q := m.queue(t, "orders", nil)
	for i := range 30 {
		m.send(t, "orders", i, fmt.Sprintf(`{"order":%d,"kind":"%s"}`, i, []string{"Tools", "books"}[i%2]))
	}
	for search, want := range map[string]int{"": 30, "tools": 15, "TOOLS": 15, `"order":2`: 11, "nothing": 0} {
		var found []string
		in := &ListMessages{ARN: q, Limit: 4, Search: search, BodyBytes: 4096}
		for pages := 0; ; pages++ {
			page, err := m.List(t.Context(), &rest.Call{}, in)
			if err != nil || page.Total != 30 || pages > 30 {
				t.Fatalf("%+v, %v", page, err)
			}
			for i := range page.Messages {
				one := &page.Messages[i]
				if one.State != "visible" || one.Receives != 0 || one.SequenceNumber != nil || one.DeadLetter != nil {
					t.Errorf("a message is %+v", one)
				}
				found = append(found, one.Position)
				whole, err := m.Get(t.Context(), &rest.Call{}, &OneMessage{ARN: q, Position: one.Position})
				if err != nil || whole.Body != one.Body || whole.MessageID != one.MessageID {
					t.Errorf("by its position it is %+v, %v", whole, err)
				}
			}
			if page.Next == nil {
				break
			}
			in.Cursor = *page.Next
		}
		slices.Sort(found)
		if n := len(slices.Compact(found)); n != want {
			t.Errorf("of %q %d are found, want %d", search, n, want)
		}
	}
	for _, in := range []ListMessages{{ARN: "orders"}, {ARN: q, Cursor: "x"}, {ARN: q, Cursor: "e30x"}, {ARN: strings.Replace(q, "orders", "none", 1)}} {
		in.Limit = 1
		if page, err := m.List(t.Context(), &rest.Call{}, &in); err == nil {
			t.Errorf("%+v is answered %+v", in, page)
		}
	}
	for _, position := range []string{"", "1", "1-", "-1", "a-b", "1-2-x", "1-2-3-4", "1-2-99", "99999999999999999999-1"} {
		if _, err := m.Get(t.Context(), &rest.Call{}, &OneMessage{ARN: q, Position: position}); err == nil {
			t.Errorf("there is a message at %q", position)
		}
	}
}

// A position names a message of the queue that it was listed in: a queue that was deleted and made
// again, or purged, has other messages in the same places.
func TestPositionsOfAQueueMadeAgain(t *testing.T) {
	for name, end := range map[string]func(m *Messages) error{
		"made again": func(m *Messages) error {
			if err := m.Engine.DeleteQueue(t.Context(), shardtest.QueueARN("orders")); err != nil {
				return err
			}
			return m.Engine.CreateQueue(t.Context(), queues.QueueSpec{ARN: shardtest.QueueARN("orders")})
		},
		"purged": func(m *Messages) error { return m.Engine.PurgeQueue(t.Context(), shardtest.QueueARN("orders")) },
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t)
			q, other := m.queue(t, "orders", nil), m.queue(t, "other", nil)
			list := func() (positions []string) {
				page, err := m.List(t.Context(), &rest.Call{}, &ListMessages{ARN: q, Limit: 10})
				if err != nil {
					t.Fatal(err)
				}
				for i := range page.Messages {
					positions = append(positions, page.Messages[i].Position)
				}
				return positions
			}
			m.send(t, "orders", 1, "old")
			old := list()
			if err := end(m); err != nil {
				t.Fatal(err)
			}
			m.send(t, "orders", 2, "new")
			for what, do := range map[string]func() (*Handled, error){
				"deleted": func() (*Handled, error) {
					return m.Delete(t.Context(), &rest.Call{}, &DeleteMessages{ARN: q, Positions: old})
				},
				"moved": func() (*Handled, error) {
					return m.Redrive(t.Context(), &rest.Call{}, &RedriveMessages{ARN: q, Positions: old, To: other})
				},
			} {
				if h, err := do(); err != nil || h.Done != 0 || len(h.Results) != 1 || h.Results[0].Error == nil || *h.Results[0].Error != "The message does not exist any more." {
					t.Errorf("%s: %+v, %v", what, h, err)
				}
			}
			if _, err := m.Get(t.Context(), &rest.Call{}, &OneMessage{ARN: q, Position: old[0]}); err == nil {
				t.Error("an old position shows a new message")
			}
			now := list()
			if len(now) != 1 {
				t.Fatalf("%d messages are left, want the new one", len(now))
			}
			if h, err := m.Delete(t.Context(), &rest.Call{}, &DeleteMessages{ARN: q, Positions: now}); err != nil || h.Done != 1 || len(list()) != 0 {
				t.Errorf("by its own position: %+v, %v", h, err)
			}
		})
	}
}

// The state of a message is what it was asked about, and FIFO messages have their numbers.
func TestState(t *testing.T) {
	m := open(t)
	q := m.queue(t, "row.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	for i := range 3 {
		one := shardtest.NewMessage(i, fmt.Sprint(i))
		one.Group = "g"
		if _, err := m.Engine.Send(t.Context(), shardtest.QueueARN("row.fifo"), []queues.SendEntry{{Message: one}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.Engine.Receive(t.Context(), queues.ReceiveRequest{Queue: shardtest.QueueARN("row.fifo"), Max: 1, Visibility: time.Minute})
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	for state, want := range map[string]string{"": "0 1 2", "in-flight": "0", "visible": "1 2", "delayed": ""} {
		page, err := m.List(t.Context(), &rest.Call{}, &ListMessages{ARN: q, Limit: 10, State: state, BodyBytes: 10})
		if err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for i := range page.Messages {
			one := &page.Messages[i]
			bodies = append(bodies, one.Body)
			if one.SequenceNumber == nil || len(*one.SequenceNumber) != 20 || *one.Group != "g" {
				t.Errorf("message %s has number %v", one.Body, one.SequenceNumber)
			}
			if inFlight := one.State == "in-flight"; inFlight != (one.AvailableAt != nil && one.AvailableAt.Equal(shardtest.Start.Add(time.Minute))) || inFlight != (one.FirstReceivedAt != nil) {
				t.Errorf("message %s is %s until %v, since %v", one.Body, one.State, one.AvailableAt, one.FirstReceivedAt)
			}
		}
		if got := strings.Join(bodies, " "); got != want {
			t.Errorf("%q: %s, want %s", state, got, want)
		}
	}
}

// A body is shown up to a bound, never half a character of it, and never a token.
func TestShownBody(t *testing.T) {
	const token = "2336412f37fb687f5d51e6e2425c464de"
	confirmation := `{"Type":"SubscriptionConfirmation","Token":"` + token + `","SubscribeURL":"https://sns/?Action=ConfirmSubscription&Token=` + token + `"}`
	for _, tt := range []struct {
		body      string
		most      int
		shown     string
		encoding  string
		truncated bool
	}{
		{"hello", 10, "hello", "utf-8", false},
		{"hello", 5, "hello", "utf-8", false},
		{"hello", 4, "hell", "utf-8", true},
		{"hello", 0, "", "utf-8", true},
		{"aäö", 2, "a", "utf-8", true},
		{"a😀b", 4, "a", "utf-8", true},
		{"\xff\xfe\x00", 10, "//4A", "base64", false},
		{"\xff\xfe\x00", 2, "//4=", "base64", true},
		{confirmation, 4096, strings.ReplaceAll(confirmation, token, "****"), "utf-8", false},
	} {
		shown, encoding, truncated := shownBody([]byte(tt.body), tt.most)
		if shown != tt.shown || encoding != tt.encoding || truncated != tt.truncated || !utf8.ValidString(shown) {
			t.Errorf("%q, %d: %q %s %v", tt.body, tt.most, shown, encoding, truncated)
		}
	}
	m := &inspect.Message{Message: &message.Message{Body: []byte(confirmation)}}
	if has(m, []byte(token)) {
		t.Error("a token can be searched for")
	}
	if !has(m, []byte("confirmsubscription")) {
		t.Error("what is around it cannot")
	}
}

// Dead letters are grouped by where they come from and why, and a cause that a stranger
// chose is text that can be searched for.
func TestDeadLetters(t *testing.T) {
	m := open(t)
	q := m.queue(t, "dead", nil)
	attribute := func(name, value string) message.Attribute {
		return message.Attribute{Name: name, Type: "String", Value: []byte(value)}
	}
	long := strings.Repeat("ä", maxCause)
	for i, cause := range []string{"timeout", "timeout", long, "\xff", "timeout"} {
		one := shardtest.NewMessage(i, "x")
		one.Attributes = []message.Attribute{attribute("ErrorCode", "200"), attribute("ErrorMessage", cause), attribute("RequestID", "r")}
		one.Seal()
		if _, err := m.Engine.Send(t.Context(), shardtest.QueueARN("dead"), []queues.SendEntry{{Message: one}}); err != nil {
			t.Fatal(err)
		}
	}
	m.send(t, "dead", 9, "nobody says why")
	out, err := m.DeadLetters(t.Context(), &rest.Call{}, &ListDeadLetters{ARN: q})
	if err != nil || out.Total != 6 || out.Scanned != 6 || out.Next != nil || len(out.Groups) != 4 {
		t.Fatalf("%+v, %v", out, err)
	}
	if g := out.Groups[0]; g.Cause != "timeout" || g.Count != 3 || g.Kind != "function" {
		t.Errorf("the first is %+v", g)
	}
	for _, g := range out.Groups {
		if len(g.Cause) > maxCause || !utf8.ValidString(g.Cause) {
			t.Errorf("a cause is %d bytes: %q", len(g.Cause), g.Cause)
		}
		if g.Kind == "unknown" {
			if g.Count != 1 {
				t.Errorf("unknown are %+v", g)
			}
			continue
		}
		found, err := m.List(t.Context(), &rest.Call{}, &ListMessages{ARN: q, Limit: 10, Cause: g.Cause})
		if err != nil || len(found.Messages) != g.Count {
			t.Errorf("of cause %.10q %d are found, want %d; %v", g.Cause, len(found.Messages), g.Count, err)
		}
	}
}
