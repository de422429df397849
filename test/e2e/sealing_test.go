package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"godwit.dev/godwit/test/sdkhttp"
)

// filesWith are the files below a directory that have one of some texts.
func filesWith(t *testing.T, dir string, texts ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // the server has removed it since
			return nil
		}
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				found = append(found, fmt.Sprintf("%q in %s", text, path))
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// What is secret is in no file of a server of production, nor in what it logs and audits:
// bodies, attributes, environments, and the secrets of access keys.
func TestServeWritesNothingInClear(t *testing.T) {
	p := initialise(t)
	logs := t.TempDir()
	audit := filepath.Join(logs, "audit.log")
	s := p.serve(t, freeAddress(t), nil, "--audit-log", audit, "--audit-data-events", "--audit-max-bytes", "4KiB", "--audit-log-group", "audit", "--log-level", "debug")
	ctx, creds := t.Context(), credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, "")
	c := p.sqs(s, p.SecretAccessKey)
	users := iam.New(iam.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	keys := kms.New(kms.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	topics := sns.New(sns.Options{Region: region, BaseEndpoint: &s.base, Credentials: creds, HTTPClient: sdkhttp.Of(s.http)})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := keys.CreateKey(ctx, &kms.CreateKeyInput{})
	must(err)
	for name, attributes := range map[string]map[string]string{"managed": nil, "customer": {"KmsMasterKeyId": *key.KeyMetadata.KeyId}} {
		q, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		must(err)
		for range 20 {
			_, err = c.SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl: q.QueueUrl, MessageBody: aws.String("canary-body"),
				MessageAttributes: map[string]sqstypes.MessageAttributeValue{"canary-name": {DataType: aws.String("String"), StringValue: aws.String("canary-value")}},
			})
			must(err)
		}
	}
	topic, err := topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: aws.String("t")})
	must(err)
	_, err = topics.Subscribe(ctx, &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("https"), Endpoint: aws.String("https://user:canary-password@127.0.0.1:1/")})
	must(err)
	_, err = topics.Publish(ctx, &sns.PublishInput{TopicArn: topic.TopicArn, Message: aws.String("canary-message"), Subject: aws.String("canary-subject")})
	must(err)
	_, err = users.CreateUser(ctx, &iam.CreateUserInput{UserName: aws.String("u")})
	must(err)
	made, err := users.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: aws.String("u")})
	must(err)
	plaintext, err := keys.Encrypt(ctx, &kms.EncryptInput{KeyId: key.KeyMetadata.KeyId, Plaintext: []byte("canary-plaintext")})
	must(err)
	_, err = keys.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: plaintext.CiphertextBlob})
	must(err)

	secrets := []string{"canary", p.SecretAccessKey, *made.AccessKey.SecretAccessKey}
	check := func(when string) {
		t.Helper()
		for _, dir := range []string{p.data, p.dir, logs} {
			for _, found := range filesWith(t, dir, secrets...) {
				t.Errorf("%s: %s", when, found)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(s.stdout.String()+s.stderr.String(), secret) {
				t.Errorf("%s: the server has printed %.6s…", when, secret)
			}
		}
	}
	check("while it runs")
	s.kill()
	check("killed")
	if old := filesWith(t, logs, `"eventName":"SendMessage"`); len(old) < 2 {
		t.Errorf("the audit log was not put away: %v", old)
	}
	s = p.serve(t, freeAddress(t), nil)
	got, err := p.sqs(s, p.SecretAccessKey).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.base + "/000000000000/customer"), MessageAttributeNames: []string{"All"}})
	if err != nil || len(got.Messages) != 1 || *got.Messages[0].Body != "canary-body" || len(got.Messages[0].MessageAttributes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	s.terminate(t)
	s.exit(t)
	check("ended")
}

// A server that is killed again and again while it seals what development has left in clear
// loses nothing, and when it serves nothing of that is in clear.
func TestKilledWhileSealing(t *testing.T) {
	p := initialise(t)
	dev := startAt(t, freeAddress(t), p.data)
	const queues, each = 3, 1500
	for n := range queues {
		dev.createQueue(t, fmt.Sprint("q", n))
	}
	stored := sqs.New(sqs.Options{Region: region, BaseEndpoint: &dev.base, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), HTTPClient: sdkhttp.Of(dev.http)})
	for n := range queues {
		for i := 0; i < each; i += 10 {
			var entries []sqstypes.SendMessageBatchRequestEntry
			for j := i; j < i+10; j++ {
				entries = append(entries, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(j)), MessageBody: aws.String(fmt.Sprintf("canary %d %s", j, strings.Repeat("x", 1000)))})
			}
			if _, err := stored.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(fmt.Sprint(dev.base, "/000000000000/q", n)), Entries: entries}); err != nil {
				t.Fatal(err)
			}
		}
	}
	dev.terminate(t)
	dev.exit(t)
	if out, err := exec.Command(binary, "keys", "rotate-root", "--dir", p.dir, "--from", filepath.Join(p.data, "dev-root.key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(filesWith(t, p.data, "canary")) == 0 {
		t.Fatal("development has stored nothing in clear")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const starts = 30
	sealed := 0
	for n := range starts {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, binary, "serve", "--config", p.settings, "--listen", freeAddress(t))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Each lives a little longer than the one before: from before anything is written to
		// after it serves, and so at many places of the rewrite and of the compaction.
		timer := time.AfterFunc(time.Duration(n*8+random.IntN(16))*time.Millisecond, cancel)
		_ = cmd.Wait()
		timer.Stop()
		cancel()
		if len(filesWith(t, p.data, "canary")) == 0 {
			sealed++
		}
	}
	t.Logf("nothing was in clear after %d of %d starts", sealed, starts)
	s := p.serve(t, freeAddress(t), nil)
	for _, found := range filesWith(t, p.data, "canary") {
		t.Error(found)
	}
	c := p.sqs(s, p.SecretAccessKey)
	for n := range queues {
		url, seen := fmt.Sprint(s.base, "/000000000000/q", n), map[string]bool{}
		for len(seen) < each {
			got, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, VisibilityTimeout: 3600}, func(o *sqs.Options) { o.HTTPClient = sdkhttp.Of(s.http) })
			if err != nil || len(got.Messages) == 0 {
				t.Fatalf("%d messages of q%d are there, then %v", len(seen), n, err)
			}
			for _, m := range got.Messages {
				if !strings.HasPrefix(*m.Body, "canary ") || seen[*m.Body] {
					t.Fatalf("a message came twice, or is another: %.20s", *m.Body)
				}
				seen[*m.Body] = true
			}
		}
	}
}

// Queues that were made without encryption are named by a start of production.
func TestServeNamesQueuesInClear(t *testing.T) {
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil)
	c := p.sqs(s, p.SecretAccessKey)
	for name, attributes := range map[string]map[string]string{"open": {"SqsManagedSseEnabled": "false"}, "sealed": nil} {
		if _, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}
	s.kill()
	s = p.serve(t, freeAddress(t), nil)
	eventually(t, "all that it says before it is ready", func() (bool, error) { return strings.Contains(s.stderr.String(), "msg=ready"), nil })
	log := s.stderr.String()
	if !strings.Contains(log, "arn:aws:sqs:us-east-1:000000000000:open") || strings.Contains(log, ":sealed") {
		t.Errorf("the log does not name what is in clear:\n%s", log)
	}
	r, err := s.call(t.Context(), http.MethodGet, "/_godwit/health", nil, nil)
	if err != nil || !json.Valid(r.body) {
		t.Errorf("%s, %v", r.body, err)
	}
}
