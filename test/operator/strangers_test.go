package operator_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

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

// A session of the console opens with an access key that stays, and what does not come from
// its page is refused without ending it.
func TestConsoleSession(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.queue("orders", nil)
	const session = "/_godwit/ui/session"
	// do sends a request with a cookie and a CSRF token, or signed by somebody.
	do := func(method, path, body string, who *aws.Credentials, cookie *http.Cookie, csrf string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, w.endpoint+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if cookie != nil {
			req.AddCookie(cookie)
			req.Header.Set("X-Godwit-CSRF", csrf)
		}
		if who != nil {
			sum := sha256.Sum256([]byte(body))
			if err := v4.NewSigner().SignHTTP(t.Context(), *who, req, hex.EncodeToString(sum[:]), "godwit", region, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp, string(must(io.ReadAll(resp.Body))(t))
	}
	issued := must(sts.NewFromConfig(w.config).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{}))(t).Credentials
	temporary := aws.Credentials{AccessKeyID: *issued.AccessKeyId, SecretAccessKey: *issued.SecretAccessKey, SessionToken: *issued.SessionToken}
	if resp, text := do(http.MethodPost, session, "{}", &temporary, nil, ""); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
		t.Errorf("temporary credentials: %d %s", resp.StatusCode, text)
	}
	resp, text := do(http.MethodPost, session, "{}", &root, nil, "")
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	cookie := resp.Cookies()[0]
	_, text = do(http.MethodGet, session, "", nil, cookie, "")
	csrf := decode[struct{ CSRF string }](w, text).CSRF
	remove := `{"arn":"` + queueARN("orders") + `","positions":[]}`
	for _, tt := range []struct {
		name   string
		cookie *http.Cookie
		csrf   string
		want   int
	}{
		{"nobody", nil, "", http.StatusUnauthorized},
		{"somebody else's cookie", &http.Cookie{Name: cookie.Name, Value: "x"}, csrf, http.StatusUnauthorized},
		{"another page", cookie, "", http.StatusForbidden},
		{"a page that guesses", cookie, csrf[1:], http.StatusForbidden},
		{"the console", cookie, csrf, http.StatusOK},
	} {
		if resp, text := do(http.MethodPost, prefix+"messages/delete", remove, nil, tt.cookie, tt.csrf); resp.StatusCode != tt.want {
			t.Errorf("%s: %d %s; want %d", tt.name, resp.StatusCode, text, tt.want)
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

// Who may watch one queue sees that queue, and not how all others stand.
func TestWatchedAlone(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.queue("orders", nil)
	identities := iam.NewFromConfig(w.config)
	name := "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	anna := aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}
	orders := queueARN("orders")
	statement := func(effect, action, on string) string {
		return `{"Effect":"` + effect + `","Action":"` + action + `","Resource":"` + on + `"}`
	}
	for _, tt := range []struct {
		name, statements string
		want             string // of the first event; empty: it is refused
	}{
		{"all that is read", statement("Allow", "godwit:Read", "*"), "overview"},
		{"all of one queue", statement("Allow", "godwit:Read", orders), "queue"},
		{"one queue", statement("Allow", "godwit:WatchEvents", orders) + "," + statement("Allow", "godwit:GetQueue", orders), "queue"},
		{"a queue that is not to be seen", statement("Allow", "godwit:WatchEvents", orders), ""},
		{"a queue that is denied", statement("Allow", "godwit:Read", "*") + "," + statement("Deny", "godwit:GetQueue", orders), ""},
	} {
		document := `{"Version":"2012-10-17","Statement":[` + tt.statements + `]}`
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &document}))(t)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.endpoint+prefix+"events?"+query([]string{"arn", orders}), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if err := v4.NewSigner().SignHTTP(t.Context(), anna, req, nothingSum, "godwit", region, time.Now()); err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if resp.StatusCode == http.StatusOK {
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			got = strings.TrimSpace(strings.TrimPrefix(line, "event: "))
		} else if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", tt.name, resp.StatusCode)
		}
		resp.Body.Close()
		if got != tt.want {
			t.Errorf("%s: %q is told first; want %q", tt.name, got, tt.want)
		}
	}
}

// A stream that was begun ends with the key, the session or the right that it was begun with.
func TestWatchingEnds(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	identities := iam.NewFromConfig(w.config)
	name := "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	anna := aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}
	asAnna := worldAt(t, w.endpoint, anna).config
	session := must(sts.NewFromConfig(asAnna).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{DurationSeconds: new(int32(900))}))(t).Credentials
	temporary := aws.Credentials{AccessKeyID: *session.AccessKeyId, SecretAccessKey: *session.SecretAccessKey, SessionToken: *session.SessionToken}
	document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"godwit:Read","Resource":"*"}]}`
	for _, tt := range []struct {
		name string
		who  aws.Credentials
		end  func() error
	}{
		{"the session", temporary, func() error {
			w.signs = &root
			w.advance("15m")
			return nil
		}},
		{"the right", anna, func() error {
			_, err := identities.DeleteUserPolicy(t.Context(), &iam.DeleteUserPolicyInput{UserName: &name, PolicyName: &name})
			return err
		}},
		{"the key", anna, func() error {
			_, err := identities.UpdateAccessKey(t.Context(), &iam.UpdateAccessKeyInput{UserName: &name, AccessKeyId: key.AccessKeyId, Status: iamtypes.StatusTypeInactive})
			return err
		}},
	} {
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &document}))(t)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.endpoint+prefix+"events", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if err := v4.NewSigner().SignHTTP(t.Context(), tt.who, req, nothingSum, "godwit", region, time.Now()); err != nil {
			t.Fatal(err)
		}
		resp := must(http.DefaultClient.Do(req))(t)
		lines := bufio.NewReader(resp.Body)
		line, err := lines.ReadString('\n')
		if err != nil || line != "event: overview\n" {
			t.Fatalf("%d %q, %v", resp.StatusCode, line, err)
		}
		if err := tt.end(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(lines) // which a stream that continues would not end for minutes
		resp.Body.Close()
		if err != nil || !strings.HasSuffix(string(rest), "event: gone\ndata: \"overview\"\n\n") {
			t.Errorf("without %s: %q, %v", tt.name, rest, err)
		}
	}
}

// What SNS asks more for than the right to set it is not set here: roles, which have to be
// passed, policies, whose names are bound, and keys.
func TestAttributesThatTakeMore(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	w.queue("orders", nil)
	sub := w.subscribe(topic, "sqs", queueARN("orders"), nil)
	role := "arn:aws:iam::" + account + ":role/powerful"
	for _, name := range []string{"Policy", "KmsMasterKeyId", "SQSSuccessFeedbackRoleArn", "HTTPFailureFeedbackRoleArn", "ArchivePolicy"} {
		w.refused(http.StatusBadRequest, http.MethodPost, "topic/attribute", `{"topic":"`+topic+`","name":"`+name+`","value":"`+role+`"}`)
	}
	w.refused(http.StatusBadRequest, http.MethodPost, "subscription/attribute", `{"subscription":"`+sub+`","name":"SubscriptionRoleArn","value":"`+role+`"}`)
}

// A cause that somebody made up is no longer than what can be searched for, and is found.
func TestLongCause(t *testing.T) {
	w := start(t)
	url := w.queue("dead", nil)
	for _, said := range []string{strings.Repeat("x", 100_000), strings.Repeat("ü", 50_000)} {
		code, text, body := "500", "String", "{}"
		must(w.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			"ErrorCode": {DataType: &text, StringValue: &code}, "ErrorMessage": {DataType: &text, StringValue: &said},
		}}))(t)
	}
	type groups struct {
		Groups []struct {
			Cause string
			Count int
		}
	}
	found := get[groups](w, "dead-letters", "arn", queueARN("dead")).Groups
	equal(t, "groups", 2, len(found))
	for _, g := range found {
		if len(g.Cause) > 1024 || len(g.Cause) < 1000 || !utf8.ValidString(g.Cause) {
			t.Errorf("a cause of %d bytes", len(g.Cause))
		}
		equal(t, "found by it", 1, len(get[struct{ Messages []struct{ Body string } }](w, "messages", "arn", queueARN("dead"), "cause", g.Cause).Messages))
	}
}

// To look at messages does not give the tokens that confirm subscriptions, neither shown nor
// guessed by searches.
func TestConfirmationMasked(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	token := strings.Repeat("2336412f37", 20)
	w.send(url, `{"Type" : "SubscriptionConfirmation", "Token" : "`+token+`", "SubscribeURL" : "https://sns/?Action=ConfirmSubscription&TopicArn=t&Token=`+token+`", "SignatureVersion" : "1"}`)
	w.send(url, `{"Token":"`+token+`"}`) // somebody's own
	type page struct {
		Messages []struct{ Position, Body string }
	}
	arn := queueARN("orders")
	all := get[page](w, "messages", "arn", arn).Messages
	equal(t, "messages", 2, len(all))
	equal(t, "the confirmation", `{"Type" : "SubscriptionConfirmation", "Token" : "****", "SubscribeURL" : "https://sns/?Action=ConfirmSubscription&TopicArn=t&Token=****", "SignatureVersion" : "1"}`, all[0].Body)
	equal(t, "another message", `{"Token":"`+token+`"}`, all[1].Body)
	one := get[struct{ Body string }](w, "message", "arn", arn, "position", all[0].Position)
	equal(t, "alone", all[0].Body, one.Body)
	equal(t, "found by its token", 1, len(get[page](w, "messages", "arn", arn, "search", token[:8]).Messages))
	equal(t, "found by what is shown", 1, len(get[page](w, "messages", "arn", arn, "search", "confirmsubscription").Messages))
}
