package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/api/operator/jobs"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard/inspect"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// asked is a node that is asked for jobs, with the queues std, other and q.fifo, of which
// std holds messages.
func asked(t *testing.T, messages int) (*node, *jobs.Jobs) {
	t.Helper()
	s := shardtest.OpenStore(t, vfs.NewCrashableMem())
	n := open(t, s, nil)
	t.Cleanup(func() {
		n.AwaitIdle()
		n.Close()
		s.Close()
	})
	for _, queue := range []string{"std", "other", "q.fifo"} {
		if err := n.CreateQueue(t.Context(), queues.QueueSpec{ARN: shardtest.QueueARN(queue)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		if _, err := n.Send(t.Context(), shardtest.QueueARN("std"), []queues.SendEntry{{Message: shardtest.NewMessage(i, fmt.Sprint("order ", i%2))}}); err != nil {
			t.Fatal(err)
		}
	}
	ids := 0
	return n, jobs.New(jobs.Options{
		Module: n.jobs, Engine: n.Engine, Inspect: inspect.New(n.Queues, n.Functions), Clock: clock.System,
		NewID: func() string { ids++; return fmt.Sprint("job-", ids) },
	})
}

// What cannot be meant is refused, by a preview as well, and is no job.
func TestRefusedSpecs(t *testing.T) {
	_, j := asked(t, 0)
	std, now := shardtest.QueueARN("std").String(), clock.System.Now()
	before := time.UnixMilli(-1)
	const subscription = "arn:aws:sns:us-east-1:000000000000:t:00000000-0000-4000-8000-000000000000"
	for name, c := range map[string]struct {
		spec jobs.JobSpec
		want string
	}{
		"ids and a search": {jobs.JobSpec{Kind: "delete", ARN: std, Where: jobs.JobWhere{IDs: []string{"1"}, Search: "x"}}, "where: ids stand alone"},
		"ids and a time":   {jobs.JobSpec{Kind: "delete", ARN: std, Where: jobs.JobWhere{IDs: []string{"1"}, Since: &now}}, "where: ids stand alone"},
		"no ids":           {jobs.JobSpec{Kind: "delete", ARN: std, Where: jobs.JobWhere{IDs: []string{}}}, "where: ids names nothing"},
		"until nothing":    {jobs.JobSpec{Kind: "delete", ARN: std, Where: jobs.JobWhere{Until: &before}}, "where: until is before everything"},
		"a target of a deletion": {
			jobs.JobSpec{Kind: "delete", ARN: std, To: shardtest.QueueARN("other").String()}, "to: it goes with redrive only",
		},
		"to the same queue": {jobs.JobSpec{Kind: "redrive", ARN: std, To: std}, "to: it is the queue that they are in"},
		"to a FIFO queue": {
			jobs.JobSpec{Kind: "redrive", ARN: std, To: shardtest.QueueARN("q.fifo").String()}, "to: both queues have to be FIFO queues, or none",
		},
		"deliveries by their text": {
			jobs.JobSpec{Kind: "retry", ARN: subscription, Where: jobs.JobWhere{Search: "x"}}, "where: search and from are about messages of queues",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, created := j.Create(t.Context(), &rest.Call{}, &jobs.CreateJob{JobSpec: c.spec})
			_, previewed := j.Preview(t.Context(), &rest.Call{}, &jobs.PreviewJob{JobSpec: c.spec})
			for what, err := range map[string]error{"created": created, "previewed": previewed} {
				if refusal, ok := errors.AsType[*rest.Refusal](err); !ok || refusal.Status != 400 || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want a bad request: %s", what, err, c.want)
				}
			}
		})
	}
	for _, spec := range []jobs.JobSpec{
		{Kind: "delete", ARN: "nonsense"},
		{Kind: "delete", ARN: shardtest.QueueARN("gone").String()},
		{Kind: "drop", ARN: std},
		{Kind: "redrive", ARN: std, To: shardtest.QueueARN("gone").String()},
	} {
		if _, err := j.Create(t.Context(), &rest.Call{}, &jobs.CreateJob{JobSpec: spec}); err == nil {
			t.Errorf("%+v is taken", spec)
		}
	}
	if all, err := j.List(t.Context(), &rest.Call{}, &jobs.ListJobs{Limit: 10}); err != nil || len(all.Jobs) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A job needs the right to what it does, and one that searches the right to read messages. To
// whom that is not given, a search is not shown.
func TestRights(t *testing.T) {
	n, j := asked(t, 4)
	std := shardtest.QueueARN("std").String()
	may := func(actions ...string) *rest.Call {
		return &rest.Call{May: func(_ context.Context, action, resource string) error {
			if resource == std && slices.Contains(actions, action) {
				return nil
			}
			return errors.New("not allowed")
		}}
	}
	search := &jobs.CreateJob{JobSpec: jobs.JobSpec{Kind: "delete", ARN: std, Where: jobs.JobWhere{Search: "order 1"}}}
	for _, c := range []*rest.Call{may(), may(rest.Peeking), may("godwit:RedriveMessages", rest.Peeking), may("godwit:DeleteMessages")} {
		if _, err := j.Create(t.Context(), c, search); err == nil {
			t.Error("a job is taken from one who may not")
		}
	}
	made, err := j.Create(t.Context(), may("godwit:DeleteMessages", rest.Peeking), search)
	if err != nil || made.Where.Search != "order 1" || made.ID != "job-1" || made.Total != 4 || made.ARN != std {
		t.Fatalf("%+v, %v", made, err)
	}
	n.AwaitIdle()
	for _, c := range []struct {
		call *rest.Call
		want string
	}{{&rest.Call{}, "order 1"}, {may(rest.Peeking), "order 1"}, {may("godwit:DeleteMessages"), "****"}} {
		got, err := j.Get(t.Context(), c.call, &jobs.OneJob{ID: made.ID})
		if err != nil || got.Where.Search != c.want || got.State != "completed" || got.Done != 2 || got.ETASeconds != nil || got.FinishedAt == nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if left := n.held(t, "std"); left != 2 {
		t.Errorf("%d messages are left, want 2", left)
	}
	if _, err := j.Get(t.Context(), &rest.Call{}, &jobs.OneJob{ID: "job-9"}); err == nil {
		t.Error("a job that nobody asked for is there")
	}
	for list, want := range map[jobs.ListJobs]int{
		{Limit: 10}: 1, {Limit: 10, State: "completed", ARN: std}: 1, {Limit: 10, State: "running"}: 0, {Limit: 10, ARN: "another"}: 0,
	} {
		if got, err := j.List(t.Context(), &rest.Call{}, &list); err != nil || len(got.Jobs) != want {
			t.Errorf("%+v: %+v, %v", list, got, err)
		}
	}
}

// A preview counts what a job would be about, shows ten of it, and changes nothing. What was
// named is looked at from where the cursor says.
func TestPreview(t *testing.T) {
	n, j := asked(t, 30)
	std := shardtest.QueueARN("std").String()
	p, err := j.Preview(t.Context(), &rest.Call{}, &jobs.PreviewJob{JobSpec: jobs.JobSpec{Kind: "delete", ARN: std, Where: jobs.JobWhere{Search: "ORDER 1"}}})
	if err != nil || p.Matches != 15 || p.Scanned != 30 || p.Total != 30 || len(p.Sample) != 10 || p.Next != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if left := n.held(t, "std"); left != 30 {
		t.Errorf("%d messages are left, want all", left)
	}
	for _, cursor := range []string{"nonsense", "99"} {
		spec := jobs.JobSpec{Kind: "delete", ARN: std, Where: jobs.JobWhere{IDs: []string{"1"}}}
		if _, err := j.Preview(t.Context(), &rest.Call{}, &jobs.PreviewJob{JobSpec: spec, Cursor: cursor}); err == nil {
			t.Errorf("cursor %s is taken", cursor)
		}
	}
}

// While the disk is short of space, messages can still be deleted by a job, which gives space back.
// A redrive is refused with what to do.
func TestShortOfSpace(t *testing.T) {
	n, j := asked(t, 30)
	n.Options.Full = func() bool { return true }
	std := shardtest.QueueARN("std").String()
	_, err := j.Create(t.Context(), &rest.Call{}, &jobs.CreateJob{JobSpec: jobs.JobSpec{Kind: "redrive", ARN: std, To: shardtest.QueueARN("other").String()}})
	if r := rest.RefusalOf(err); err == nil || r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Text, "free space") {
		t.Errorf("a redrive: %+v", err)
	}
	if _, err := j.Create(t.Context(), &rest.Call{}, &jobs.CreateJob{JobSpec: jobs.JobSpec{Kind: "delete", ARN: std}}); err != nil {
		t.Fatal(err)
	}
	n.AwaitIdle()
	if left := n.held(t, "std"); left != 0 {
		t.Errorf("%d messages are left", left)
	}
}

// A condition that is there and says nothing, as of a variable that is not set, is not one that is
// true of everything.
func TestEmptyConditions(t *testing.T) {
	n, j := asked(t, 3)
	mux := http.NewServeMux()
	for pattern, h := range rest.Handlers([]rest.Operation{rest.Define(rest.Operation{Method: http.MethodPost, Path: "/jobs", Name: "CreateJob"}, j.Create)}, rest.Options{}) {
		mux.Handle(pattern, h)
	}
	for _, where := range []string{
		`null`, `{"ids":null}`, `{"ids":[]}`, `{"search":null}`, `{"search":""}`, `{"cause":""}`, `{"from":null}`, `{"since":null}`, `{"until":null}`,
		`{"search":"x","search":null}`, `{"search":"x","Search":""}`, `{"Search":"x"}`, `{"search":"x"},"Where":{}`, `{"search":"x"},"where":{}`,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/jobs", strings.NewReader(`{"kind":"delete","arn":"`+shardtest.QueueARN("std").String()+`","where":`+where+`}`)))
		n.AwaitIdle()
		if w.Code != http.StatusBadRequest || n.held(t, "std") != 3 {
			t.Errorf("where %s: %d %s; %d messages are left", where, w.Code, w.Body, n.held(t, "std"))
		}
	}
}
