package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"godwit.dev/godwit/internal/config"
)

type publishPage struct {
	Publishes []struct {
		MessageID, Body, BodyEncoding string
		SizeBytes, Queued             int
		Subject, Refused              *string
		Encrypted, BodyTruncated      bool
		Attributes                    []struct{ Name, Type, Value, Encoding string }
		Protocols                     []string
		FilteredOut                   *int
		Subscriptions                 []struct {
			ARN, Protocol string
			Taken         bool
			Reason        *string
		}
	}
	Kept int
}

type filterTest struct {
	Valid     bool
	Results   []bool
	Matched   int
	Publishes []struct {
		MessageID       string
		Matched         bool
		Reason, Refused *string
	}
}

func (w *world) publishAs(topic, text, kind string) (id string) {
	w.t.Helper()
	in := &sns.PublishInput{TopicArn: &topic, Message: &text, Subject: aws.String("about " + kind)}
	if kind != "" {
		in.MessageAttributes = map[string]types.MessageAttributeValue{"kind": {DataType: aws.String("String"), StringValue: &kind}}
	}
	return *must(w.topics.Publish(w.t.Context(), in))(w.t).MessageId
}

// TestPublishes: what was published to a topic can be seen, and who took it and who did not,
// and why.
func TestPublishes(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	w.queue("all", nil)
	w.queue("some", nil)
	w.queue("late", nil)
	w.subscribe(topic, "sqs", queueARN("all"), nil)
	picky := w.subscribe(topic, "sqs", queueARN("some"), map[string]string{"FilterPolicy": `{"kind":["good"]}`})
	equal(t, "nothing", 0, get[publishPage](w, "publishes", "arn", topic).Kept)

	good := w.publishAs(topic, "first needle", "good")
	bad := w.publishAs(topic, "second", "bad")
	w.advance("1s")
	w.subscribe(topic, "sqs", queueARN("late"), nil)
	page := get[publishPage](w, "publishes", "arn", topic)
	equal(t, "kept", 2, page.Kept)
	equal(t, "the latest first", bad+" "+good, page.Publishes[0].MessageID+" "+page.Publishes[1].MessageID)
	last, first := page.Publishes[0], page.Publishes[1]
	equal(t, "its body and subject", "second about bad", last.Body+" "+*last.Subject)
	equal(t, "its attributes", "[{kind String bad utf-8}]", fmt.Sprint(last.Attributes))
	equal(t, "its size", len("second")+len("kindStringbad"), last.SizeBytes)
	equal(t, "queued and filtered out", "1 1, 2 0", fmt.Sprint(last.Queued, " ", *last.FilteredOut, ", ", first.Queued, " ", *first.FilteredOut))
	equal(t, "subscriptions of that time", 2, len(last.Subscriptions))
	for _, s := range last.Subscriptions {
		if reason := s.Reason; s.Taken == (s.ARN == picky) || s.ARN == picky && *reason != "MessageAttributes" {
			t.Errorf("%+v of %s", s, picky)
		}
	}
	equal(t, "found by its body", good, get[publishPage](w, "publishes", "arn", topic, "search", "NEEDLE").Publishes[0].MessageID)
	equal(t, "found by an attribute", good, get[publishPage](w, "publishes", "arn", topic, "search", "good").Publishes[0].MessageID)
	equal(t, "found by its id", good, get[publishPage](w, "publishes", "arn", topic, "id", good).Publishes[0].MessageID)
	equal(t, "not found", 0, len(get[publishPage](w, "publishes", "arn", topic, "search", "none").Publishes))
	equal(t, "one", 1, len(get[publishPage](w, "publishes", "arn", topic, "limit", "1").Publishes))
	cut := get[publishPage](w, "publishes", "arn", topic, "bodyBytes", "3").Publishes[0]
	equal(t, "cut off", "sec true", fmt.Sprint(cut.Body, " ", cut.BodyTruncated))

	tested := post[filterTest](w, "filter-test", `{"filterPolicy":"{\"kind\":[\"bad\"]}","topic":"`+topic+`"}`)
	equal(t, "tested on them", 2, len(tested.Publishes))
	equal(t, "which matched", "true false MessageAttributes", fmt.Sprint(tested.Publishes[0].Matched, tested.Publishes[1].Matched, " ", *tested.Publishes[1].Reason))
	equal(t, "none without a topic", 0, len(post[filterTest](w, "filter-test", `{"filterPolicy":"{}"}`).Publishes))

	w.publish(topic, `{"Type":"SubscriptionConfirmation","Token":"`+strings.Repeat("2336412f37", 20)+`"}`)
	equal(t, "a token", `{"Type":"SubscriptionConfirmation","Token":"****"}`, get[publishPage](w, "publishes", "arn", topic, "limit", "1").Publishes[0].Body)
	tested = post[filterTest](w, "filter-test", `{"filterPolicy":"{\"Token\":[{\"prefix\":\"23\"}]}","scope":"MessageBody","topic":"`+topic+`"}`)
	equal(t, "found out by a filter", false, tested.Publishes[0].Matched)

	w.refused(http.StatusNotFound, http.MethodGet, "publishes", "arn="+topic+"x")
	w.refused(http.StatusBadRequest, http.MethodGet, "publishes", "arn="+queueARN("all"))
	w.refused(http.StatusNotFound, http.MethodPost, "filter-test", `{"filterPolicy":"{}","topic":"`+topic+`x"}`)

	// A topic of the same name is another one.
	must(w.topics.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: &topic}))(t)
	w.refused(http.StatusNotFound, http.MethodGet, "publishes", "arn="+topic)
	w.advance("1s")
	w.topic("orders")
	equal(t, "of the one before", 0, get[publishPage](w, "publishes", "arn", topic).Kept)
}

// TestPublishesBounded: the last hundred are known, whatever their order of sizes, and large
// ones push out earlier ones.
func TestPublishesBounded(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	for i := range 130 {
		w.publish(topic, fmt.Sprint("message ", i, strings.Repeat(".", i%7*100)))
	}
	page := get[publishPage](w, "publishes", "arn", topic, "limit", "100", "bodyBytes", "11")
	equal(t, "kept", 100, page.Kept)
	for i, p := range page.Publishes {
		if want := fmt.Sprint("message ", 129-i); !strings.HasPrefix(p.Body, want) || p.Body[len(want):] != strings.Repeat(".", min(11-len(want), (129-i)%7*100)) {
			t.Fatalf("%d: %q", i, p.Body)
		}
	}
	for range 10 {
		w.publish(topic, strings.Repeat("x", 200_000))
	}
	if page := get[publishPage](w, "publishes", "arn", topic, "limit", "100"); page.Kept < 3 || page.Kept > 9 || page.Publishes[0].SizeBytes != 200_000 {
		t.Errorf("%d kept of 200,000 bytes", page.Kept)
	}
}

// TestPublishesSealed: of a topic with a key, only who may use it sees what was published,
// and whoever may test filters but not see messages learns nothing by them.
func TestPublishesSealed(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.signs = &root
	key := *must(kms.NewFromConfig(w.config).CreateKey(t.Context(), nil))(t).KeyMetadata.Arn
	name := "sealed"
	topic := *must(w.topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name, Attributes: map[string]string{"KmsMasterKeyId": key}}))(t).TopicArn
	w.queue("all", nil)
	w.subscribe(topic, "sqs", queueARN("all"), nil)
	w.publishAs(topic, "a secret", "good")
	seen := get[publishPage](w, "publishes", "arn", topic).Publishes[0]
	equal(t, "the root user", "a secret true", fmt.Sprint(seen.Body, " ", seen.Encrypted))

	identities := iam.NewFromConfig(w.config)
	user := "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &user}))(t)
	access := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &user}))(t).AccessKey
	anna := worldAt(t, w.endpoint, root)
	anna.signs = &aws.Credentials{AccessKeyID: *access.AccessKeyId, SecretAccessKey: *access.SecretAccessKey}
	allow := func(actions ...string) {
		t.Helper()
		all := string(must(json.Marshal(actions))(t))
		doc := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":` + all + `,"Resource":"*"}]}`
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &user, PolicyName: &user, PolicyDocument: &doc}))(t)
	}
	test := `{"filterPolicy":"{\"kind\":[\"good\"]}","topic":"` + topic + `"}`
	allow("godwit:Read")
	anna.refused(http.StatusForbidden, http.MethodGet, "publishes", "arn="+topic)
	anna.refused(http.StatusForbidden, http.MethodPost, "filter-test", test)
	allow("godwit:Read", "godwit:PeekMessages")
	page := get[publishPage](anna, "publishes", "arn", topic)
	p := page.Publishes[0]
	if p.Refused == nil || p.Body != "" || p.Subject != nil || len(p.Attributes) > 0 || len(p.Subscriptions) > 0 {
		t.Errorf("shown without the right to the key: %+v", p)
	}
	equal(t, "found without the right to the key", 0, len(get[publishPage](anna, "publishes", "arn", topic, "search", "secret").Publishes))
	if f := post[filterTest](anna, "filter-test", test).Publishes[0]; f.Refused == nil || f.Matched {
		t.Errorf("tested without the right to the key: %+v", f)
	}
	allow("godwit:Read", "godwit:PeekMessages", "kms:Decrypt")
	equal(t, "with it", "a secret", get[publishPage](anna, "publishes", "arn", topic).Publishes[0].Body)
	equal(t, "tested with it", true, post[filterTest](anna, "filter-test", test).Publishes[0].Matched)
}
