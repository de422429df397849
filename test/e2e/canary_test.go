package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/sdkhttp"
)

// What operators take out of a server, and have it do, spreads nothing that it seals: a body,
// an attribute, a variable of an environment, a secret. They are in no backup, in no file of
// exported resources, in no record of a job that looked for one of them, and in no log.
func TestOperatorsSpreadNothing(t *testing.T) {
	t.Parallel()
	p := initialise(t)
	logs, out := t.TempDir(), t.TempDir()
	s := p.serve(t, freeAddress(t), nil, "--log-level", "debug", "--audit-log", filepath.Join(logs, "audit.log"), "--audit-data-events", "--audit-log-group", "audit")
	creds := credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, "")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	queues := p.sqs(s, p.SecretAccessKey)
	for _, name := range []string{"dead", "back"} {
		q, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
		must(err)
		for range 3 {
			_, err = queues.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: q.QueueUrl, MessageBody: aws.String("a canary-body of " + name),
				MessageAttributes: map[string]sqstypes.MessageAttributeValue{"canary-name": {DataType: aws.String("String"), StringValue: aws.String("canary-value")}},
			})
			must(err)
		}
	}
	topics := sns.New(sns.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	topic, err := topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("t")})
	must(err)
	_, err = topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("https"), Endpoint: aws.String("https://user:canary-password@127.0.0.1:1/")})
	must(err)
	_, err = topics.Publish(t.Context(), &sns.PublishInput{TopicArn: topic.TopicArn, Message: aws.String("canary-message"), Subject: aws.String("canary-subject")})
	must(err)
	_, err = topics.CreatePlatformApplication(t.Context(), &sns.CreatePlatformApplicationInput{
		Name: aws.String("shop"), Platform: aws.String("GCM"), Attributes: map[string]string{"PlatformCredential": "canary-credential"},
	})
	must(err)
	users := iam.New(iam.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	_, err = users.CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("u")})
	must(err)
	made, err := users.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: aws.String("u")})
	must(err)
	role, err := users.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("function"), AssumeRolePolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)})
	must(err)
	functions := lambda.New(lambda.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	_, err = functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{ // a remote one, which needs no sandbox
		FunctionName: aws.String("f"), Role: role.Role.Arn, PackageType: types.PackageTypeImage,
		Code:        &types.FunctionCode{ImageUri: aws.String("https://user:canary-password@127.0.0.1:1/")},
		Environment: &types.Environment{Variables: map[string]string{"CANARY": "canary-variable"}},
	})
	must(err)

	run := func(args ...string) string {
		t.Helper()
		cmd := p.run(append(args, "--endpoint", s.base)...)
		var said strings.Builder
		cmd.Stderr = &said
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("godwit %v: %v: %s%s", args, err, text, said.String())
		}
		return string(text)
	}
	if text := run("messages", "dead", "--search", "canary-body"); strings.Count(text, "canary-body") < 3 {
		t.Errorf("a search finds:\n%s", text)
	}
	for _, job := range [][]string{
		{"redrive", "dead", "--search", "canary-body of dead", "--to", "back"},
		{"delete", "dead", "--search", "canary-value", "--yes"},
		{"delete", "back", "--cause", "canary-cause"},
	} {
		run(append([]string{"jobs", "start", "--yes"}, job...)...)
	}
	shown := run("jobs", "-o", "json")
	if !strings.Contains(shown, "canary-body of dead") || strings.Count(shown, `"completed"`) < 2 {
		t.Errorf("the jobs are:\n%s", shown)
	}
	run("backup", filepath.Join(out, "backup"))
	exported := run("export")
	if !strings.Contains(exported, "dead") || !strings.Contains(exported, "127.0.0.1:1") {
		t.Errorf("what is exported:\n%s", exported)
	}

	secrets := []string{"canary", p.SecretAccessKey, *made.AccessKey.SecretAccessKey}
	check := func(when string) {
		t.Helper()
		for _, dir := range []string{p.data, p.dir, logs, out} {
			for _, found := range filesWith(t, dir, secrets...) {
				t.Errorf("%s: %s", when, found)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(exported, secret) {
				t.Errorf("the exported resources have %.6s…:\n%s", secret, exported)
			}
			if strings.Contains(s.stdout.String()+s.stderr.String(), secret) {
				t.Errorf("%s: the server has printed %.6s…", when, secret)
			}
		}
	}
	check("while it runs")
	s.kill()
	check("killed")
	s = p.serve(t, s.addr, nil)
	if text := run("jobs", "-o", "json"); !strings.Contains(text, "canary-body of dead") {
		t.Errorf("the jobs are forgotten:\n%s", text)
	}
	s.terminate(t)
	s.exit(t)
	check("ended")
}
