package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/sendertest"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/deliver/sms/gateway"
	"godwit.dev/godwit/internal/publicnet"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

// provider is one that answers as a test says.
type provider struct {
	*httptest.Server
	over chan struct{}
	hung chan struct{} // told of each request that hangs

	mu     sync.Mutex
	status int
	answer string // "hang": none; "close": the connection ends
	got    []string
	last   *http.Request
}

func newProvider(t *testing.T, status int, answer string) *provider {
	t.Helper()
	p := &provider{status: status, answer: answer, over: make(chan struct{}), hung: make(chan struct{}, 100)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.got, p.last = append(p.got, string(body)), r
		status, answer := p.status, p.answer
		p.mu.Unlock()
		switch answer {
		case "hang":
			p.hung <- struct{}{}
			select {
			case <-p.over:
			case <-r.Context().Done():
			}
		case "close":
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(func() {
		close(p.over)
		p.Close()
	})
	return p
}

func (p *provider) received() (all [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.got {
		text, _ := url.QueryUnescape(one)
		all = append(all, []byte(text))
	}
	return all
}

func open(t *testing.T, template map[string]any) *gateway.Gateway {
	t.Helper()
	text, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	read, err := gateway.ReadTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Template: read, Guard: publicnet.Guard{AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// ledger takes all that it is asked for.
type ledger struct{ texts.Terms }

func (l ledger) Reserve(texts.Charge) (texts.Terms, sms.Refusal) { return l.Terms, "" }
func (ledger) Spend(texts.Charge, sms.MicroUSD) (m sms.MicroUSD) { return m }
func (ledger) OptOutEverywhere(string)                           {}

func TestConformance(t *testing.T) {
	sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
		p := map[sendertest.Behaviour]*provider{
			sendertest.Takes: newProvider(t, 201, `{"sid":"SM1","code":null}`), sendertest.Fails: newProvider(t, 429, `{"code":20429,"message":"s3cr3t"}`),
			sendertest.Refuses: newProvider(t, 400, `{"code":21211,"message":"s3cr3t"}`), sendertest.Hangs: newProvider(t, 0, "hang"),
		}[b]
		g := open(t, map[string]any{"preset": "twilio", "account": "AC1", "secret": "s3cr3t", "url": p.URL})
		return sendertest.Target{
			Sender:   smssender.New(smssender.Options{Carrier: g, Ledger: ledger{}}),
			Protocol: topic.SMS, Endpoint: "+15551234567", Received: p.received,
		}
	})
}

func text(t *testing.T, body string) *smssender.Text {
	t.Helper()
	cut, ok := sms.Cut(body)
	if !ok {
		t.Fatal("too long")
	}
	return &smssender.Text{To: "+4917012345678", From: "Godwit", Body: body, Text: cut, ID: [16]byte{0xab}, Type: sms.Promotional}
}

// Each answer is the fault of whom the specification says.
func TestClasses(t *testing.T) {
	vonage := func(status string) string { return `{"message-count":"1","messages":[{"status":"` + status + `"}]}` }
	for _, tt := range []struct {
		name, preset string
		status       int
		answer       string
		class        deliver.Class
		unknown      int
		optedOut     bool
	}{
		{"taken", "twilio", 201, `{"sid":"SM1"}`, deliver.Success, 0, false},
		{"no number", "twilio", 400, `{"code":21211}`, deliver.ClientError, 0, false},
		{"no route", "twilio", 400, `{"code":21612}`, deliver.ClientError, 0, false},
		{"no mobile", "twilio", 400, `{"code":21614}`, deliver.ClientError, 0, false},
		{"opted out", "twilio", 400, `{"code":21610}`, deliver.ClientError, 0, true},
		{"too many", "twilio", 429, `{"code":20429}`, deliver.ServerError, 0, false},
		{"credentials", "twilio", 401, `{"code":20003}`, deliver.ServerError, 0, false},
		{"trouble", "twilio", 503, `busy`, deliver.ServerError, 0, false},
		{"a code that nobody knows", "twilio", 200, `{"code":99999}`, deliver.ServerError, 0, false},
		{"a redirect", "twilio", 302, ``, deliver.ServerError, 0, false},
		{"no answer", "twilio", 0, "close", deliver.ServerError, 2, false},
		{"silence", "twilio", 0, "hang", deliver.ServerError, 2, false},
		{"taken", "vonage", 200, vonage("0"), deliver.Success, 0, false},
		{"throttled", "vonage", 200, vonage("1"), deliver.ServerError, 0, false},
		{"missing", "vonage", 200, vonage("2"), deliver.ClientError, 0, false},
		{"invalid", "vonage", 200, vonage("3"), deliver.ClientError, 0, false},
		{"credentials", "vonage", 200, vonage("4"), deliver.ServerError, 0, false},
		{"trouble", "vonage", 200, vonage("5"), deliver.ServerError, 0, false},
		{"refused", "vonage", 200, vonage("6"), deliver.ClientError, 0, false},
		{"barred", "vonage", 200, vonage("7"), deliver.ClientError, 0, false},
		{"no money", "vonage", 200, vonage("9"), deliver.ServerError, 0, false},
		{"one of two", "vonage", 200, `{"messages":[{"status":"0"},{"status":"6"}]}`, deliver.ClientError, 0, false},
		{"garbage", "vonage", 200, `<html>`, deliver.ServerError, 2, false},
		{"trouble", "vonage", 502, `<html>`, deliver.ServerError, 0, false},
		{"taken", "", 204, ``, deliver.Success, 0, false},
		{"refused", "", 422, `no`, deliver.ClientError, 0, false},
		{"later", "", 429, `no`, deliver.ServerError, 0, false},
		{"trouble", "", 500, `no`, deliver.ServerError, 0, false},
	} {
		t.Run(tt.preset+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, tt.status, tt.answer)
			template := map[string]any{"url": p.URL, "body": "{{.Text}}"}
			if tt.preset != "" {
				template = map[string]any{"preset": tt.preset, "account": "a", "secret": "s3cr3t", "url": p.URL}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.answer == "hang" {
				go func() {
					<-p.hung
					cancel()
				}()
			}
			got := open(t, template).Deliver(ctx, text(t, strings.Repeat("x", 200)))
			if got.Class != tt.class || got.Unknown != tt.unknown || got.OptedOut != tt.optedOut || (got.Detail == "") != (tt.class == deliver.Success) {
				t.Errorf("%+v", got)
			}
			if n := len(p.received()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// What is asked of a provider is what its documentation says.
func TestRequests(t *testing.T) {
	p := newProvider(t, 200, `{"messages":[{"status":"0"}]}`)
	ask := func(template map[string]any, body string) (url.Values, *http.Request, string) {
		t.Helper()
		template["url"] = p.URL + "/{{query .To}}"
		open(t, template).Deliver(t.Context(), text(t, body))
		p.mu.Lock()
		defer p.mu.Unlock()
		raw := p.got[len(p.got)-1]
		values, _ := url.ParseQuery(raw)
		return values, p.last, raw
	}
	values, r, _ := ask(map[string]any{"preset": "twilio", "account": "AC1", "secret": "s3cr3t"}, "hi & ü")
	user, password, _ := r.BasicAuth()
	want := url.Values{"To": {"+4917012345678"}, "From": {"Godwit"}, "Body": {"hi & ü"}}
	if d := cmp.Diff(want, values); d != "" || user != "AC1" || password != "s3cr3t" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Errorf("%s %s %s", d, user, password)
	}
	values, _, _ = ask(map[string]any{"preset": "vonage", "account": "key", "secret": "s3&cr3t"}, "Привет")
	want = url.Values{"to": {"4917012345678"}, "from": {"Godwit"}, "text": {"Привет"}, "type": {"unicode"}, "api_key": {"key"}, "api_secret": {"s3&cr3t"}}
	if d := cmp.Diff(want, values); d != "" {
		t.Error(d)
	}
	_, r, raw := ask(map[string]any{
		"method": "PUT", "headers": map[string]string{"X-Key": "k"}, "contentType": "application/json", "body": `{"to":{{json .To}},"text":{{json .Text}},"id":"{{.ID}}"}`,
	}, "a \"quoted\"\nline")
	if raw != `{"to":"+4917012345678","text":"a \"quoted\"\nline","id":"ab000000000000000000000000000000"}` || r.Method != http.MethodPut || r.Header.Get("X-Key") != "k" {
		t.Errorf("%s %s", r.Method, raw)
	}
}

// An address that is not allowed is not asked.
func TestGuard(t *testing.T) {
	p := newProvider(t, 200, "")
	read, err := gateway.ReadTemplate([]byte(`{"url":"` + p.URL + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Template: read})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Deliver(t.Context(), text(t, "m")); got.Class != deliver.ServerError || !strings.Contains(got.Detail, "not allowed") || got.Unknown != 0 || len(p.received()) != 0 {
		t.Errorf("%+v", got)
	}
}

// A file that cannot be a template is refused, and no word of it repeated.
func TestReadTemplate(t *testing.T) {
	for _, bad := range []string{
		"", "s3cr3t", `{"preset":"s3cr3t"}`, `{"preset":"twilio"}`, `{"url":"ftp://s3cr3t"}`, `{"url":"http://x","body":"{{.S3cr3t}}"}`,
		`{"url":"http://x","body":"{{s3cr3t"}`, `{"url":["s3cr3t"]}`, `{"url":"{{.Nothing}}"}`, `{}`, `{"preset":"twilio","account":"a","secret":"s3cr3t","extra":1}`,
	} {
		if _, err := gateway.ReadTemplate([]byte(bad)); err == nil || strings.Contains(strings.ToLower(err.Error()), "s3cr3t") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
