package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/sdkhttp"
)

// run is a command of the binary, with an access key in its environment.
func (p *production) run(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+p.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+p.SecretAccessKey, "AWS_REGION="+region)
	return cmd
}

// A backup of which client and server are killed in the middle is none until it is made to its
// end; nothing in it is in clear; and what is restored of it has what was acknowledged.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil)
	c := p.sqs(s, p.SecretAccessKey)
	q, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("canary ", 30_000)
	const messages = 60
	for range messages {
		if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if out, err := exec.Command(binary, "backup", "--endpoint", s.base, dir).CombinedOutput(); err == nil {
		t.Fatalf("a stranger gets a backup: %s", out)
	}

	done := func() bool {
		_, err := os.Stat(filepath.Join(dir, "backup.sha256"))
		return err == nil
	}
	begun := func() (bool, error) {
		_, err := os.Stat(filepath.Join(dir, "incomplete.json"))
		return err == nil || done(), err
	}
	client := p.run("backup", "--endpoint", s.base, dir)
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the backup begins", begun)
	_ = client.Process.Kill() // if it has not ended
	_ = client.Wait()
	if !done() {
		if out, err := p.run("check", dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "not whole") {
			t.Errorf("what was cut off: %v, %s", err, out)
		}
		if out, err := p.run("restore", dir, "--data", filepath.Join(t.TempDir(), "x")).CombinedOutput(); err == nil {
			t.Errorf("what was cut off is restored: %s", out)
		}
		client = p.run("backup", "--endpoint", s.base, dir)
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		s.kill()
		_ = client.Wait()
		s = p.serve(t, freeAddress(t), nil)
	}
	if !done() {
		if out, err := p.run("backup", "--endpoint", s.base, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := p.run("check", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, found := range filesWith(t, dir, "canary", p.SecretAccessKey) {
		t.Error(found)
	}

	s.kill()
	data := filepath.Join(t.TempDir(), "restored")
	restore := []string{"restore", dir, "--data", data, "--root-key", filepath.Join(p.dir, "root.key")}
	killed := p.run(restore...)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the restore begins", func() (bool, error) {
		_, err := os.Stat(data)
		return err == nil, err
	})
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if _, err := os.Stat(filepath.Join(data, "store")); err != nil {
		if out, err := p.run(restore...).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("is sealed with the root key")) {
			t.Fatalf("%v: %s", err, out)
		}
	}
	s = p.serve(t, freeAddress(t), nil, "--data", data)
	c = sqs.New(sqs.Options{
		Region: region, BaseEndpoint: &s.base, HTTPClient: sdkhttp.Of(s.http), Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, ""),
	})
	got := 0
	for got <= messages {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.base + "/000000000000/q"), VisibilityTimeout: 3600, MaxNumberOfMessages: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			break
		}
		if got++; *out.Messages[0].Body != body {
			t.Fatal("a message has changed")
		}
	}
	if got != messages {
		t.Errorf("%d of %d messages are there", got, messages)
	}
}
