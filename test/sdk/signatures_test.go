package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

const (
	rootKey    = "AKIAROOTROOTROOTROOT"
	rootSecret = "root/secret+of+the+account/000000000000"
)

// enforce has a server verify signatures, by the root's access key alone.
func enforce(c *config.Config) {
	c.Enforce, c.Root = true, config.Root{AccessKeyID: rootKey, Secret: rootSecret}
}

// asRoot signs with the root's access key.
func asRoot(o *sqs.Options) {
	o.Credentials = credentials.NewStaticCredentialsProvider(rootKey, rootSecret, "")
}

// The SDK's signatures are taken, and others are not.
func TestEnforcedSignatures(t *testing.T) {
	endpoint := startWith(t, enforce)
	c := client(endpoint)
	must(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")}, asRoot))(t)
	for name, tc := range map[string]struct {
		key, secret, token string
		code, text         string
	}{
		"another key":         {"AKIDEXAMPLE", rootSecret, "", "InvalidClientTokenId", "The security token included in the request is invalid."},
		"another secret":      {rootKey, "secret", "", "SignatureDoesNotMatch", mismatched},
		"a token it has not":  {rootKey, rootSecret, "token", "InvalidClientTokenId", "The security token included in the request is invalid."},
		"both":                {rootKey, "secret", "token", "SignatureDoesNotMatch", mismatched},
		"an account's number": {account, "secret", "", "InvalidClientTokenId", "The security token included in the request is invalid."},
	} {
		// A client of its own: the SDK keeps what it derives from a secret by the key's name.
		_, err := client(endpoint).ListQueues(t.Context(), nil, func(o *sqs.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider(tc.key, tc.secret, tc.token)
		})
		t.Log(name)
		refused(t, err, tc.code, 403, tc.text)
	}
	unsigned := callJSON(t, endpoint, "ListQueues", "{}")
	equal(t, "unsigned", `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`, unsigned.Body)
	equal(t, "unsigned, status", 403, unsigned.Status)
}

const mismatched = "The request signature we calculated does not match the signature you provided. " +
	"Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
