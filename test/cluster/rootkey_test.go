package cluster_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// TestRootKey: three nodes with a root key each in a file of its own go on with the next one,
// which one of them has put in place: another that takes over has it beside the old one.
func TestRootKey(t *testing.T) {
	programs.Allow(t)
	m := &machines{t: t, dir: t.TempDir(), port: freePorts(t), running: map[string]*exec.Cmd{}}
	if err := json.Unmarshal([]byte(m.must("init", "--dir", m.dir, "--data", m.path("data"), "-o", "json")), &m.key); err != nil {
		t.Fatal(err)
	}
	copied := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range names {
		copied(m.path("root.key"), m.path("root-"+node+".key"))
		copied(m.path("root-access-key.json"), m.path("access-"+node+".json"))
	}
	m.args = func(node string) []string {
		return []string{"--root-key", m.path("root-" + node + ".key"), "--root-access-key", m.path("access-" + node + ".json")}
	}
	t.Cleanup(func() {
		m.stop()
		if t.Failed() {
			t.Logf("what the nodes told:\n%s", m.out.String())
		}
	})
	m.join()
	secret := m.key.SecretAccessKey
	queue, err := m.client("a", secret).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("kept")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.client("a", secret).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("sealed before")}); err != nil {
		t.Fatal(err)
	}

	if status, text := m.rotate("b"); status == http.StatusOK || !strings.Contains(text, "on every node") {
		t.Errorf("without the next key: %d %s", status, text)
	}
	m.must("init", "--dir", m.path("next"), "--data", m.path("next-data"), "-o", "json")
	for _, node := range names {
		copied(m.path("next", "root.key"), m.path("root-"+node+".key.new"))
	}
	before := m.eventually("a node serves", func(s status) bool { return s.serving() != nil })
	if status, text := m.rotate("b"); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	after := m.eventually("a node serves", func(s status) bool { return s.serving() != nil })
	owner := after.serving().Name
	for _, node := range names {
		if after.epoch() != before.epoch() {
			break // an owner that the machine has held up for long was replaced: which of the two did it?
		}
		if _, err := os.Stat(m.path("root-" + node + ".key.new")); (err == nil) != (node != owner) {
			t.Errorf("the next key of %s, where %s serves: %v", node, owner, err)
		}
	}
	_ = m.running[owner].Process.Kill()
	_ = m.running[owner].Wait()
	other := names[(strings.Index("abc", owner)+1)%3]
	var got *sqs.ReceiveMessageOutput
	m.eventually("another owner gives the message", func(status) bool { // again, where an answer with it is lost
		got, err = m.client(other, secret).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, WaitTimeSeconds: 5})
		return err == nil && len(got.Messages) > 0
	})
	if len(got.Messages) != 1 || *got.Messages[0].Body != "sealed before" {
		t.Fatalf("from another owner: %+v", got)
	}
	m.start(owner)
	m.eventually("all nodes are back", status.whole)
}

// rotate asks a node, as the root user, that the root key be rotated.
func (m *machines) rotate(node string) (status int, text string) {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/_godwit/keys/rotate-root", m.clients(node)), http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	sum := sha256.Sum256(nil)
	who := aws.Credentials{AccessKeyID: m.key.AccessKeyID, SecretAccessKey: m.key.SecretAccessKey}
	if err := v4.NewSigner().SignHTTP(m.t.Context(), who, r, hex.EncodeToString(sum[:]), "godwit", "us-east-1", time.Now()); err != nil {
		m.t.Fatal(err)
	}
	answer, err := bounded.Do(r)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
