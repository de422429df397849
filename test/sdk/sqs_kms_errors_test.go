package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// What is wrong with a queue's key is the answer of each action that needs it, and nothing is
// sent or received.
func TestQueueKeyErrors(t *testing.T) {
	endpoint := start(t)
	c, k := client(endpoint), newKMS(t, endpoint, account)
	eve := makeUser(t, endpoint, "eve", statement("Allow", `"sqs:*"`, "*"))
	calls := map[string]func(url string, who aws.CredentialsProvider) error{
		"SendMessage": func(url string, who aws.CredentialsProvider) error {
			_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("x")}, as(who))
			return err
		},
		"SendMessageBatch": func(url string, who aws.CredentialsProvider) error {
			_, err := c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
				{Id: new("a"), MessageBody: new("x")}, {Id: new("b"), MessageBody: new("y")},
			}}, as(who))
			return err
		},
		"ReceiveMessage": func(url string, who aws.CredentialsProvider) error {
			_, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}, as(who))
			return err
		},
	}
	attributes := func(key *kmstypes.KeyMetadata) []string {
		return []string{"KmsMasterKeyId", *key.KeyId, "KmsDataKeyReusePeriodSeconds", "60", "VisibilityTimeout", "0", "MessageRetentionPeriod", "1209600"}
	}
	for _, tt := range []struct {
		name, code string
		change     func(key *string)
		who        aws.CredentialsProvider
	}{
		{"denied", "KMS.AccessDeniedException", func(*string) {}, eve},
		{"disabled", "KMS.DisabledException", func(key *string) { ask(t, k.DisableKey, &kms.DisableKeyInput{KeyId: key}) }, nil},
		{"pending", "KMS.InvalidStateException", func(key *string) {
			ask(t, k.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: key, PendingWindowInDays: aws.Int32(7)})
		}, nil},
		{"gone", "KMS.NotFoundException", func(key *string) {
			ask(t, k.ScheduleKeyDeletion, &kms.ScheduleKeyDeletionInput{KeyId: key, PendingWindowInDays: aws.Int32(7)})
			advance(t, endpoint, "169h")
		}, nil},
	} {
		key := makeKey(t, k, &kms.CreateKeyInput{})
		url := createQueue(t, c, tt.name, attributes(key)...)
		must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("first")}))(t)
		tt.change(key.KeyId)
		advance(t, endpoint, "61s") // no data key is reused any more
		before := attributesOf(t, c, url)["ApproximateNumberOfMessages"]
		for action, call := range calls {
			code := tt.code
			if tt.name == "gone" && action == "ReceiveMessage" { // KMS does not tell whether it was there
				code = "KMS.AccessDeniedException"
			}
			t.Run(tt.name+" "+action, func(t *testing.T) { refusedWith(t, call(url, tt.who), code, "*") })
		}
		equal(t, "the messages", before, attributesOf(t, c, url)["ApproximateNumberOfMessages"])
	}
	// A key of another kind encrypts nothing.
	mac := makeKey(t, k, &kms.CreateKeyInput{KeySpec: kmstypes.KeySpecHmac256, KeyUsage: kmstypes.KeyUsageTypeGenerateVerifyMac})
	url := createQueue(t, c, "usage", attributes(mac)...)
	for _, action := range []string{"SendMessage", "SendMessageBatch"} {
		t.Run("usage "+action, func(t *testing.T) { refusedWith(t, calls[action](url, nil), "KMS.InvalidKeyUsageException", "*") })
	}
}

// as signs for somebody; nil: who the client is.
func as(who aws.CredentialsProvider) func(o *sqs.Options) {
	return func(o *sqs.Options) {
		if who != nil {
			o.Credentials = who
		}
	}
}
