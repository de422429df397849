package sdk_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"godwit.dev/godwit/internal/config"
)

// An account that asks more often than it may is refused with the error that each of AWS's APIs
// throttles with, and no other account is.
func TestAccountRequests(t *testing.T) {
	endpoint := startBuilt(t, nil, func(c *config.Config) { c.MaxRequests, c.Enforce = 5, false })
	of := func(account string) aws.Config {
		return aws.Config{Region: "us-east-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider(account, "x", "")}
	}
	busy := of("111111111111")
	for want, ask := range map[string]func() error{
		"RequestThrottled": func() error {
			_, err := sqs.NewFromConfig(busy).ListQueues(t.Context(), &sqs.ListQueuesInput{})
			return err
		},
		"Throttled": func() error {
			_, err := sns.NewFromConfig(busy).ListTopics(t.Context(), &sns.ListTopicsInput{})
			return err
		},
		"ThrottlingException": func() error {
			_, err := kms.NewFromConfig(busy).ListKeys(t.Context(), &kms.ListKeysInput{})
			return err
		},
	} {
		var err error
		for range 1000 { // five of them come through at once, and five a second
			if err = ask(); err != nil {
				break
			}
		}
		if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := sqs.NewFromConfig(of("222222222222")).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Errorf("another account: %v", err)
	}
}
