package deliver

import (
	"encoding/json"
	"math"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

// TextReport reports a text message.
type TextReport struct {
	Parts      int
	Price      float64 // USD
	Type       string  // Promotional or Transactional
	Response   string  // the provider's answer, in AWS's words
	Feedback   topic.Feedback
	MonthSpent float64 // USD, of the account so far; 0: unchanged
	Unknown    int     // parts sent without an answer: they may be duplicated
	// IDs are the carrier's ids of the parts that it has accepted with this attempt, which
	// receipts have; nil: there are none.
	IDs      []string
	Carrier  string // of the phone; empty: not known
	MCC, MNC int    // the codes of its country and network; 0: not known
	AckMs    int64  // until delivery to the phone; 0: not known
}

// Receipt is the receipt of a text message whose delivery has succeeded before.
type Receipt struct{ Delivered bool }

// receiptStatus is the entry of a receipt, in the form of an attempt's.
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

// directGroup replaces the topic's name in the delivery status log of text messages without a
// topic.
const directGroup = "DirectPublishToPhoneNumber"

// ownerOf is the topic of an event's delivery, or its substitute.
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

// textDelivery is a text message in an entry of a delivery status log.
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

// MarshalJSON marshals the delivery; of a text message with its own members.
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

// TextMetrics are the additional metric data of a text message, of its account and type.
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
