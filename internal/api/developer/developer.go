// Package developer serves, in development, LocalStack's own paths: for its health, and for
// the messages of a queue.
package developer

import (
	"context"
	"crypto/md5" //nolint:gosec // SQS's digest of a body
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/inspect"
)

// Options are the dependencies and settings of the Handler.
type Options struct {
	Inspect  *inspect.Inspector
	Region   string // of queue URLs without a region
	Version  string
	Services []string // the available services, by LocalStack's names
	// Reset deletes all resources of the server's own account and region.
	Reset func(ctx context.Context) error
}

// Prefixes are the prefixes of the paths.
var Prefixes = []string{"/_localstack/", "/_aws/sqs/"}

// Handler serves the paths.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_localstack/health", o.health)
	mux.HandleFunc("POST /_localstack/state/reset", o.reset)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.HandleFunc(method+" /_aws/sqs/messages", o.ofURL)
	}
	mux.HandleFunc("GET /_aws/sqs/messages/{region}/{account}/{name}", func(w http.ResponseWriter, r *http.Request) {
		o.messages(w, r, arn.Queue(r.PathValue("region"), r.PathValue("account"), r.PathValue("name")))
	})
	return mux
}

func (o *Options) health(w http.ResponseWriter, _ *http.Request) {
	services := map[string]string{}
	for _, name := range o.Services {
		services[name] = "available"
	}
	answer(w, http.StatusOK, "application/json", jsonOf(map[string]any{"services": services, "edition": "godwit", "version": o.Version}))
}

// reset deletes all resources, and answers with an empty body, as LocalStack does.
func (o *Options) reset(w http.ResponseWriter, r *http.Request) {
	if err := o.Reset(r.Context()); err != nil {
		answer(w, http.StatusInternalServerError, "application/json", jsonOf(map[string]string{"error": "Not everything could be deleted."}))
		return
	}
	answer(w, http.StatusOK, "application/json", nil)
}

func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers, lists and objects can always be encoded
	}
	return text
}

func answer(w http.ResponseWriter, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client is gone
}

// maxForm bounds the body of a request, in bytes.
const maxForm = 64 << 10

func (o *Options) ofURL(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	address := r.FormValue("QueueUrl")
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") {
		var in struct{ QueueUrl string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			o.refuse(w, r, http.StatusBadRequest, "InvalidRequest", "The body cannot be read.")
			return
		}
		address = in.QueueUrl
	}
	if address == "" {
		o.noQueue(w, r)
		return
	}
	u, err := url.Parse(address)
	if err != nil {
		u = new(url.URL)
	}
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	if len(parts) < 2 {
		o.refuse(w, r, http.StatusNotFound, "InvalidAddress", "The address is not that of a queue.")
		return
	}
	region := o.Region
	switch labels := strings.Split(u.Hostname(), "."); {
	case len(labels) > 2 && labels[0] == "sqs":
		region = labels[1]
	case len(labels) > 2 && labels[1] == "queue":
		region = labels[0]
	}
	if len(parts) == 4 && parts[0] == "queue" {
		region = parts[1]
	}
	o.messages(w, r, arn.Queue(region, parts[len(parts)-2], parts[len(parts)-1]))
}

func (o *Options) noQueue(w http.ResponseWriter, r *http.Request) {
	o.refuse(w, r, http.StatusBadRequest, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
}

func isTrue(text string) bool { return text == "1" || strings.EqualFold(text, "true") }

// The bounds of an answer: messages, and bytes of their bodies.
const (
	maxMessages = 10_000
	maxBytes    = 32 << 20
)

// messages answers with a queue's messages without receiving them: the visible ones and, if
// requested, the others.
func (o *Options) messages(w http.ResponseWriter, r *http.Request, queue arn.ARN) {
	invisible, delayed := isTrue(r.FormValue("ShowInvisible")), isTrue(r.FormValue("ShowDelayed"))
	found, err := o.scan(r.Context(), queue, func(m *inspect.Message) bool {
		return m.State == inspect.Visible || invisible && m.State == inspect.InFlight || delayed && m.State == inspect.Delayed
	})
	if fault.KindOf(err) == fault.QueueDoesNotExist {
		o.noQueue(w, r)
		return
	}
	if err != nil {
		o.refuse(w, r, http.StatusInternalServerError, "InternalError", "The queue cannot be looked at.")
		return
	}
	for i := range found {
		m := &found[i]
		if invisible {
			m.Attribute = append(m.Attribute, named{"IsVisible", strconv.FormatBool(m.state == inspect.Visible)})
		}
		if delayed {
			m.Attribute = append(m.Attribute, named{"IsDelayed", strconv.FormatBool(m.state == inspect.Delayed)})
		}
	}
	o.write(w, r, found)
}

func (o *Options) scan(ctx context.Context, queue arn.ARN, wanted func(*inspect.Message) bool) (all []shown, err error) {
	size := 0
	for q := (inspect.Query{Queue: queue, Limit: 1000}); ; {
		found, err := o.Inspect.Scan(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range found.Messages {
			m := &found.Messages[i]
			if wanted(m) && len(all) < maxMessages && size+len(m.Body) <= maxBytes {
				size += len(m.Body)
				all = append(all, show(m, found.Origin, queue.FIFO()))
			}
		}
		if found.Next == nil || len(all) == maxMessages || size >= maxBytes/2 {
			return all, nil
		}
		q.From = *found.Next
	}
}

// named is an attribute.
type named struct{ Name, Value string }

// typed is a message attribute.
type typed struct {
	Name  string
	Value value
}

type value struct {
	StringValue *string `xml:",omitempty" json:",omitempty"`
	BinaryValue *string `xml:",omitempty" json:",omitempty"`
	DataType    string
}

// shown is a message in the form of ReceiveMessage.
type shown struct {
	MessageID        string `xml:"MessageId" json:"MessageId"`
	ReceiptHandle    string // never a valid one
	MD5OfBody        string
	Body             string
	Attribute        []named
	MessageAttribute []typed `xml:",omitempty" json:",omitempty"`

	state inspect.State
}

func show(m *inspect.Message, origin uint64, fifo bool) shown {
	sum := md5.Sum(m.Body) //nolint:gosec // likewise
	s := shown{
		MessageID: m.ID.String(), ReceiptHandle: "none: the message was not received", MD5OfBody: hex.EncodeToString(sum[:]), Body: string(m.Body), state: m.State,
		Attribute: []named{
			{"SenderId", m.Sender},
			{"SentTimestamp", strconv.FormatInt(m.Sent, 10)},
			{"ApproximateReceiveCount", strconv.Itoa(m.Receives)},
			{"ApproximateFirstReceiveTimestamp", strconv.FormatInt(m.First, 10)},
		},
	}
	optional := []named{{"MessageGroupId", m.Group}, {"MessageDeduplicationId", m.Dedup}, {"AWSTraceHeader", m.Trace}, {"DeadLetterQueueSourceArn", m.Source}}
	if fifo {
		optional = append(optional, named{"SequenceNumber", message.NumberFrom(origin, m.Sequence)})
	}
	for _, one := range optional {
		if one.Value != "" {
			s.Attribute = append(s.Attribute, one)
		}
	}
	for i := range m.Attributes {
		a := &m.Attributes[i]
		one := typed{a.Name, value{DataType: a.Type}}
		if a.Binary() {
			text := base64.StdEncoding.EncodeToString(a.Value)
			one.Value.BinaryValue = &text
		} else {
			text := string(a.Value)
			one.Value.StringValue = &text
		}
		s.MessageAttribute = append(s.MessageAttribute, one)
	}
	return s
}

const namespace = "http://queue.amazonaws.com/doc/2012-11-05/"

func (o *Options) write(w http.ResponseWriter, r *http.Request, found []shown) {
	id := uuid.NewString()
	switch {
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json"):
		answer(w, http.StatusOK, "application/x-amz-json-1.0", jsonOf(map[string]any{"Messages": plain(found)}))
	case wantsJSON(r):
		// XML converted to JSON: one message is not a list, and none is null.
		result := map[string]any{}
		var none any
		switch len(found) {
		case 0:
		case 1:
			result["Message"], none = found[0], result
		default:
			result["Message"], none = found, result
		}
		answer(w, http.StatusOK, "application/json", jsonOf(map[string]any{
			"ReceiveMessageResponse": map[string]any{"ReceiveMessageResult": none, "ResponseMetadata": map[string]string{"RequestId": id}},
		}))
	default:
		text, err := xml.Marshal(struct {
			XMLName xml.Name
			Message []shown `xml:"ReceiveMessageResult>Message"`
			ID      string  `xml:"ResponseMetadata>RequestId"`
		}{XMLName: xml.Name{Space: namespace, Local: "ReceiveMessageResponse"}, Message: found, ID: id})
		if err != nil {
			o.refuse(w, r, http.StatusInternalServerError, "InternalError", "The messages cannot be written.")
			return
		}
		answer(w, http.StatusOK, "text/xml", append([]byte(xml.Header), text...))
	}
}

// plain are messages in SQS's JSON form.
func plain(found []shown) []any {
	all := make([]any, len(found))
	for i := range found {
		m := &found[i]
		attributes, typed := map[string]string{}, map[string]value{}
		for _, a := range m.Attribute {
			attributes[a.Name] = a.Value
		}
		for _, a := range m.MessageAttribute {
			typed[a.Name] = a.Value
		}
		one := map[string]any{"MessageId": m.MessageID, "ReceiptHandle": m.ReceiptHandle, "MD5OfBody": m.MD5OfBody, "Body": m.Body, "Attributes": attributes}
		if len(typed) > 0 {
			one["MessageAttributes"] = typed
		}
		all[i] = one
	}
	return all
}

func wantsJSON(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Accept"), func(accept string) bool { return strings.Contains(accept, "application/json") })
}

func (o *Options) refuse(w http.ResponseWriter, r *http.Request, status int, code, text string) {
	if wantsJSON(r) || strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") {
		answer(w, status, "application/json", jsonOf(map[string]any{"Error": map[string]string{"Type": "Sender", "Code": code, "Message": text}, "__type": code, "message": text}))
		return
	}
	body, err := xml.Marshal(struct {
		XMLName xml.Name
		Type    string `xml:"Error>Type"`
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
		ID      string `xml:"RequestId"`
	}{XMLName: xml.Name{Space: namespace, Local: "ErrorResponse"}, Type: "Sender", Code: code, Message: text, ID: uuid.NewString()})
	if err != nil {
		panic(err) // texts can always be encoded
	}
	answer(w, status, "text/xml", append([]byte(xml.Header), body...))
}
