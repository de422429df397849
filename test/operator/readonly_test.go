package operator_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/internal/config"
)

// A user with the managed policy for reading sees everything but messages, changes nothing,
// and each refusal is in the audit log; so does the command line in his name. To see messages
// takes a right of its own, whose use is in the audit log as well.
func TestReadOnly(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	trail := filepath.Join(t.TempDir(), "audit.log")
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
		c.AuditLog, c.AuditMaxBytes, c.AuditKeep = trail, 1<<20, 2
	})
	w = worldAt(t, w.endpoint, root)
	w.send(w.queue("orders", nil), "a secret of anna")
	topic := w.topic("orders")
	sub := w.subscribe(topic, "sqs", queueARN("orders"), nil)
	identities := iam.NewFromConfig(w.config)
	name, policy := "anna", "arn:aws:iam::aws:policy/GodwitReadOnlyAccess"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	must(identities.AttachUserPolicy(t.Context(), &iam.AttachUserPolicyInput{UserName: &name, PolicyArn: &policy}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	w.signs = &aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}

	type entry struct {
		EventName, ErrorCode string
		ReadOnly             bool
		UserIdentity         struct{ UserName string }
	}
	read := 0
	audited := func() (news []entry) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(string(must(os.ReadFile(trail))(t))), "\n")
		for _, line := range lines[read:] {
			var one entry
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Fatal(err)
			}
			news = append(news, one)
		}
		read = len(lines)
		return news
	}
	audited()
	inputs := samples(queueARN("orders"), topic, sub)
	seen, refused := 0, 0
	for path, item := range document(w).Paths {
		short := strings.TrimPrefix(path, prefix)
		for method, op := range item {
			if short == "events" || short == "tail" {
				continue // which does not end
			}
			method = strings.ToUpper(method)
			link, body := w.endpoint+path, ""
			if method == http.MethodGet {
				link += "?" + inputs[short]
			} else if body = inputs["POST "+short]; body == "" {
				body = inputs[short]
			}
			sees := method == http.MethodGet && op.Action != "godwit:PeekMessages" && op.Action != "godwit:Backup" ||
				op.Action == "godwit:PlanPolicy" || op.Action == "godwit:TestFilter" // which change nothing
			status, text := w.ask(method, link, body)
			if (status == http.StatusForbidden) == sees || status == http.StatusUnauthorized || status == http.StatusBadRequest {
				t.Errorf("%s %s: %d %s", method, path, status, text)
			}
			if strings.Contains(text, "a secret of anna") {
				t.Errorf("%s %s shows a message", method, path)
			}
			news := audited()
			if len(news) != 1 || news[0].EventName != op.OperationID || (news[0].ErrorCode == "AccessDenied") == sees || news[0].UserIdentity.UserName != name {
				t.Errorf("%s %s: in the audit log: %+v", method, path, news)
			}
			if sees {
				seen++
			} else {
				refused++
			}
		}
	}
	if seen < 20 || refused < 20 {
		t.Errorf("only %d operations are allowed and %d refused", seen, refused)
	}

	t.Setenv("AWS_ACCESS_KEY_ID", *key.AccessKeyId)
	t.Setenv("AWS_SECRET_ACCESS_KEY", *key.SecretAccessKey)
	server := operate.Connection{Endpoint: w.endpoint, Output: "table"}
	var out bytes.Buffer
	queues := operate.Queues{Connection: server, Sort: "name", Kind: "all"}
	queues.Limit = 10
	if err := queues.Run(operate.Streams{Out: &out}); err != nil || !strings.Contains(out.String(), "orders") {
		t.Errorf("godwit queues: %v: %s", err, out.String())
	}
	change := operate.Subscriptions{}
	change.Pause.Connection, change.Pause.Subscription = server, sub
	if err := change.Pause.Run(operate.Streams{Out: &out}); err == nil || !strings.Contains(err.Error(), "godwit:PauseSubscription") {
		t.Errorf("godwit subscriptions pause: %v", err)
	}
	look := operate.Messages{Connection: server, Queue: queueARN("orders"), Limit: 10}
	if err := look.Run(operate.Streams{Out: &out}); err == nil || !strings.Contains(err.Error(), "godwit:PeekMessages") {
		t.Errorf("godwit messages: %v", err)
	}
	audited()
	doc := `{"Statement":{"Effect":"Allow","Action":"godwit:PeekMessages","Resource":"` + queueARN("orders") + `"}}`
	must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &doc}))(t)
	audited()
	if err := look.Run(operate.Streams{Out: &out}); err != nil || !strings.Contains(out.String(), "a secret of anna") {
		t.Errorf("with the right to: %v: %s", err, out.String())
	}
	if news := audited(); len(news) != 1 || news[0].EventName != "ListMessages" || news[0].ErrorCode != "" || news[0].UserIdentity.UserName != name {
		t.Errorf("a look in the audit log: %+v", news)
	}
	w.signs = &root
	made := post[job](w, "jobs", `{"kind":"delete","arn":"`+queueARN("orders")+`","where":{"search":"a secret of anna"}}`)
	equal(t, "a job", "completed 1 1 0", w.awaitEnd(made.ID).counts())
	var names []string
	for _, one := range audited() {
		names = append(names, one.EventName)
	}
	if !slices.Contains(names, "CreateJob") || !slices.Contains(names, "JobEnded") { // in either order: a job may end before its call has
		t.Errorf("a job in the audit log: %v", names)
	}
	for _, c := range [][3]string{
		{http.MethodPost, "jobs/cancel", `{"id":"6f9619ff-8b86-4d01-b42d-00cf4fc964ff"}`},
		{http.MethodPost, "jobs", `{"kind":"delete","arn":"` + queueARN("gone") + `","where":{"search":"a secret of anna"}}`},
		{http.MethodGet, "messages?arn=" + url.QueryEscape(queueARN("gone")), ""},
	} {
		status, text := w.ask(c[0], w.endpoint+prefix+c[1], c[2])
		if news := audited(); status != http.StatusNotFound || len(news) != 1 || news[0].ErrorCode != "NotFound" {
			t.Errorf("%s: %d %s, in the audit log %+v", c[1], status, text, news)
		}
	}
	// What cannot be read, or does not exist, is in it, too.
	for _, c := range []struct {
		method, link, body, name, code string
		status                         int
	}{
		{http.MethodPost, "jobs", `{"kind":"eat"}`, "CreateJob", "BadRequest", http.StatusBadRequest},
		{http.MethodPost, "messages/delete", `{"arn":`, "DeleteMessages", "BadRequest", http.StatusBadRequest},
		{http.MethodGet, "queues?limit=many", "", "ListQueues", "BadRequest", http.StatusBadRequest},
		{http.MethodGet, "quues", "", "GET /_godwit/v1/quues", "NotFound", http.StatusNotFound},
		{http.MethodPost, "queues", "{}", "POST /_godwit/v1/queues", "NotFound", http.StatusNotFound},
	} {
		status, text := w.ask(c.method, w.endpoint+prefix+c.link, c.body)
		news := audited()
		if status != c.status || len(news) != 1 || news[0].EventName != c.name || news[0].ErrorCode != c.code || news[0].ReadOnly != (c.method == http.MethodGet) {
			t.Errorf("%s %s: %d %s, in the audit log %+v", c.method, c.link, status, text, news)
		}
	}
	if used := must(identities.GetAccessKeyLastUsed(t.Context(), &iam.GetAccessKeyLastUsedInput{AccessKeyId: key.AccessKeyId}))(t).AccessKeyLastUsed; *used.ServiceName != "godwit" || used.LastUsedDate == nil {
		t.Errorf("the key was used for %s at %v", *used.ServiceName, used.LastUsedDate)
	}
	if text := string(must(os.ReadFile(trail))(t)); strings.Contains(text, "a secret of anna") || strings.Contains(text, *key.SecretAccessKey) {
		t.Error("the audit log has a body, or a secret")
	}
}
