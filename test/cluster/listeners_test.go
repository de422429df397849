package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/programs"
)

// TestListeners: operators and providers' posts have addresses of their own at each node of production,
// and are answered by whichever owns the state; profiles are of the node that is asked.
func TestListeners(t *testing.T) {
	programs.Allow(t)
	m := &machines{t: t, dir: t.TempDir(), port: freePorts(t), running: map[string]*exec.Cmd{}}
	at := func(node string, after int) string { return fmt.Sprintf("127.0.0.1:%d", m.clients(node)+after) }
	const operators, posts, profiles = 5, 16, 20 // how far their ports are behind those for clients
	m.args = func(node string) []string {
		return []string{"--admin-listen", at(node, operators), "--ingest-listen", at(node, posts), "--pprof", at(node, profiles), "--prometheus"}
	}
	if err := json.Unmarshal([]byte(m.must("init", "--dir", m.dir, "--data", m.path("data"), "-o", "json")), &m.key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.stop()
		if t.Failed() {
			t.Logf("what the nodes told:\n%s", m.out.String())
		}
	})
	m.join()

	const secret = "a key of sixteen bytes or more"
	ask := func(method, address, path, body string) (status int, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Api-Key", secret)
		r.Header.Set("X-Godwit-Listener", "operators") // only nodes may say so
		answer, err := bounded.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		read, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(read)
	}
	client := m.client("a", m.key.SecretAccessKey)
	queue, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("posted")})
	if err != nil {
		t.Fatal(err)
	}
	source := `{"name":"shop","target":"arn:aws:sqs:us-east-1:000000000000:posted","verification":{"kind":"api-key"},"secrets":["` + secret + `"]}`
	if status, text := ask(http.MethodPost, at("a", operators), "/_godwit/v1/sources", source); status != http.StatusOK {
		t.Fatalf("an operator makes a source: %d %s", status, text)
	}
	want := map[string]bool{}
	for range 2 { // the second time another node owns the state
		for _, node := range names {
			for _, c := range []struct {
				what   string
				after  int
				path   string
				status int
				has    string
			}{
				{"the queues, for operators", operators, "/_godwit/v1/queues", 200, `"posted"`},
				{"the metrics", operators, "/metrics", 200, `godwit_limit_used{limit="connections"}`},
				{"the cluster", operators, "/_godwit/v1/cluster", 200, `"name":"b"`},
				{"the queues, for clients", 0, "/_godwit/v1/queues", 403, "--admin-listen"},
				{"the metrics, for clients", 0, "/metrics", 403, "--admin-listen"},
				{"a profile", profiles, "/debug/pprof/cmdline", 200, "identity-" + node},
			} {
				if status, text := ask(http.MethodGet, at(node, c.after), c.path, ""); status != c.status || !strings.Contains(text, c.has) {
					t.Errorf("%s, of node %s: %d %.300s", c.what, node, status, text)
				}
			}
			body := fmt.Sprintf("%s %d", node, len(want))
			want[body] = true
			if status, text := ask(http.MethodPost, at(node, posts), "/in/shop", body); status != http.StatusAccepted {
				t.Errorf("a post at node %s: %d %s", node, status, text)
			}
		}
		owners := 0
		for _, node := range names {
			if _, text := ask(http.MethodGet, at(node, operators), "/metrics", ""); strings.Contains(text, `godwit_sqs_messages_sent_total{account="000000000000",queue="posted"`) {
				owners++
			}
		}
		if owners != 1 {
			t.Errorf("the metrics of the queue are those of %d nodes", owners)
		}
		m.change("step-down")
	}
	if others := receiveAll(t, m.client("b", m.key.SecretAccessKey), queue.QueueUrl, want); len(others) > 0 {
		t.Errorf("these came, too: %q", others)
	}
}
