package deliver

import (
	"encoding/json"
	"math"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

// TextReport is what is reported of a text message.
type TextReport struct {
	Parts      int
	Price      float64 // USD
	Type       string  // Promotional or Transactional
	Response   string  // what the provider said, in AWS's words
	Feedback   topic.Feedback
	MonthSpent float64 // USD, of the account until now; 0: as before
	Unknown    int     // parts that were sent and not answered: they may come twice
	// IDs are the carrier's own, one of each part that it has taken with this attempt, by
	// which receipts name them; nil: it gives none.
	IDs      []string
	Carrier  string // of the phone; empty: not known
	MCC, MNC int    // the codes of its country and network; 0: not known
	AckMs    int64  // until the phone had it; 0: not known
}

// Receipt says what became of a text message that had been taken, and whose delivery has
// succeeded with that.
type Receipt struct{ Delivered bool }

// receiptStatus is the entry of a receipt, in the form of that of an attempt.
func (e *Event) receiptStatus(entry StatusEntry, draw func() float64) []StatusEntry {
	switch {
	case !e.Receipt.Delivered && !e.Feedback.Failure, e.Receipt.Delivered && !wanted(e.Feedback, draw):
		return nil
	case e.Receipt.Delivered:
		entry.Status, entry.role = statusSuccess, e.Feedback.SuccessRole
	}
	entry.Delivery.text, entry.Delivery.ProviderResponse = e.Text, e.Text.Response
	return []StatusEntry{entry}
}

// directGroup is the name that the delivery status log of text messages without a topic
// has in the place of the topic's.
const directGroup = "DirectPublishToPhoneNumber"

// ownerOf is what an event's delivery was for: the topic, or what stands for one.
func ownerOf(subscription arn.ARN) arn.ARN {
	name, _, ok := subscription.SplitSubscription()
	if !ok {
		name = subscription
		if _, direct := name.DirectProtocol(); direct {
			name.Resource = directGroup
		}
	}
	return name
}

// topicOf is the ARN of the topic of a subscription; empty: there is none.
func topicOf(subscription arn.ARN) string {
	name, _, _ := subscription.SplitSubscription()
	return name.String()
}

// textDelivery is how an entry of a delivery status log reports a text message.
type textDelivery struct {
	RedrivePolicy string  `json:"redrivePolicy,omitempty"`
	PhoneCarrier  string  `json:"phoneCarrier,omitempty"`
	MNC           int     `json:"mnc"`
	Parts         int     `json:"numberOfMessageParts"`
	Destination   string  `json:"destination"`
	PriceInUSD    float64 `json:"priceInUSD"`
	SMSType       string  `json:"smsType"`
	MCC           int     `json:"mcc"`
	Response      string  `json:"providerResponse"`
	DwellTimeMs   int64   `json:"dwellTimeMs"`
	UntilAckMs    int64   `json:"dwellTimeMsUntilDeviceAck,omitempty"`
}

// MarshalJSON writes a delivery by text message with members of its own.
func (s StatusDelivery) MarshalJSON() ([]byte, error) {
	type plain StatusDelivery
	if s.text == nil {
		return json.Marshal(plain(s))
	}
	return json.Marshal(textDelivery{
		RedrivePolicy: s.RedrivePolicy, PhoneCarrier: s.text.Carrier, MNC: s.text.MNC, MCC: s.text.MCC,
		Parts: s.text.Parts, Destination: s.Destination, PriceInUSD: math.Round(s.text.Price*1e6) / 1e6, SMSType: s.text.Type,
		Response: s.ProviderResponse, DwellTimeMs: s.DwellTimeMs, UntilAckMs: s.text.AckMs,
	})
}

// TextMetrics are what a text message counts besides, of its account and of its type.
// Source: the SNS developer guide, "Available Amazon SNS metrics".
func (e *Event) TextMetrics() (all []Metric) {
	switch {
	case e.Text == nil:
		return nil
	case e.State == "delivered":
		all = append(all, Metric{SMSSuccessRate, 1})
	case e.GaveUp:
		all = append(all, Metric{SMSSuccessRate, 0})
	}
	if e.Text.MonthSpent > 0 {
		all = append(all, Metric{SMSMonthToDateSpent, e.Text.MonthSpent})
	}
	return all
}

// The metrics of text messages.
const (
	SMSSuccessRate      = "SMSSuccessRate"
	SMSMonthToDateSpent = "SMSMonthToDateSpentUSD"
)
