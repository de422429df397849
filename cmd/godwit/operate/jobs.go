package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"godwit.dev/godwit/internal/config"
)

// Jobs lists, begins and cancels jobs.
type Jobs struct {
	List   listJobs  `cmd:"" default:"withargs" help:"List jobs with their progress, or show one. The default."`
	Start  startJob  `cmd:"" help:"Retry, drop, redrive or delete all that meets a condition, after a look at how many that is."`
	Cancel cancelJob `cmd:"" help:"End a job; what was done stays done."`
}

type listJobs struct {
	Connection
	Job   string `arg:"" optional:"" help:"Id of a job; without one they are listed."`
	State string `enum:",running,cancelling,cancelled,completed,failed" default:"" help:"Only these: running, cancelling, cancelled, completed, failed."`
}

func (l *listJobs) Run(s Streams) error {
	if l.Job != "" {
		return l.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
			answer := object{}
			err := api.get(ctx, "job", url.Values{"id": {l.Job}}, &answer)
			return answer, members, err
		})
	}
	return list(&l.Connection, s, "jobs", "jobs", fixed(url.Values{"state": {l.State}}),
		member("ID", "id"), member("KIND", "kind"), member("RESOURCE", "arn"), member("STATE", "state"), column{title: "PROGRESS", of: jobProgress},
		count("DONE", "done"), count("SKIPPED", "skipped"), member("BEGAN", "createdAt"), member("ERROR", "error"))
}

// jobProgress draws the progress of a job.
func jobProgress(row object) string {
	return progress(object{"done": row["scanned"], "total": row["total"]})
}

type cancelJob struct {
	Connection
	Job string `arg:"" help:"Id of a job."`
}

func (c *cancelJob) Run(s Streams) error { return c.once(s, "jobs/cancel", object{"id": c.Job}) }

type startJob struct {
	Connection
	Kind     string   `arg:"" enum:"retry,drop,redrive,delete" help:"What to do: retry or drop deliveries, redrive or delete messages."`
	Resource string   `arg:"" help:"Name or ARN of a queue, or ARN of a subscription."`
	Search   *string  `env:"-" placeholder:"TEXT" help:"Only messages with it in the body or an attribute."`
	Cause    *string  `env:"-" placeholder:"TEXT" help:"Only dead letters with this cause; only deliveries whose last attempt tells of it."`
	From     *string  `env:"-" placeholder:"ARN" help:"Only dead letters of this queue or subscription."`
	ID       []string `env:"-" name:"id" placeholder:"ID" help:"Only these messages, by position, or deliveries, by id; may be repeated."`
	Since    *string  `env:"-" placeholder:"TIME" help:"Only what was sent then or later: 2026-01-31T12:00:00Z, or 1d for a day ago."`
	Until    *string  `env:"-" placeholder:"TIME" help:"Only what was sent before: a time, or 1d for what is older than a day."`
	To       string   `env:"-" placeholder:"QUEUE" help:"Of redrive: where to, by name or ARN; else each message goes to where it came from."`
	Rate     *int     `env:"-" placeholder:"N" help:"So many a second, 1 to 10000; else as fast as they go."`
	Yes      bool     `env:"-" short:"y" help:"Begin without asking."`
	Detach   bool     `env:"-" help:"Do not wait until it has ended."`
}

// errNotSure is the error of a command that its operator did not confirm.
var errNotSure = errors.New("nothing was done")

func (j *startJob) Run(s Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	api := j.client()
	spec, err := j.spec(ctx, api)
	if err != nil {
		return err
	}
	if !j.Yes {
		if err := j.confirm(ctx, s, api, spec); err != nil {
			return err
		}
	}
	if j.Rate != nil {
		spec["perSecond"] = *j.Rate
	}
	answer := object{}
	if err := api.post(ctx, "jobs", spec, &answer); err != nil {
		return err
	}
	if !j.Detach {
		if answer, err = j.follow(ctx, s, api, answer); err != nil {
			return err
		}
	}
	once := j.Connection
	once.Watch = 0
	if err := once.show(s, func(context.Context, *client) (any, func(io.Writer, any) error, error) { return answer, members, nil }); err != nil {
		return err
	}
	return j.ended(answer)
}

// ended is nil for a job that has done all that it was begun for, or that nobody waits for.
func (j *startJob) ended(job object) error {
	switch state, skipped := written(job["state"]), written(job["skipped"]); {
	case state == "failed":
		return errors.New("the job has failed: " + Clean(written(job["error"])))
	case state == "completed" && skipped != "0": // a partial result is no success
		return fmt.Errorf("%s of %s could not be done: %s", Clean(skipped), Clean(written(job["matched"])), Clean(written(job["error"])))
	case state == "completed", j.Detach && state == "running":
		return nil
	case state == "cancelled":
		return errors.New("the job was cancelled: what was done stays done")
	default:
		return errors.New("the job has not ended: it is " + Clean(state))
	}
}

func (j *startJob) spec(ctx context.Context, api *client) (object, error) {
	resource, err := api.arn(ctx, "sqs", j.Resource)
	if err != nil {
		return nil, err
	}
	where := object{}
	for name, value := range map[string]*string{"search": j.Search, "cause": j.Cause, "from": j.From, "since": j.Since, "until": j.Until} {
		switch {
		case value == nil:
		case *value == "": // as from an unset variable of the shell
			return nil, errors.New("--" + name + " is empty, which is no condition: leave it out to mean everything")
		case name == "since" || name == "until":
			if where[name], err = api.moment(ctx, *value); err != nil {
				return nil, fmt.Errorf("--%s: %w", name, err)
			}
		default:
			where[name] = *value
		}
	}
	if len(j.ID) > 0 {
		where["ids"] = j.ID
	}
	spec := object{"kind": j.Kind, "arn": resource, "where": where}
	if j.To != "" {
		if spec["to"], err = api.arn(ctx, "sqs", j.To); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// moment is a time as the API takes it, of one in that form or of how long ago it was by the
// server's clock. It fails if it is neither, or if the server does not tell its time.
func (c *client) moment(ctx context.Context, text string) (string, error) {
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return text, nil
	}
	ago, err := config.ParseDuration(text)
	if err != nil {
		return "", fmt.Errorf("want a time such as 2026-01-31T12:00:00Z, or how long ago, such as 1d or 90m, have %q", text)
	}
	var overview struct {
		Server struct {
			Now time.Time `json:"now"`
		} `json:"server"`
	}
	if err := c.get(ctx, "overview", nil, &overview); err != nil {
		return "", err
	}
	return overview.Server.Now.Add(-ago).UTC().Format(time.RFC3339Nano), nil
}

// confirm counts the things that a job would concern, and asks whether to begin it.
func (j *startJob) confirm(ctx context.Context, s Streams, api *client, spec object) error {
	asked := object{"kind": spec["kind"], "arn": spec["arn"], "where": spec["where"]}
	if spec["to"] != nil {
		asked["to"] = spec["to"]
	}
	matches, scanned := 0, 0
	for {
		var answer struct {
			Matches, Scanned, Total int
			Next                    *string
		}
		if err := api.post(ctx, "jobs/preview", asked, &answer); err != nil {
			return err
		}
		matches += answer.Matches
		scanned += answer.Scanned
		fmt.Fprintf(s.Err, "\r%s", progress(object{"done": strconv.Itoa(scanned), "total": strconv.Itoa(answer.Total)}))
		if answer.Next == nil {
			break
		}
		asked["cursor"] = *answer.Next
	}
	fmt.Fprintln(s.Err)
	err := s.confirmed(fmt.Sprintf("%s %d of %s?", j.Kind, matches, Clean(written(spec["arn"]))))
	if err != nil && !s.Terminal {
		return fmt.Errorf("%w: where nobody can be asked, --yes begins", err)
	}
	return err
}

// follow draws a job's progress until it has ended. Interrupting it does not affect the job.
func (j *startJob) follow(ctx context.Context, s Streams, api *client, job object) (object, error) {
	const every = time.Second
	for {
		fmt.Fprintf(s.Err, "\r%s  %s done, %s skipped ", jobProgress(job), written(job["done"]), written(job["skipped"]))
		if state := written(job["state"]); state != "running" && state != "cancelling" {
			fmt.Fprintln(s.Err)
			return job, nil
		}
		again := time.NewTimer(every)
		select {
		case <-ctx.Done():
			again.Stop()
			fmt.Fprintf(s.Err, "\nThe job goes on: godwit jobs %s\n", Clean(written(job["id"])))
			return job, nil
		case <-again.C:
		}
		next := object{}
		switch err := api.get(ctx, "job", url.Values{"id": {written(job["id"])}}, &next); {
		case ctx.Err() != nil: // the select above handles it
			continue
		case err != nil:
			return nil, fmt.Errorf("the job may go on, and godwit jobs %s tells: %w", Clean(written(job["id"])), err)
		}
		job = next
	}
}

// Keys lists access keys.
type Keys struct {
	Connection
	page
	Search string `placeholder:"TEXT" help:"Only those of users whose names have it."`
}

// Run prints them.
func (k *Keys) Run(s Streams) error {
	return list(&k.Connection, s, "keys", "keys", fixed(url.Values{"search": {k.Search}, "limit": {strconv.Itoa(k.Limit)}}),
		member("KEY", "id"), member("USER", "user"), member("ACTIVE", "active"), member("CREATED", "createdAt"), member("LAST USED", "lastUsedAt"), member("FOR", "lastUsedService"))
}

// Simulate prints the effect of a delivery policy on a subscription.
type Simulate struct {
	Connection
	Subscription string `arg:"" help:"ARN of a subscription, whose backlog is taken into account."`
	File         string `arg:"" optional:"" help:"JSON of a DeliveryPolicy; without one it is the subscription's own."`
}

// maxPolicy bounds a delivery policy, in bytes.
const maxPolicy = 32 << 10

// Run prints it.
func (p *Simulate) Run(s Streams) error {
	body := object{"subscription": p.Subscription}
	if p.File != "" {
		text, err := os.ReadFile(p.File)
		if err != nil {
			return err
		}
		if len(text) > maxPolicy {
			return fmt.Errorf("%s is too long for a delivery policy", p.File)
		}
		body["policy"] = string(text)
	}
	one := p.Connection
	one.Watch = 0
	return one.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		answer := object{}
		err := api.post(ctx, "policy-plan", body, &answer)
		if err == nil && answer["valid"] == false {
			err = errors.New("the policy is not valid: " + Clean(written(answer["error"])))
		}
		return answer, func(w io.Writer, _ any) error {
			rows, _ := answer["phases"].([]any)
			if err := table(w, []column{
				member("PHASE", "name"), count("RETRIES", "retries"), age("FROM", "fromSeconds"), age("UNTIL", "untilSeconds"),
				age("SHORTEST DELAY", "shortestDelaySeconds"), age("LONGEST DELAY", "longestDelaySeconds"),
			}, rows); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "It is owed %s deliveries: at most %s attempts, if none succeeds.\n", Clean(written(dig(answer, "backlog.owed"))), Clean(written(dig(answer, "backlog.attempts"))))
			return err
		}, err
	})
}

// Names are resources of a server by their kind, "queue", "topic", "function", "source",
// "subscription" or "job", in the form of command arguments: for completions.
func (c *Connection) Names(ctx context.Context, kind string) (names []string) {
	path := map[string]string{"queue": "queues", "topic": "topics", "function": "functions", "source": "sources", "subscription": "subscriptions", "job": "jobs"}[kind]
	if path == "" {
		return nil
	}
	answer := object{}
	most := "1000"
	if kind == "job" {
		most = "200"
	}
	if err := c.client().get(ctx, path, url.Values{"limit": {most}}, &answer); err != nil {
		return nil // no error message while a word is typed
	}
	rows, _ := answer[path].([]any)
	for _, row := range rows {
		of, _ := row.(object)
		name := written(of["name"])
		switch kind {
		case "subscription":
			name = written(of["arn"])
		case "job":
			name = written(of["id"])
		}
		if name != "" && plainWord(name) {
			names = append(names, name) // others would need quotes
		}
	}
	return names
}

// plainWord reports whether a shell takes a text for one word as it is.
func plainWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/") == ""
}
