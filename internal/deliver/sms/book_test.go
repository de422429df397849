package smssender_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

// taken is the event of a text that a carrier has taken under the ids.
func taken(at time.Time, ids ...string) *deliver.Event {
	return &deliver.Event{
		Subscription: arn.Direct("us-east-1", "000000000000", "sms"), Protocol: topic.SMS, Kind: message.Notification, At: at, Published: at,
		Endpoint: "+15551234567", Number: 1, Made: true, Conclusion: deliver.Conclusion{State: shard.DeliveryDelivered},
		Feedback: topic.Feedback{Success: true, Failure: true, Rate: 100},
		Text:     &deliver.TextReport{Parts: len(ids), IDs: ids, Type: "Promotional", MonthSpent: 3, Response: "Message has been accepted by phone carrier"},
	}
}

// told is what an event is in a delivery status log and in metrics.
func told(t *testing.T, e *deliver.Event) string {
	t.Helper()
	entries := e.Status(func() float64 { return 0 })
	if len(entries) != 1 {
		t.Fatalf("%d entries", len(entries))
	}
	text, err := json.Marshal(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Status   string
		Delivery struct {
			Destination, ProviderResponse string
			DwellTimeMsUntilDeviceAck     int64
		}
	}
	if err := json.Unmarshal(text, &entry); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(entry.Status, entry.Delivery, e.Metrics(), e.TextMetrics())
}

func TestReceipts(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	virtual := clock.NewVirtual(began.Add(1500 * time.Millisecond))
	var got []string
	book := smssender.NewBook(virtual, func(e *deliver.Event) { got = append(got, told(t, e)) })
	failed := "FAILURE{+15551234567 %s 1500} [{NumberOfNotificationsFailed 1}] [{SMSSuccessRate 0}]"
	has := "SUCCESS{+15551234567 Message has been accepted by phone 1500} [] []"
	for _, tt := range []struct {
		name string
		tell func()
		want []string
	}{
		{"nothing", func() { book.Delivery(taken(began)) }, nil},
		{"delivered", func() {
			book.Delivery(taken(began, "a"))
			book.Receipt(smssender.Receipt{ID: "a", Delivered: true})
			book.Receipt(smssender.Receipt{ID: "a", Delivered: true})
		}, []string{has}},
		{"the receipt comes first", func() {
			book.Receipt(smssender.Receipt{ID: "b", Response: smssender.PhoneUnreachable})
			book.Delivery(taken(began, "b"))
		}, []string{fmt.Sprintf(failed, smssender.PhoneUnreachable)}},
		{"all parts", func() {
			book.Delivery(taken(began, "c", "d"))
			book.Receipt(smssender.Receipt{ID: "d", Delivered: true})
			book.Receipt(smssender.Receipt{ID: "c", Delivered: true})
		}, []string{has}},
		{"not all parts", func() {
			book.Delivery(taken(began, "e", "f", "g"))
			book.Receipt(smssender.Receipt{ID: "e", Delivered: true})
			book.Receipt(smssender.Receipt{ID: "g"})
			book.Receipt(smssender.Receipt{ID: "f"})
		}, []string{fmt.Sprintf(failed, smssender.UnknownReason)}},
		{"of nothing known", func() { book.Receipt(smssender.Receipt{ID: "h"}); book.Receipt(smssender.Receipt{}) }, nil},
		{"failed, and so no id counts", func() {
			e := taken(began, "i")
			e.State = shard.DeliveryPending
			book.Delivery(e)
			book.Receipt(smssender.Receipt{ID: "i"})
		}, nil},
		{"what is told is not noted again", func() {
			e := taken(began, "j")
			e.Receipt = &deliver.Receipt{}
			book.Delivery(e)
			book.Receipt(smssender.Receipt{ID: "j"})
		}, nil},
	} {
		got = nil
		if tt.tell(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What is remembered is bounded, and the latest is.
func TestReceiptsAreBounded(t *testing.T) {
	virtual, n := clock.NewVirtual(time.Unix(1, 0)), 0
	book := smssender.NewBook(virtual, func(*deliver.Event) { n++ })
	const all = 70_000
	for i := range all {
		book.Delivery(taken(virtual.Now(), fmt.Sprint(i)))
	}
	for i := range all {
		book.Receipt(smssender.Receipt{ID: fmt.Sprint(i), Delivered: true})
	}
	if n < 32_768 || n > 65_536 {
		t.Errorf("%d are remembered", n)
	}
}

// An id as long as a PDU is none: some ten thousand of them would fill the memory.
func TestReceiptsOfLongIDs(t *testing.T) {
	n := 0
	book := smssender.NewBook(clock.NewVirtual(time.Unix(1, 0)), func(*deliver.Event) { n++ })
	long := strings.Repeat("a", 60_000)
	before := allocated()
	for i := range 1000 {
		book.Receipt(smssender.Receipt{ID: fmt.Sprint(long, i), Delivered: true})
	}
	if grown := allocated() - before; grown > 30<<20 {
		t.Errorf("%d bytes are remembered", grown)
	}
	book.Delivery(taken(time.Unix(1, 0), long+"1"))
	book.Receipt(smssender.Receipt{ID: long + "1", Delivered: true})
	if n != 0 {
		t.Errorf("%d were told", n)
	}
	runtime.KeepAlive(book)
}

// allocated is how much memory is in use, in bytes.
func allocated() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
