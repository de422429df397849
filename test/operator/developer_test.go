package operator_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/internal/config"
)

// asking fetches what other tools ask for in development.
func (w *world) asking(path, accept string, want int) string {
	w.t.Helper()
	req := must(http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.endpoint+path, http.NoBody))(w.t)
	req.Header.Set("Accept", accept)
	resp := must(http.DefaultClient.Do(req))(w.t)
	defer resp.Body.Close()
	var b strings.Builder
	if err := resp.Write(&b); err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != want {
		w.t.Fatalf("%s: %s", path, b.String())
	}
	_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
	return body
}

func TestDeveloperEndpoints(t *testing.T) {
	w := start(t)
	var health struct{ Services map[string]string }
	if err := json.Unmarshal([]byte(w.fetch(http.MethodGet, w.endpoint+"/_localstack/health", "", http.StatusOK)), &health); err != nil || health.Services["sqs"] != "available" {
		t.Errorf("%+v, %v", health, err)
	}
	q := w.queue("orders", nil)
	path := "/_aws/sqs/messages?QueueUrl=" + url.QueryEscape(q)
	if got := w.asking(path, "application/json", http.StatusOK); !strings.Contains(got, `"ReceiveMessageResult":null`) {
		t.Errorf("an empty queue: %s", got)
	}
	w.send(q, "<b>one</b>")
	if got := w.asking(path, "application/json", http.StatusOK); !strings.Contains(got, `"Message":{"MessageId"`) {
		t.Errorf("one message: %s", got)
	}
	delayed := "two"
	must(w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q, MessageBody: &delayed, DelaySeconds: 60, MessageAttributes: map[string]types.MessageAttributeValue{
		"kind": {DataType: aws.String("String"), StringValue: aws.String("late")},
	}}))(t)
	if got := w.asking(path, "*/*", http.StatusOK); !strings.Contains(got, "<Body>&lt;b&gt;one&lt;/b&gt;</Body>") || strings.Contains(got, "two") {
		t.Error(got)
	}
	both := w.asking("/_aws/sqs/messages/"+region+"/"+account+"/orders?ShowDelayed=true&ShowInvisible=1", "application/json", http.StatusOK)
	var found struct {
		ReceiveMessageResponse struct {
			ReceiveMessageResult struct {
				Message []struct {
					Body, MD5OfBody  string
					Attribute        []struct{ Name, Value string }
					MessageAttribute []struct{ Name string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(both), &found); err != nil || len(found.ReceiveMessageResponse.ReceiveMessageResult.Message) != 2 {
		t.Fatalf("%v: %s", err, both)
	}
	late := found.ReceiveMessageResponse.ReceiveMessageResult.Message[1]
	if late.Body != "two" || late.MessageAttribute[0].Name != "kind" || !strings.Contains(both, `{"Name":"IsDelayed","Value":"true"}`) {
		t.Error(both)
	}

	// The SDK, pointed there, reads the messages without receiving them.
	peeking := sqs.NewFromConfig(w.config, func(o *sqs.Options) { o.BaseEndpoint = aws.String(w.endpoint + "/_aws/sqs/messages") })
	for range 2 {
		got := must(peeking.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q}))(t)
		if len(got.Messages) != 1 || *got.Messages[0].Body != "<b>one</b>" || got.Messages[0].Attributes["ApproximateReceiveCount"] != "0" {
			t.Errorf("%+v", got.Messages)
		}
	}
	w.asking("/_aws/sqs/messages?QueueUrl="+url.QueryEscape(q+"x"), "*/*", http.StatusBadRequest)
	w.asking("/_aws/sqs/messages", "application/json", http.StatusBadRequest)
	w.asking("/_aws/sqs/messages?QueueUrl=x", "*/*", http.StatusNotFound)
	w.asking("/_localstack/none", "*/*", http.StatusNotFound)
}

// Where callers are asked who they are, these paths are not there.
func TestNoDeveloperEndpoints(t *testing.T) {
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: "AKIAROOTROOTROOTROOT", Secret: "a secret of the root user, long enough"}
	})
	for _, path := range []string{"/_localstack/health", "/_aws/sqs/messages"} {
		if status, text := w.ask(http.MethodGet, w.endpoint+path, ""); status == http.StatusOK || strings.Contains(text, "available") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
