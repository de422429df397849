package mailpages_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/mailpages"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic"
)

const (
	topicARN     = "arn:aws:sns:us-east-1:000000000000:t"
	subscription = topicARN + ":00000000-0000-4000-8000-000000000001"
	address      = "a+b@example.com"
)

// engine has one subscription, and notes what is done.
type engine struct {
	did  []string
	fail error
}

func (e *engine) ConfirmSubscription(_ context.Context, cmd topic.Confirm) (arn.ARN, error) {
	if e.fail != nil {
		return arn.ARN{}, e.fail
	}
	e.did = append(e.did, fmt.Sprint("confirm ", cmd.Topic, " ", cmd.Token, " ", cmd.AuthenticateOnUnsubscribe))
	return arn.Parse(subscription)
}

func (e *engine) Unsubscribe(_ context.Context, cmd topic.Unsubscribe) error {
	if e.fail == nil {
		e.did = append(e.did, fmt.Sprint("unsubscribe ", cmd.Subscription, " ", cmd.Token, " ", cmd.Authenticated))
	}
	return e.fail
}

func (e *engine) SubscriptionAttributes(_ context.Context, sub arn.ARN) (map[string]string, error) {
	if sub.String() != subscription {
		return nil, fault.New(fault.NotFound, "Subscription does not exist")
	}
	return map[string]string{"Endpoint": address}, nil
}

func (e *engine) ask(method, target string) *httptest.ResponseRecorder {
	h := mailpages.Serve(mailpages.Options{Engine: e, NewToken: func() string { return "new" }, Logger: slog.New(slog.DiscardHandler)}, http.NotFoundHandler())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader("List-Unsubscribe=One-Click")))
	return w
}

var (
	confirmation = "/confirmation.html?TopicArn=" + url.QueryEscape(topicARN) + "&Token=secret"
	unsubscribe  = "/unsubscribe.html?SubscriptionArn=" + url.QueryEscape(subscription) + "&Endpoint=" + url.QueryEscape(address)
)

// TestPages: who looks sees what would be done; the button does it.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		method, target string
		status         int
		text, did      string
	}{
		{"GET", confirmation, 200, "Confirm your subscription", ""},
		{"POST", confirmation, 200, "Subscription confirmed!", "confirm " + topicARN + " secret false"},
		{"GET", unsubscribe, 200, "Do you want no more mails", ""},
		{"POST", unsubscribe, 200, "Subscription removed!", "unsubscribe " + subscription + " new false"},
		{"HEAD", confirmation, 200, "", ""},
		{"PUT", confirmation, 405, "This cannot be done", ""},
		{"DELETE", unsubscribe, 405, "This cannot be done", ""},
		{"POST", "/confirmation.html?TopicArn=" + topicARN, 400, "This link is not whole", ""},
		{"POST", "/confirmation.html?TopicArn=arn:aws:sqs:us-east-1:000000000000:q&Token=secret", 400, "This link is not whole", ""},
		{"POST", "/unsubscribe.html?SubscriptionArn=" + topicARN + "&Endpoint=x", 400, "This link is not whole", ""},
		{"POST", "/unsubscribe.html?SubscriptionArn=" + subscription, 400, "This link is not whole", ""},
		{"POST", "/unsubscribe.html?SubscriptionArn=" + subscription + "&Endpoint=b@example.com", 200, "Not subscribed", ""},
		{"POST", "/unsubscribe.html?SubscriptionArn=" + subscription + "2&Endpoint=b@example.com", 200, "Not subscribed", ""},
		{"GET", "/other.html", 404, "", ""},
	} {
		e := &engine{}
		w := e.ask(c.method, c.target)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || strings.Join(e.did, "; ") != c.did {
			t.Errorf("%s %s: %d, did %q\n%s", c.method, c.target, w.Code, e.did, w.Body)
		}
		if c.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD has a body: %s", w.Body)
		}
	}
}

// TestSafe: what a link says is shown as text, and the page keeps the link's secret.
func TestSafe(t *testing.T) {
	e := &engine{}
	script := topicARN + "<script>alert(1)</script>"
	w := e.ask("GET", "/confirmation.html?TopicArn="+url.QueryEscape(script)+"&Token=secret")
	if strings.Contains(w.Body.String(), "<script>") || !strings.Contains(html.UnescapeString(w.Body.String()), script) {
		t.Errorf("%s", w.Body)
	}
	for name, want := range map[string]string{
		"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex",
		"Content-Security-Policy": "frame-ancestors 'none'", "Content-Type": "text/html; charset=utf-8",
	} {
		if got := w.Header().Get(name); !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFailures: a refusal is shown in words, and of another error nothing.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{fault.New(fault.InvalidParameter, "Invalid token"), 400, "Invalid token"},
		{fault.New(fault.AccessDenied, "denied"), 403, "denied"},
		{errors.New("the disk is on fire"), 500, "Try again later."},
	} {
		for _, target := range []string{confirmation, unsubscribe} {
			w := (&engine{fail: c.err}).ask("POST", target)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || c.status == 500 && strings.Contains(w.Body.String(), "fire") {
				t.Errorf("%s: %d\n%s", target, w.Code, w.Body)
			}
		}
	}
}
