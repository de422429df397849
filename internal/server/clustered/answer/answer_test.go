package answer

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// An answer is given once it is confirmed, and not at all if it is not.
func TestConfirming(t *testing.T) {
	deposed := errors.New("another is the owner")
	for _, c := range []struct {
		name    string
		target  string
		status  int // 0: none is set
		err     error
		want    int
		confirm bool // a commit does not say so
	}{
		{"a read", "AmazonSQS.ReceiveMessage", 200, nil, 200, true},
		{"without a status", "AmazonSQS.ReceiveMessage", 0, nil, 200, true},
		{"a read by who was replaced", "AmazonSQS.ReceiveMessage", 200, deposed, 503, true},
		{"a send", "AmazonSQS.SendMessage", 200, nil, 200, false},
		{"a send without a status", "AmazonSQS.SendMessage", 0, nil, 200, false},
		{"a send to who was replaced", "AmazonSQS.SendMessage", 200, deposed, 503, false},
		{"a refused send", "AmazonSQS.SendMessage", 400, nil, 400, true},
		{"a send refused by who was replaced", "AmazonSQS.SendMessage", 400, deposed, 503, true},
		{"a delete by who was replaced", "AmazonSQS.DeleteMessage", 200, deposed, 503, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.Header.Set("X-Amz-Target", c.target)
			asked, confirmed := 0, false
			out := httptest.NewRecorder()
			w := &confirming{ResponseWriter: out, request: r, commits: commits(r), confirm: func(committed bool) error {
				asked++
				confirmed = !committed
				return c.err
			}}
			w.Header().Set("X-Secret", "of an old owner")
			if c.status != 0 {
				w.WriteHeader(c.status)
			}
			for range 2 {
				if _, err := io.WriteString(w, "answer"); err != nil {
					t.Error(err)
				}
			}
			if out.Code != c.want || asked != 1 || confirmed != c.confirm {
				t.Errorf("status %d, asked %d times", out.Code, asked)
			}
			if refused := c.want == 503; refused == (out.Body.String() == "answeranswer") || refused == (out.Header().Get("X-Secret") != "") {
				t.Errorf("%v %q", out.Header(), out.Body)
			}
		})
	}
}

// What follows a flush was read after what was confirmed before it: it is confirmed, too, or it
// ends the answer.
func TestConfirmingStream(t *testing.T) {
	deposed := errors.New("another is the owner")
	for _, first := range []error{nil, deposed} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_godwit/v1/events", nil)
		out := httptest.NewRecorder()
		asked, err := 0, first
		w := &confirming{ResponseWriter: out, request: r, confirm: func(bool) error {
			asked++
			return err
		}}
		flush := http.NewResponseController(w)
		if _, err := io.WriteString(w, "one "); err != nil {
			t.Error(err)
		}
		if err := flush.Flush(); !errors.Is(err, first) {
			t.Errorf("a flush: %v, want %v", err, first)
		}
		if first != nil {
			continue
		}
		for range 2 {
			if _, err := io.WriteString(w, "two "); err != nil {
				t.Error(err)
			}
		}
		if err := flush.Flush(); err != nil || asked != 2 {
			t.Errorf("asked %d times, %v", asked, err)
		}
		err = deposed
		for range 2 {
			if _, err := io.WriteString(w, "three"); !errors.Is(err, deposed) {
				t.Errorf("what is stale is written: %v", err)
			}
		}
		if err := flush.Flush(); !errors.Is(err, deposed) || out.Body.String() != "one two two " {
			t.Errorf("%q, %v", out.Body, err)
		}
	}
}

// Each SDK understands why it is not answered, and asks again.
func TestUnavailable(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		Unavailable(w, r, `nobody <owns> "it"`)
	}))
	defer s.Close()
	c := aws.Config{
		BaseEndpoint: &s.URL, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 2, time.Millisecond })
		},
	}
	ctx := t.Context()
	for name, ask := range map[string]func() error{
		"JSON": func() error {
			_, err := sqs.NewFromConfig(c).ListQueues(ctx, &sqs.ListQueuesInput{})
			return err
		},
		"JSON 1.1": func() error {
			_, err := kms.NewFromConfig(c).ListKeys(ctx, &kms.ListKeysInput{})
			return err
		},
		"Query": func() error {
			_, err := sns.NewFromConfig(c).ListTopics(ctx, &sns.ListTopicsInput{})
			return err
		},
		"CBOR": func() error {
			_, err := cloudwatch.NewFromConfig(c).ListMetrics(ctx, &cloudwatch.ListMetricsInput{})
			return err
		},
		"REST": func() error {
			_, err := lambda.NewFromConfig(c).ListFunctions(ctx, &lambda.ListFunctionsInput{})
			return err
		},
	} {
		asked = 0
		err := ask()
		refused, ok := errors.AsType[smithy.APIError](err)
		if !ok || strings.TrimSuffix(refused.ErrorCode(), "Exception") != "ServiceUnavailable" || refused.ErrorMessage() != `nobody <owns> "it"` || asked != 2 {
			t.Errorf("%s: asked %d times: %v", name, asked, err)
		}
	}
}
