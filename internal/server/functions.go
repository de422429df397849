package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/async"
	"godwit.dev/godwit/internal/invoke/eventsource"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/internal/invoke/process/network"
	"godwit.dev/godwit/internal/invoke/remote"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/server/artifacts"
	"godwit.dev/godwit/internal/server/ids"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/server/urls"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/sigv4"
)

// The default number of concurrent executions of an account, and how many of them cannot be
// reserved, as with AWS.
const (
	executions = 1000
	unreserved = 100
)

func functionLimits(c config.Config) shard.FunctionLimits {
	return shard.FunctionLimits{CodeBytes: c.LambdaCodeStorage, Executions: cmp.Or(c.LambdaConcurrency, executions), Unreserved: unreserved}
}

// newNetwork makes the network of functions.
func newNetwork(deps Deps) (*network.Network, error) {
	c := deps.Config
	n, err := network.New(network.Options{
		Mode: network.Mode(c.FunctionNetwork), Allow: c.FunctionAllow, Port: deps.Port, Closed: deps.ownPorts().Network, PublicURL: c.PublicURL,
		Connections: c.FunctionConnections, Bytes: limit.DefaultBytes(limit.Memory()), Logger: deps.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("the functions' network (--function-allow, --public-url): %w", err)
	}
	deps.OnStop("functions' network", func(context.Context) error { return n.Close() })
	return n, nil
}

// runFunctions makes the network of functions, their processes, and the pool that runs them.
func (r *running) runFunctions(deps Deps, s *state) (err error) {
	if r.sockets, err = newNetwork(deps); err != nil {
		return err
	}
	if r.processes, err = newProcesses(deps, s, r.sockets); err != nil {
		return err
	}
	elsewhere := remote.New(remote.Options{AllowPrivate: deps.Config.AllowPrivateEndpoints, Own: deps.ownPorts(), Connections: deps.Limits.outgoing, Dial: deps.World.Dial})
	deps.OnStop("remote functions' connections", func(context.Context) error {
		elsewhere.Close()
		return nil
	})
	r.pool = invoke.New(invoke.Options{
		Process: r.processes, Remote: elsewhere, Log: roles.FunctionLogs{Logs: s.logs, Sessions: s.sessions}, Logger: deps.Log, Clock: deps.Clock, Tracer: deps.tracer,
		Concurrency: s.limits.Executions, Guard: poison.New(deps.Log, deps.exit), Environments: min(s.limits.Executions, deps.Limits.environments()), Idle: deps.Config.LambdaIdle, Events: s.functions.add,
		Reserved: func(region, account string) int { return s.engine.ReservedExecutions(account, region) },
	})
	s.engine.SetDeletionWatcher(r.pool.Retire)
	deps.OnStop("functions", r.pool.Stop)
	return nil
}

// newProcesses makes the runner of functions' processes.
func newProcesses(deps Deps, s *state, sockets *network.Network) (*process.Runner, error) {
	dir := filepath.Join(deps.Config.Data, "functions")
	if deps.Config.Store == config.MemoryStore {
		// An image with only the binary has no such directory.
		err := os.MkdirAll(os.TempDir(), 0o700)
		if err == nil {
			dir, err = os.MkdirTemp("", "godwit-functions-")
		}
		if err != nil {
			return nil, fmt.Errorf("a directory for functions cannot be made: %w", err)
		}
	}
	data, err := filepath.Abs(deps.Config.Data)
	if err != nil {
		return nil, err
	}
	processes, err := process.New(process.Options{
		Directory: dir, Code: s.engine.FunctionCode, Layer: s.engine.LayerContent, Logger: deps.Log, Network: sockets, Endpoint: s.url, Hide: hidden(data),
		LimitProcessors: deps.Config.LambdaCPULimit, Plain: deps.Config.FunctionIsolation == config.IsolationNone,
		Storage: deps.Config.FunctionStorage, Answers: deps.Limits.functions, Roles: s.sessions, Variables: s.sessions.Variables, Libraries: deps.Config.FunctionLibraries,
	})
	if err != nil {
		return nil, err
	}
	storage := processes.Storage
	deps.Limits.storage.Store(&storage)
	deps.OnStop("functions' directory", func(context.Context) error {
		deps.Limits.storage.CompareAndSwap(&storage, nil) // the limits may outlive this server
		return processes.Close()
	})
	return processes, nil
}

// hidden are the paths of a directory that functions must not see: its own, and its target if
// it is a link.
func hidden(dir string) []string {
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		return []string{dir, real}
	}
	return []string{dir}
}

// functionNotices are the banner's notices of functions.
func functionNotices(c config.Config, processes *process.Runner) []string {
	if err := processes.Refusal(); err != nil {
		return []string{"Functions: refused. " + refusal.Text(err)}
	}
	if c.FunctionIsolation == config.IsolationNone {
		return []string{"Functions: not isolated (" + process.NoIsolation + "); they can read and change what this server's user can"}
	}
	return nil
}

// startPollers starts the event-source mappings. They stop before the functions do.
func startPollers(deps Deps, engine *shard.Engine, pool *invoke.Pool, acting invoke.Acting) (*eventsource.Pollers, error) {
	pollers, err := eventsource.Start(eventsource.Options{Engine: engine, Pool: ofOwner{pool, deps.owned}, Clock: deps.Clock, Logger: deps.Log, Tracer: deps.tracer, Draining: deps.Draining, Acting: acting, Released: deps.hold.Released()})
	if err != nil {
		return nil, fmt.Errorf("reading the event-source mappings: %w", err)
	}
	deps.OnStop("event-source mappings", pollers.Stop)
	return pollers, nil
}

// runEvents starts the dispatcher of functions' events.
func runEvents(deps Deps, s *state, pool *invoke.Pool, acting invoke.Acting) {
	consumer := async.New(async.Options{
		Engine: s.engine, Invoker: ofOwner{pool, deps.owned}, Clock: deps.Clock, Logger: deps.Log, Tracer: deps.tracer, Events: s.functions.add, NewID: ids.New,
		Limit: s.limits.Executions, Explain: refusal.Text, Acting: acting,
	})
	deps.OnStop("asynchronous invocations", consumer.Stop)
	deps.hold.Begin(func() { s.engine.SetConsumer("lambda", consumer) })
}

// newLambda makes the handler of Lambda's operations.
func newLambda(c config.Config, s *state, r *running, objects *artifacts.Store) *lambda.Service {
	return lambda.New(lambda.Options{
		Engine: &roles.Functions{Engine: s.engine, Sessions: s.sessions, Acting: s.sessions.Acting(s.authorizer), Failing: r.pollers.Failing},
		Pool:   r.pool, Limits: s.limits, Installed: process.Installed, Refusal: r.processes.Refusal, Principals: s.principals,
		NewRevision: ids.Text, Environments: s.sessions.Environments, Objects: objects,
		Links: s.links, NewURL: ids.Digits, URLHost: c.QueueURLHost,
	})
}

// functionURLs makes the handler of function URLs.
func functionURLs(deps Deps, s *state, r *running, verifier *sigv4.Verifier, trail *audit.Trail) http.Handler {
	o := urls.Options{
		Engine: s.engine, Pool: ofOwner{r.pool, deps.owned}, Authentic: verifier, Known: s.identities.Known, Request: s.accounts.Request,
		NoteUse: s.identities.NoteUse, Audit: audited(trail),
		Requests: deps.Limits.requests, Pace: deps.Limits.Pace(), Clock: deps.Clock, Logger: deps.Log,
	}
	if deps.Config.Enforce {
		o.Authorizer = s.authorizer
	}
	return urls.Open(o)
}
