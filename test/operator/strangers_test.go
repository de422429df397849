package operator_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/internal/config"
)

// nothingSum is the digest of an empty body.
const nothingSum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// askAs asks for a path of the API, signed.
func (w *world) askAs(who aws.Credentials, path string, parameters ...string) (status int, text string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.endpoint+prefix+path+"?"+query(parameters), http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := v4.NewSigner().SignHTTP(w.t.Context(), who, req, nothingSum, "godwit", region, time.Now()); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, string(must(io.ReadAll(resp.Body))(w.t))
}

// What a policy denies stays denied: by whatever name a resource is asked for, and by the
// broad right as well as by the operation's own action.
func TestDenied(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.queue("secret", nil)
	w.queue("orders", nil)
	identities := iam.NewFromConfig(w.config)
	name := "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	anna := aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}

	secret := queueARN("secret")
	for _, tt := range []struct {
		name, allowed, denied, on string
		arn                       string
		want                      int
	}{
		{"another queue", "*", "godwit:GetQueue", secret, queueARN("orders"), http.StatusOK},
		{"its name", "*", "godwit:GetQueue", secret, secret, http.StatusForbidden},
		{"another partition", "*", "godwit:GetQueue", secret, strings.Replace(secret, "arn:aws:", "arn:aws-cn:", 1), http.StatusForbidden},
		{"no partition", "godwit:Read", "godwit:GetQueue", secret, strings.Replace(secret, "arn:aws:", "arn::", 1), http.StatusForbidden},
		{"all that is read", "*", "godwit:Read", "*", queueARN("orders"), http.StatusForbidden},
		{"all that is read of it", "godwit:GetQueue", "godwit:Read", secret, secret, http.StatusForbidden},
		{"all that is changed", "godwit:Read", "godwit:Operate", "*", queueARN("orders"), http.StatusOK},
	} {
		document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"` + tt.allowed + `","Resource":"*"},{"Effect":"Deny","Action":"` +
			tt.denied + `","Resource":"` + tt.on + `"}]}`
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &document}))(t)
		if status, text := w.askAs(anna, "queue", "arn", tt.arn); status != tt.want {
			t.Errorf("%s: %d %s; want %d", tt.name, status, text, tt.want)
		}
	}
}

// Whoever makes cursors up gets an answer.
func TestForgedCursors(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	_, sub := w.hooked(topic, nil) // whose confirmation was delivered
	places := []string{"", "\x00", "\xff\xff", strings.Repeat("z", 3000), "-1", "9223372036854775807", "18446744073709551616", `{}`, `[]`, `null`}
	for _, number := range []string{"1", "100", "9223372036854775807", "9223372036854775808", "18446744073709551615"} {
		for _, stage := range []string{"0", "1", "2", "3"} {
			places = append(places, `{"Stage":`+stage+`,"A":`+number+`,"B":`+number+`}`)
		}
	}
	for _, place := range places {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(place))
		for _, link := range []string{
			"queues?sort=name", "queues?sort=messages", "topics?limit=1", "subscriptions?sort=name", "subscriptions?sort=owed", "subscriptions?state=failing",
			"subscriptions?topic=" + url.QueryEscape(topic), "functions?limit=1", "deliveries?subscription=" + url.QueryEscape(sub),
		} {
			resp, err := http.Get(w.endpoint + prefix + link + "&cursor=" + cursor)
			if err != nil {
				t.Errorf("%s behind %q: %v", link, place, err)
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s behind %q: %d", link, place, resp.StatusCode)
			}
		}
	}
}

// Nobody finds a password out by searching for it.
func TestEndpointFilter(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	w.subscribe(topic, "https", "https://user:hunter2@192.0.2.1/hook", nil)
	type page struct{ Subscriptions []struct{ Endpoint string } }
	all := get[page](w, "subscriptions")
	if len(all.Subscriptions) != 1 || strings.Contains(all.Subscriptions[0].Endpoint, "hunter2") {
		t.Fatalf("the endpoint is shown as %v", all)
	}
	for _, guess := range []string{"endpoint", "search"} {
		equal(t, "found by its password as "+guess, 0, len(get[page](w, "subscriptions", guess, "https://user:hunter2@192.0.2.1/hook").Subscriptions))
	}
	equal(t, "found as it is shown", 1, len(get[page](w, "subscriptions", "endpoint", all.Subscriptions[0].Endpoint).Subscriptions))
}

// What the API answers is for nobody else: no cache keeps it, no browser takes it for a page.
func TestPrivate(t *testing.T) {
	w := start(t)
	for _, path := range []string{prefix + "overview", prefix + "openapi.json", prefix + "nothing", "/_godwit/ui/session", "/_godwit/clock", "/_godwit/queue?arn=" + queueARN("x")} {
		resp, err := http.Get(w.endpoint + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
		if got := resp.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options %q", path, got)
		}
	}
}
