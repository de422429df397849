package clients_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// followed is a server that keeps backups in a gateway's bucket.
type followed struct {
	*sqs.Client

	at    *url.URL
	queue string
	stop  func() (logged string) // with kill -9
}

func startFollowed(t *testing.T, data string, flags ...string) *followed {
	t.Helper()
	at, stop, err := startServer(data, flags...)
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{at: at, stop: sync.OnceValue(stop), queue: at.String() + "/000000000000/orders"}
	t.Cleanup(func() { f.stop() })
	f.Client = sqs.NewFromConfig(awsConfig(), func(o *sqs.Options) {
		o.BaseEndpoint, o.RetryMaxAttempts, o.HTTPClient = aws.String(at.String()), 1, readWhole{}
	})
	return f
}

// readWhole reads an answer to its end before the SDK sees it, which may close the connection
// while a large one comes.
type readWhole struct{}

func (readWhole) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, err
}

// point is of when the latest backup is, as the server's metrics have it.
func (f *followed) point(ctx context.Context) (at time.Time, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.at.String()+"/metrics", nil)
	if err != nil {
		return at, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return at, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	made := false
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "godwit_backup_point_timestamp_seconds":
			var seconds float64
			_, err = fmt.Sscan(value, &seconds)
			at = time.UnixMilli(int64(seconds * 1000))
		case `godwit_backups_total{outcome="success"}`:
			made = value != "0"
		}
	}
	if err == nil && !made {
		err = errors.New("there is none")
	}
	return at, err
}

// until waits for a backup that is of a moment or later.
func (f *followed) until(t *testing.T, moment time.Time) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		at, err := f.point(ctx)
		if err == nil && at.After(moment) {
			return at
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the latest backup is of %s, which is before %s: %v", at, moment, err)
		}
	}
}

// all are the bodies of what is in the queue.
func (f *followed) all(t *testing.T) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	for {
		out, err := f.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &f.queue, MaxNumberOfMessages: 10, VisibilityTimeout: 3600})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return got
		}
		for _, m := range out.Messages {
			got[*m.Body] = true
		}
	}
}

// A server that is killed, and whose directory is gone, is restored from the bucket with all that
// was acknowledged before its latest backup there; or as it was at a time.
func TestBackupsInBucket(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "backups")
	dir := t.TempDir()
	data, rootKey, keys := filepath.Join(dir, "data"), filepath.Join(dir, "dev-root.key"), filepath.Join(dir, "credentials")
	if err := os.WriteFile(keys, []byte(gatewayKey+"\n"+gatewaySecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--backup-s3", "s3://backups/one", "--backup-s3-endpoint", g.url(), "--backup-s3-credentials", keys, "--backup-interval", "1s"}
	f := startFollowed(t, data, flags...)
	if _, err := f.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{"KmsMasterKeyId": "alias/aws/sqs"}}); err != nil {
		t.Fatal(err)
	}
	canary := strings.Repeat("canary ", 2000)
	acknowledged := map[string]time.Time{} // when each message was, at the latest
	var mu sync.Mutex
	send := func(ctx context.Context, i int) error {
		body := fmt.Sprint(i, " ", canary)
		_, err := f.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &f.queue, MessageBody: &body})
		if err == nil {
			mu.Lock()
			acknowledged[body] = time.Now()
			mu.Unlock()
		}
		return err
	}
	for i := range 50 {
		if err := send(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	first := f.until(t, time.Now())
	text, err := os.ReadFile(filepath.Join(data, "dev-root.key"))
	if err == nil {
		err = os.WriteFile(rootKey, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}

	var senders sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	senders.Go(func() {
		for i := 50; ctx.Err() == nil && send(ctx, i) == nil; i++ {
		}
	})
	last := f.until(t, first.Add(3*time.Second))
	f.stop() // while it takes messages, and perhaps makes a backup
	cancel()
	senders.Wait()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	for key, object := range g.objects(t, "backups") {
		if strings.Contains(object, "canary") {
			t.Errorf("%s is in clear", key)
		}
	}

	restore := func(name string, more ...string) *followed {
		t.Helper()
		to := filepath.Join(dir, name)
		args := append([]string{"restore", "s3://backups/one", "--data", to, "--root-key", rootKey, "--s3-endpoint", g.url(), "--s3-credentials", keys}, more...)
		if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "is sealed with the root key") {
			t.Fatalf("%v: %s", err, out)
		}
		return startFollowed(t, to)
	}
	early := restore("early", "--at", first.Add(time.Second/2).UTC().Format(time.RFC3339Nano)).all(t)
	late := restore("late").all(t)
	mu.Lock()
	defer mu.Unlock()
	after := 0
	for body, at := range acknowledged {
		if at.Before(first) && !early[body] || at.Before(last) && !late[body] {
			t.Errorf("message %.4s of %s is lost: the backups are of %s and %s", body, at, first, last)
		}
		if at.After(first.Add(2*time.Second)) && early[body] {
			t.Errorf("message %.4s of %s is there before it was sent", body, at)
		}
		if at.After(first) {
			after++
		}
	}
	if after == 0 || len(late) <= len(early) {
		t.Errorf("%d messages were sent while backups were made; %d were there early, and %d late", after, len(early), len(late))
	}

	if out, err := exec.Command(binary, "restore", "s3://backups/one", "--data", filepath.Join(dir, "x"), "--s3-endpoint", g.url(), "--s3-credentials", keys,
		"--at", first.Add(-time.Hour).UTC().Format(time.RFC3339)).CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no backup of") {
		t.Errorf("%v: %s", err, out)
	}
	// The same over TLS, with a certificate of an authority that the system does not know.
	proxied := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", g.address
		r.Out.Host = r.In.Host // which is signed
	}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)})
	defer proxied.Close()
	authority := filepath.Join(dir, "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxied.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	check := func(endpoint string, environment ...string) (status int, out string) {
		cmd := exec.Command(binary, "check", "s3://backups/one", "--s3-endpoint", endpoint, "--s3-credentials", keys, "--temp", temp)
		cmd.Env = append(os.Environ(), environment...)
		text, _ := cmd.CombinedOutput() // its status is looked at
		if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
			t.Errorf("it leaves %v (%v)", left, err)
		}
		return cmd.ProcessState.ExitCode(), string(text)
	}
	if status, out := check(proxied.URL, "AWS_CA_BUNDLE="+authority); status != 0 || !strings.Contains(out, "each as it was made") || !strings.Contains(out, "nothing is damaged") {
		t.Errorf("a check: status %d: %s", status, out)
	}
	if status, out := check(proxied.URL); status != 1 || !strings.Contains(out, "certificate") {
		t.Errorf("a check without the authority: status %d: %s", status, out)
	}
	if out, err := exec.Command(binary, "check", data, "--at", "2026-01-01T00:00:00Z").CombinedOutput(); err == nil || !strings.Contains(string(out), "are for s3://") {
		t.Errorf("%v: %s", err, out)
	}

	// A piece that has changed is found, and no server starts from what came.
	pieces, err := filepath.Glob(filepath.Join(g.dir, "buckets", "backups", "one", "pieces", "*"))
	if err != nil || len(pieces) == 0 {
		t.Fatalf("%d pieces: %v", len(pieces), err)
	}
	for _, piece := range pieces {
		text, err := os.ReadFile(piece)
		if err == nil && len(text) > 0 {
			text[len(text)/2] ^= 1
			err = os.WriteFile(piece, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if status, out := check(g.url()); status != 3 || !strings.Contains(out, "the backup is damaged") {
		t.Errorf("a check of what is damaged: status %d: %s", status, out)
	}
	damaged := filepath.Join(dir, "damaged")
	if out, err := exec.Command(binary, "restore", "s3://backups/one", "--data", damaged, "--s3-endpoint", g.url(), "--s3-credentials", keys).CombinedOutput(); err == nil || !strings.Contains(string(out), "the backup is damaged") {
		t.Errorf("%v: %s", err, out)
	}
	if _, stop, err := startServer(damaged); err == nil {
		stop()
		t.Error("a server starts from a damaged restore")
	}
}
