package server

import (
	"crypto/rand"

	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/shard"
)

// unreserved is how many executions of functions cannot be reserved, as with AWS.
const unreserved = 100

func functionLimits(c config.Config) shard.FunctionLimits {
	return shard.FunctionLimits{CodeBytes: c.LambdaCodeStorage, Executions: c.LambdaConcurrency, Unreserved: unreserved}
}

// newLambda makes what answers the operations of Lambda.
func newLambda(engine *shard.Engine, limits shard.FunctionLimits) *lambda.Service {
	o := lambda.Options{Engine: engine, Limits: limits, NewRevision: func() string { return newID().String() }}
	if _, err := rand.Read(o.DownloadKey[:]); err != nil {
		panic(err) // crypto/rand does not fail
	}
	return lambda.New(o)
}
