// Package operator is the operator's API, /_godwit/v1, which the console, godwit's own
// commands and scripts use besides AWS's APIs. Its document, openapi.json, is generated from
// the operations here; a test keeps it up to date.
package operator

import (
	_ "embed" // of the document
	"net/http"

	"godwit.dev/godwit/internal/api/operator/backups"
	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/api/operator/jobs"
	"godwit.dev/godwit/internal/api/operator/messages"
	"godwit.dev/godwit/internal/api/operator/monitors"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/setup"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/api/operator/sse"
)

// Prefix is the prefix of the paths.
const Prefix = "/_godwit/v1/"

// documentPath is where the document is.
const documentPath = Prefix + "openapi.json"

// Document is the OpenAPI document.
//
//go:embed openapi.json
var Document []byte

// Info is the general part of the document.
var Info = rest.Info{
	Title: "Godwit's operator API", Version: "1",
	Description: "What a Godwit server holds, what happens to it, and what an operator can do about it. " +
		"Times are UTC. Resources are named by ARN. A list goes on at `next`, until that is null; a page may be empty and have one. " +
		"Parameters and members that are not described here are refused. " +
		"Where signatures are checked, requests are signed with Signature Version 4 for the service `godwit`; " +
		"`x-godwit-action` is what a policy has to allow: the action itself, or godwit:Read for all GET but those that show messages, and godwit:Operate for the rest.",
}

// Options are the dependencies of the API.
type Options struct {
	Catalog  *catalog.Catalog
	Messages *messages.Messages
	Events   *sse.Events
	Monitors *monitors.Monitors
	Setup    *setup.Setup
	Jobs     *jobs.Jobs
	Backups  *backups.Backups
	Sources  *sources.Sources
	// Development has the operations of godwit dev only.
	Development *development.Development
}

// Operations are all operations, in the order of the document.
func Operations(o Options) []rest.Operation {
	c, m, watched := o.Catalog, o.Messages, o.Monitors
	get := func(path, name, summary string) rest.Operation {
		return rest.Operation{Method: http.MethodGet, Path: Prefix + path, Name: name, Summary: summary}
	}
	one := func(path, name, summary string) rest.Operation {
		op := get(path, name, summary)
		op.Statuses = []int{http.StatusNotFound}
		return op
	}
	peek := func(path, name, summary string) rest.Operation {
		op := one(path, name, summary)
		op.Peeks = true
		return op
	}
	change := func(path, name, summary string, statuses ...int) rest.Operation {
		return rest.Operation{Method: http.MethodPost, Path: Prefix + path, Name: name, Summary: summary, Statuses: append(statuses, http.StatusNotFound)}
	}
	watch := one("events", "WatchEvents", "What changes, as server-sent events, each with all of what it is about.")
	watch.Stream = true
	tail := peek("tail", "Tail", "What is sent to a queue, published to a topic, or logged in a log group, from now on, as server-sent events. It touches no message.")
	tail.Stream = true
	plan := change("policy-plan", "PlanPolicy", "What a delivery policy does: each retry, and the total. It changes nothing.")
	test := change("filter-test", "TestFilter", "Which messages a filter policy lets through: those that are given, and those that were published to a topic of late. It changes nothing.")
	previewed := change("jobs/preview", "PreviewJob", "What a job would be about, a part at a time. It changes nothing, and takes the right to see messages, as it tells how many have a text.")
	previewed.Peeks = true
	plan.Harmless, test.Harmless = true, true
	backup := func(op rest.Operation) rest.Operation {
		op.Right = "Backup"
		return op
	}
	part := backup(one("backup/part", "GetBackupPart", "Up to 4 MiB of a file of a snapshot; their CRC-32C is in the header X-Godwit-Checksum."))
	part.Binary = true
	return append([]rest.Operation{
		rest.Define(get("overview", "GetOverview", "How the server stands, and what needs a person."), c.GetOverview),
		rest.Define(get("queues", "ListQueues", "Queues, with counts and rates."), c.ListQueues),
		rest.Define(one("queue", "GetQueue", "All of one queue."), c.GetQueue),
		rest.Define(get("topics", "ListTopics", "Topics, with counts and rates."), c.ListTopics),
		rest.Define(one("topic", "GetTopic", "All of one topic."), c.GetTopic),
		rest.Define(one("subscriptions", "ListSubscriptions", "Subscriptions, with what they are owed and how the last attempt went."), c.ListSubscriptions),
		rest.Define(one("subscription", "GetSubscription", "All of one subscription."), c.GetSubscription),
		rest.Define(one("deliveries", "ListDeliveries", "Deliveries of a subscription, attempt by attempt."), c.ListDeliveries),
		rest.Define(one("delivery", "GetDelivery", "A delivery that waits, with the schedule that is ahead of it."), c.GetDelivery),
		rest.Define(get("functions", "ListFunctions", "Functions, with the events that wait for them."), c.ListFunctions),
		rest.Define(one("function", "GetFunction", "All of one function."), c.GetFunction),
		rest.Define(peek("messages", "ListMessages", "Messages of a queue, without touching them; searched by text, id, group or cause."), m.List),
		rest.Define(peek("message", "GetMessage", "One message of a queue, whole, without touching it."), m.Get),
		rest.Define(peek("publishes", "ListPublishes", "What was published to a topic of late, and which of its subscriptions took it."), m.ListPublishes),
		rest.Define(peek("dead-letters", "ListDeadLetters", "The messages of a dead-letter queue, grouped by why they died."), m.DeadLetters),
		rest.Define(change("messages/redrive", "RedriveMessages", "Moves messages that are named, each to where it came from, or to a queue."), m.Redrive),
		rest.Define(change("messages/delete", "DeleteMessages", "Deletes messages that are named."), m.Delete),
		rest.Define(change("redrive", "StartRedrive", "Begins to move all messages of a dead-letter queue, at a rate. It goes on after a restart.", http.StatusServiceUnavailable).Accepts(), m.StartRedrive),
		rest.Define(one("redrives", "ListRedrives", "The redrives of a queue, with their progress."), m.ListRedrives),
		rest.Define(change("redrive/cancel", "CancelRedrive", "Ends a redrive; what it has moved stays where it is."), m.CancelRedrive),
		rest.Define(previewed, o.Jobs.Preview),
		rest.Define(change("jobs", "CreateJob", "Begins to retry, drop, redrive or delete all that meets a condition. It goes on after a restart. What it does takes its right, too: godwit:RetryDelivery, DropDelivery, RedriveMessages or DeleteMessages.", http.StatusConflict, http.StatusServiceUnavailable).Accepts(), o.Jobs.Create),
		rest.Define(get("jobs", "ListJobs", "Jobs, the latest first, with their progress."), o.Jobs.List),
		rest.Define(one("job", "GetJob", "One job, with its progress."), o.Jobs.Get),
		rest.Define(change("jobs/cancel", "CancelJob", "Ends a job; what was done stays done.", http.StatusConflict), o.Jobs.Cancel),
		rest.Define(change("subscription/pause", "PauseSubscription", "Stops the deliveries of a subscription."), m.Pause),
		rest.Define(change("subscription/resume", "ResumeSubscription", "Lets them go on."), m.Resume),
		rest.Define(change("subscription/attribute", "SetSubscriptionAttribute", "Changes an attribute of a subscription, as SNS does."), m.SetAttribute),
		rest.Define(change("topic/attribute", "SetTopicAttribute", "Changes an attribute of a topic, as SNS does."), m.SetTopicAttribute),
		rest.Define(change("delivery/retry", "RetryDelivery", "Makes the next attempt of a delivery due now."), m.Retry),
		rest.Define(change("delivery/drop", "DropDelivery", "Ends a delivery as if its retries were used up.", http.StatusConflict, http.StatusServiceUnavailable), m.Drop),
		rest.Define(plan, m.Plan),
		rest.Define(test, m.TestFilter),
		rest.Define(watch, o.Events.Watch),
		rest.Define(tail, o.Events.Tail),
		rest.Define(get("topology", "GetTopology", "How topics, queues, functions and endpoints hang together."), c.GetTopology),
		rest.Define(get("alarms", "ListAlarms", "Alarms, with their states."), watched.ListAlarms),
		rest.Define(one("alarm", "GetAlarm", "All of one alarm, with what became of it."), watched.GetAlarm),
		rest.Define(one("metrics", "GetMetrics", "The metrics of a resource over a time."), watched.GetMetrics),
		rest.Define(get("log-groups", "ListLogGroups", "Log groups."), watched.ListLogGroups),
		rest.Define(one("log-streams", "ListLogStreams", "The streams of a log group."), watched.ListLogStreams),
		rest.Define(peek("log-events", "ListLogEvents", "Lines of a log group. They can show what messages say, and so take the right to see those."), watched.ListLogEvents),
		rest.Define(get("users", "ListUsers", "Users, with their access keys and when those were last used."), o.Setup.ListUsers),
		rest.Define(get("keys", "ListKeys", "Access keys, without their secrets."), o.Setup.ListKeys),
		rest.Define(get("roles", "ListRoles", "Roles."), o.Setup.ListRoles),
		rest.Define(get("settings", "ListSettings", "How the server was started; secrets are masked."), o.Setup.ListSettings),
		rest.Define(get("sources", "ListSources", "Sources: endpoints for clients that do not speak AWS's APIs."), o.Sources.List),
		rest.Define(one("source", "GetSource", "One source, without its secrets."), o.Sources.Get),
		rest.Define(rest.Operation{
			Method: http.MethodPost, Path: Prefix + "sources", Name: "PutSource",
			Summary:  "Makes a source, or replaces one. It publishes as who asks for this, who has to be allowed sns:Publish or sqs:SendMessage on the target.",
			Statuses: []int{http.StatusServiceUnavailable},
		}, o.Sources.Put),
		rest.Define(change("source/pause", "PauseSource", "Has a source take no posts."), o.Sources.Pause),
		rest.Define(change("source/resume", "ResumeSource", "Has it take them again."), o.Sources.Resume),
		rest.Define(change("source/delete", "DeleteSource", "Deletes a source."), o.Sources.Delete),
		rest.Define(backup(rest.Operation{
			Method: http.MethodPost, Path: Prefix + "backup", Name: "BeginBackup", Summary: "Makes a snapshot of the whole state, as of one moment, and offers its files.",
			Statuses: []int{http.StatusConflict, http.StatusServiceUnavailable},
		}), o.Backups.Begin),
		rest.Define(part, o.Backups.Part),
		rest.Define(backup(rest.Operation{Method: http.MethodPost, Path: Prefix + "backup/end", Name: "EndBackup", Summary: "Says that a snapshot is not needed any more."}), o.Backups.End),
		rest.Define(get("delivering", "GetDelivering", "Whether the server delivers, or was restored with --paused."), o.Backups.Held),
		rest.Define(rest.Operation{Method: http.MethodPost, Path: Prefix + "delivering/begin", Name: "BeginDelivering", Summary: "Has a server deliver that was restored with --paused."}, o.Backups.Deliver),
		rest.Define(get("cluster", "GetCluster", "The nodes that serve, and who owns the state. A single server is a node of its own. Nodes of a cluster answer it as docs/cluster.md says."), c.GetCluster),
	}, o.Development.Operations(Prefix)...)
}

// Handlers are the handlers of the API, by patterns of http.ServeMux.
func Handlers(o Options, admission rest.Options) map[string]http.Handler {
	handlers := rest.Handlers(Operations(o), admission)
	handlers["GET "+documentPath] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store") // it differs between versions
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(Document) // an error means that the client is gone
	})
	return handlers
}
