package operating

import (
	"net/http"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/operator"
	"godwit.dev/godwit/internal/api/operator/backups"
	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/api/operator/jobs"
	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/api/operator/messages"
	"godwit.dev/godwit/internal/api/operator/monitors"
	"godwit.dev/godwit/internal/api/operator/recent"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/setup"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/api/operator/sse"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/inspect"
	kept "godwit.dev/godwit/internal/shard/jobs"
	source "godwit.dev/godwit/internal/shard/sources"
)

// Parts are what the operator's API works with.
type Parts struct {
	Config   config.Config
	Clock    clock.Clock
	Virtual  *clock.Virtual // nil: the clock is the machine's
	URL      string         // of the server, as its own messages name it
	Engine   *shard.Engine
	Operator *deliver.Operator
	Totals   *monitor.Queues
	Alarms   *alarms.Engine
	Metrics  *monitor.Reader
	Logs     *logs.Logs
	// Identities are who may use the server.
	Identities *identity.Module
	Jobs       *kept.Module
	Sources    *source.Module
	Checks     []admin.Check
	// Commits counts the changes of the state.
	Commits func() int64
	// Listen has events passed on.
	Listen func(deliver.Events)
	Gate   *Gate
	// Backups give away copies of the store.
	Backups *backups.Backups
	// Counting counts what jobs do.
	Counting interface {
		JobStepped(kind string, done, skipped int64)
		JobEnded(kind, state string)
	}
	// Development is what only godwit dev does.
	Development *development.Development
}

// API answers /_godwit/v1, by patterns of http.ServeMux.
func API(p Parts) map[string]http.Handler {
	looking := inspect.New(p.Engine.Queues, p.Engine.Functions)
	now := live.New(live.Options{Census: looking.Census, Queues: p.Totals, Clock: clock.System})
	publishes := recent.New()
	p.Listen(listeners{now, publishes})
	all := catalog.New(catalog.Options{Engine: p.Engine, Totals: p.Totals, Live: now, Server: p.server(), Problems: p.problems, Alarms: p.alarming, Closed: p.closed})
	working := jobs.New(jobs.Options{Module: p.Jobs, Engine: p.Engine, Inspect: looking, Operator: p.Operator, Clock: p.Clock, NewID: uuid.NewString, May: p.Gate.stillAllowed, Current: p.Identities.Current})
	p.Jobs.Observe(kept.Observer{Stepped: p.Counting.JobStepped, Ended: p.jobEnded})
	p.Jobs.Start(working)
	looked := messages.New(messages.Options{Engine: p.Engine, Inspect: looking, Operator: p.Operator, Catalog: all, Recent: publishes, NewID: uuid.NewString})
	watched := monitors.New(monitors.Options{Alarms: p.Alarms, Metrics: p.Metrics, Logs: p.Logs, Region: p.Config.Region, Account: p.Config.Account})
	return operator.Handlers(operator.Options{
		Catalog: all, Messages: looked, Monitors: watched,
		Events:      sse.New(sse.Options{Catalog: all, Jobs: working, Messages: looked, Monitors: watched, Commits: p.Commits, Draining: p.Engine.Draining, Clock: clock.System, Now: p.Clock.Now}),
		Setup:       setup.New(setup.Options{Identities: p.Identities, Config: p.Config}),
		Jobs:        working,
		Backups:     p.Backups,
		Development: p.Development,
		Sources:     sources.New(sources.Options{Module: p.Sources, Account: p.Config.Account, Current: p.Identities.Current, Exists: p.Engine.Exists}),
	}, rest.Options{Admit: p.Gate.Admit, Malformed: p.Gate.Malformed})
}

// jobEnded counts and records the end of a job.
func (p *Parts) jobEnded(j *kept.Job) {
	p.Counting.JobEnded(j.Kind, string(j.State))
	p.Gate.Trail.JobEnded(j.By, p.Clock.Now(), p.Config.Region, audit.Job{
		ID: j.ID, Kind: j.Kind, Resource: j.Resource, State: string(j.State), Done: j.Done, Skipped: j.Skipped,
	})
}

// listeners keep the latest publishes and deliveries. It implements deliver.Events.
type listeners struct {
	*live.Live

	publishes *recent.Publishes
}

// Published tells both of them.
func (l listeners) Published(p *shard.Published) {
	l.Live.Published(p)
	l.publishes.Add(p)
}

// server reports the server itself.
func (p *Parts) server() func() catalog.Server {
	s := catalog.Server{
		Version: config.Version, Mode: "dev", Clock: "system", StartedAt: clock.System.Now(), Region: p.Config.Region, Account: p.Config.Account,
		Enforced: p.Config.Enforce, Endpoint: p.URL,
	}
	if p.Config.Production {
		s.Mode = "serve"
	}
	if p.Virtual != nil {
		s.Clock = "virtual"
	}
	return func() catalog.Server {
		s := s
		s.Now = p.Clock.Now()
		return s
	}
}

// problems are what health finds to be wrong.
func (p *Parts) problems() map[string]string {
	found := map[string]string{}
	for _, check := range p.Checks {
		if err := check.Failing(); err != nil {
			found[check.Name] = err.Error()
		}
	}
	return found
}

// closed are the sources that take no posts.
func (p *Parts) closed(limit int) (all []catalog.Closed) {
	for after, more := "", true; more; {
		var page []source.Info
		page, more = p.Sources.List(after, 1000)
		for i := range page {
			after = page[i].Name
			switch {
			case len(all) == limit:
				return all
			case page[i].Broken != nil:
				all = append(all, catalog.Closed{Name: after, Problem: rest.Text(page[i].Broken)})
			case page[i].Paused:
				all = append(all, catalog.Closed{Name: after})
			}
		}
	}
	return all
}

// alarming are the alarms of the server's own account and region that are in alarm.
func (p *Parts) alarming(limit int) (all []catalog.Alarming) {
	found := p.Alarms.List(metrics.Scope{Account: p.Config.Account, Region: p.Config.Region}, func(a *alarm.Alarm) bool { return a.State == alarm.Alarming })
	for i := range found[:min(limit, len(found))] {
		a := &found[i]
		all = append(all, catalog.Alarming{ARN: a.ARN(), Name: a.Name, Reason: a.Reason, Since: a.Transitioned})
	}
	return all
}
