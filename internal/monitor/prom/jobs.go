package prom

import (
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	jobsRunning = describe("jobs_running", "Jobs of operators that run.", "kind")
	jobsEnded   = describe("jobs_ended_total", "Jobs of operators that have ended.", "kind", "state")
	jobItems    = describe("job_items_total", "Messages and deliveries that jobs of operators were about.", "kind", "outcome")
)

// Events and ends of jobs, and results for their things.
var (
	jobKinds    = [...]string{"retry", "drop", "redrive", "delete"}
	jobStates   = [...]string{"completed", "cancelled", "failed"}
	jobOutcomes = [...]string{"done", "skipped"}
)

// jobCounts are counts by kind of job.
type jobCounts struct {
	ended [len(jobKinds)][len(jobStates)]atomic.Int64
	items [len(jobKinds)][len(jobOutcomes)]atomic.Int64
}

// JobStepped counts the things that a step of a job has done, and those it could not do.
func (m *Metrics) JobStepped(kind string, done, skipped int64) {
	if i := slices.Index(jobKinds[:], kind); i >= 0 {
		m.jobs.items[i][0].Add(done)
		m.jobs.items[i][1].Add(skipped)
	}
}

// JobEnded counts the end of a job.
func (m *Metrics) JobEnded(kind, state string) {
	i, j := slices.Index(jobKinds[:], kind), slices.Index(jobStates[:], state)
	if i >= 0 && j >= 0 {
		m.jobs.ended[i][j].Add(1)
	}
}

func (c *jobCounts) collect(out chan<- prometheus.Metric, running map[string]int) {
	for i, kind := range jobKinds {
		if running != nil {
			out <- prometheus.MustNewConstMetric(jobsRunning, prometheus.GaugeValue, float64(running[kind]), kind)
		}
		for j, state := range jobStates {
			out <- prometheus.MustNewConstMetric(jobsEnded, prometheus.CounterValue, float64(c.ended[i][j].Load()), kind, state)
		}
		for j, outcome := range jobOutcomes {
			out <- prometheus.MustNewConstMetric(jobItems, prometheus.CounterValue, float64(c.items[i][j].Load()), kind, outcome)
		}
	}
}
