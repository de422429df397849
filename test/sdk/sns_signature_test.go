package sdk_test

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
)

// signedBy is what an envelope's signature is made over, by its Type. Source:
// the SNS developer guide, "Verifying the signatures of Amazon SNS messages".
var signedBy = map[string][]string{
	"Notification":             {"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"},
	"SubscriptionConfirmation": {"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"},
	"UnsubscribeConfirmation":  {"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"},
}

// verify does what the developer guide tells a subscriber to do: fetch the
// certificate, put the signed members together again, check the signature. An
// error says what is wrong.
func verify(t *testing.T, body string) error {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		return err
	}
	text := func(name string) string { s, _ := members[name].(string); return s }
	var canonical strings.Builder
	for _, name := range signedBy[text("Type")] {
		if _, ok := members[name]; ok {
			canonical.WriteString(name + "\n" + text(name) + "\n")
		}
	}
	hash, ok := map[string]crypto.Hash{"1": crypto.SHA1, "2": crypto.SHA256}[text("SignatureVersion")]
	if !ok {
		return fmt.Errorf("SignatureVersion %q", text("SignatureVersion"))
	}
	page := visit(t, text("SigningCertURL"))
	block, _ := pem.Decode([]byte(page.Body))
	if page.Status != http.StatusOK || block == nil {
		return fmt.Errorf("the certificate: %d %s", page.Status, page.Body)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if certificate.Subject.CommonName != "sns.amazonaws.com" {
		return fmt.Errorf("the certificate is %s's", certificate.Subject)
	}
	signature, err := base64.StdEncoding.DecodeString(text("Signature"))
	if err != nil {
		return err
	}
	h := hash.New()
	h.Write([]byte(canonical.String()))
	return rsa.VerifyPKCS1v15(certificate.PublicKey.(*rsa.PublicKey), hash, h.Sum(nil), signature)
}

// verified fails the test unless body is an envelope of the given type and
// signature version whose signature is right, and wrong once the text differs.
func verified(t *testing.T, body, kind, version string) map[string]any {
	t.Helper()
	envelope := decode(t, body)
	if envelope["Type"] != any(kind) || envelope["SignatureVersion"] != any(version) {
		t.Errorf("not a %s of version %s: %s", kind, version, body)
	}
	if err := verify(t, body); err != nil {
		t.Errorf("%v in %s", err, body)
	}
	for name, value := range envelope {
		forged := maps.Clone(envelope)
		text, ok := value.(string)
		if !ok || name == "Type" || strings.HasPrefix(name, "Sign") || name == "UnsubscribeURL" {
			continue
		}
		forged[name] = text + "x"
		document, _ := json.Marshal(forged)
		if verify(t, string(document)) == nil {
			t.Errorf("another %s is accepted", name)
		}
	}
	return envelope
}

func setTopic(t *testing.T, c *sns.Client, topic, name, value string) {
	t.Helper()
	must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: &name, AttributeValue: &value}))(t)
}

// confirmedHook subscribes a web hook and confirms it by its link. The
// confirmation is given back.
func confirmedHook(t *testing.T, c *sns.Client, topic string, h *hook, attributes ...string) (arn, confirmation string) {
	t.Helper()
	arn = subscribe(t, c, topic, "http", h.URL, attributes...)
	confirmation = h.next(t).Body
	link, _ := decode(t, confirmation)["SubscribeURL"].(string)
	if page := visit(t, link); page.Status != http.StatusOK {
		t.Fatalf("confirming: %d %s", page.Status, page.Body)
	}
	return arn, confirmation
}

// Every kind of message verifies, in both versions; a change of the version
// takes effect with the next message.
func TestSignatures(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	for _, version := range []string{"1", "2"} {
		setTopic(t, c, topic, "SignatureVersion", version)
		_, confirmation := confirmedHook(t, c, topic, h)
		verified(t, confirmation, "SubscriptionConfirmation", version)

		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("<\"é\"\n\\u2028> & \u2028")}))(t)
		verified(t, h.next(t).Body, "Notification", version)
		must(c.Publish(t.Context(), &sns.PublishInput{
			TopicArn: &topic, Message: aws.String(`{"default":"d","http":"own text"}`), MessageStructure: aws.String("json"),
			Subject: aws.String("Subject <é>"),
		}))(t)
		note := verified(t, h.next(t).Body, "Notification", version)
		equal(t, "message", []any{"own text", "Subject <é>"}, []any{note["Message"], note["Subject"]})

		link, _ := note["UnsubscribeURL"].(string)
		visit(t, link)
		verified(t, h.next(t).Body, "UnsubscribeConfirmation", version)
	}
}

// Copies of a message in queues carry the same signature as each other and as
// the one to a web hook, each time that they are received, and as dead letters.
// Raw delivery has none.
func TestSignaturesInQueues(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	dead := createQueue(t, q, "dead")
	redrive := `{"maxReceiveCount":"2","deadLetterTargetArn":"` + queueARN("dead") + `"}`
	work, other, raw := createQueue(t, q, "work", "RedrivePolicy", redrive), createQueue(t, q, "other"), createQueue(t, q, "raw")
	subscribe(t, c, topic, "sqs", queueARN("work"))
	subscribe(t, c, topic, "sqs", queueARN("other"))
	subscribe(t, c, topic, "sqs", queueARN("raw"), "RawMessageDelivery", "true")
	confirmedHook(t, c, topic, h)
	setTopic(t, c, topic, "SignatureVersion", "2")
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello"), Subject: aws.String("s")}))(t)

	envelope := verified(t, h.next(t).Body, "Notification", "2")
	receive := func(url string) string {
		t.Helper()
		out := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20}))(t)
		if len(out.Messages) != 1 {
			t.Fatalf("%d messages came", len(out.Messages))
		}
		return *out.Messages[0].Body // whose digest the SDK has checked
	}
	first := receive(work)
	equal(t, "signature", envelope["Signature"], verified(t, first, "Notification", "2")["Signature"])
	equal(t, "another queue's", envelope["Signature"], verified(t, receive(other), "Notification", "2")["Signature"])
	equal(t, "raw", "hello", receive(raw))
	advance(t, endpoint, "30s")
	equal(t, "received again", first, receive(work))
	advance(t, endpoint, "30s")
	out := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &work}))(t)
	equal(t, "a third time", 0, len(out.Messages))
	equal(t, "the dead letter", first, receive(dead))
}

// A message that a web hook did not take is a dead letter with a signature.
func TestSignatureOfADeadLetter(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	dead := createQueue(t, q, "dead")
	confirmedHook(t, c, topic, h, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	h.answer(http.StatusNotFound)
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
	sent := h.next(t).Body
	equal(t, "the dead letter", sent, *takeMessage(t, q, dead).Body)
	verified(t, sent, "Notification", "1")
}

// durable runs servers on one directory, one after the other, behind an address
// that stays: what subscribers see of them does not change.
type durable struct {
	t    *testing.T
	dir  string
	URL  string // of whatever server runs
	stop func()

	front http.Handler
}

func newDurable(t *testing.T) *durable {
	t.Helper()
	d := &durable{t: t, dir: filepath.Join(t.TempDir(), "data")}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.front.ServeHTTP(w, r) }))
	t.Cleanup(front.Close)
	d.URL = front.URL
	d.start()
	t.Cleanup(func() { d.stop() })
	return d
}

func (d *durable) start() {
	d.t.Helper()
	s := server.New(config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.VirtualClock, Data: d.dir, PublicURL: d.URL,
		Region: region, Account: account, AllowPrivateEndpoints: true, JitterSeed: 1,
		EndpointConcurrency: 50, DeliveryConcurrency: 500,
	}, slog.New(slog.NewTextHandler(d.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), nil)
	if err := s.Start(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	d.stop = func() {
		if err := s.Stop(context.Background()); err != nil {
			d.t.Error(err)
		}
	}
	d.front = proxyTo(d.t, "http://"+s.Addr().String())
}

func (d *durable) restart() {
	d.t.Helper()
	d.stop()
	d.start()
}

// A restart changes neither a message that waits nor the certificate.
func TestSignaturesSurviveARestart(t *testing.T) {
	d := newDurable(t)
	c, q := topicsClient(d.URL), client(d.URL)
	topic, url := createTopic(t, c, "orders"), createQueue(t, q, "work", "VisibilityTimeout", "0")
	subscribe(t, c, topic, "sqs", queueARN("work"))
	for _, text := range []string{"received before", "received after"} {
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &text}))(t)
	}
	receive := func(n int32) (bodies []string) {
		t.Helper()
		for _, m := range must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: n}))(t).Messages {
			verified(t, *m.Body, "Notification", "1")
			bodies = append(bodies, *m.Body)
		}
		return bodies
	}
	before := receive(1)
	d.restart()
	after := receive(10)
	if len(before) != 1 || len(after) != 2 || (after[0] != before[0] && after[1] != before[0]) {
		t.Errorf("received before %q, after %q", before, after)
	}
	page := visit(t, decode(t, before[0])["SigningCertURL"].(string))
	if strings.Contains(page.Body, "PRIVATE") {
		t.Error("the private key is served")
	}
}

// Nobody else may read the keys.
func TestKeysAreKeptPrivate(t *testing.T) {
	d := newDurable(t)
	info, err := os.Stat(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the data are open to others: %s", info.Mode())
	}
}
