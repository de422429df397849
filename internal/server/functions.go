package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/async"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/internal/invoke/remote"
	"godwit.dev/godwit/internal/invoke/source"
	"godwit.dev/godwit/internal/shard"
)

// How many executions of functions an account has if nothing else is set, and how
// many of them cannot be reserved, as with AWS.
const (
	executions = 1000
	unreserved = 100
)

func functionLimits(c config.Config) shard.FunctionLimits {
	return shard.FunctionLimits{CodeBytes: c.LambdaCodeStorage, Executions: cmp.Or(c.LambdaConcurrency, executions), Unreserved: unreserved}
}

// newPool makes what runs functions.
func newPool(deps Deps, engine *shard.Engine, limits shard.FunctionLimits, output invoke.Log, endpoint string, events invoke.Events) (*invoke.Pool, error) {
	dir := filepath.Join(deps.Config.Data, "functions")
	if deps.Config.Store == config.MemoryStore {
		var err error
		if dir, err = os.MkdirTemp("", "godwit-functions-"); err != nil {
			return nil, fmt.Errorf("a directory for functions cannot be made: %w", err)
		}
	}
	data, err := filepath.Abs(deps.Config.Data)
	if err != nil {
		return nil, err
	}
	processes, err := process.New(process.Options{
		Directory: dir, Code: engine.FunctionCode, Logger: deps.Log, Endpoint: endpoint, Hide: []string{data},
		LimitProcessors: deps.Config.LambdaCPULimit,
	})
	if err != nil {
		return nil, err
	}
	deps.OnStop("functions' directory", func(context.Context) error { return processes.Close() })
	elsewhere := remote.New(remote.Options{AllowPrivate: deps.Config.AllowPrivateEndpoints})
	deps.OnStop("remote functions' connections", func(context.Context) error {
		elsewhere.Close()
		return nil
	})
	pool := invoke.New(invoke.Options{
		Process: processes, Remote: elsewhere, Log: output, Logger: deps.Log, Clock: deps.Clock,
		Concurrency: limits.Executions, Environments: limits.Executions, Idle: deps.Config.LambdaIdle, Events: events,
		Reserved: func(region, account string) int { return engine.ReservedExecutions(account, region) },
	})
	deps.OnStop("functions", pool.Stop)
	return pool, nil
}

// startPollers feeds functions from their queues. They stop before the functions do.
func startPollers(deps Deps, engine *shard.Engine, pool *invoke.Pool) error {
	pollers, err := source.Start(source.Options{Engine: engine, Pool: pool, Clock: deps.Clock, Logger: deps.Log})
	if err != nil {
		return fmt.Errorf("reading the event-source mappings: %w", err)
	}
	deps.OnStop("event-source mappings", pollers.Stop)
	return nil
}

// runEvents has functions run with the events that wait for them.
func runEvents(deps Deps, engine *shard.Engine, limits shard.FunctionLimits, pool *invoke.Pool, events invoke.Events) {
	consumer := async.New(async.Options{
		Engine: engine, Invoker: pool, Clock: deps.Clock, Logger: deps.Log, Events: events, NewID: newID,
		Limit: limits.Executions,
	})
	deps.OnStop("asynchronous invocations", consumer.Stop)
	engine.SetConsumer("lambda", consumer)
}

// newLambda makes what answers the operations of Lambda.
func newLambda(engine *shard.Engine, pool *invoke.Pool, limits shard.FunctionLimits) *lambda.Service {
	o := lambda.Options{
		Engine: engine, Pool: pool, Limits: limits, Installed: process.Installed,
		NewRevision: func() string { return newID().String() },
	}
	if _, err := rand.Read(o.DownloadKey[:]); err != nil {
		panic(err) // crypto/rand does not fail
	}
	return lambda.New(o)
}
