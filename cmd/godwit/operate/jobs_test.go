package operate

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
)

const evil = `\u001b[31m\u202e=1+1<script>`

func TestJobs(t *testing.T) {
	job := `{"id":"j","kind":"delete","arn":"a","state":"completed","scanned":10,"total":10,"matched":4,"done":4,"skipped":0,"createdAt":"2024-02-29T12:00:00Z","error":"` + evil + `"}`
	c := server(t, map[string]string{
		"overview": overview, "jobs": `{"jobs":[` + job + `]}`, "jobs/preview": `{"matches":4,"scanned":10,"total":10,"sample":[],"next":null}`, "job": job, "jobs/cancel": job,
		"keys":        `{"keys":[{"id":"AKIA","user":"` + evil + `","active":true,"createdAt":"2024-02-29T12:00:00Z","lastUsedAt":null,"lastUsedService":null}],"next":null}`,
		"policy-plan": `{"valid":true,"phases":[{"name":"immediate","retries":3,"fromSeconds":0,"untilSeconds":0,"shortestDelaySeconds":0,"longestDelaySeconds":0}],"backlog":{"owed":2,"attempts":8}}`,
	})
	for name, tt := range map[string]struct {
		run  func(Streams) error
		want string
	}{
		"jobs":     {(&listJobs{Connection: c}).Run, "j   delete  a         completed  ████████████████████ 10 of 10     4        0  2024-02-29T12:00:00Z  \\u001b[31m\\u202e=1+1<script>\n"},
		"one job":  {(&listJobs{Connection: c, Job: "j"}).Run, "\nskipped    0\n"},
		"cancel":   {(&cancelJob{Connection: c, Job: "j"}).Run, "\nstate      completed\n"},
		"keys":     {(&Keys{Connection: c}).Run, "AKIA  \\u001b[31m\\u202e=1+1<script>  true    2024-02-29T12:00:00Z  –          –\n"},
		"simulate": {(&Simulate{Connection: c, Subscription: "s"}).Run, "immediate        3    0s     0s              0s             0s\nIt is owed 2 deliveries: at most 8 attempts, if none succeeds.\n"},
	} {
		var out bytes.Buffer
		if err := tt.run(Streams{Out: &out, Err: &out}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(out.String(), tt.want) || strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), unsafe) {
			t.Errorf("%s:\n%q\nwant:\n%q", name, out.String(), tt.want)
		}
	}
	j := startJob{Connection: c, Kind: "delete", Resource: "dead", Search: new("x"), To: "other"}
	var out, said bytes.Buffer
	if err := j.Run(Streams{In: strings.NewReader("n\n"), Out: &out, Err: &said}); err == nil || !strings.Contains(said.String(), "delete 4 of arn:aws:sqs:us-east-1:000000000000:dead? [y/N]") || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("%v: %s", err, said.String())
	}
}

// A condition that is empty, as of a variable that is not set, is not one that is true of all.
func TestEmptyConditions(t *testing.T) {
	c := server(t, map[string]string{"overview": overview})
	for name, j := range map[string]startJob{
		"--search": {Search: new("")}, "--cause": {Cause: new("")}, "--from": {From: new("")}, "--since": {Since: new("")}, "--until": {Until: new("")},
	} {
		j.Connection, j.Kind, j.Resource, j.Yes = c, "delete", "dead", true
		var out bytes.Buffer
		if err := j.Run(Streams{Out: &out, Err: &out}); err == nil || !strings.Contains(err.Error(), name+" is empty") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What cannot be meant is refused with the flag and with what is meant, before anything is asked for.
func TestRefusedConditions(t *testing.T) {
	c := server(t, map[string]string{"overview": overview, "jobs": `{"id":"j","state":"completed"}`})
	for want, j := range map[string]startJob{
		`--since: want a time such as 2026-01-31T12:00:00Z, or how long ago, such as 1d or 90m, have "yesterday"`: {Resource: "dead", Since: new("yesterday")},
		`--until: want a time such as 2026-01-31T12:00:00Z, or how long ago, such as 1d or 90m, have "12:00"`:     {Resource: "dead", Until: new("12:00")},
		`want a name or an ARN, and no URL, have "http://h/000000000000/q"`:                                       {Resource: "http://h/000000000000/q"},
	} {
		j.Connection, j.Kind, j.Yes = c, "delete", true
		var out bytes.Buffer
		if err := j.Run(Streams{Out: &out, Err: &out}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A duration is so long ago by the server's clock, which may be a virtual one.
func TestConditionsByAge(t *testing.T) {
	c := server(t, map[string]string{"overview": `{"server":{"region":"us-east-1","account":"000000000000","now":"2024-03-01T12:00:00.5Z"}}`})
	j := startJob{Connection: c, Kind: "delete", Resource: "dead", Since: new("1d"), Until: new("1h30m")}
	spec, err := j.spec(t.Context(), c.client())
	if want := "map[since:2024-02-29T12:00:00.5Z until:2024-03-01T10:30:00.5Z]"; err != nil || fmt.Sprint(spec["where"]) != want {
		t.Errorf("%v, %v, want %s", spec["where"], err, want)
	}
}

// Who may look at messages and not at the server is told why a name is of no use to him.
func TestNameWithoutTheRight(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":"not authorized to perform: godwit:GetOverview","code":"Forbidden"}`)
	}))
	defer s.Close()
	err := (&Messages{Connection: Connection{Endpoint: s.URL}, Queue: "q", Limit: 1}).Run(Streams{Out: io.Discard, Err: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "give the ARN") {
		t.Errorf("%v", err)
	}
}

// Who asks a server with TLS in clear, or does not trust it, is told what is wanted.
func TestServerWithTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	for endpoint, want := range map[string]string{"http://" + s.Listener.Addr().String(): "want https://", s.URL: "AWS_CA_BUNDLE"} {
		err := (&Queues{Connection: Connection{Endpoint: endpoint}}).Run(Streams{Out: io.Discard, Err: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// A rate of 0 is told to the server, which refuses it: it is not as fast as things go.
func TestNoRate(t *testing.T) {
	asked := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked[path.Base(r.URL.Path)] = string(body)
		_, _ = io.WriteString(w, overview)
	}))
	defer s.Close()
	c := Connection{Endpoint: s.URL, Output: "table"}
	out := Streams{Out: io.Discard, Err: io.Discard}
	_ = (&startJob{Connection: c, Kind: "delete", Resource: "q", Yes: true, Detach: true, Rate: new(0)}).Run(out)
	_ = (&redrive{Connection: c, Queue: "q", Rate: new(0)}).Run(out)
	for _, of := range []string{"jobs", "redrive"} {
		if !strings.Contains(asked[of], `"perSecond":0`) {
			t.Errorf("%s: %s", of, asked[of])
		}
	}
}

// The bar follows a job to its end, and a job that has failed fails the command.
func TestFollow(t *testing.T) {
	c := server(t, map[string]string{
		"overview": overview, "jobs": `{"id":"j","state":"failed","scanned":5,"total":10,"done":1,"skipped":0,"error":"` + evil + `"}`,
	})
	j := startJob{Connection: c, Kind: "delete", Resource: "dead", Yes: true}
	var out, said bytes.Buffer
	err := j.Run(Streams{Out: &out, Err: &said})
	if err == nil || strings.ContainsFunc(err.Error(), unsafe) || !strings.Contains(said.String(), "5 of 10  1 done, 0 skipped") {
		t.Errorf("%v: %q", err, said.String())
	}
}

// A job of which a part could not be done is no success, and is there after its server has gone.
func TestFollowNoSuccess(t *testing.T) {
	begun := `{"id":"j","state":"running","scanned":0,"total":10,"matched":0,"done":0,"skipped":0,"error":null}`
	for name, tt := range map[string]struct {
		answers map[string]string
		want    string
	}{
		"a part":          {map[string]string{"jobs": `{"id":"j","state":"completed","scanned":10,"total":10,"matched":4,"done":1,"skipped":3,"error":"gone"}`}, "3 of 4 could not be done: gone"},
		"all":             {map[string]string{"jobs": `{"id":"j","state":"completed","scanned":10,"total":10,"matched":4,"done":4,"skipped":0,"error":null}`}, "<nil>"},
		"a cancelled one": {map[string]string{"jobs": `{"id":"j","state":"cancelled","scanned":5,"total":10,"matched":4,"done":4,"skipped":0,"error":null}`}, "the job was cancelled: what was done stays done"},
		"its loss":        {map[string]string{"jobs": begun}, "the job may go on, and godwit jobs j tells: there is no \\u001b[31msuch thing"},
	} {
		tt.answers["overview"] = overview
		j := startJob{Connection: server(t, tt.answers), Kind: "delete", Resource: "dead", Yes: true}
		err := j.Run(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
		if got := fmt.Sprint(err); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Who does not wait for a job has begun it; an interrupt while it is followed leaves it unfinished.
func TestNotFollowed(t *testing.T) {
	running := object{"state": "running", "skipped": "0"}
	if err := (&startJob{Detach: true}).ended(running); err != nil {
		t.Errorf("detached: %v", err)
	}
	if err := (&startJob{}).ended(running); err == nil || err.Error() != "the job has not ended: it is running" {
		t.Errorf("interrupted: %v", err)
	}
}
