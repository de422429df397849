package prom

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	postsTaken   = describe("ingest_accepted_total", "Posts to sources that were accepted.", "source")
	postsRefused = describe("ingest_refused_total", "Posts to sources that were refused; those to none have no source.", "source", "reason")
)

// maxPosted is how many sources have their own counts, as many as there may be.
const maxPosted = 1000

// postCounts count posts, by source. All reasons of a source are there with its first post.
type postCounts struct {
	mu       sync.Mutex
	reasons  []string
	bySource map[string]*[]int64 // accepted, then by reason
}

// Posted counts a post to a source, empty if there is none of that name; refused is one of
// Options.Posts, or empty if it was accepted.
func (m *Metrics) Posted(source, refused string) {
	p := &m.posts
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.bySource[source]
	if counts == nil {
		if p.bySource == nil {
			p.bySource, p.reasons = map[string]*[]int64{}, m.options.Posts
		}
		if len(p.bySource) > maxPosted {
			if p.forget(m.options.Source); len(p.bySource) > maxPosted {
				return
			}
		}
		all := make([]int64, 1+len(p.reasons))
		counts = &all
		p.bySource[strings.Clone(source)] = counts
	}
	(*counts)[1+slices.Index(p.reasons, refused)]++ // 0 if it is none of them: accepted
}

// forget drops the counts of sources that do not exist any more. The caller has the lock.
func (p *postCounts) forget(exists func(string) bool) {
	if exists == nil {
		return
	}
	for source := range p.bySource {
		if source != "" && !exists(source) {
			delete(p.bySource, source)
		}
	}
}

func (p *postCounts) collect(out chan<- prometheus.Metric, exists func(string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(exists)
	for source, counts := range p.bySource {
		if source != "" {
			out <- prometheus.MustNewConstMetric(postsTaken, prometheus.CounterValue, float64((*counts)[0]), source)
		}
		for i, reason := range p.reasons {
			out <- prometheus.MustNewConstMetric(postsRefused, prometheus.CounterValue, float64((*counts)[1+i]), source, reason)
		}
	}
}
