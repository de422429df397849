package e2e_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/config"
)

// TestWithoutTemporaryDirectory: an image of nothing but the binary has none.
func TestWithoutTemporaryDirectory(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddress(t), t.TempDir()
	cmd := exec.Command(binary, "dev", "--listen", addr, "--store", "memory", "--data", filepath.Join(dir, "data"))
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "none"))
	p := launch(t, addr, cmd)
	p.awaitReady(t)
	p.createQueue(t, "hello")
}

// TestStart reads what a person sees who starts a server for the first time.
func TestStart(t *testing.T) {
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	began := time.Now()
	p := startAt(t, addr, data)
	t.Logf("from the start of the process to the first answer, on an empty store: %s", time.Since(began).Round(time.Millisecond))

	eventually(t, "the banner is complete", func() (bool, error) {
		return strings.Contains(p.stdout.String(), "receive-message"), nil
	})
	banner := p.stdout.String()
	url := "http://" + addr
	for what, want := range map[string]string{
		"the version":        config.Version,
		"where it listens":   "ready on " + url,
		"the data directory": data,
		"the CLI's endpoint": "AWS_ENDPOINT_URL=" + url,
		"the CLI's region":   "AWS_DEFAULT_REGION=us-east-1",
		"the CLI's key":      "AWS_ACCESS_KEY_ID=",
		"the CLI's secret":   "AWS_SECRET_ACCESS_KEY=",
		"the first command":  "sqs create-queue --queue-name hello\n",
		"the second command": "sqs send-message --queue-url " + url + "/000000000000/hello --message-body ",
		"the third command":  "sqs receive-message --queue-url " + url + "/000000000000/hello\n",
	} {
		if !strings.Contains(banner, want) {
			t.Errorf("the banner lacks %s (%q)", what, want)
		}
	}
	if n := strings.Count(banner, " aws "); n != 3 {
		t.Errorf("the banner has %d commands of the AWS CLI, want 3", n)
	}
	if lines := strings.Count(banner, "\n"); lines > 8 {
		t.Errorf("the banner has %d lines", lines)
	}
	if t.Failed() {
		t.Log(banner)
	}

	// The commands mean what they say.
	queue := p.createQueue(t, "hello")
	if queue != url+"/000000000000/hello" {
		t.Errorf("the queue is at %s", queue)
	}
	p.mustSQS(t, "SendMessage", object{"QueueUrl": queue, "MessageBody": "hi"}, nil)
	if got, err := p.receive(t.Context(), queue, 0); err != nil || len(got) != 1 || got[0].Body != "hi" {
		t.Errorf("received %v, %v", got, err)
	}
}

// TestSecondServer starts servers where another one is.
func TestSecondServer(t *testing.T) {
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	p := startAt(t, addr, data)
	for _, tt := range []struct {
		name, addr, data string
		want             []string
	}{
		{"same data", freeAddress(t), data, []string{data, "in use", "another"}},
		{"same port", addr, filepath.Join(t.TempDir(), "data"), []string{addr + " is in use", "--listen "}},
		{"same both", addr, data, []string{addr + " is in use", "--listen "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, binary, arguments(tt.addr, tt.data)...)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("it ended with %v, want status 1", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("the error does not say %q:\n%s", want, out)
				}
			}
			if lines := strings.Count(string(out), "\n"); lines > 2 {
				t.Errorf("the error has %d lines:\n%s", lines, out)
			}
		})
	}
	// The first one has not noticed.
	queue := p.createQueue(t, "unmoved")
	p.mustSQS(t, "SendMessage", object{"QueueUrl": queue, "MessageBody": "hi"}, nil)
}

// TestUnusableData starts a server on a directory that it cannot have.
func TestUnusableData(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, arguments(freeAddress(t), file)...)
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), file) {
		t.Errorf("status %d, want 1 and the name of the file:\n%s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestStop stops a server that is busy: an attempt under way finishes, a long
// poll returns, and nothing is lost or done twice.
func TestStop(t *testing.T) {
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	p := startAt(t, addr, data)

	// An endpoint that answers when the server has been told to stop.
	arrived, goOn := make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	slow := newSink(t, func(string) int {
		if requests.Add(1) == 1 {
			close(arrived)
			<-goOn
		}
		return http.StatusOK
	})
	topic := p.createTopic(t, "news")
	subscription := p.subscribeSink(t, topic, slow)
	if _, err := p.publish(t.Context(), topic, "slow", ""); err != nil {
		t.Fatal(err)
	}
	awaitClosed(t, "an attempt is under way", arrived)

	queue := p.createQueue(t, "quiet")
	kept := p.createQueue(t, "kept")
	p.mustSQS(t, "SendMessage", object{"QueueUrl": kept, "MessageBody": "still here"}, nil)
	polled, failed := make(chan struct{}), error(nil)
	var got []message
	go func() {
		defer close(polled)
		got, failed = p.receive(t.Context(), queue, 20)
	}()
	// Nothing reports that a poll waits. If it comes too late it is refused or
	// answered at once, which is no different to a client.
	pass(t.Context(), 100*time.Millisecond)

	began := time.Now()
	p.terminate(t)
	awaitClosed(t, "the long poll returns", polled)
	if took := time.Since(began); failed != nil || len(got) != 0 || took >= 20*time.Second {
		t.Errorf("the long poll returned %v, %v after %s", got, failed, took)
	}
	select {
	case <-p.ended:
		t.Error("the server did not wait for the attempt under way")
	default:
	}
	close(goOn)
	if status := p.exit(t); status != 0 {
		t.Errorf("status %d, want 0\n%s", status, p.stderr.String())
	}
	t.Logf("stopped within %s", time.Since(began).Round(time.Millisecond))

	p = startAt(t, addr, data)
	if n := p.pending(t, subscription); n != 0 || requests.Load() != 1 {
		t.Errorf("after the restart %d deliveries are pending, and the endpoint has got %d requests; want 0 and 1", n, requests.Load())
	}
	if got, err := p.receive(t.Context(), kept, 0); err != nil || len(got) != 1 || got[0].Body != "still here" {
		t.Errorf("after the restart: %v, %v", got, err)
	}
}

func awaitClosed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(testTimeout)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
		t.Fatalf("%s: not within %s", what, testTimeout)
	}
}
