package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/metricmath"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// endless lists metrics without end, a page of a thousand after the other.
type endless struct {
	Metrics
	pages int
	ended func()
}

func (e *endless) List(_ context.Context, filter metrics.Filter, _ []byte, f func(m metrics.Metric) bool) (next []byte, err error) {
	e.pages++
	if e.ended != nil {
		e.ended()
	}
	for i := range 1000 {
		if !f(metrics.Metric{Scope: filter.Scope, Namespace: "App", Name: fmt.Sprint("n", i), Dimensions: metrics.Dimensions(metrics.Dimension{Name: "Host", Value: strings.Repeat("h", 100)})}) {
			break
		}
	}
	return []byte("next"), nil
}

// The searches of a request look at so many metrics together, and no more once the request has ended.
func TestSearchesAreBounded(t *testing.T) {
	s := service(t)
	ask := func(ctx context.Context, e *endless, expression string) error {
		program, err := metricmath.Compile([]metricmath.Query{{ID: "e1", Expression: expression}})
		if err != nil {
			t.Fatal(err)
		}
		e.Metrics, s.metrics = s.metrics, e
		looking := &asked{ctx: ctx, service: s, queries: []query{{id: "e1"}}, now: now, searching: searching{looks: maxLooks - 50_000}}
		_, err = looking.find(program.Searches()[0])
		return err
	}
	whole := &endless{}
	if err := ask(t.Context(), whole, "SEARCH('missing', 'Sum', 60)"); !errors.Is(err, metricmath.ErrSearched) {
		t.Errorf("endless metrics: %v", err)
	}
	longer := &endless{}
	if err := ask(t.Context(), longer, "SEARCH('"+strings.Repeat("a", 1000)+"', 'Sum', 60)"); !errors.Is(err, metricmath.ErrSearched) || longer.pages >= whole.pages {
		t.Errorf("a long term: %v, %d pages, others %d", err, longer.pages, whole.pages)
	}
	found := &endless{}
	if err := ask(t.Context(), found, "SEARCH('{App}', 'Sum', 60)"); err != nil || found.pages != 1 {
		t.Errorf("a search that finds enough: %v, %d pages", err, found.pages)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := &endless{ended: cancel}
	if err := ask(ctx, ended, "SEARCH('missing', 'Sum', 60)"); !errors.Is(err, context.Canceled) || ended.pages != 1 {
		t.Errorf("after the request has ended: %v, %d pages", err, ended.pages)
	}
}

// stale lists metrics without end of which none had data of late.
type stale struct{ Metrics }

func (stale) List(context.Context, metrics.Filter, []byte, func(m metrics.Metric) bool) (next []byte, err error) {
	return []byte("next"), nil
}

// Metrics that had no data in the last two weeks are read, too, and count.
func TestStaleMetricsCount(t *testing.T) {
	s := service(t)
	program, err := metricmath.Compile([]metricmath.Query{{ID: "e1", Expression: "SEARCH('missing', 'Sum', 60)"}})
	if err != nil {
		t.Fatal(err)
	}
	s.metrics = stale{s.metrics}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	looking := &asked{ctx: ctx, service: s, queries: []query{{id: "e1"}}, now: now}
	if _, err := looking.find(program.Searches()[0]); !errors.Is(err, metricmath.ErrSearched) {
		t.Errorf("metrics without data, without end: %v", err)
	}
}

func TestLabelFound(t *testing.T) {
	metric := func(namespace, name string, values ...string) metrics.Metric {
		m := metrics.Metric{Namespace: namespace, Name: name}
		var all []metrics.Dimension
		for i, value := range values {
			all = append(all, metrics.Dimension{Name: fmt.Sprint("d", i), Value: value})
		}
		m.Dimensions = metrics.Dimensions(all...)
		return m
	}
	for want, found := range map[string][]metrics.Metric{
		"":                      nil,
		"Errors":                {metric("App", "Errors", "a")},
		"a, b":                  {metric("App", "Errors", "a"), metric("App", "Errors", "b")},
		"Errors, Calls":         {metric("App", "Errors", "a"), metric("App", "Calls", "a")},
		"a x Errors, b y Calls": {metric("App", "Errors", "a", "x"), metric("App", "Calls", "b", "y")},
		"App, Other":            {metric("App", "Errors", "a"), metric("Other", "Errors", "a")},
		"Errors, b":             {metric("App", "Errors"), metric("App", "Errors", "b")},
	} {
		if got := strings.Join(labelFound(found), ", "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
