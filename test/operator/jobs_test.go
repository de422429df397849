package operator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/internal/config"
)

type job struct {
	ID, Kind, ARN, State, By               string
	Scanned, Total, Matched, Done, Skipped int
	PerSecond                              *int
	Error                                  *string
}

func (j job) counts() string {
	return fmt.Sprint(j.State, " ", j.Matched, " ", j.Done, " ", j.Skipped)
}

// previewed adds up all of a preview.
func (w *world) previewed(spec map[string]any) (matches int, sample []string) {
	w.t.Helper()
	asked := maps.Clone(spec)
	for {
		body := must(json.Marshal(asked))(w.t)
		p := post[struct {
			Matches int
			Sample  []string
			Next    *string
		}](w, "jobs/preview", string(body))
		matches += p.Matches
		sample = append(sample, p.Sample...)
		if p.Next == nil {
			return matches, sample
		}
		asked["cursor"] = *p.Next
	}
}

// begun begins a job.
func (w *world) begun(spec map[string]any) job {
	w.t.Helper()
	return post[job](w, "jobs", string(must(json.Marshal(spec))(w.t)))
}

// awaitEnd is a job once nothing is under way any more.
func (w *world) awaitEnd(id string) job {
	w.t.Helper()
	w.advance("0s")
	return get[job](w, "job", "id", id)
}

func TestJobsOfMessages(t *testing.T) {
	w := start(t)
	url := w.queue("dead", nil)
	w.queue("orders", nil)
	for i := range 30 {
		w.send(url, fmt.Sprintf("order %d of %s", i, []string{"anna", "Bob", "carl"}[i%3]))
	}
	arn := queueARN("dead")
	where := map[string]any{"kind": "delete", "arn": arn, "where": map[string]any{"search": "BOB"}}
	matches, sample := w.previewed(where)
	equal(t, "previewed", "10 10", fmt.Sprint(matches, " ", len(sample)))
	equal(t, "a preview changes nothing", 30, len(walk(w, "arn", arn)))
	made := w.begun(where)
	done := w.awaitEnd(made.ID)
	equal(t, "deleted", "completed 10 10 0", done.counts())
	equal(t, "looked at", "30 30", fmt.Sprint(done.Scanned, " ", done.Total))

	named := map[string]any{"kind": "redrive", "arn": arn, "to": queueARN("orders"), "where": map[string]any{"ids": append(positions(w, arn)[:2], "0-999")}}
	made = w.begun(named)
	done = w.awaitEnd(made.ID)
	equal(t, "moved", "completed 3 2 1", done.counts())
	if done.Error == nil || !strings.Contains(*done.Error, "exist") {
		t.Errorf("%+v", done)
	}
	equal(t, "arrived", 2, len(walk(w, "arn", queueARN("orders"))))

	// None reports where it came from.
	made = w.begun(map[string]any{"kind": "redrive", "arn": arn, "where": map[string]any{"until": "2020-01-01T00:00:00Z"}})
	equal(t, "of another time", "completed 0 0 0", w.awaitEnd(made.ID).counts())
	made = w.begun(map[string]any{"kind": "redrive", "arn": arn, "where": map[string]any{"search": "anna"}})
	equal(t, "to nowhere", "completed 9 0 9", w.awaitEnd(made.ID).counts())

	// At a rate, and cancelled.
	slow := map[string]any{"kind": "delete", "arn": arn, "perSecond": 2, "where": map[string]any{}}
	made = w.begun(slow)
	w.refused(http.StatusConflict, http.MethodPost, "jobs", string(must(json.Marshal(slow))(t)))
	w.advance("2s")
	half := w.awaitEnd(made.ID)
	if half.State != "running" || half.Done < 2 || half.Done > 6 {
		t.Errorf("after two seconds: %+v", half)
	}
	equal(t, "cancelling", "cancelling", post[job](w, "jobs/cancel", `{"id":"`+made.ID+`"}`).State)
	equal(t, "cancelled", fmt.Sprint("cancelled ", half.Done, " ", half.Done, " 0"), w.awaitEnd(made.ID).counts())
	w.refused(http.StatusConflict, http.MethodPost, "jobs/cancel", `{"id":"`+made.ID+`"}`)
	equal(t, "left", 18-half.Done, len(walk(w, "arn", arn)))
	all := get[struct{ Jobs []job }](w, "jobs", "arn", arn)
	equal(t, "jobs", 5, len(all.Jobs))
	equal(t, "the latest first", made.ID, all.Jobs[0].ID)
	equal(t, "cancelled ones", 1, len(get[struct{ Jobs []job }](w, "jobs", "state", "cancelled").Jobs))

	w.refused(http.StatusNotFound, http.MethodGet, "job", "id=none")
	w.refused(http.StatusNotFound, http.MethodPost, "jobs/cancel", `{"id":"none"}`)
	w.refused(http.StatusBadRequest, http.MethodPost, "jobs/cancel", `{}`)
	w.refused(http.StatusBadRequest, http.MethodGet, "job", "")
	w.refused(http.StatusBadRequest, http.MethodGet, "jobs", "limit=0")
	for _, path := range []string{"jobs", "jobs/preview"} {
		w.refused(http.StatusNotFound, http.MethodPost, path, `{"kind":"delete","arn":"`+arn+`x"}`)
		for _, body := range []string{
			`{"kind":"burn","arn":"` + arn + `"}`, `{"kind":"delete","arn":"x"}`, `{"kind":"retry","arn":"` + arn + `"}`, `{"kind":"delete","arn":"` + arn + `","to":"` + queueARN("orders") + `"}`,
			`{"kind":"redrive","arn":"` + arn + `","to":"` + arn + `"}`, `{"kind":"redrive","arn":"` + arn + `","to":"` + queueARN("x.fifo") + `"}`,
			`{"kind":"delete","arn":"` + arn + `","where":{"ids":["0-1"],"search":"x"}}`,
		} {
			w.refused(http.StatusBadRequest, http.MethodPost, path, body)
		}
	}
	w.refused(http.StatusBadRequest, http.MethodPost, "jobs/preview", `{"kind":"delete","arn":"`+arn+`","cursor":"bm9uZQ"}`)
}

// positions are those of all messages of a queue.
func positions(w *world, arn string) (all []string) {
	w.t.Helper()
	for _, m := range walk(w, "arn", arn) {
		all = append(all, m.Position)
	}
	return all
}

func TestJobsOfDeliveries(t *testing.T) {
	w := start(t)
	w.queue("dead", nil)
	topic := w.topic("orders")
	policy := `{"healthyRetryPolicy":{"minDelayTarget":600,"maxDelayTarget":600,"numRetries":5}}`
	h, sub := w.hooked(topic, map[string]string{"DeliveryPolicy": policy, "RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`})
	h.status.Store(http.StatusServiceUnavailable)
	for i := range 4 {
		w.publish(topic, fmt.Sprint("hook ", i))
	}
	w.advance("1s")
	spec := map[string]any{"kind": "retry", "arn": sub, "where": map[string]any{"cause": "503"}}
	matches, sample := w.previewed(spec)
	equal(t, "previewed", "4 4", fmt.Sprint(matches, " ", len(sample)))
	equal(t, "none of another cause", 0, first(w.previewed(map[string]any{"kind": "retry", "arn": sub, "where": map[string]any{"cause": "404"}})))
	before := h.requests.Load()
	made := w.begun(spec)
	equal(t, "retried", "completed 4 4 0", w.awaitEnd(made.ID).counts())
	equal(t, "attempts", before+4, h.requests.Load())
	made = w.begun(map[string]any{"kind": "drop", "arn": sub, "where": map[string]any{"ids": sample[:1]}})
	equal(t, "one dropped", "completed 1 1 0", w.awaitEnd(made.ID).counts())
	made = w.begun(map[string]any{"kind": "drop", "arn": sub, "where": map[string]any{}})
	equal(t, "dropped", "completed 3 3 0", w.awaitEnd(made.ID).counts())
	equal(t, "dead letters", 4, len(walk(w, "arn", queueARN("dead"))))

	// Back to the endpoint, by why they died.
	h.status.Store(http.StatusOK)
	letters := walk(w, "arn", queueARN("dead"))
	made = w.begun(map[string]any{"kind": "redrive", "arn": queueARN("dead"), "where": map[string]any{"from": sub, "cause": letters[0].DeadLetter.Cause}})
	equal(t, "redriven", "completed 4 4 0", w.awaitEnd(made.ID).counts())
	w.advance("1s")
	equal(t, "delivered", before+8, h.requests.Load())
	w.refused(http.StatusBadRequest, http.MethodPost, "jobs", `{"kind":"drop","arn":"`+sub+`","where":{"search":"x"}}`)
	w.refused(http.StatusNotFound, http.MethodPost, "jobs", `{"kind":"drop","arn":"`+sub[:len(sub)-1]+`z"}`)
}

// What jobs do is counted where Prometheus looks.
func TestJobMetrics(t *testing.T) {
	w := startWith(t, func(c *config.Config) { c.Prometheus, c.PrometheusSeries = true, 10 })
	url := w.queue("dead", nil)
	for i := range 5 {
		w.send(url, fmt.Sprint("order ", i))
	}
	counted := func(lines ...string) {
		t.Helper()
		text := w.fetch(http.MethodGet, w.endpoint+"/metrics", "", http.StatusOK)
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("there is no %s", line)
			}
		}
	}
	counted(`godwit_jobs_running{kind="delete"} 0`, `godwit_jobs_ended_total{kind="delete",state="completed"} 0`)
	one := w.begun(map[string]any{"kind": "delete", "arn": queueARN("dead"), "where": map[string]any{"search": "order 1"}})
	w.awaitEnd(one.ID)
	waits := w.begun(map[string]any{"kind": "delete", "arn": queueARN("dead"), "perSecond": 1, "where": map[string]any{}})
	w.awaitEnd(waits.ID)
	counted(`godwit_jobs_running{kind="delete"} 1`, `godwit_jobs_ended_total{kind="delete",state="completed"} 1`, `godwit_job_items_total{kind="delete",outcome="done"} 2`)
	post[job](w, "jobs/cancel", `{"id":"`+waits.ID+`"}`)
	w.awaitEnd(waits.ID)
	made := w.begun(map[string]any{"kind": "redrive", "arn": queueARN("dead"), "where": map[string]any{}})
	w.awaitEnd(made.ID)
	counted(`godwit_jobs_running{kind="delete"} 0`, `godwit_jobs_ended_total{kind="delete",state="cancelled"} 1`,
		`godwit_jobs_ended_total{kind="redrive",state="completed"} 1`, `godwit_job_items_total{kind="redrive",outcome="skipped"} 3`)
}

func first[A, B any](a A, _ B) A { return a }

// A job continues after a restart, and is done for whoever began it.
func TestJobGoesOn(t *testing.T) {
	dir := t.TempDir()
	on := func(c *config.Config) { c.Store, c.Data = config.PebbleStore, dir }
	w := startWith(t, on)
	url := w.queue("dead", nil)
	for i := range 6 {
		w.send(url, fmt.Sprint("order ", i))
	}
	made := w.begun(map[string]any{"kind": "delete", "arn": queueARN("dead"), "perSecond": 1, "where": map[string]any{}})
	w.advance("2s")
	half := w.awaitEnd(made.ID)
	w.stop()
	w = startWith(t, on)
	w.advance("10s")
	done := w.awaitEnd(made.ID)
	equal(t, "done", "completed 6 6 0", done.counts())
	if half.State != "running" || half.Done == 0 {
		t.Errorf("half-way: %+v", half)
	}
	equal(t, "left", 0, len(walk(w, "arn", queueARN("dead"))))
}

// What a job does takes its own right, and a search the right to see messages.
func TestJobRights(t *testing.T) {
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
	anna := worldAt(t, w.endpoint, root)
	anna.signs = &aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey}
	plain := `{"kind":"delete","arn":"` + queueARN("orders") + `"}`
	search := `{"kind":"delete","arn":"` + queueARN("orders") + `","where":{"search":"x"}}`
	for _, c := range []struct {
		allow, deny, path, body string
		want                    int
	}{
		{`"godwit:CreateJob"`, `"none:None"`, "jobs", plain, http.StatusForbidden},
		{`"godwit:DeleteMessages"`, `"none:None"`, "jobs", plain, http.StatusForbidden},
		{`"godwit:CreateJob","godwit:DeleteMessages"`, `"none:None"`, "jobs", search, http.StatusForbidden},
		{`"godwit:Operate"`, `"godwit:DeleteMessages"`, "jobs", plain, http.StatusForbidden},
		{`"godwit:Read","godwit:Operate"`, `"none:None"`, "jobs/preview", plain, http.StatusForbidden},
		{`"godwit:PeekMessages"`, `"none:None"`, "jobs/preview", search, http.StatusOK},
		{`"godwit:CreateJob","godwit:DeleteMessages"`, `"none:None"`, "jobs", plain, http.StatusAccepted},
	} {
		doc := `{"Statement":[{"Effect":"Allow","Action":[` + c.allow + `],"Resource":"*"},{"Effect":"Deny","Action":[` + c.deny + `],"Resource":"*"}]}`
		must(identities.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &doc}))(t)
		anna.call(http.MethodPost, c.path, "", c.body, c.want)
	}
}
