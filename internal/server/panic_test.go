package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// mined is a store that panics where somebody looks at certain keys.
type mined struct {
	store.Store
	at atomic.Pointer[string] // how the keys begin
}

func (s *mined) look(key []byte) {
	if at := s.at.Load(); at != nil && strings.HasPrefix(string(key), *at) {
		panic("a mistake")
	}
}

func (s *mined) Get(dst, key []byte) ([]byte, bool, error) {
	s.look(key)
	return s.Store.Get(dst, key)
}

func (s *mined) Iter(lower, upper []byte) (store.Iterator, error) {
	s.look(lower)
	return s.Store.Iter(lower, upper)
}

// TestPanicEndsTheProcess: a panic halfway through a command ends the process, whichever
// module it is in; one in a handler that holds nothing costs its request only.
func TestPanicEndsTheProcess(t *testing.T) {
	const logs, monitoring = "Logs_20140328.", "GraniteServiceVersion20100801."
	for name, c := range map[string]struct {
		mine         string // where the panic is
		target, body string // what runs into it
		ends         bool
	}{
		"a log group":        {string([]byte{keyspace.LogSpace, keyspace.LogTotals}), logs + "PutRetentionPolicy", `{"logGroupName":"g","retentionInDays":1}`, true},
		"log events":         {string([]byte{keyspace.LogSpace, keyspace.LogBuckets}), logs + "PutLogEvents", `{"logGroupName":"g","logStreamName":"s","logEvents":[{"timestamp":NOW,"message":"m"}]}`, true},
		"a metric":           {string([]byte{keyspace.MetricSpace}), monitoring + "PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Value":1}]}`, true},
		"an alarm":           {string([]byte{keyspace.AlarmSpace}), monitoring + "PutMetricAlarm", `{"AlarmName":"a","MetricName":"m","Namespace":"n","Statistic":"Sum","Period":60,"EvaluationPeriods":1,"Threshold":1,"ComparisonOperator":"GreaterThanThreshold"}`, true},
		"a list of groups":   {string([]byte{keyspace.LogSpace, keyspace.LogGroups}), logs + "DescribeLogGroups", `{}`, false},
		"a list of metrics":  {string([]byte{keyspace.MetricSpace, keyspace.MetricSeries}), monitoring + "ListMetrics", `{}`, false},
		"a history of alarm": {string([]byte{keyspace.AlarmSpace, keyspace.AlarmHistory}), monitoring + "DescribeAlarmHistory", `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := &mined{Store: memory.New()}
			var ends []error
			w := assembled(t, st, func(err error) { ends = append(ends, err) })
			for _, r := range [][2]string{{logs + "CreateLogGroup", `{"logGroupName":"g"}`}, {logs + "CreateLogStream", `{"logGroupName":"g","logStreamName":"s"}`}} {
				if status := w.do(r[0], r[1]); status != http.StatusOK {
					t.Fatalf("%s: %d", r[0], status)
				}
			}
			st.at.Store(&c.mine)
			if status := w.do(c.target, c.body); status != http.StatusInternalServerError {
				t.Errorf("it is answered with %d", status)
			}
			st.at.Store(nil)
			if ended := len(ends) > 0 && errors.Is(ends[0], poison.ErrPoisoned); ended != c.ends || len(ends) > 0 && !ended {
				t.Errorf("the process ends with %v", ends)
			}
			if !c.ends {
				if status := w.do(c.target, c.body); status != http.StatusOK {
					t.Errorf("the next one is answered with %d", status)
				}
			} else if w.do(c.target, c.body) == http.StatusOK {
				t.Error("what was left half done is gone on with")
			}
		})
	}
}

// assembly is a whole server without a network.
type assembly struct {
	parts Parts
	clock *clock.Virtual
}

func assembled(t *testing.T, st store.Store, exit func(error)) *assembly {
	cfg := testConfig()
	cfg.FunctionNetwork, cfg.FunctionIsolation, cfg.Clock, cfg.Data = "none", config.IsolationNone, config.VirtualClock, t.TempDir()
	cfg.MaxConnections, cfg.MaxBytesInFlight, cfg.MinTransferRate = 10, 64<<20, 4096
	log := slog.New(slog.DiscardHandler)
	virtual, draining := clock.NewVirtual(clock.System.Now()), make(chan struct{})
	var stops []func(context.Context) error
	t.Cleanup(func() {
		close(draining)
		for _, stop := range slices.Backward(stops) {
			func() {
				defer func() { _ = recover() }() // of what is poisoned
				_ = stop(context.Background())
			}()
		}
	})
	parts, err := Assemble(t.Context(), Deps{
		Config: cfg, Log: log, Clock: virtual, Virtual: virtual, Jitter: clock.NewJitter(1), Limits: NewLimits(cfg, log),
		URL: "http://127.0.0.1:4566", Port: 4566, Draining: draining,
		OnStop: func(_ string, stop func(context.Context) error) { stops = append(stops, stop) },
		World:  World{Store: func() (store.Store, func() bool, error) { return st, nil, nil }, Exit: exit},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &assembly{parts, virtual}
}

func (w *assembly) do(target, body string) (status int) {
	protocol := "application/x-amz-json-1.0"
	if strings.HasPrefix(target, "Logs_") {
		protocol = "application/x-amz-json-1.1"
	}
	body = strings.ReplaceAll(body, "NOW", strconv.FormatInt(w.clock.Now().UnixMilli(), 10))
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", target)
	r.Header.Set("Content-Type", protocol)
	answer := httptest.NewRecorder()
	w.parts.Wire.ServeHTTP(answer, r)
	return answer.Code
}
