package operator_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/internal/config"
)

// guarded is a server that asks who calls, as its root user sees it, and as anna does, who may
// what allow says, in statements of a policy.
func guarded(t *testing.T, change ...func(*config.Config)) (w, anna *world, allow func(statements ...string)) {
	t.Helper()
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	s := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
		for _, f := range change {
			f(c)
		}
	})
	as := func(who aws.Credentials) *world {
		one := worldAt(t, s.endpoint, who)
		one.ingest, one.stop, one.signs = s.ingest, s.stop, &who
		return one
	}
	w = as(root)
	identities, name := iam.NewFromConfig(w.config), "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	return w, as(aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}), func(statements ...string) {
		t.Helper()
		doc := `{"Statement":[` + strings.Join(statements, ",") + `]}`
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &doc}))(t)
	}
}

func may(resource string, actions ...string) string  { return statement("Allow", resource, actions) }
func deny(resource string, actions ...string) string { return statement("Deny", resource, actions) }

func statement(effect, resource string, actions []string) string {
	return `{"Effect":"` + effect + `","Action":["` + strings.Join(actions, `","`) + `"],"Resource":"` + resource + `"}`
}

// heard are the names of the first events of a stream, and the data of the last of them; a
// refusal is its status.
func (w *world) heard(query string, n int) (names []string, data string, status int) {
	w.t.Helper()
	req, err := w.request(http.MethodGet, w.endpoint+prefix+"events?"+query, "")
	if err != nil {
		w.t.Fatal(err)
	}
	resp := must(http.DefaultClient.Do(req))(w.t)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for len(names) < n && resp.StatusCode == http.StatusOK {
		line, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			w.t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names, data = append(names, strings.TrimSpace(name)), ""
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data = text
		}
		if err != nil {
			break
		}
	}
	for data == "" && len(names) > 0 {
		line := must(lines.ReadString('\n'))(w.t)
		data, _ = strings.CutPrefix(line, "data: ")
	}
	return names, data, resp.StatusCode
}

// A stream tells nothing that its caller could not ask for: neither the overview nor the jobs of
// other queues than that which is watched.
func TestEventsTellWhatIsAllowed(t *testing.T) {
	w, anna, allow := guarded(t)
	for _, name := range []string{"own", "secret"} {
		w.send(w.queue(name, nil), "x")
		w.begun(map[string]any{"kind": "delete", "arn": queueARN(name), "perSecond": 1, "where": map[string]any{"since": "2100-01-01T00:00:00Z"}})
	}
	allow(may("*", "godwit:WatchEvents"))
	if names, _, status := anna.heard("", 1); status != http.StatusForbidden {
		t.Errorf("the overview is told: %d %v", status, names)
	}
	allow(may("*", "godwit:WatchEvents"), may(queueARN("own"), "godwit:GetQueue", "godwit:ListJobs"))
	if names, _, status := anna.heard("arn="+queueARN("secret"), 1); status != http.StatusForbidden {
		t.Errorf("another queue is told: %d %v", status, names)
	}
	if names, _, status := anna.heard("jobs=true", 1); status != http.StatusForbidden {
		t.Errorf("all jobs are told: %d %v", status, names)
	}
	names, data, status := anna.heard("jobs=true&arn="+queueARN("own"), 2)
	if fmt.Sprint(names) != "[queue jobs]" || strings.Contains(data, "secret") || !strings.Contains(data, queueARN("own")) {
		t.Errorf("%d %v %s", status, names, data)
	}
	allow(may("*", "godwit:Read"))
	if names, data, status := anna.heard("jobs=true&arn="+queueARN("own"), 3); fmt.Sprint(names) != "[overview queue jobs]" || !strings.Contains(data, "secret") {
		t.Errorf("who may read all: %d %v %s", status, names, data)
	}
}

// A log group has two ARNs, with and without :* behind it: what denies one denies the other.
func TestBothNamesOfALogGroup(t *testing.T) {
	w, anna, allow := guarded(t)
	group := "payroll"
	must(cloudwatchlogs.NewFromConfig(w.config).CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group}))(t)
	name := "arn:aws:logs:" + region + ":" + account + ":log-group:" + group
	for _, one := range []string{name, name + ":*"} {
		for _, asked := range []string{name, name + ":*"} {
			allow(may("*", "godwit:*"), deny(one, "godwit:PeekMessages"))
			anna.call(http.MethodGet, "log-events", "arn="+asked, "", http.StatusForbidden)
			allow(may("*", "godwit:*"), deny(one, "godwit:Read"))
			anna.call(http.MethodGet, "log-streams", "arn="+asked, "", http.StatusForbidden)
			allow(may(one, "godwit:PeekMessages"))
			anna.call(http.MethodGet, "log-events", "arn="+asked, "", http.StatusOK)
		}
	}
}

// A source is not taken over by whom only another target is allowed: what is posted to it would
// go there.
func TestSourceIsNotTakenOver(t *testing.T) {
	w, anna, allow := guarded(t, ingests)
	payments := w.queue("payments", nil)
	w.queue("own", nil)
	w.put("shop", queueARN("payments"), byHub)
	allow(may(queueARN("own"), "godwit:PutSource", "sqs:SendMessage"))
	spec := `{"name":"shop","target":"` + queueARN("own") + `","verification":{"kind":"github"}}`
	anna.refused(http.StatusForbidden, http.MethodPost, "sources", spec)
	if status, _, text := w.posted("shop", "x", "X-Hub-Signature-256", hub("x")); status != http.StatusAccepted || len(w.taken(payments)) != 1 {
		t.Errorf("a post after that: %d %s", status, text)
	}
	allow(may(queueARN("own"), "godwit:PutSource", "sqs:SendMessage"), may(queueARN("payments"), "godwit:PutSource"))
	equal(t, "who may both", queueARN("own"), post[source](anna, "sources", spec).Target)
}

// A job ends when who asked for it may not do it any more; what was done stays done.
func TestJobEndsWithItsRight(t *testing.T) {
	for _, c := range []struct{ kind, right, search string }{
		{"delete", "godwit:DeleteMessages", ""}, {"delete", "godwit:PeekMessages", "order"}, {"redrive", "godwit:RedriveMessages", ""},
	} {
		w, anna, allow := guarded(t)
		url := w.queue("dead", nil)
		w.queue("to", nil)
		for i := range 6 {
			w.send(url, fmt.Sprint("order ", i))
		}
		rights := []string{"godwit:CreateJob", "godwit:GetJob", "godwit:DeleteMessages", "godwit:RedriveMessages", "godwit:PeekMessages", "sqs:*"}
		allow(may("*", rights...))
		spec := map[string]any{"kind": c.kind, "arn": queueARN("dead"), "perSecond": 1}
		if c.search != "" {
			spec["where"] = map[string]any{"search": c.search}
		}
		if c.kind == "redrive" {
			spec["to"] = queueARN("to")
		}
		made := anna.begun(spec)
		w.advance("2s")
		half := w.awaitEnd(made.ID)
		allow(may("*", rights...), deny("*", c.right))
		w.advance("20s")
		done := w.awaitEnd(made.ID)
		if half.State != "running" || half.Done == 0 || done.State != "failed" || done.Done != half.Done || done.Error == nil || !strings.Contains(*done.Error, "not authorized") {
			t.Errorf("without %s: %+v, and then %+v", c.right, half, done)
		}
		equal(t, "left", 6-half.Done, len(walk(w, "arn", queueARN("dead"))))
	}
}

// A job is of the user who began it, whatever his name is by now: policies decide by that, and it is
// what is told and recorded.
func TestJobOfARenamedUser(t *testing.T) {
	trail := filepath.Join(t.TempDir(), "audit.log")
	w, anna, allow := guarded(t, func(c *config.Config) { c.AuditLog, c.AuditMaxBytes, c.AuditKeep = trail, 1<<20, 2 })
	url := w.queue("dead", nil)
	for i := range 6 {
		w.send(url, fmt.Sprint("order ", i))
	}
	allow(may("*", "godwit:*"), `{"Effect":"Deny","Action":"godwit:DeleteMessages","Resource":"*","Condition":{"StringEquals":{"aws:username":"annette"}}}`)
	made := anna.begun(map[string]any{"kind": "delete", "arn": queueARN("dead"), "perSecond": 1})
	w.advance("2s")
	half := w.awaitEnd(made.ID)
	identities := iam.NewFromConfig(w.config)
	must(identities.UpdateUser(t.Context(), &iam.UpdateUserInput{UserName: aws.String("anna"), NewUserName: aws.String("annette")}))(t)
	w.advance("20s")
	done := w.awaitEnd(made.ID)
	if half.State != "running" || done.State != "failed" || done.Done != half.Done || done.Error == nil || !strings.Contains(*done.Error, "user/annette is not authorized") {
		t.Errorf("%+v, and then %+v", half, done)
	}
	if !strings.HasSuffix(done.By, ":user/annette") {
		t.Errorf("it is of %s", done.By)
	}
	recorded := ""
	for line := range strings.Lines(string(must(os.ReadFile(trail))(t))) {
		if strings.Contains(line, `"JobEnded"`) {
			recorded = line
		}
	}
	if !strings.Contains(recorded, `"userName":"annette"`) {
		t.Errorf("recorded: %s", recorded)
	}
}

// A condition that is true of nothing is not one that is true of all.
func TestJobsAboutNothing(t *testing.T) {
	w := start(t)
	w.send(w.queue("dead", nil), "x")
	for _, where := range []string{`{"ids":[]}`, `{"until":"1970-01-01T00:00:00Z"}`, `{"until":"1969-12-31T00:00:00Z"}`} {
		spec := `{"kind":"delete","arn":"` + queueARN("dead") + `","where":` + where + `}`
		w.refused(http.StatusBadRequest, http.MethodPost, "jobs", spec)
		w.refused(http.StatusBadRequest, http.MethodPost, "jobs/preview", spec)
	}
	equal(t, "left", 1, len(walk(w, "arn", queueARN("dead"))))
}

// Who has no access key of the server is told so without being asked for his body, and who has one
// that it is too large.
func TestBodiesOfStrangers(t *testing.T) {
	w, anna, _ := guarded(t)
	conn := must(net.Dial("tcp", strings.TrimPrefix(w.endpoint, "http://")))(t)
	defer conn.Close()
	stranger := *w
	stranger.signs = &aws.Credentials{AccessKeyID: "AKIASTRANGERSTRANGER", SecretAccessKey: "none"}
	req := must(stranger.request(http.MethodPost, w.endpoint+prefix+"jobs", strings.Repeat("x", 60_000)))(t)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 60000\r\nExpect: 100-continue\r\nAuthorization: %s\r\nX-Amz-Date: %s\r\n\r\n",
		req.URL.Path, req.Host, req.Header.Get("Authorization"), req.Header.Get("X-Amz-Date"))
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil { // which nothing should come near to
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 401 ") {
		t.Errorf("%q, %v", line, err)
	}
	text := anna.call(http.MethodPost, "jobs", "", strings.Repeat("x", 65<<10), http.StatusRequestEntityTooLarge)
	if !strings.Contains(text, `"TooLarge"`) {
		t.Error(text)
	}
}

// What a job looks for may repeat a message: only who may see those is told it.
func TestSearchOfAJob(t *testing.T) {
	w, anna, allow := guarded(t)
	w.queue("orders", nil)
	made := w.begun(map[string]any{"kind": "delete", "arn": queueARN("orders"), "where": map[string]any{"search": "anna@example.com"}})
	for rights, want := range map[string]string{"godwit:Read": "****", `godwit:Read","godwit:PeekMessages`: "anna@example.com"} {
		allow(may("*", rights))
		one := anna.call(http.MethodGet, "job", "id="+made.ID, "", http.StatusOK)
		all := anna.call(http.MethodGet, "jobs", "", "", http.StatusOK)
		_, events, _ := anna.heard("jobs=true", 2)
		for _, text := range []string{one, all, events} {
			if !strings.Contains(text, `"search":"`+want+`"`) {
				t.Errorf("with %s: %s", rights, text)
			}
		}
	}
}

// What is denied is denied at the paths of before as well.
func TestPathsOfBefore(t *testing.T) {
	w, anna, allow := guarded(t)
	w.queue("orders", nil)
	sub := w.subscribe(w.topic("orders"), "sqs", queueARN("orders"), nil)
	on := `{"subscription":"` + sub + `","all":true}`
	for _, c := range []struct{ method, path, body, action, broad, resource string }{
		{http.MethodGet, "queue?queue=" + queueARN("orders"), "", "godwit:GetQueue", "godwit:Read", queueARN("orders")},
		{http.MethodGet, "deliveries?subscription=" + sub, "", "godwit:ListDeliveries", "godwit:Read", sub},
		{http.MethodGet, "backlog?subscription=" + sub, "", "godwit:GetSubscription", "godwit:Read", sub},
		{http.MethodGet, "clock", "", "godwit:GetClock", "godwit:Read", "*"},
		{http.MethodPost, "deliveries/retry", on, "godwit:RetryDelivery", "godwit:Operate", sub},
		{http.MethodPost, "deliveries/drop", on, "godwit:DropDelivery", "godwit:Operate", sub},
		{http.MethodPost, "subscriptions/pause", `{"subscription":"` + sub + `"}`, "godwit:PauseSubscription", "godwit:Operate", sub},
		{http.MethodPost, "subscriptions/pause", `{"SUBSCRIPTION":"` + sub + `"}`, "godwit:PauseSubscription", "godwit:Operate", sub},
		{http.MethodPost, "subscriptions/resume", `{"subscription":"` + sub + `"}`, "godwit:ResumeSubscription", "godwit:Operate", sub},
	} {
		link := w.endpoint + "/_godwit/" + c.path
		allow(may("*", c.broad), deny(queueARN("another"), "godwit:*"))
		anna.fetch(c.method, link, c.body, http.StatusOK)
		for _, denied := range []string{c.action, c.broad} {
			allow(may("*", "godwit:*"), deny(c.resource, denied))
			anna.fetch(c.method, link, c.body, http.StatusForbidden)
		}
	}
	for rights, want := range map[string]int{"godwit:Read": http.StatusForbidden, `godwit:Read","godwit:PeekMessages`: http.StatusOK} { // mails are messages
		allow(may("*", rights))
		anna.fetch(http.MethodGet, w.endpoint+"/_godwit/outbox", "", want)
	}
}
