package messages

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/recent"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// ListPublishes is the request of a topic's recent publishes.
type ListPublishes struct {
	ARN       string `query:"arn" required:"true" max:"2048" doc:"The topic's."`
	Search    string `query:"search" max:"1024" doc:"Text in the subject, the body, or an attribute's name or value, whatever its case."`
	ID        string `query:"id" max:"64" doc:"A message id."`
	Limit     int    `query:"limit" min:"1" max:"100" default:"20"`
	BodyBytes int    `query:"bodyBytes" min:"0" max:"65536" default:"4096" doc:"How much of each body at most."`
}

// About implements rest.About.
func (l *ListPublishes) About() string { return l.ARN }

// Publishes are the recent publishes of a topic. They are in memory, and lost with a restart.
type Publishes struct {
	Publishes []Publish `json:"publishes" doc:"The latest first."`
	Kept      int       `json:"kept" doc:"How many of the topic are known: 100 at most, fewer if they are large."`
	More      bool      `json:"moreSubscriptions" doc:"The topic has more subscriptions than the 200 that are looked at."`
}

// Publish is a published message.
type Publish struct {
	MessageID     string           `json:"messageId"`
	PublishedAt   time.Time        `json:"publishedAt"`
	SizeBytes     int              `json:"sizeBytes"`
	Subject       *string          `json:"subject"`
	Group         *string          `json:"group"`
	Deduplication *string          `json:"deduplicationId"`
	Sender        string           `json:"sender"`
	Trace         *string          `json:"trace"`
	Encrypted     bool             `json:"encrypted" doc:"It is kept under a key."`
	Refused       *string          `json:"refused" doc:"Why it is not decrypted: it has no subject, no body and no attributes then, and nobody can say who took it."`
	Body          string           `json:"body"`
	BodyEncoding  string           `json:"bodyEncoding" enum:"utf-8,base64"`
	BodyTruncated bool             `json:"bodyTruncated"`
	Protocols     []string         `json:"protocols" doc:"Those for which the message had a body of their own."`
	Attributes    []Attribute      `json:"attributes"`
	Queued        int              `json:"queued" doc:"Queues that had it with the publish itself."`
	FilteredOut   *int             `json:"filteredOut" doc:"Subscriptions that did not get it by their filter policies of that time; null while not all have been looked at."`
	Subscriptions []PublishOutcome `json:"subscriptions" doc:"Those of today that there were at the publish, by their filter policies of today."`
}

// PublishOutcome is the outcome for a subscription.
type PublishOutcome struct {
	ARN      string  `json:"arn"`
	Protocol string  `json:"protocol"`
	Endpoint string  `json:"endpoint" doc:"Without credentials."`
	Taken    bool    `json:"taken"`
	Reason   *string `json:"reason" doc:"Why its filter policy does not let it through, as the metrics of NumberOfNotificationsFilteredOut say it: MessageAttributes, NoMessageAttributes, InvalidAttributes, MessageBody or InvalidMessageBody."`
}

// maxOutcomes bounds the subscriptions that are evaluated for a publish.
const maxOutcomes = 200

// ListPublishes lists the recent publishes of a topic, with the matching subscriptions.
func (m *Messages) ListPublishes(ctx context.Context, c *rest.Call, in *ListPublishes) (*Publishes, error) {
	of, err := catalog.ParseTopic(in.ARN)
	if err != nil {
		return nil, err
	}
	all, err := m.published(ctx, c, of)
	if err != nil {
		return nil, err
	}
	out := &Publishes{Publishes: []Publish{}, Kept: len(all)}
	subs, more, err := m.Engine.ListSubscriptionsByTopic(ctx, of, "", maxOutcomes)
	if err != nil {
		return nil, err
	}
	out.More = more
	search := bytes.ToLower([]byte(in.Search))
	for i := range all {
		p := &all[i]
		if len(out.Publishes) == in.Limit {
			break
		}
		if in.ID != "" && p.ID.String() != in.ID || len(search) > 0 && !p.has(search) {
			continue
		}
		out.Publishes = append(out.Publishes, p.shown(subs, in.BodyBytes))
	}
	return out, nil
}

// opened is a publish that was decrypted, or the reason why not.
type opened struct {
	recent.Publish

	encrypted bool
	refused   string // why it was not decrypted; empty: it was, or was not encrypted
}

// published are the recent publishes of a topic, decrypted where the caller may. Errors:
// NotFound.
func (m *Messages) published(ctx context.Context, c *rest.Call, of arn.ARN) ([]opened, error) {
	created, err := m.Engine.TopicCreated(ctx, of) // there may be publishes of a deleted topic of the same name
	if err != nil {
		return nil, err
	}
	found := m.Recent.Of(of, created)
	all := make([]opened, len(found))
	for i := range found {
		o := &all[i]
		o.Publish, o.encrypted = found[i], found[i].Record.P.Encrypted()
		err := o.Record.Open(func(one *message.Message) error {
			_, err := m.Engine.Reveal(queue.Config{}, of.Account, c.Caller, one)
			return err
		})
		switch {
		case fault.Is(err):
			o.refused = refusal.Text(err)
		case err != nil:
			o.refused = "it cannot be decrypted"
		}
		o.Record.P.Body = masked(o.Record.P.Body) // before filters, which could disclose a token
	}
	return all, nil
}

// has reports whether a publish contains a text, which is in lower case.
func (o *opened) has(search []byte) bool {
	p := &o.Record.P
	if o.refused != "" {
		return false
	}
	if bytes.Contains(bytes.ToLower(p.Body), search) || strings.Contains(strings.ToLower(p.Subject), string(search)) {
		return true
	}
	return hasAttribute(p.Attributes, search)
}

func (o *opened) shown(subs []topic.Subscription, limit int) Publish {
	p := &o.Record.P
	out := Publish{
		MessageID: o.ID.String(), PublishedAt: o.At.UTC(), SizeBytes: o.Size, Group: rest.Optional(p.Group), Deduplication: rest.Optional(p.Dedup),
		Sender: p.Sender, Trace: rest.Optional(p.Trace), Encrypted: o.encrypted, BodyEncoding: "utf-8", Protocols: []string{}, Attributes: []Attribute{},
		Queued: o.Delivered, Subscriptions: []PublishOutcome{},
	}
	if !o.Spreading {
		out.FilteredOut = &o.FilteredOut
	}
	out.Protocols = slices.AppendSeq(out.Protocols, maps.Keys(p.Bodies))
	slices.Sort(out.Protocols)
	if o.refused != "" {
		out.Refused = &o.refused
		return out
	}
	out.Subject, out.Attributes = rest.Optional(p.Subject), shownAttributes(p.Attributes)
	out.Body, out.BodyEncoding, out.BodyTruncated = shownBody(p.Body, limit)
	what := o.Record.Message()
	for i := range subs {
		sub := &subs[i]
		if sub.Pending || sub.Created > o.At.UnixMilli() {
			continue
		}
		one := PublishOutcome{ARN: sub.ARN.String(), Protocol: sub.Protocol.String(), Endpoint: sub.ShownEndpoint()}
		v := sub.Filter.Match(what)
		if one.Taken = v == filter.Match; !one.Taken {
			one.Reason = rest.Optional(v.String())
		}
		out.Subscriptions = append(out.Subscriptions, one)
	}
	return out
}
