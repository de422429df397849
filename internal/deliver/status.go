package deliver

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

// StatusEntry is an entry of a topic's delivery status log. Source: the SNS
// developer guide, "Message delivery status".
type StatusEntry struct {
	Notification StatusNotification `json:"notification"`
	Delivery     StatusDelivery     `json:"delivery"`
	Status       string             `json:"status"` // SUCCESS or FAILURE

	topic arn.ARN
	at    time.Time
	role  string // for writing the entry
}

// StatusNotification is the notification of an entry.
type StatusNotification struct {
	MessageMD5Sum string `json:"messageMD5Sum,omitempty"`
	MessageID     string `json:"messageId"`
	TopicARN      string `json:"topicArn,omitempty"`
	Timestamp     string `json:"timestamp"` // of the publish
}

// StatusDelivery is the attempt of an entry.
type StatusDelivery struct {
	DeliveryID       string `json:"deliveryId"`
	RedrivePolicy    string `json:"redrivePolicy,omitempty"`
	Destination      string `json:"destination"`
	ProviderResponse string `json:"providerResponse"`
	DwellTimeMs      int64  `json:"dwellTimeMs"`
	Attempts         int    `json:"attempts"`
	StatusCode       int    `json:"statusCode"`

	text *TextReport // of a text message, which has members of its own
}

// Group is the log group of the entry.
func (s *StatusEntry) Group() string {
	group := "sns/" + s.topic.Region + "/" + s.topic.Account + "/" + s.topic.Resource
	if s.Status != statusSuccess {
		group += "/Failure"
	}
	return group
}

// stream is the log stream of the entry: each topic has one.
func (s *StatusEntry) stream() string { return streamOf(s.topic) }

// streamOf is the log stream of a topic's delivery status log.
func streamOf(t arn.ARN) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(t.String())).String() }

const (
	statusSuccess   = "SUCCESS"
	statusFailure   = "FAILURE"
	statusTimestamp = "2006-01-02 15:04:05.000"
)

// wanted samples the successful attempts to be logged.
func wanted(f topic.Feedback, draw func() float64) bool {
	return f.Success && (f.Rate >= 100 || f.Rate > 0 && draw()*100 < float64(f.Rate))
}

func bodyMD5(body []byte) string {
	sum := md5.Sum(body)
	return hex.EncodeToString(sum[:])
}

// Status are the entries of an event that the topic is configured for: of an attempt, and of
// a move to the dead-letter queue. draw returns a random number in [0, 1), to sample
// successes.
func (e *Event) Status(draw func() float64) (all []StatusEntry) {
	if e.Kind != message.Notification || !e.Feedback.Success && !e.Feedback.Failure {
		return nil
	}
	name := ownerOf(e.Subscription)
	entry := StatusEntry{
		topic: name, at: e.At,
		Notification: StatusNotification{
			MessageMD5Sum: e.BodyMD5, MessageID: uuid.UUID(e.MessageID).String(),
			TopicARN: topicOf(e.Subscription), Timestamp: e.Published.UTC().Format(statusTimestamp),
		},
		Delivery: StatusDelivery{
			DeliveryID:  deliveryUUID(e.Subscription, e.MessageID),
			Destination: e.Endpoint, DwellTimeMs: max(e.At.Sub(e.Published).Milliseconds(), 0), Attempts: max(e.Number, 1),
			RedrivePolicy: redrivePolicy(e.DeadLetter),
		},
		Status: statusFailure, role: e.Feedback.FailureRole,
	}
	if e.Text != nil {
		entry.Notification.MessageMD5Sum = "" // as with AWS
	}
	if e.Receipt != nil {
		return e.receiptStatus(entry, draw)
	}
	if e.Made && (e.State == shard.DeliveryDelivered && wanted(e.Feedback, draw) || e.State != shard.DeliveryDelivered && e.Feedback.Failure) {
		made := entry
		if e.State == shard.DeliveryDelivered {
			made.Status, made.role = statusSuccess, e.Feedback.SuccessRole
		}
		if !e.Attempt.At.IsZero() { // until the attempt began, not until the answer
			made.Delivery.DwellTimeMs = max(e.Attempt.At.Sub(e.Published).Milliseconds(), 0)
		}
		made.Delivery.StatusCode = e.Attempt.Status
		made.Delivery.ProviderResponse = http.StatusText(e.Attempt.Status)
		if e.Protocol.Within() || e.Provider.Service == Push {
			made.Delivery.StatusCode, made.Delivery.ProviderResponse = e.Provider.Status, e.Provider.response()
		} else if e.Text != nil {
			made.Delivery.text, made.Delivery.ProviderResponse = e.Text, e.Text.Response
		} else if made.Delivery.ProviderResponse == "" {
			made.Delivery.ProviderResponse = e.Attempt.Detail // without an answer
		}
		all = append(all, made)
	}
	moved := e.State == shard.DeliveryDeadLetter
	if e.Redrive.Status != 0 && (moved && e.Feedback.Success || !moved && e.Feedback.Failure) {
		if moved {
			entry.Status, entry.role = statusSuccess, e.Feedback.SuccessRole
		}
		d := &entry.Delivery
		d.RedrivePolicy, d.Destination, d.Attempts = "", e.DeadLetter.String(), 1
		d.StatusCode, d.ProviderResponse = e.Redrive.Status, e.Redrive.response()
		all = append(all, entry)
	}
	return all
}

// immediateStatus are the entries of deliveries that the publish itself made.
func immediateStatus(p *shard.Published, draw func() float64) (all []StatusEntry) {
	for i := range p.Immediate {
		d := &p.Immediate[i]
		e := Event{
			Subscription: d.Subscription.ARN, Protocol: d.Subscription.Protocol, Kind: message.Notification,
			MessageID: p.ID, Published: p.At, At: p.At, Feedback: p.Feedback, Endpoint: shownEndpoint(&d.Subscription),
			Number: 1, Made: true, Conclusion: Conclusion{State: shard.DeliveryDelivered, DeadLetter: d.Subscription.DeadLetters()},
			Provider: Provider{Status: http.StatusOK, ID: d.MessageID}, BodyMD5: bodyMD5(d.Body),
		}
		all = append(all, e.Status(draw)...)
	}
	return all
}

// deliveryUUID identifies a delivery; it is the same for all attempts.
func deliveryUUID(subscription arn.ARN, message message.ID) string {
	return uuid.NewSHA1(uuid.UUID(message), []byte(subscription.String())).String()
}

func redrivePolicy(q arn.ARN) string {
	if q.IsZero() {
		return ""
	}
	p, _ := json.Marshal(map[string]string{"deadLetterTargetArn": q.String()}) // strings can always be marshalled
	return string(p)
}

// requestIDs are the members with the id of the request in the services' answers.
var requestIDs = [...]string{SQS: "sqsRequestId", Lambda: "lambdaRequestId", Firehose: "firehoseRequestId"}

// response is the JSON answer of a queue, function, stream or push platform. For a queue, the
// request's id is derived from the message's, because there was no request.
func (p Provider) response() string {
	if p.Service == Push {
		return p.pushResponse()
	}
	var v any
	switch request := requestIDs[p.Service]; {
	case p.Code != "": // maps are marshalled sorted by name, which is AWS's order
		v = map[string]string{"ErrorCode": p.Code, "ErrorMessage": p.Message, request: "Unrecoverable"}
	case p.Service == SQS:
		v = struct {
			Request string `json:"sqsRequestId"`
			Message string `json:"sqsMessageId"`
		}{uuid.NewSHA1(uuid.UUID(p.ID), []byte("request")).String(), uuid.UUID(p.ID).String()}
	default:
		v = map[string]string{request: uuid.UUID(p.ID).String()}
	}
	text, _ := json.Marshal(v) // strings can always be marshalled
	return string(text)
}

// pushResponse is the answer of a push platform.
func (p Provider) pushResponse() string {
	text, _ := json.Marshal(struct {
		Reason string `json:"reason,omitempty"`
		Name   string `json:"name,omitempty"`
	}{p.Code, p.Message}) // strings can always be marshalled
	return string(text)
}
