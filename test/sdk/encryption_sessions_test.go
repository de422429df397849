package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
)

// A data key that one session may use is not used for another session of the same role and
// name, whose session policy or tags do not let it.
func TestDataKeysOfSessions(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	c, k := iamClient(endpoint), newKMS(t, endpoint, account)
	key := makeKey(t, k, &kms.CreateKeyInput{})
	q := createQueue(t, client(endpoint), "q", "KmsMasterKeyId", *key.KeyId, "VisibilityTimeout", "0")
	topic := must(topicsClient(endpoint).CreateTopic(ctx, &sns.CreateTopicInput{Name: new("t"), Attributes: map[string]string{"KmsMasterKeyId": *key.KeyId}}))(t).TopicArn
	must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: new(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"` + account + `"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`)}))(t)
	must(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: new("r"), PolicyName: new("p"), PolicyDocument: new(
		`{"Version":"2012-10-17","Statement":[` + statement("Allow", `["sqs:*","sns:*","kms:*"]`, "*") +
			`,{"Effect":"Deny","Action":"kms:*","Resource":"*","Condition":{"StringEquals":{"aws:PrincipalTag/kms":"no"}}}]}`)}))(t)
	ann := stsAs(endpoint, makeUser(t, endpoint, "ann", statement("Allow", `["sts:AssumeRole","sts:TagSession"]`, "*")))
	as := func(change func(in *sts.AssumeRoleInput)) aws.CredentialsProvider {
		in := &sts.AssumeRoleInput{RoleArn: new("arn:aws:iam::" + account + ":role/r"), RoleSessionName: new("job")}
		change(in)
		return session(must(ann.AssumeRole(ctx, in))(t).Credentials)
	}
	send := func(who aws.CredentialsProvider) error {
		_, err := client(endpoint).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &q, MessageBody: new("x")}, func(o *sqs.Options) { o.Credentials = who })
		return err
	}
	publish := func(who aws.CredentialsProvider) error {
		_, err := topicsClient(endpoint).Publish(ctx, &sns.PublishInput{TopicArn: topic, Message: new("x")}, func(o *sns.Options) { o.Credentials = who })
		return err
	}
	receive := func(who aws.CredentialsProvider) (int, error) {
		got, err := client(endpoint).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q}, func(o *sqs.Options) { o.Credentials = who })
		if err != nil {
			return 0, err
		}
		return len(got.Messages), nil
	}
	whole := as(func(*sts.AssumeRoleInput) {})
	if err := send(whole); err != nil {
		t.Fatal(err)
	}
	if err := publish(whole); err != nil {
		t.Fatal(err)
	}
	if n, err := receive(whole); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for name, change := range map[string]func(in *sts.AssumeRoleInput){
		"a session policy": func(in *sts.AssumeRoleInput) {
			in.Policy = new(`{"Version":"2012-10-17","Statement":[` + statement("Allow", `["sqs:*","sns:*"]`, "*") + `]}`)
		},
		"tags": func(in *sts.AssumeRoleInput) { in.Tags = []ststypes.Tag{{Key: new("kms"), Value: new("no")}} },
	} {
		t.Run(name, func(t *testing.T) {
			who := as(change)
			refusedWith(t, send(who), "KMS.AccessDeniedException", "*")
			_, err := receive(who)
			refusedWith(t, err, "KMS.AccessDeniedException", "*")
			refusedWith(t, publish(who), "KMSAccessDenied", "*")
		})
	}
	if err := send(as(func(*sts.AssumeRoleInput) {})); err != nil {
		t.Error(err)
	}
}

// A shorter period of reuse counts at once, also for the data keys that are used.
func TestShorterReuseOfDataKeys(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	c, k := client(endpoint), newKMS(t, endpoint, account)
	key := makeKey(t, k, &kms.CreateKeyInput{})
	q := createQueue(t, c, "q", "KmsMasterKeyId", *key.KeyId, "KmsDataKeyReusePeriodSeconds", "86400", "VisibilityTimeout", "0")
	send := func() error {
		_, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &q, MessageBody: new("x")})
		return err
	}
	receive := func() error {
		_, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q})
		return err
	}
	for _, err := range []error{send(), receive()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ask(t, k.DisableKey, &kms.DisableKeyInput{KeyId: key.KeyId})
	advance(t, endpoint, "61s")
	for _, err := range []error{send(), receive()} {
		if err != nil {
			t.Errorf("within the period: %v", err)
		}
	}
	must(c.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"KmsDataKeyReusePeriodSeconds": "60"}}))(t)
	refusedWith(t, send(), "KMS.DisabledException", "*")
	refusedWith(t, receive(), "KMS.DisabledException", "*")
}
