package server

import (
	"maps"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/api/kms"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/access"
	logsapi "godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/api/mailpages"
	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/api/sts"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/server/artifacts"
	"godwit.dev/godwit/internal/server/ids"
	"godwit.dev/godwit/internal/server/ingesting"
	"godwit.dev/godwit/internal/server/monitoring"
	"godwit.dev/godwit/internal/server/operating"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/wire"
)

// newParts makes the handlers of requests, and what else is seen of a server.
func newParts(deps Deps, s *state, r *running) (Parts, error) {
	objects, err := artifacts.Open(artifacts.Options{Config: deps.Config, Trust: r.trust, Own: deps.ownPorts(), Dial: deps.World.Dial})
	if err != nil {
		return Parts{}, err
	}
	functions := newLambda(deps.Config, s, r, objects)
	verifier := authentic(deps, s.credentials)
	trail, err := newTrail(deps, s.logs, s.identities.Current)
	if err != nil {
		return Parts{}, err
	}
	answers := newAnswers(deps, s, services(deps, s, r, functions, objects), verifier, trail)
	sessions := newSessions(deps, s.credentials)
	gate := operating.New(operating.Options{Config: deps.Config, Clock: deps.Clock, Verifier: verifier, Policies: s.authorizer, Trail: trail, Sessions: ofSessions(sessions), Used: s.identities.NoteUse})
	deploy(deps, s, answers, gate)
	copies, err := backupsOf(deps, s.store, s.journal)
	if err != nil {
		return Parts{}, err
	}
	checks, err := newChecks(deps, s, r, trail)
	if err != nil {
		return Parts{}, err
	}
	dev := development.New(development.Options{
		Clock: deps.Clock, Virtual: deps.Virtual, Sync: s.journal.Sync, Production: deps.Config.Production, Region: deps.Config.Region,
		Engine: s.engine, Streams: s.deliveryStreams.Module, Stacks: s.stacks, Sources: s.sources, Alarms: s.monitoring.Alarms, Logs: s.logs,
	})
	s.jobs.Await(deps.hold.Begin)
	own := operating.API(operating.Parts{
		Config: deps.Config, Clock: deps.Clock, Virtual: deps.Virtual, URL: s.url, Engine: s.engine, Totals: s.monitoring.Queues, Alarms: s.monitoring.Alarms, Checks: checks,
		Listen: s.listeners.set, Gate: gate, Operator: r.operator, Metrics: s.monitoring.Reader, Logs: s.logs, Identities: s.identities, Jobs: s.jobs, Sources: s.sources, Backups: copies, Commits: s.journal.Commits,
		Development: dev, Counting: s.prometheus,
	})
	maps.Copy(own, developing(deps, s, r, functions, dev))
	pages, err := consolePages(deps, sessions, gate, s.identities, r.trust)
	if err != nil {
		return Parts{}, err
	}
	parts := Parts{
		Wire: r.senders.Texts.Callbacks(mailpages.Serve(mailpages.Options{Engine: s.engine, NewToken: newToken, Logger: deps.Log}, s.envelopes.keys.Serve(answers))),
		AWS:  answers, Forbid: answers.Forbid, Vouched: answers.Vouched, Refused: s.prometheus.Refusals(),
		Operator:  gate.Operator(),
		Console:   pages,
		Operated:  operated(deps, trail),
		Missed:    gate.Missed,
		Admin:     own,
		Developer: forDevelopers(deps.Config, s.engine, dev),
		Metrics:   s.prometheus.Handler(),
		Functions: r.sockets.API(),
		URLs:      functionURLs(deps, s, r, verifier, trail),
		Ingest: ingesting.Open(ingesting.Options{
			Config: deps.Config, Sources: s.sources, Wire: answers, Logger: deps.Log, Requests: deps.Limits.requests,
			Trust: r.trust, Own: deps.ownPorts(), Observe: s.prometheus.Ingested(),
		}),
		Checks:  checks,
		Save:    s.save,
		Notices: func() []string { return append(functionNotices(deps.Config, r.processes), deps.heldNotice()...) },
	}
	if wrap := deps.World.Confirmed; wrap != nil {
		parts.OfFunctions = wrap(parts.Wire)
	}
	return parts, nil
}

// newAnswers makes the handler of AWS's requests.
func newAnswers(deps Deps, s *state, services []*wire.Service, verifier *sigv4.Verifier, trail *audit.Trail) *wire.Handler {
	return wire.NewHandler(wire.Options{
		Services: services,
		Logger:   deps.Log, Clock: deps.Clock, Observe: s.prometheus.Observe(), Tracer: deps.tracer, NewRequestID: ids.Text,
		Admit: func(call *api.Call) error {
			if err := s.accounts.Request(call.Account); err != nil {
				return err
			}
			s.identities.NoteUse(call.AccessKey, call.Service, call.Region)
			return s.engine.ServiceFault(call.Service, call.Region, call.Account)
		},
		Authentic: verifier, Known: s.identities.Known, Audit: audited(trail), Authorize: authorization(deps, s.authorizer, s.kms),
		Pace: deps.Limits.Pace(), Requests: deps.Limits.requests, Answers: deps.Limits.answers,
		DefaultRegion: deps.Config.Region, DefaultAccount: deps.Config.Account,
	})
}

// newChecks makes the checks of the server's health, and has Prometheus report them.
func newChecks(deps Deps, s *state, r *running, trail *audit.Trail) ([]admin.Check, error) {
	checks := append(s.space.checks(), auditChecks(trail)...)
	followed, err := s.follow(deps, r.trust)
	if err != nil {
		return nil, err
	}
	checks = append(checks, followed...)
	ahead := func() time.Duration { return 0 } // a virtual clock goes on from the data
	if deps.Virtual == nil {
		ahead = monitoring.Ahead(s.engine.Latest, deps.Clock)
		checks = append(checks, monitoring.ClockCheck(ahead))
	}
	s.prometheus.Checked(ahead, checks)
	return checks, nil
}

// services are the services of the wire, by their operations.
func services(deps Deps, s *state, r *running, functions *lambda.Service, objects *artifacts.Store) []*wire.Service {
	return []*wire.Service{
		wire.SQS(sqs.New(sqs.Options{Engine: s.engine, NewID: ids.New, FIFORate: deps.Config.SQSFIFORate, Bytes: s.accounts.Send, DefaultRegion: deps.Config.Region, URLHost: deps.Config.QueueURLHost, Principals: s.principals}).Operations()...),
		wire.SNS(sns.New(sns.Options{
			Engine: s.engine, NewID: ids.Unguessable, NewToken: newToken, PublishQuota: deps.Config.MaxPublishes, Bytes: s.accounts.Send, NoMail: !r.senders.Mails.Sends(),
			Texting:    sns.Texting{Texts: s.texts, Publish: s.engine.Direct.PublishDirect, Origins: r.senders.Texts.Origins(), None: !r.senders.Texts.Sends()},
			Principals: s.principals,
		}).Operations()...),
		wire.CloudWatch(cloudwatch.New(cloudwatch.Options{Metrics: s.monitoring.Reader, Alarms: s.monitoring.Alarms}).Operations()...),
		wire.Logs(logsapi.New(s.logs, forwardingTo(deps, s)).Operations()...),
		wire.Lambda(access.Guarded(functions.Operations())...),
		wire.IAM(iam.New(iam.Options{Engine: s.identities}).Operations()...),
		wire.STS(sts.New(sts.Options{
			Engine: s.identities, Clock: deps.Clock, Web: identityWeb(deps, r.trust, false),
			RootKey: deps.Config.Root.AccessKeyID, RootAccount: deps.Config.Account,
		}).Operations()...),
		wire.KMS(kms.New(s.kms, s.principals).Operations()...),
		wire.Firehose(s.deliveryStreams.Operations()...),
		wire.CloudFormation(cloudformation.New(cloudformation.Options{Engine: s.stacks, NewID: ids.Text, Objects: objects, May: may(deps, s), Acting: asCloudFormation(s)}).Operations()...),
	}
}

// developing is the API under /_godwit/ for developers, beside the operators' API.
func developing(deps Deps, s *state, r *running, functions *lambda.Service, dev *development.Development) map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + adminPrefix + "clock":             admin.Deprecated(admin.ReadClock(deps.Clock, deps.Virtual)),
		"POST " + adminPrefix + "clock":            admin.Deprecated(admin.Clock(deps.Virtual, s.journal.Sync)),
		"GET " + adminPrefix + "deliveries":        admin.Deprecated(admin.Deliveries(s.engine)),
		"GET " + lambda.DownloadPath:               admin.FunctionCode(functions, deps.Clock),
		"GET " + adminPrefix + "faults":            admin.Deprecated(admin.ListFaults(s.engine)),
		"POST " + adminPrefix + "keys/rotate-root": admin.RotateRoot(rootKeyOf(deps).Rotation(s.store, s.kms.Rewrap)),

		"POST " + adminPrefix + "faults": admin.Deprecated(faults(deps.Config, s.engine, dev)),
		"GET " + adminPrefix + "queue":   admin.Deprecated(admin.Queue(s.engine, s.monitoring.Queues)),

		"GET " + adminPrefix + "outbox":                r.senders.Mails.Handler(),
		"GET " + adminPrefix + "outbox/push":           r.senders.Pushes.Handler(),
		"GET " + adminPrefix + "outbox/sms":            r.senders.Texts.Handler(),
		"POST " + adminPrefix + "sms/receive":          r.senders.Texts.Receiver(),
		"GET " + adminPrefix + "events":                admin.Deprecated(admin.Events(s.engine)),
		"GET " + adminPrefix + "backlog":               admin.Deprecated(admin.Backlog(s.engine)),
		"POST " + adminPrefix + "subscriptions/pause":  admin.Deprecated(admin.Pause(r.operator, s.engine)),
		"POST " + adminPrefix + "subscriptions/resume": admin.Deprecated(admin.Resume(r.operator, s.engine)),
		"POST " + adminPrefix + "deliveries/retry":     admin.Deprecated(admin.Retry(s.engine)),
		"POST " + adminPrefix + "deliveries/drop":      admin.Deprecated(admin.Drop(r.operator)),
	}
}
