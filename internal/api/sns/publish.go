package sns

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns/platforms"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic/settings"
)

// The limits of a publish.
const (
	// Bytes, if the target is no topic: the message and the names, types and values of its
	// attributes.
	maxMessage = settings.DefaultMessageSize

	maxSubject = 100 // characters
	maxGroup   = 128 // characters of a MessageGroupId or MessageDeduplicationId
)

// publish answers Publish.
func (s *Service) publish(ctx context.Context, call *api.Call, in *PublishInput) (*PublishOutput, error) {
	member, value, err := targetOf(in)
	if err != nil {
		return nil, err
	}
	missing := untyped("", in.MessageAttributes)
	if in.Message == nil {
		missing = slices.Insert(missing, 0, "message")
	}
	if err := mustNotBeNull(missing); err != nil {
		return nil, err
	}
	if in.PhoneNumber != nil {
		return s.publishText(ctx, call, in)
	}
	if platforms.IsEndpoint(value) {
		return s.publishToEndpoint(ctx, call, member, value, in)
	}
	target, err := s.publishTopic(ctx, call, member, value)
	if err != nil {
		return nil, err
	}
	p, err := s.publication(call, recipient{arn: target, maxSize: s.engine.MaxMessageSize(target)}, in)
	if err != nil {
		return nil, err
	}
	if err := s.quota.take(call, p.Size()); err != nil {
		return nil, err
	}
	tracePublish(call, target, p)
	results, err := s.engine.Publish(ctx, target, p)
	if err != nil {
		return nil, err
	}
	return &PublishOutput{MessageId: results[0].ID.String(), SequenceNumber: sequenceOf(target, results[0])}, nil
}

// sequenceOf is the SequenceNumber of a published message; a standard topic has none.
func sequenceOf(t arn.ARN, r shard.SendResult) string {
	if !t.FIFO() {
		return ""
	}
	return message.SequenceNumber(r.Sequence)
}

// publishToEndpoint publishes to an endpoint of a push platform. The endpoint is checked
// before the message.
func (s *Service) publishToEndpoint(ctx context.Context, call *api.Call, member, value string, in *PublishInput) (*PublishOutput, error) {
	endpoint, of, err := platforms.ParseTarget(call, member, value)
	if err != nil {
		return nil, err
	}
	if err := owned(call, endpoint); err != nil {
		return nil, err
	}
	if err := s.engine.MayPublish(ctx, endpoint); err != nil {
		return nil, err
	}
	p, err := s.publication(call, recipient{arn: endpoint, platform: of, maxSize: maxMessage}, in)
	if err != nil {
		return nil, err
	}
	for i := range p.Attributes {
		if a := &p.Attributes[i]; !platform.ValidAttribute(a.Name, string(a.Value)) {
			return nil, invalid("MessageAttributes Reason: the value of %s is not valid", a.Name)
		}
	}
	if err := s.quota.take(call, p.Size()); err != nil {
		return nil, err
	}
	tracePublish(call, endpoint, p)
	if err := s.engine.PublishToEndpoint(ctx, endpoint, p); err != nil {
		return nil, err
	}
	return &PublishOutput{MessageId: p.ID.String()}, nil
}

// targetOf is the target of a publish, and the member that it is in.
func targetOf(in *PublishInput) (member, value string, err error) {
	given := 0
	for _, member := range []*string{in.TopicArn, in.TargetArn, in.PhoneNumber} {
		if member != nil {
			given++
		}
	}
	switch {
	case given == 0:
		return "", "", invalid("TopicArn or TargetArn Reason: no value for required parameter")
	case given > 1:
		return "", "", invalid("TopicArn, TargetArn and PhoneNumber Reason: exactly one of them must be given")
	case in.PhoneNumber != nil:
		return "PhoneNumber", *in.PhoneNumber, nil
	case in.TargetArn != nil:
		return "TargetArn", *in.TargetArn, nil
	default:
		return "TopicArn", *in.TopicArn, nil
	}
}

// publishTopic parses the ARN of a topic that the caller may publish to: a topic of its own
// account, or one whose policy allows it.
func (s *Service) publishTopic(ctx context.Context, call *api.Call, member, value string) (arn.ARN, error) {
	t, err := parseAnyTopic(call, member, value)
	if err == nil {
		if err = owned(call, t); err != nil && s.engine.TopicAdmits(ctx, t, call.Account, call.RemoteAddr, &authorize.Need{Action: "sns:Publish"}) {
			err = nil
		}
	}
	return t, err
}

// recipient is what a message is published to.
type recipient struct {
	arn      arn.ARN // of a topic or an endpoint; zero: a phone number
	platform string  // of an endpoint
	maxSize  int     // of the message and its attributes, in bytes
}

// publication validates a message. Errors are InvalidParameter, and for attributes
// ParameterValueInvalid; those that fail a whole batch are a wholeCall.
func (s *Service) publication(call *api.Call, to recipient, in *PublishInput) (shard.Publication, error) {
	var none shard.Publication
	p := shard.Publication{Sender: call.Account, Caller: call.Caller, Trace: call.TraceHeader()}
	if in.Message == nil || *in.Message == "" {
		return none, invalid("Empty message")
	}
	if !utf8.ValidString(*in.Message) {
		return none, invalid("Message Reason: must be UTF-8")
	}
	p.Body = api.Bytes(*in.Message)
	if in.Subject != nil {
		if !validSubject(*in.Subject) {
			return none, invalid("Subject")
		}
		p.Subject = *in.Subject
	}
	var err error
	if p.Attributes, err = messageAttributes(in.MessageAttributes); err != nil {
		return none, wholeCall{err}
	}
	sized := message.Message{Body: p.Body, Attributes: p.Attributes}
	if sized.Size() > to.maxSize {
		return none, invalid("Message too long")
	}
	if in.MessageStructure != nil && *in.MessageStructure != "" {
		if *in.MessageStructure != "json" {
			return none, wholeCall{invalid("MessageStructure")}
		}
		if p.Body, p.Bodies, err = structured(p.Body, to.platform); err != nil {
			return none, wholeCall{err}
		}
	}
	if err := grouping(&p, to.arn, in); err != nil {
		return none, err
	}
	p.ID = s.newID()
	return p, nil
}

// grouping sets the message's group and, on a FIFO topic, its deduplication ID.
func grouping(p *shard.Publication, t arn.ARN, in *PublishInput) error {
	p.Group = api.Deref(in.MessageGroupId)
	switch {
	case t.FIFO() && p.Group == "":
		return wholeCall{invalid("The MessageGroupId parameter is required for FIFO topics")}
	case in.MessageGroupId != nil && !validGroup(p.Group):
		return invalid("MessageGroupId")
	case in.MessageDeduplicationId == nil:
		if t.FIFO() {
			sum := sha256.Sum256([]byte(*in.Message))
			p.Content = hex.EncodeToString(sum[:])
		}
		return nil
	case !t.FIFO():
		return invalid("MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type")
	case !validGroup(*in.MessageDeduplicationId):
		return invalid("MessageDeduplicationId")
	}
	p.Dedup = *in.MessageDeduplicationId
	return nil
}

// validSubject reports whether a subject is 1–100 characters of UTF-8, without line breaks
// and control characters.
func validSubject(subject string) bool {
	n := utf8.RuneCountInString(subject)
	return utf8.ValidString(subject) && 1 <= n && n <= maxSubject && !strings.ContainsFunc(subject, func(c rune) bool {
		return unicode.IsControl(c) || c == '\u2028' || c == '\u2029'
	})
}

// validGroup reports whether a MessageGroupId or MessageDeduplicationId is 1–128 letters,
// digits and punctuation.
func validGroup(id string) bool {
	return id != "" && len(id) <= maxGroup && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' })
}

var (
	errStructure = "Message Structure - JSON message body failed to parse"
	errDefault   = "Message Structure - No default entry in JSON message body"
)

// structured parses a message of MessageStructure json: an object with texts by protocol, and
// "default" for the other protocols. Like AWS, it ignores members that are not strings,
// except the default. With a platform, the default is only required if the platform has no
// text.
func structured(document []byte, platform string) (fallback []byte, byProtocol map[string]string, err error) {
	var members map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(document))
	if err := dec.Decode(&members); err != nil || members == nil {
		return nil, nil, invalid("%s", errStructure)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, invalid("%s", errStructure)
	}
	byProtocol = make(map[string]string, len(members))
	for name, value := range members {
		var text string
		if value[0] == '"' && json.Unmarshal(value, &text) == nil {
			byProtocol[name] = text
		}
	}
	text, ok := byProtocol["default"]
	if _, own := byProtocol[platform]; !ok && !own {
		return nil, nil, invalid("%s", errDefault)
	}
	delete(byProtocol, "default")
	if len(byProtocol) == 0 {
		byProtocol = nil
	}
	return []byte(text), byProtocol, nil
}
