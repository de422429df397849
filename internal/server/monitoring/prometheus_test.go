package monitoring

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/invoke/process/network"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/prom"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// hanging is a store whose syncs take a disk that is there, and where it is full its
// writes, too.
type hanging struct {
	store.Store
	disk chan struct{}
	full atomic.Bool
}

func (h *hanging) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	if h.full.Load() {
		h.disk <- struct{}{}
		defer func() { <-h.disk }()
	}
	return h.Store.Apply(sync, batches...)
}

func (h *hanging) Sync() error {
	h.disk <- struct{}{}
	defer func() { <-h.disk }()
	return h.Store.Sync()
}

// TestScrapeWhileDiskHangs: a scrape is answered while the disk hangs, gauges and all as
// long as there is room for what is written, and else without them.
func TestScrapeWhileDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &hanging{Store: memory.New(), disk: make(chan struct{}, 1)}
		p := &Prometheus{prom.New(prom.Options{Series: 1, Low: func() bool { return true }})}
		j := journal.Open(journal.Options{Store: st})
		defer j.Close()
		k := kernel.New(kernel.Options{Journal: j, Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
		groups, working := logs.New(k, logs.Options{}), jobs.New(k, nil)
		engine, err := shard.Open(shard.Options{Kernel: k, Journal: j, Clock: clock.System, Logger: slog.New(slog.DiscardHandler), Events: monitor.NewQueues(nil, p.Queue, func() {}).Add})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		p.Ask(engine, nil, new(network.Network), groups, working, nil)
		q := arn.Queue("us-east-1", "000000000000", "q")
		if err := engine.CreateQueue(t.Context(), shard.QueueSpec{ARN: q}); err != nil {
			t.Fatal(err)
		}
		send := func() {
			m := &message.Message{Body: []byte("b")}
			m.Seal()
			if _, err := engine.Send(context.Background(), q, []shard.SendEntry{{Message: m}}); err != nil {
				t.Error(err)
			}
		}
		scrape := func(within time.Duration) string {
			t.Helper()
			answer, began := httptest.NewRecorder(), clock.System.Now()
			p.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
			if took := clock.System.Now().Sub(began); took > within {
				t.Errorf("a scrape takes %v", took)
			}
			if !strings.Contains(answer.Body.String(), "godwit_disk_low 1\n") {
				t.Errorf("a scrape without the rest: %s", answer.Body)
			}
			_, visible, _ := strings.Cut(answer.Body.String(), `godwit_sqs_messages{account="000000000000",queue="q",region="us-east-1",state="visible"} `)
			visible, _, _ = strings.Cut(visible, "\n")
			return visible
		}
		st.disk <- struct{}{}
		go send()
		synctest.Wait()
		if got := scrape(0); got != "1" {
			t.Errorf("%q messages while a sync hangs", got)
		}
		st.full.Store(true)
		go send()
		synctest.Wait()
		if got := scrape(scrapeTimeout); got != "" {
			t.Errorf("%q messages while a write hangs", got)
		}
		for range 2 * 4 { // more than may be under way
			if got := scrape(0); got != "" {
				t.Errorf("%q messages while a write hangs", got)
			}
		}
		<-st.disk
		synctest.Wait()
		if got := scrape(0); got != "2" {
			t.Errorf("%q messages once the disk is back", got)
		}
	})
}
