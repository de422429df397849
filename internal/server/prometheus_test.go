package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/prom"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// hanging is a store whose syncs take a disk that is there.
type hanging struct {
	store.Store
	disk chan struct{}
}

func (h *hanging) Sync() error {
	h.disk <- struct{}{}
	defer func() { <-h.disk }()
	return h.Store.Sync()
}

// TestScrapeWhileDiskHangs: a scrape is answered, gauges and all, while the disk hangs.
func TestScrapeWhileDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &hanging{memory.New(), make(chan struct{}, 1)}
		p := &prometheus{prom.New(prom.Options{Series: 1, Low: func() bool { return true }})}
		engine, err := shard.Open(shard.Options{Store: st, Clock: clock.System, Logger: slog.New(slog.DiscardHandler), Events: monitor.NewQueues(nil, p.Queue, func() {}).Add})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		p.watch(engine, nil)
		q := arn.Queue("us-east-1", "000000000000", "q")
		if err := engine.CreateQueue(t.Context(), shard.QueueSpec{ARN: q}); err != nil {
			t.Fatal(err)
		}
		st.disk <- struct{}{}
		go func() {
			m := &message.Message{Body: []byte("b")}
			m.Seal()
			if _, err := engine.Send(context.Background(), q, []shard.Outgoing{{Message: m}}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		answer := httptest.NewRecorder()
		go p.handler().ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
		synctest.Wait()
		for _, want := range []string{
			`godwit_sqs_messages{account="000000000000",queue="q",region="us-east-1",state="visible"} 1`, "godwit_disk_low 1",
		} {
			if !strings.Contains(answer.Body.String(), want+"\n") {
				t.Errorf("%s is not in %s", want, answer.Body)
			}
		}
		<-st.disk
		synctest.Wait()
	})
}
