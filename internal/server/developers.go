package server

import (
	"context"
	"net/http"

	"godwit.dev/godwit/internal/api/developer"
	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/inspect"
)

// forDevelopers serves the requests of tools for LocalStack; nil if requests are authenticated,
// as such tools do not sign them.
func forDevelopers(c config.Config, engine *shard.Engine, dev *development.Development) http.Handler {
	if c.Production || c.Enforce || c.AdminListen != "" {
		return nil
	}
	return developer.Handler(developer.Options{
		Inspect: inspect.New(engine.Queues, engine.Functions), Region: c.Region, Version: config.Version,
		Services: []string{"cloudformation", "cloudwatch", "firehose", "iam", "kms", "lambda", "logs", "sns", "sqs", "sts"},
		Reset: func(ctx context.Context) error {
			_, err := dev.Reset(ctx, nil, &development.Reset{Account: c.Account})
			return err
		},
	})
}
