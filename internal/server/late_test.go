package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// Requests that are still carried out when a server has stopped, as its time was over, are
// answered by nothing and end no process, which would look like a failure.
func TestRequestsBehindTheEnd(t *testing.T) {
	const queue = `"QueueUrl":"http://127.0.0.1:4566/000000000000/q"`
	cfg := testConfig()
	cfg.FunctionNetwork, cfg.FunctionIsolation, cfg.Data = "none", config.IsolationNone, t.TempDir()
	cfg.MaxConnections, cfg.MaxBytesInFlight, cfg.MinTransferRate = 100, 64<<20, 4096
	var log bytes.Buffer
	var answering, asking sync.WaitGroup
	inside, release := make(chan struct{}), make(chan struct{})
	s := New(cfg, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})), func(ctx context.Context, deps Deps) (Parts, error) {
		deps.World.Store = func() (store.Store, func() bool, error) { return memory.New(), nil, nil }
		deps.World.Exit = func(err error) { panic(err) }
		parts, err := Assemble(ctx, deps)
		wire := parts.Wire
		parts.AWS, parts.Wire = nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Late") != "" {
				answering.Add(1)
				defer answering.Done()
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				inside <- struct{}{}
				<-release
			}
			wire.ServeHTTP(w, r)
		})
		return parts, err
	})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := "http://" + s.Addr().String()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(target, body, late string) (status int, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "AmazonSQS."+target)
		if late != "" {
			r.Header.Set("X-Late", late)
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	for _, r := range [][2]string{{"CreateQueue", `{"QueueName":"q"}`}, {"SendMessage", `{` + queue + `,"MessageBody":"x"}`}} {
		if status, err := ask(r[0], r[1], ""); status != http.StatusOK || err != nil {
			t.Fatalf("%s: status %d, %v", r[0], status, err)
		}
	}
	for _, r := range [][2]string{
		{"SendMessage", `{` + queue + `,"MessageBody":"x"}`}, {"ReceiveMessage", `{` + queue + `}`}, {"CreateQueue", `{"QueueName":"other"}`}, {"ListQueues", `{}`},
	} {
		asking.Go(func() {
			if status, err := ask(r[0], r[1], "yes"); err == nil {
				t.Errorf("%s is answered with status %d", r[0], status)
			}
		})
		<-inside
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_ = s.Stop(ctx) // which says that they were not through
	asking.Wait()
	close(release)
	answering.Wait()
	if log.Len() > 0 {
		t.Errorf("the log has:\n%s", &log)
	}
}
