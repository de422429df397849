package operator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/internal/config"
)

// Every operation is allowed by its own action and by the broad right that covers it, on the
// resource that is named, and by nothing else.
func TestRights(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.queue("orders", nil)
	arn, topic := queueARN("orders"), w.topic("orders")
	w.refused(http.StatusUnauthorized, http.MethodGet, "queues", "")
	w.signs = &root
	equal(t, "the root user", 1, get[queuePage](w, "queues").Total)

	identities := iam.NewFromConfig(w.config)
	name := "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	anna := worldAt(t, w.endpoint, root)
	anna.signs = &aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}
	allow := func(statements string) {
		t.Helper()
		doc := `{"Version":"2012-10-17","Statement":[` + statements + `]}`
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &doc}))(t)
	}
	statement := func(effect, action, resource string) string {
		return `{"Effect":"` + effect + `","Action":"` + action + `","Resource":"` + resource + `"}`
	}
	body := `{"arn":"` + arn + `","positions":["0-1"]}`
	operations := []struct{ action, broad, method, path, input string }{
		{"godwit:ListQueues", "godwit:Read", http.MethodGet, "queues", ""},
		{"godwit:GetQueue", "godwit:Read", http.MethodGet, "queue", "arn=" + arn},
		{"godwit:PeekMessages", "", http.MethodGet, "messages", "arn=" + arn},
		{"godwit:PeekMessages", "", http.MethodGet, "dead-letters", "arn=" + arn},
		{"godwit:PeekMessages", "", http.MethodGet, "publishes", "arn=" + topic},
		{"godwit:DeleteMessages", "godwit:Operate", http.MethodPost, "messages/delete", body},
		{"godwit:Backup", "", http.MethodPost, "backup/end", `{"id":"none"}`},
		{"godwit:BeginDelivering", "godwit:Operate", http.MethodPost, "delivering/begin", "{}"},
		{"godwit:PlanPolicy", "godwit:Read", http.MethodPost, "policy-plan", `{"protocol":"sqs"}`},
	}
	call := func(method, path, input string, status int) {
		t.Helper()
		if method == http.MethodGet {
			anna.call(method, path, input, "", status)
		} else {
			anna.call(method, path, "", input, status)
		}
	}
	for _, op := range operations {
		resource := arn
		if !strings.Contains(op.input, arn) {
			resource = "*"
		}
		allow(statement("Allow", "none:None", "*"))
		call(op.method, op.path, op.input, http.StatusForbidden)
		allow(statement("Allow", op.action, resource))
		call(op.method, op.path, op.input, http.StatusOK)
		for _, broad := range []string{"godwit:Read", "godwit:Operate"} {
			want := http.StatusForbidden
			if broad == op.broad {
				want = http.StatusOK
			}
			allow(statement("Allow", broad, "*"))
			call(op.method, op.path, op.input, want)
		}
		if op.broad != "" {
			allow(statement("Allow", op.broad, "*") + "," + statement("Deny", op.action, "*"))
			call(op.method, op.path, op.input, http.StatusForbidden)
		}
		if resource != "*" {
			allow(statement("Allow", op.action, queueARN("other")))
			call(op.method, op.path, op.input, http.StatusForbidden)
		}
	}
}

// samples are what POSTs of the matrix say, and queries what GETs do, by their paths; others
// need nothing.
func samples(queue, topic, sub string) map[string]string {
	on := `{"subscription":"` + sub + `"`
	return map[string]string{
		"queue": "arn=" + queue, "messages": "arn=" + queue, "message": "arn=" + queue + "&position=0-1", "dead-letters": "arn=" + queue, "publishes": "arn=" + topic, "redrives": "arn=" + queue,
		"topic": "arn=" + topic, "subscription": "arn=" + sub, "deliveries": "subscription=" + sub, "delivery": "subscription=" + sub + "&id=0-1",
		"function":        "arn=arn:aws:lambda:" + region + ":" + account + ":function:f",
		"messages/delete": `{"arn":"` + queue + `","positions":["0-1"]}`, "messages/redrive": `{"arn":"` + queue + `","positions":["0-1"]}`,
		"redrive": `{"arn":"` + queueARN("none") + `"}`, "redrive/cancel": `{"arn":"` + queue + `","id":"x"}`,
		"subscription/pause": on + `}`, "subscription/resume": on + `}`, "subscription/attribute": on + `,"name":"RawMessageDelivery","value":"false"}`,
		"delivery/retry": on + `,"id":"0-1"}`, "delivery/drop": on + `,"id":"0-1"}`,
		"alarm": "arn=arn:aws:cloudwatch:" + region + ":" + account + ":alarm:a", "metrics": "arn=" + queue,
		"log-streams": "arn=arn:aws:logs:" + region + ":" + account + ":log-group:g", "log-events": "arn=arn:aws:logs:" + region + ":" + account + ":log-group:g",
		"topic/attribute": `{"topic":"` + topic + `","name":"DisplayName","value":"Orders"}`,
		"jobs/preview":    `{"kind":"delete","arn":"` + queue + `"}`, "job": "id=none", "jobs/cancel": `{"id":"none"}`,
		"POST jobs":   `{"kind":"delete","arn":"` + queue + `"}`,
		"policy-plan": `{"protocol":"sqs"}`, "filter-test": `{"filterPolicy":"{}","messages":[]}`,
		"backup": `{}`, "backup/part": "id=none&name=none", "backup/end": `{"id":"none"}`, "delivering/begin": `{}`,
		"POST clock": `{"advance":"1s"}`, "POST faults": `{"arn":"` + queue + `","fault":"none"}`, "reset": `{"account":"999999999999"}`,
		"source": "name=none", "POST sources": `{"name":"shop","target":"` + queue + `","verification":{"kind":"github"},"secrets":["a secret of some length"]}`, "source/pause": `{"name":"none"}`, "source/resume": `{"name":"none"}`, "source/delete": `{"name":"none"}`,
	}
}

// TestMatrix: every operation of the document is refused to whom nothing is allowed, and
// open to whom its own action is.
func TestMatrix(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.queue("orders", nil)
	topic := w.topic("orders")
	sub := w.subscribe(topic, "sqs", queueARN("orders"), nil)
	identities := iam.NewFromConfig(w.config)
	name := "anna"
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	w.signs = &aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}
	inputs := samples(queueARN("orders"), topic, sub)
	cases := 0
	for path, item := range document(w).Paths {
		short := strings.TrimPrefix(path, prefix)
		for method, op := range item {
			if short == "events" || short == "tail" {
				continue // which does not end
			}
			method = strings.ToUpper(method)
			for _, action := range []string{"none:None", op.Action} {
				doc := `{"Statement":{"Effect":"Allow","Action":"` + action + `","Resource":"*"}}`
				must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &doc}))(t)
				link, body := w.endpoint+path, ""
				if method == http.MethodGet {
					link += "?" + inputs[short]
				} else {
					if body = inputs[short]; body == "" {
						body = inputs["POST "+short]
					}
				}
				if (short == "jobs" || short == "sources") && method == http.MethodPost { // which takes two rights: TestJobRights, TestSourceRights
					continue
				}
				status, text := w.ask(method, link, body)
				if cases++; (status == http.StatusForbidden) != (action == "none:None") || status == http.StatusBadRequest || status == http.StatusUnauthorized {
					t.Errorf("%s %s for whom %s is allowed: %d %s", method, path, action, status, text)
				}
			}
		}
	}
	if cases < 50 {
		t.Errorf("only %d cases", cases)
	}
}
