package cloudwatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
)

// pages reads all pages of an answer, of which there are fewer than a hundred.
func pages(t *testing.T, s *Service, in *GetMetricDataInput) (all []*GetMetricDataOutput) {
	t.Helper()
	for len(all) < 100 {
		out, err := s.getMetricData(t.Context(), call("GetMetricData"), in)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, out); out.NextToken == "" {
			return all
		}
		in.NextToken = &out.NextToken
	}
	t.Fatal("The pages do not end.")
	return nil
}

// question asks for expressions beside a metric with the Id m1, between two times.
func question(from, to time.Time, label string, expressions ...string) *GetMetricDataInput {
	text := func(s string) *string { return &s }
	no, period, start, end := false, 60, api.TimeOf(from), api.TimeOf(to)
	in := &GetMetricDataInput{StartTime: &start, EndTime: &end, MetricDataQueries: []MetricDataQuery{{
		Id: text("m1"), Label: &label, ReturnData: &no,
		MetricStat: &MetricStat{Metric: &Metric{Namespace: text("n"), MetricName: text("m")}, Period: &period, Stat: text("Sum")},
	}}}
	for i := range expressions {
		in.MetricDataQueries = append(in.MetricDataQueries, MetricDataQuery{Id: text(fmt.Sprint("e", i+1)), Expression: &expressions[i]})
	}
	return in
}

// A label that arrays repeat is in pages whose labels are not much longer than 1 MiB.
func TestPagesOfLabels(t *testing.T) {
	const length = 300_000
	array := "[" + strings.TrimSuffix(strings.Repeat("m1,", 10), ",") + "]"
	results := 0
	for _, page := range pages(t, service(t), question(now.Add(-time.Hour), now, strings.Repeat("x", length), array, array)) {
		if n := len(page.MetricDataResults); n == 0 || n*length >= maxLabels+length {
			t.Errorf("a page of %d results", n)
		}
		results += len(page.MetricDataResults)
	}
	if results != 20 {
		t.Errorf("%d results", results)
	}
}

// Pages continue also behind a value at the epoch.
func TestPagesAtEpoch(t *testing.T) {
	s := service(t)
	for _, order := range scanOrders {
		in := question(time.Unix(0, 0), time.Unix(240, 0), "", "TIME_SERIES(1)")
		one := 1
		in.ScanBy, in.MaxDatapoints = &order, &one
		seen := map[api.Time]bool{}
		for _, page := range pages(t, s, in) {
			for _, r := range page.MetricDataResults {
				for _, at := range r.Timestamps {
					if seen[at] {
						t.Fatalf("%s: %v is there twice", order, at)
					}
					seen[at] = true
				}
			}
		}
		if len(seen) != 4 {
			t.Errorf("%s: %v", order, seen)
		}
	}
}
