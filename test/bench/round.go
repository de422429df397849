package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// result is what one server showed in all rounds of a case: medians.
type result struct {
	server *server
	sample
	more map[string]float64
}

// attempt is one measurement of one server.
type attempt func(context.Context, *server) (sample, map[string]float64, error)

// compare measures the servers in turn, round after round, so that a change of
// the machine's mood meets them all, and each round begins with another one.
func (b *bench) compare(ctx context.Context, name, label string, rounds int, servers []*server, try attempt) ([]result, error) {
	samples := make([][]sample, len(servers))
	more := make([]map[string][]float64, len(servers))
	for round := range rounds {
		for i := range servers {
			i = (i + round) % len(servers)
			s := servers[i]
			one, extra, err := try(ctx, s)
			if err == nil {
				err = s.alive()
			}
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", label, s.name, err)
			}
			b.note(name, label, s, round, one, extra)
			samples[i] = append(samples[i], one)
			if more[i] == nil {
				more[i] = map[string][]float64{}
			}
			for key, v := range extra {
				more[i][key] = append(more[i][key], v)
			}
		}
	}
	results := make([]result, len(servers))
	for i, s := range servers {
		results[i] = result{server: s, sample: middle(samples[i]), more: map[string]float64{}}
		for key, values := range more[i] {
			results[i].more[key] = median(values)
		}
	}
	return results, b.profileOne(ctx, name, label, servers, try)
}

// note keeps a sample and shows it.
func (b *bench) note(name, label string, s *server, round int, one sample, extra map[string]float64) {
	b.report.Records = append(b.report.Records, record{name, label, s.name, round, one, extra})
	fmt.Fprintf(b.progress, "%-7s %-24s %-10s %9.0f msg/s  server %7.2f µs/msg  client %6.2f  p50 %.2f p99 %.2f ms  rss %.0f MB  other %.2f\n",
		name, label, s.name, one.Throughput, one.ServerCPU, one.ClientCPU, one.P50, one.P99, one.RSS, one.OtherCores)
}

// profileOne repeats a case on the server while its profile is taken. The
// figures of that round are not used: a profile costs.
func (b *bench) profileOne(ctx context.Context, name, label string, servers []*server, try attempt) error {
	i := slices.IndexFunc(servers, func(s *server) bool { return s.pprofHost != "" })
	if i < 0 || b.profiles == "" {
		return nil
	}
	path := filepath.Join(b.profiles, strings.ReplaceAll(name+" "+label, " ", "-")+".pprof")
	fetched := make(chan error, 1)
	go func() { fetched <- servers[i].profile(ctx, b.warm+b.window, path) }()
	_, _, err := try(ctx, servers[i])
	if fetchErr := <-fetched; fetchErr != nil {
		return fetchErr
	}
	return err
}

// of picks the specs with one of the roles.
func (b *bench) of(roles ...role) (specs []spec) {
	for _, sp := range b.specs {
		if slices.Contains(roles, sp.role) {
			specs = append(specs, sp)
		}
	}
	return specs
}

// newName names a queue or a topic. Names never repeat, not even between runs
// against the same peer.
func (b *bench) newName() string {
	b.names++
	return fmt.Sprintf("bench-%x-%d", time.Now().UnixNano(), b.names)
}

// withQueue makes a queue for the time of f.
func (b *bench) withQueue(s *server, f func(url string) error) error {
	c := newConn(s.host)
	defer c.close()
	url, err := makeQueue(c, b.newName())
	if err != nil {
		return err
	}
	if err := f(url); err != nil {
		return err
	}
	return dropQueue(c, url)
}

// find is the result of the server in a role, if it took part.
func find(results []result, r role) (result, bool) {
	i := slices.IndexFunc(results, func(x result) bool { return x.server.role == r })
	if i < 0 {
		return result{}, false
	}
	return results[i], true
}

// The columns that every scenario with requests has.
var loadHeader = []string{
	"server", "CPU µs/msg", "× r", "× m", "msg/s", "× r", "× m",
	"p50 ms", "p99 ms", "max ms", "client µs/msg", "other cores", "RSS MB",
}

// loadCells are those columns of one server, beside the references.
func loadCells(x result, all []result) []string {
	r, _ := find(all, durable)
	m, _ := find(all, inMemory)
	return []string{
		x.server.name,
		figure(x.ServerCPU), figure(ratio(x.ServerCPU, r.ServerCPU)), figure(ratio(x.ServerCPU, m.ServerCPU)),
		figure(x.Throughput), figure(ratio(x.Throughput, r.Throughput)), figure(ratio(x.Throughput, m.Throughput)),
		figure(x.P50), figure(x.P99), figure(x.Max),
		figure(x.ClientCPU), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS),
	}
}
