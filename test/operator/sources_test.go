package operator_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
)

const hookSecret = "a secret of some length"

func ingests(c *config.Config) { c.IngestListen = "127.0.0.1:0" }

type source struct {
	Name, Path, Target, Owner string
	Secrets                   int
	Paused                    bool
	Problem                   *string
	Limits                    struct{ Bytes, PerSecond, Concurrent int }
}

// put makes a source of a name, from members beside that.
func (w *world) put(name, target, members string) source {
	w.t.Helper()
	return post[source](w, "sources", fmt.Sprintf(`{"name":%q,"target":%q,%s}`, name, target, members))
}

// posted posts to a source, with pairs of headers.
func (w *world) posted(name, body string, headers ...string) (status int, answer struct{ MessageID, Error, Code, SequenceNumber string }, text string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.ingest+name, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text = string(must(io.ReadAll(resp.Body))(w.t))
	_ = json.Unmarshal([]byte(text), &answer) // challenges are no JSON
	return resp.StatusCode, answer, text
}

func hub(body string) string {
	m := hmac.New(sha256.New, []byte(hookSecret))
	m.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

func (w *world) taken(url string) []string {
	w.t.Helper()
	out := must(w.queues.ReceiveMessage(w.t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	}))(w.t)
	var all []string
	for _, m := range out.Messages {
		text := *m.MessageId + " " + *m.Body
		for _, name := range []string{"event", "id", "order"} {
			if a, ok := m.MessageAttributes[name]; ok {
				text += " " + name + "=" + *a.DataType + ":" + *a.StringValue
			}
		}
		all = append(all, text+m.Attributes["MessageGroupId"])
	}
	return all
}

const byHub = `"verification":{"kind":"github"},"secrets":["` + hookSecret + `"]`

// A post to a source is a message of its queue or topic, with what the mapping takes of it.
func TestPosts(t *testing.T) {
	w := startWith(t, ingests)
	orders := w.queue("orders", nil)
	made := w.put("shop", queueARN("orders"), byHub+`,"mapping":{"message":"/order","attributes":{"event":"header:X-GitHub-Event","id":"id","order":"/order/id"}}`)
	if made.Path != "/in/shop" || made.Secrets != 1 || made.Owner == "" {
		t.Errorf("%+v", made)
	}
	const body = `{"order":{"id":7}}`
	status, answer, _ := w.posted("shop", body, "X-Hub-Signature-256", hub(body), "X-GitHub-Delivery", "d-1", "X-GitHub-Event", "push")
	equal(t, "status", http.StatusAccepted, status)
	equal(t, "messages", fmt.Sprint([]string{answer.MessageID + ` {"id":7} event=String:push id=String:d-1 order=Number:7`}), fmt.Sprint(w.taken(orders)))

	topic := w.topic("news")
	w.subscribe(topic, "sqs", queueARN("orders"), map[string]string{"RawMessageDelivery": "true", "FilterPolicy": `{"event":["push"]}`})
	w.put("news", topic, byHub+`,"mapping":{"attributes":{"event":"header:X-GitHub-Event"}}`)
	for _, event := range []string{"push", "pull"} {
		status, _, _ = w.posted("news", body, "X-Hub-Signature-256", hub(body), "X-GitHub-Event", event)
		equal(t, event, http.StatusAccepted, status)
	}
	if got := w.taken(orders); len(got) != 1 || !strings.HasSuffix(got[0], body+" event=String:push") {
		t.Errorf("%q", got)
	}
}

// The provider's id of an event is the deduplication id of FIFO queues: what comes again is
// answered with the same message, and is not there twice.
func TestPostsToFIFO(t *testing.T) {
	w := startWith(t, ingests)
	orders := w.queue("orders.fifo", map[string]string{"FifoQueue": "true"})
	w.put("shop", queueARN("orders.fifo"), byHub)
	var first string
	for range 3 {
		status, answer, _ := w.posted("shop", "{}", "X-Hub-Signature-256", hub("{}"), "X-GitHub-Delivery", "d-1")
		if first == "" {
			first = answer.MessageID
		}
		if status != http.StatusAccepted || answer.MessageID != first || answer.SequenceNumber == "" {
			t.Errorf("%d %+v", status, answer)
		}
	}
	w.posted("shop", "{}", "X-Hub-Signature-256", hub("{}"), "X-GitHub-Delivery", "d-2")
	if got := w.taken(orders); len(got) != 2 || got[0] != first+" {}shop" {
		t.Errorf("%q", got)
	}
}

// What is refused says what to do; who proves nothing is not told which sources there are.
func TestRefusedPosts(t *testing.T) {
	w := startWith(t, func(c *config.Config) { ingests(c); c.Prometheus, c.PrometheusSeries = true, 10 })
	w.queue("orders", nil)
	w.put("shop", queueARN("orders"), byHub+`,"limits":{"bytes":100}`)
	w.put("mapped", queueARN("orders"), byHub+`,"mapping":{"message":"/m"}`)
	w.put("gone", queueARN("none"), byHub)
	w.put("paused", queueARN("orders"), byHub+`,"paused":true`)
	w.put("rare", queueARN("orders"), byHub+`,"limits":{"perSecond":1}`)
	long := strings.Repeat("x", 101)
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		code       string
	}{
		{"shop", "x", []string{"X-Hub-Signature-256", hub("x")}, 202, ""},
		{"shop", "x", nil, 401, "unverified"},
		{"shop", "y", []string{"X-Hub-Signature-256", hub("x")}, 401, "unverified"},
		{"none", "x", []string{"X-Hub-Signature-256", hub("x")}, 401, "unverified"},
		{"paused", "x", nil, 401, "unverified"},
		{"a/b", "x", nil, 404, "NotFound"},
		{"shop", long, nil, 401, "unverified"},
		{"shop", long, []string{"X-Hub-Signature-256", hub(long)}, 413, "size"},
		{"none", strings.Repeat("x", 1<<20+1), nil, 413, "size"},
		{"shop", "\xff", []string{"X-Hub-Signature-256", hub("\xff"), "Content-Type", "image/png"}, 415, "media_type"},
		{"shop", "x", []string{"X-Hub-Signature-256", hub("x"), "Content-Encoding", "gzip"}, 415, "media_type"},
		{"mapped", "x", []string{"X-Hub-Signature-256", hub("x")}, 400, "body"},
		{"mapped", "{}", []string{"X-Hub-Signature-256", hub("{}")}, 400, "mapping"},
		{"shop", "\x01", []string{"X-Hub-Signature-256", hub("\x01")}, 422, "rejected"},
		{"gone", "x", []string{"X-Hub-Signature-256", hub("x")}, 503, "target"},
		{"paused", "x", []string{"X-Hub-Signature-256", hub("x")}, 503, "paused"},
		{"rare", "x", []string{"X-Hub-Signature-256", hub("x")}, 202, ""},
		{"rare", "x", []string{"X-Hub-Signature-256", hub("x")}, 429, "rate"},
	} {
		status, answer, text := w.posted(c.name, c.body, c.headers...)
		if status != c.status || answer.Code != c.code || c.code != "" && answer.Error == "" {
			t.Errorf("%s %.20q: %d %s; want %d %s", c.name, c.body, status, text, c.status, c.code)
		}
	}
	_, unknown, _ := w.posted("none", "x")
	_, forged, _ := w.posted("shop", "x")
	equal(t, "what strangers are told", unknown, forged)
	w.fetch(http.MethodGet, w.ingest+"shop", "", http.StatusMethodNotAllowed)
	counted := w.fetch(http.MethodGet, w.endpoint+"/metrics", "", http.StatusOK)
	for _, line := range []string{
		`godwit_ingest_accepted_total{source="shop"} 1`, `godwit_ingest_refused_total{reason="signature",source="shop"} 1`,
		`godwit_ingest_refused_total{reason="size",source="shop"} 1`, `godwit_ingest_refused_total{reason="unknown_source",source=""} 2`,
	} {
		if !strings.Contains(counted, line) {
			t.Errorf("%s is not counted", line)
		}
	}
}

// A source may be put before its target is created, and who has misspelled that is told so.
func TestSourceOfNothing(t *testing.T) {
	w := startWith(t, ingests)
	type warned struct{ Warning *string }
	warning := func(text string) string {
		if s := decode[warned](w, text).Warning; s != nil {
			return *s
		}
		return ""
	}
	const want = "its target does not exist: posts are refused (503) until it does"
	signed := []string{"X-Hub-Signature-256", hub("x")}
	topic := "arn:aws:sns:" + region + ":" + account + ":news"
	for name, target := range map[string]string{"queue": queueARN("orders"), "topic": topic} {
		put := fmt.Sprintf(`{"name":%q,"target":%q,%s}`, name, target, byHub)
		if got := warning(w.call(http.MethodPost, "sources", "", put, http.StatusOK)); got != want {
			t.Errorf("%s: it is warned of %q", name, got)
		}
		if status, _, text := w.posted(name, "x", signed...); status != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d: %s", name, status, text)
		}
		if name == "queue" {
			w.queue("orders", nil)
			w.call(http.MethodPost, "faults", "", `{"arn":"`+target+`","fault":"throttled"}`, http.StatusOK)
		} else {
			w.fetch(http.MethodPost, w.endpoint+"/?Action=CreateTopic&Name=news", "", http.StatusOK)
		}
		if got := warning(w.call(http.MethodGet, "source", "name="+name, "", http.StatusOK)); got != "" {
			t.Errorf("%s: it is there, and warned of: %q", name, got)
		}
		if name == "queue" {
			w.call(http.MethodPost, "faults", "", `{"arn":"`+target+`","fault":"none"}`, http.StatusOK)
		}
		if status, _, text := w.posted(name, "x", signed...); status != http.StatusAccepted {
			t.Errorf("%s: status %d: %s", name, status, text)
		}
	}
}

// Operators make sources, look at them, change and delete them, and never see a secret.
func TestSources(t *testing.T) {
	w := startWith(t, ingests)
	w.queue("orders", nil)
	w.put("b", queueARN("orders"), byHub)
	w.put("a", queueARN("orders"), byHub)
	text := w.call(http.MethodGet, "sources", "limit=1", "", http.StatusOK)
	page := decode[struct {
		Sources []source
		Next    *string
	}](w, text)
	if len(page.Sources) != 1 || page.Sources[0].Name != "a" || page.Next == nil || strings.Contains(text, hookSecret) {
		t.Fatal(text)
	}
	page = get[struct {
		Sources []source
		Next    *string
	}](w, "sources", "cursor", *page.Next)
	if len(page.Sources) != 1 || page.Sources[0].Name != "b" || page.Next != nil {
		t.Errorf("%+v", page)
	}
	w.put("a", queueARN("orders"), `"verification":{"kind":"github"},"limits":{"perSecond":7}`)
	if a := get[source](w, "source", "name", "a"); a.Secrets != 1 || a.Limits.PerSecond != 7 {
		t.Errorf("%+v", a)
	}
	signed := []string{"X-Hub-Signature-256", hub("x")}
	for i, want := range []int{http.StatusServiceUnavailable, http.StatusAccepted} {
		changed := post[source](w, []string{"source/pause", "source/resume"}[i], `{"name":"a"}`)
		equal(t, "paused", i == 0, changed.Paused)
		if i == 0 {
			needs := get[struct {
				Attention []struct{ Kind, Severity, Text string }
			}](w, "overview").Attention
			equal(t, "what needs a person", []struct{ Kind, Severity, Text string }{{"source", "warning", "a: it is paused, and takes no posts"}}, needs)
		}
		status, _, _ := w.posted("a", "x", signed...)
		equal(t, "status", want, status)
	}
	post[struct{ Name string }](w, "source/delete", `{"name":"a"}`)
	status, _, _ := w.posted("a", "x", signed...)
	equal(t, "deleted", http.StatusUnauthorized, status)
	for _, path := range []string{"source/pause", "source/resume", "source/delete"} {
		w.refused(http.StatusNotFound, http.MethodPost, path, `{"name":"a"}`)
		w.refused(http.StatusBadRequest, http.MethodPost, path, `{}`)
	}
	w.refused(http.StatusNotFound, http.MethodGet, "source", "name=a")
	w.refused(http.StatusBadRequest, http.MethodGet, "source", "")
	w.refused(http.StatusBadRequest, http.MethodGet, "sources", "limit=0")
	w.refused(http.StatusBadRequest, http.MethodPost, "sources", `{"name":"a","target":"`+queueARN("orders")+`","verification":{"kind":"github"}}`)
	w.refused(http.StatusBadRequest, http.MethodPost, "sources", `{"name":"a","target":"here","verification":{"kind":"github"}}`)
}

// The command makes a source of a file, which takes posts then, and never prints its secret.
func TestSourcesByCommand(t *testing.T) {
	w := startWith(t, ingests)
	w.queue("orders", nil)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte("name: shop\ntarget: "+queueARN("orders")+"\nverification: {kind: github}\nsecrets: ["+hookSecret+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := operate.Connection{Endpoint: w.endpoint, Output: "table"}
	var of operate.Sources
	of.List.Connection, of.List.Limit, of.Put.Connection, of.Put.File, of.Pause.Connection, of.Pause.Source = server, 10, server, file, server, "shop"
	of.Resume.Connection, of.Resume.Source, of.Delete.Connection, of.Delete.Source = server, "shop", server, "shop"
	var out bytes.Buffer
	streams := operate.Streams{Out: &out}
	signed := []string{"X-Hub-Signature-256", hub("x")}
	for _, step := range []struct {
		run   func(operate.Streams) error
		want  string // in the list then
		takes int    // how a post is answered
	}{
		{of.Put.Run, "active", http.StatusAccepted},
		{of.Pause.Run, "paused", http.StatusServiceUnavailable},
		{of.Resume.Run, "active", http.StatusAccepted},
		{of.Delete.Run, "NAME", http.StatusUnauthorized},
	} {
		out.Reset()
		if err := step.run(streams); err != nil || !strings.Contains(out.String(), "shop") {
			t.Fatalf("%v: %s", err, out.String())
		}
		if err := of.List.Run(streams); err != nil || !strings.Contains(out.String(), step.want) || strings.Contains(out.String(), hookSecret) {
			t.Errorf("want %s: %v: %s", step.want, err, out.String())
		}
		status, _, _ := w.posted("shop", "x", signed...)
		equal(t, "status when "+step.want, step.takes, status)
	}
}

// Who makes a source has to be allowed to send to its target, and posts are sent as far as
// he still is.
func TestSourceRights(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		ingests(c)
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	ingest := w.ingest
	w = worldAt(t, w.endpoint, root)
	w.ingest = ingest
	w.queue("orders", nil)
	identities, name := iam.NewFromConfig(w.config), "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	w.signs = &aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}
	allow := func(actions string) {
		t.Helper()
		doc := `{"Statement":{"Effect":"Allow","Action":[` + actions + `],"Resource":"*"}}`
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &doc}))(t)
	}
	spec := `{"name":"shop","target":"` + queueARN("orders") + `",` + byHub + `}`
	for _, c := range []struct {
		actions string
		want    int
	}{
		{`"sqs:SendMessage"`, http.StatusForbidden}, {`"godwit:PutSource"`, http.StatusForbidden}, {`"godwit:PutSource","sqs:SendMessage"`, http.StatusOK},
	} {
		allow(c.actions)
		w.fetch(http.MethodPost, w.endpoint+prefix+"sources", spec, c.want)
	}
	for _, c := range []struct {
		actions string
		want    int
	}{{`"sqs:SendMessage"`, http.StatusAccepted}, {`"sqs:ReceiveMessage"`, http.StatusServiceUnavailable}} {
		allow(c.actions)
		status, _, text := w.posted("shop", "x", "X-Hub-Signature-256", hub("x"))
		if status != c.want {
			t.Errorf("who may %s: %d %s", c.actions, status, text)
		}
	}

	// The owner is known by the name that he has now.
	doc := `{"Statement":{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"*","Condition":{"StringEquals":{"aws:username":"annette"}}}}`
	must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &doc}))(t)
	for _, c := range []struct {
		from, to string
		want     int
	}{{"anna", "annette", http.StatusAccepted}, {"annette", "anna", http.StatusServiceUnavailable}} {
		must(identities.UpdateUser(t.Context(), &iam.UpdateUserInput{UserName: &c.from, NewUserName: &c.to}))(t)
		if status, _, text := w.posted("shop", "x", "X-Hub-Signature-256", hub("x")); status != c.want {
			t.Errorf("of %s: %d %s", c.to, status, text)
		}
	}

	// Who is made under the name of the owner is not the owner.
	must(identities.DeleteUserPolicy(t.Context(), &iam.DeleteUserPolicyInput{UserName: &name, PolicyName: &name}))(t)
	must(identities.DeleteAccessKey(t.Context(), &iam.DeleteAccessKeyInput{UserName: &name, AccessKeyId: key.AccessKeyId}))(t)
	must(identities.DeleteUser(t.Context(), &iam.DeleteUserInput{UserName: &name}))(t)
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	allow(`"sqs:SendMessage"`)
	if status, _, text := w.posted("shop", "x", "X-Hub-Signature-256", hub("x")); status != http.StatusServiceUnavailable {
		t.Errorf("of an owner who was deleted: %d %s", status, text)
	}
}

// A topic of another Godwit posts to a source as SNS does: the source confirms the
// subscription, and takes what the topic has signed.
func TestPostsOfSNS(t *testing.T) {
	w, away := startWith(t, ingests), start(t)
	orders, topic := w.queue("orders", nil), away.topic("news")
	w.put("news", queueARN("orders"), `"verification":{"kind":"sns","topics":["`+topic+`"],"origins":["`+away.endpoint+`"]}`)
	status, _, _ := w.posted("news", `{"Type":"Notification"}`)
	equal(t, "unsigned", http.StatusUnauthorized, status)
	sub := away.subscribe(topic, "http", w.ingest+"news", nil)
	confirmed := func() bool {
		out := must(away.topics.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &sub}))(t)
		return out.Attributes["PendingConfirmation"] == "false"
	}
	until(t, confirmed)
	away.publish(topic, "hello")
	until(t, func() bool {
		got := w.taken(orders)
		return len(got) == 1 && strings.HasSuffix(got[0], " hello")
	})
}

// until waits for what happens soon, as an attempt at an endpoint does, on a machine that may
// have other things to do.
func until(t *testing.T, happened func() bool) {
	t.Helper()
	look, late := time.NewTicker(20*time.Millisecond), time.After(2*time.Minute)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("it does not happen")
		}
	}
}

// What was answered with 202 is there after a restart, and the log has neither bodies nor
// secrets.
func TestPostsAreDurable(t *testing.T) {
	var logged bytes.Buffer
	settings := config.Config{
		Listen: "127.0.0.1:0", IngestListen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.SystemClock, Data: t.TempDir(), Region: region, Account: account,
		AllowPrivateEndpoints: true, EndpointConcurrency: 50, DeliveryConcurrency: 500, FunctionIsolation: config.IsolationNone,
	}
	begin := func() (*server.Server, *world) {
		s := server.New(settings, slog.New(slog.NewTextHandler(&logged, nil)), build)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := worldAt(t, "http://"+s.Addr().String(), aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"})
		w.ingest = "http://" + s.IngestAddr().String() + "/in/"
		return s, w
	}
	s, w := begin()
	w.queue("orders", nil)
	w.put("shop", queueARN("orders"), byHub)
	status, answer, _ := w.posted("shop", "kept", "X-Hub-Signature-256", hub("kept"))
	equal(t, "status", http.StatusAccepted, status)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, w = begin()
	equal(t, "message", answer.MessageID+" kept", strings.Join(w.taken(w.queue("orders", nil)), ""))
	status, _, _ = w.posted("shop", "kept", "X-Hub-Signature-256", hub("kept"))
	equal(t, "status", http.StatusAccepted, status)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(logged.String(), hookSecret) || strings.Contains(logged.String(), "kept") {
		t.Error("the log has a secret or a body")
	}
}
