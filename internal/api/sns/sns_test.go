package sns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

var _ Engine = (*shard.Engine)(nil)

// recorder is an Engine that notes what it is asked. What a test does not
// expect to be called is nil and panics.
type recorder struct {
	Engine
	published []shard.Publication
	target    arn.ARN
	topics    []arn.ARN
	confirm   topic.Confirm
	subscribe topic.Subscribe
	pending   bool

	unsubscribe topic.Unsubscribe
}

func (r *recorder) Publish(_ context.Context, t arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error) {
	r.target = t
	r.published = append(r.published, publications...)
	results := make([]shard.SendResult, len(publications))
	for i := range results {
		results[i] = shard.SendResult{ID: publications[i].ID, Sequence: uint64(i + 1)}
	}
	return results, nil
}

func (r *recorder) MaxMessageSize(arn.ARN) int { return maxMessage }

func (r *recorder) MayPublish(context.Context, arn.ARN) error {
	return invalid("TargetArn Reason: No endpoint found for the target arn specified")
}

func (r *recorder) TopicAdmits(context.Context, arn.ARN, string, string, *authorize.Need) bool {
	return false
}

func (r *recorder) ListTopics(_ context.Context, _, _, after string, limit int) ([]arn.ARN, bool, error) {
	i, _ := slices.BinarySearchFunc(r.topics, after+"\x00", func(t arn.ARN, name string) int { return cmp.Compare(t.Resource, name) })
	rest := r.topics[i:]
	return rest[:min(limit, len(rest))], len(rest) > limit, nil
}

func (r *recorder) ConfirmSubscription(_ context.Context, cmd topic.Confirm) (arn.ARN, error) {
	r.confirm = cmd
	return cmd.Topic.Subscription("id"), nil
}

func (r *recorder) Unsubscribe(_ context.Context, cmd topic.Unsubscribe) error {
	r.unsubscribe = cmd
	return nil
}

func (r *recorder) Subscribe(_ context.Context, cmd topic.Subscribe) (topic.Subscription, error) {
	r.subscribe = cmd
	return topic.Subscription{ARN: cmd.Topic.Subscription(cmd.ID), Pending: r.pending}, nil
}

func newService(r *recorder) *Service {
	return New(Options{
		Engine:   r,
		NewID:    func() message.ID { return message.ID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x4d, 15: 0xff} },
		NewToken: func() string { return "secret" },
	})
}

const firstID = "01234567-89ab-4d00-0000-0000000000ff"

func signed(operation string) *api.Call {
	return &api.Call{
		Operation: operation, Region: "us-east-1", Account: "000000000000", AccessKey: "test", Header: http.Header{},
	}
}

func unsigned(operation string) *api.Call {
	call := signed(operation)
	call.AccessKey = ""
	return call
}

const ordersARN = "arn:aws:sns:us-east-1:000000000000:orders"

func published(message string) *PublishInput {
	return &PublishInput{TopicArn: new(ordersARN), Message: &message}
}

func with(change func(in *PublishInput)) *PublishInput {
	in := published("hello")
	change(in)
	return in
}

func text(value string) MessageAttributeValue {
	return MessageAttributeValue{DataType: new("String"), StringValue: &value}
}

func attribute(name string, value MessageAttributeValue) *PublishInput {
	return with(func(in *PublishInput) { in.MessageAttributes = map[string]MessageAttributeValue{name: value} })
}

func structuredMessage(document string) *PublishInput {
	return with(func(in *PublishInput) { in.Message, in.MessageStructure = &document, new("json") })
}

func TestPublishRefuses(t *testing.T) {
	long := strings.Repeat("x", maxMessage)
	for _, tc := range []struct {
		name string
		in   *PublishInput
		kind fault.Kind
		want string
	}{
		{"no target", with(func(in *PublishInput) { in.TopicArn = nil }), fault.InvalidParameter, "Invalid parameter: TopicArn or TargetArn Reason: no value for required parameter"},
		{"two targets", with(func(in *PublishInput) { in.TargetArn = in.TopicArn }), fault.InvalidParameter, "Invalid parameter: TopicArn, TargetArn and PhoneNumber Reason: exactly one of them must be given"},
		{"topic and phone", with(func(in *PublishInput) { in.PhoneNumber = new("+15550100") }), fault.InvalidParameter, "Invalid parameter: TopicArn, TargetArn and PhoneNumber Reason: exactly one of them must be given"},
		{"endpoint", with(func(in *PublishInput) {
			in.TopicArn, in.TargetArn = nil, new("arn:aws:sns:us-east-1:000000000000:endpoint/GCM/app/1")
		}), fault.InvalidParameter, "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified"},
		{"no ARN", with(func(in *PublishInput) { in.TopicArn = new("orders") }), fault.InvalidParameter, "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 1"},
		{"short ARN", with(func(in *PublishInput) { in.TopicArn = new("arn:aws:sns:orders") }), fault.InvalidParameter, "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements, not 4"},
		{"short target", with(func(in *PublishInput) { in.TopicArn, in.TargetArn = nil, new("") }), fault.InvalidParameter, "Invalid parameter: TargetArn Reason: An ARN must have at least 6 elements, not 1"},
		{"not arn", with(func(in *PublishInput) { in.TopicArn = new("x" + ordersARN) }), fault.InvalidParameter, "Invalid parameter: TopicArn"},
		{"a queue", with(func(in *PublishInput) { in.TopicArn = new("arn:aws:sqs:us-east-1:000000000000:orders") }), fault.InvalidParameter, "Invalid parameter: TopicArn"},
		{"a subscription", with(func(in *PublishInput) { in.TopicArn = new(ordersARN + ":1") }), fault.InvalidParameter, "Invalid parameter: TopicArn"},
		{"other partition", with(func(in *PublishInput) { in.TopicArn = new("arn:aws-cn:sns:us-east-1:000000000000:orders") }), fault.InvalidParameter, "Invalid parameter: TopicArn"},
		{"other region", with(func(in *PublishInput) { in.TopicArn = new("arn:aws:sns:eu-west-1:000000000000:orders") }), fault.InvalidParameter, "Invalid parameter: TopicArn"},
		{"other account", with(func(in *PublishInput) { in.TopicArn = new("arn:aws:sns:us-east-1:111122223333:orders") }), fault.AccessDenied, "User: arn:aws:iam::000000000000:root is not authorized to perform: SNS:Publish on resource: arn:aws:sns:us-east-1:111122223333:orders because no resource-based policy allows the SNS:Publish action"},
		{"fifo", with(func(in *PublishInput) { in.TopicArn = new(ordersARN + ".fifo") }), fault.InvalidParameter, "Invalid parameter: The MessageGroupId parameter is required for FIFO topics"},

		{"no message", with(func(in *PublishInput) { in.Message = nil }), fault.MissingParameter, "1 validation error detected: Value null at 'message' failed to satisfy constraint: Member must not be null"},
		{"no target, no message", &PublishInput{}, fault.InvalidParameter, "Invalid parameter: TopicArn or TargetArn Reason: no value for required parameter"},
		{"empty message", published(""), fault.InvalidParameter, "Invalid parameter: Empty message"},
		{"long message", published(long + "x"), fault.InvalidParameter, "Invalid parameter: Message too long"},
		{"long with attributes", with(func(in *PublishInput) {
			in.Message = &long
			in.MessageAttributes = map[string]MessageAttributeValue{"a": text("b")}
		}), fault.InvalidParameter, "Invalid parameter: Message too long"},
		{"not UTF-8", published("\xff"), fault.InvalidParameter, "Invalid parameter: Message Reason: must be UTF-8"},
		{"dedup on a standard topic", with(func(in *PublishInput) { in.MessageDeduplicationId = new("1") }), fault.InvalidParameter, "Invalid parameter: MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type"},
		{"empty group", with(func(in *PublishInput) { in.MessageGroupId = new("") }), fault.InvalidParameter, "Invalid parameter: MessageGroupId"},
		{"long group", with(func(in *PublishInput) { in.MessageGroupId = new(strings.Repeat("g", 129)) }), fault.InvalidParameter, "Invalid parameter: MessageGroupId"},

		{"empty subject", with(func(in *PublishInput) { in.Subject = new("") }), fault.InvalidParameter, "Invalid parameter: Subject"},
		{"long subject", with(func(in *PublishInput) { in.Subject = new(strings.Repeat("ä", 101)) }), fault.InvalidParameter, "Invalid parameter: Subject"},
		{"line break", with(func(in *PublishInput) { in.Subject = new("a\nb") }), fault.InvalidParameter, "Invalid parameter: Subject"},
		{"control character", with(func(in *PublishInput) { in.Subject = new("a\x7f") }), fault.InvalidParameter, "Invalid parameter: Subject"},

		{"structure", with(func(in *PublishInput) { in.MessageStructure = new("xml") }), fault.InvalidParameter, "Invalid parameter: MessageStructure"},
		{"structure no JSON", structuredMessage("{"), fault.InvalidParameter, "Invalid parameter: Message Structure - JSON message body failed to parse"},
		{"structure not an object", structuredMessage(`["default"]`), fault.InvalidParameter, "Invalid parameter: Message Structure - JSON message body failed to parse"},
		{"structure null", structuredMessage(`null`), fault.InvalidParameter, "Invalid parameter: Message Structure - JSON message body failed to parse"},
		{"structure and more", structuredMessage(`{"default":"a"}{}`), fault.InvalidParameter, "Invalid parameter: Message Structure - JSON message body failed to parse"},
		{"structure without default", structuredMessage(`{"sqs":"a"}`), fault.InvalidParameter, "Invalid parameter: Message Structure - No default entry in JSON message body"},
		{"structure's default no string", structuredMessage(`{"default":1}`), fault.InvalidParameter, "Invalid parameter: Message Structure - No default entry in JSON message body"},

		{"attribute without type", attribute("a", MessageAttributeValue{StringValue: new("b")}), fault.MissingParameter, "1 validation error detected: Value null at 'messageAttributes.a.member.dataType' failed to satisfy constraint: Member must not be null"},
		{"message and types missing", &PublishInput{
			TopicArn: new(ordersARN), MessageAttributes: map[string]MessageAttributeValue{"b": {}, "a": {}, "c": text("d")},
		}, fault.MissingParameter, "3 validation errors detected: Value null at 'message' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'messageAttributes.a.member.dataType' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'messageAttributes.b.member.dataType' failed to satisfy constraint: Member must not be null"},
		{"unknown type", attribute("a", MessageAttributeValue{DataType: new("Bool"), StringValue: new("b")}), fault.ParameterValueInvalid, "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."},
		{"type prefix", attribute("a", MessageAttributeValue{DataType: new("Strings"), StringValue: new("b")}), fault.ParameterValueInvalid, "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."},
		{"no label", attribute("a", MessageAttributeValue{DataType: new("String."), StringValue: new("b")}), fault.ParameterValueInvalid, "The message attribute 'a' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String."},
		{"long type", attribute("a", MessageAttributeValue{DataType: new("String." + strings.Repeat("t", 250)), StringValue: new("b")}), fault.ParameterValueInvalid, "Length of message attribute type must be less than 256 bytes."},
		{"no value", attribute("a", MessageAttributeValue{DataType: new("String")}), fault.ParameterValueInvalid, "The message attribute 'a' must contain non-empty message attribute value for message attribute type 'String'."},
		{"empty value", attribute("a", text("")), fault.ParameterValueInvalid, "The message attribute 'a' must contain non-empty message attribute value for message attribute type 'String'."},
		{"empty binary", attribute("a", MessageAttributeValue{DataType: new("Binary"), BinaryValue: []byte{}}), fault.ParameterValueInvalid, "The message attribute 'a' must contain non-empty message attribute value for message attribute type 'Binary'."},
		{"binary as text", attribute("a", MessageAttributeValue{DataType: new("Binary"), StringValue: new("b")}), fault.ParameterValueInvalid, "The message attribute 'a' with type 'Binary' must use field 'Binary'."},
		{"text as binary", attribute("a", MessageAttributeValue{DataType: new("String.Array"), BinaryValue: []byte("b")}), fault.ParameterValueInvalid, "The message attribute 'a' with type 'String.Array' must use field 'String'."},
		{"number", attribute("a", MessageAttributeValue{DataType: new("Number.int"), StringValue: new("0x1")}), fault.ParameterValueInvalid, "Could not cast message attribute 'a' value to number."},
		{"infinite", attribute("a", MessageAttributeValue{DataType: new("Number"), StringValue: new("1e999")}), fault.ParameterValueInvalid, "Could not cast message attribute 'a' value to number."},
		{"name", attribute("a b", text("c")), fault.ParameterValueInvalid, "Invalid non-alphanumeric character '#x20' was found in the message attribute name. Can only include alphanumeric characters, hyphens, underscores, or dots."},
		{"no name", attribute("", text("c")), fault.ParameterValueInvalid, "The message attribute name must not be empty."},
		{"long name", attribute(strings.Repeat("a", 257), text("c")), fault.ParameterValueInvalid, "Length of message attribute name must be less than 256 bytes."},
		{"dot first", attribute(".a", text("c")), fault.ParameterValueInvalid, "Invalid message attribute name starting with character '.' was found."},
		{"dot last", attribute("a.", text("c")), fault.ParameterValueInvalid, "Invalid message attribute name ending with character '.' was found."},
		{"two dots", attribute("a..b", text("c")), fault.ParameterValueInvalid, "Message attribute name can not have successive '.' character."},
		{"reserved name", attribute("Aws.a", text("c")), fault.ParameterValueInvalid, "Message attribute name can not start with the reserved prefixes AWS. or Amazon."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{}
			_, err := newService(r).publish(t.Context(), signed("Publish"), tc.in)
			if refusal, ok := errors.AsType[*fault.Error](err); !ok || refusal.Kind != tc.kind || refusal.Message != tc.want {
				t.Errorf("got  %v (kind %d)\nwant %s (kind %d)", err, fault.KindOf(err), tc.want, tc.kind)
			}
			if len(r.published) != 0 {
				t.Error("it was published all the same")
			}
		})
	}
}

func TestPublishAccepts(t *testing.T) {
	plain := shard.Publication{ID: newService(nil).newID(), Sender: "000000000000", Body: []byte("hello")}
	expect := func(change func(p *shard.Publication)) shard.Publication {
		p := plain
		change(&p)
		return p
	}
	longest := strings.Repeat("x", maxMessage)
	for _, tc := range []struct {
		name string
		in   *PublishInput
		want shard.Publication
	}{
		{"plain", published("hello"), plain},
		{"by target", with(func(in *PublishInput) { in.TopicArn, in.TargetArn = nil, in.TopicArn }), plain},
		{"longest", published(longest), expect(func(p *shard.Publication) { p.Body = []byte(longest) })},
		{"subject and group", with(func(in *PublishInput) {
			in.Subject, in.MessageGroupId = new(strings.Repeat("ä", maxSubject)), new("tenant-1")
		}), expect(func(p *shard.Publication) { p.Subject, p.Group = strings.Repeat("ä", maxSubject), "tenant-1" })},
		{"attributes in order", with(func(in *PublishInput) {
			in.MessageAttributes = map[string]MessageAttributeValue{
				"c": {DataType: new("Binary.png"), BinaryValue: []byte{0, 1}},
				"a": {DataType: new("String.Array"), StringValue: new("no array")},
				"b": {DataType: new("Number"), StringValue: new("-1.5e3")},
			}
		}), expect(func(p *shard.Publication) {
			p.Attributes = []message.Attribute{
				{Name: "a", Type: "String.Array", Value: []byte("no array")},
				{Name: "b", Type: "Number", Value: []byte("-1.5e3")},
				{Name: "c", Type: "Binary.png", Value: []byte{0, 1}},
			}
		})},
		{"structure", structuredMessage(`{"default":"d","sqs":"q\n","http":7,"email":null}`), expect(func(p *shard.Publication) {
			p.Body, p.Bodies = []byte("d"), map[string]string{"sqs": "q\n"}
		})},
		{"structure with default only", structuredMessage(`{"default":""}`), expect(func(p *shard.Publication) { p.Body = []byte("") })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{}
			out, err := newService(r).publish(t.Context(), signed("Publish"), tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if out.MessageId != firstID {
				t.Errorf("message id %s, want %s", out.MessageId, firstID)
			}
			if r.target.String() != ordersARN {
				t.Errorf("went to %s", r.target)
			}
			if d := gocmp.Diff([]shard.Publication{tc.want}, r.published, cmpopts.IgnoreUnexported(shard.Publication{}), cmpopts.IgnoreFields(shard.Publication{}, "Caller")); d != "" {
				t.Errorf("published (-want +got):\n%s", d)
			}
		})
	}
}

func TestListsGoOnByToken(t *testing.T) {
	r := &recorder{}
	for i := range 250 {
		r.topics = append(r.topics, arn.Topic("us-east-1", "000000000000", fmt.Sprintf("t%03d", i)))
	}
	s := newService(r)
	var sizes []int
	var got []string
	var token *string
	for {
		out, err := s.listTopics(t.Context(), signed("ListTopics"), &ListTopicsInput{NextToken: token})
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(out.Topics))
		for _, topic := range out.Topics {
			got = append(got, topic.TopicArn)
		}
		if out.NextToken == "" {
			break
		}
		token = &out.NextToken
	}
	if d := gocmp.Diff([]int{100, 100, 50}, sizes); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	for i, name := range got {
		if name != r.topics[i].String() {
			t.Fatalf("topic %d is %s, want %s", i, name, r.topics[i])
		}
	}
	for _, bad := range []string{"t001", "!", nextToken("subscriptions", "x"), nextToken("topics", "")} {
		if _, err := s.listTopics(t.Context(), signed("ListTopics"), &ListTopicsInput{NextToken: &bad}); fault.KindOf(err) != fault.InvalidParameter {
			t.Errorf("token %q: %v", bad, err)
		}
	}
}

// A visit to a link of a notification has no credentials, and no region.
func TestLinksWorkUnsigned(t *testing.T) {
	elsewhere := arn.Topic("eu-west-1", "111122223333", "orders")
	r := &recorder{}
	s := newService(r)
	out, err := s.confirmSubscription(t.Context(), unsigned("ConfirmSubscription"), &ConfirmSubscriptionInput{
		TopicArn: elsewhere.String(), Token: "secret", AuthenticateOnUnsubscribe: new("True"),
	})
	if err != nil || out.SubscriptionArn != elsewhere.Subscription("id").String() {
		t.Errorf("confirmed %+v, %v", out, err)
	}
	want := topic.Confirm{Topic: elsewhere, Token: "secret", AuthenticateOnUnsubscribe: true}
	if d := gocmp.Diff(want, r.confirm); d != "" {
		t.Errorf("command (-want +got):\n%s", d)
	}
	in := &UnsubscribeInput{SubscriptionArn: elsewhere.Subscription("id").String()}
	wantGone := topic.Unsubscribe{Subscription: elsewhere.Subscription("id"), Token: "secret"}
	if _, err := s.unsubscribe(t.Context(), unsigned("Unsubscribe"), in); err != nil || r.unsubscribe != wantGone {
		t.Errorf("unsubscribed %+v: %v", r.unsubscribe, err)
	}
	// With credentials it is another region's and another account's.
	if _, err := s.unsubscribe(t.Context(), signed("Unsubscribe"), in); fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("signed, in another region: %v", err)
	}
}

func TestConfirmSigned(t *testing.T) {
	r := &recorder{}
	s := newService(r)
	in := &ConfirmSubscriptionInput{TopicArn: ordersARN, Token: "secret"}
	if _, err := s.confirmSubscription(t.Context(), signed("ConfirmSubscription"), in); err != nil || !r.confirm.Authenticated || r.confirm.AuthenticateOnUnsubscribe {
		t.Errorf("command %+v: %v", r.confirm, err)
	}
	in.AuthenticateOnUnsubscribe = new("maybe")
	if _, err := s.confirmSubscription(t.Context(), signed("ConfirmSubscription"), in); fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("AuthenticateOnUnsubscribe maybe: %v", err)
	}
}

func TestSubscribeAnswers(t *testing.T) {
	for _, tc := range []struct {
		name              string
		pending, returned bool
		want              string
	}{
		{"confirmed", false, false, ordersARN + ":" + firstID},
		{"pending", true, false, "pending confirmation"},
		{"pending, ARN wanted", true, true, ordersARN + ":" + firstID},
	} {
		r := &recorder{pending: tc.pending}
		out, err := newService(r).subscribe(t.Context(), signed("Subscribe"), &SubscribeInput{
			TopicArn: ordersARN, Protocol: "https", Endpoint: new("https://example.com/"), ReturnSubscriptionArn: tc.returned,
			Attributes: map[string]string{"RawMessageDelivery": "true"},
		})
		if err != nil || out.SubscriptionArn != tc.want {
			t.Errorf("%s: %+v, %v", tc.name, out, err)
		}
		want := topic.Subscribe{
			Topic: arn.Topic("us-east-1", "000000000000", "orders"), Owner: "000000000000", Principal: "arn:aws:iam::000000000000:user/test", Protocol: "https",
			Endpoint: "https://example.com/", Attributes: map[string]string{"RawMessageDelivery": "true"}, ID: firstID, Token: "secret",
		}
		if d := gocmp.Diff(want, r.subscribe); d != "" {
			t.Errorf("%s: command (-want +got):\n%s", tc.name, d)
		}
	}
}

// Whatever comes as a structured message is refused or gives a default, and
// nothing but strings by protocol.
func FuzzStructured(f *testing.F) {
	f.Add([]byte(`{"default":"a","sqs":"b"}`))
	f.Add([]byte(`{"default":"a","sqs":{}}`))
	f.Add([]byte(`{"default":null}`))
	f.Add([]byte(` {"default" : "\ud83d"} `))
	f.Fuzz(func(t *testing.T, document []byte) {
		body, bodies, err := structured(document, "")
		if err != nil {
			if fault.KindOf(err) != fault.InvalidParameter || body != nil || bodies != nil {
				t.Fatalf("refused with %v, and gave %q, %v", err, body, bodies)
			}
			return
		}
		if body == nil {
			t.Fatal("accepted without a default")
		}
		if _, there := bodies["default"]; there {
			t.Fatal("the default is no protocol")
		}
	})
}
