package server

import (
	"cmp"
	"crypto/rand"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/config"
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

// newLambda makes what answers the operations of Lambda.
func newLambda(engine *shard.Engine, limits shard.FunctionLimits) *lambda.Service {
	o := lambda.Options{Engine: engine, Limits: limits, NewRevision: func() string { return newID().String() }}
	if _, err := rand.Read(o.DownloadKey[:]); err != nil {
		panic(err) // crypto/rand does not fail
	}
	return lambda.New(o)
}
