package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// result is what one contender showed in all rounds of a case: medians.
type result struct {
	name   string
	server *server
	sample
	more map[string]float64
}

// attempt is one measurement of one server.
type attempt func(context.Context, *server) (sample, map[string]float64, error)

// compare measures servers against each other.
func (b *bench) compare(ctx context.Context, name, label string, rounds int, servers []*server, try attempt) ([]result, error) {
	contenders := make([]contender, len(servers))
	for i, s := range servers {
		contenders[i] = contender{s.name, s, func(ctx context.Context) (sample, map[string]float64, error) { return try(ctx, s) }}
	}
	return b.contest(ctx, name, label, rounds, contenders)
}

// contender is what is measured against others: a server, or one of several
// states or queues of the same.
type contender struct {
	name   string
	server *server
	try    func(context.Context) (sample, map[string]float64, error)
}

// contest measures the contenders in turn, round after round, so that a change
// of the machine's mood meets them all, and each round begins with another one.
// A failure ends the run, but a peer's: that peer is left out, and the report
// says so.
func (b *bench) contest(ctx context.Context, name, label string, rounds int, contenders []contender) ([]result, error) {
	samples := make([][]sample, len(contenders))
	more := make([]map[string][]float64, len(contenders))
	out := make([]bool, len(contenders))
	for round := range rounds {
		for i := range contenders {
			i = (i + round) % len(contenders)
			if out[i] {
				continue
			}
			c := contenders[i]
			one, extra, err := c.try(ctx)
			if err == nil {
				err = c.server.alive()
			}
			if err != nil && c.server.role == peer && ctx.Err() == nil {
				out[i] = true
				b.leaveOut(name+" "+label, c.server, err)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", label, c.name, err)
			}
			b.note(name, label, c.name, round, one, extra)
			samples[i] = append(samples[i], one)
			if more[i] == nil {
				more[i] = map[string][]float64{}
			}
			for key, v := range extra {
				more[i][key] = append(more[i][key], v)
			}
		}
	}
	var results []result
	for i, c := range contenders {
		if out[i] {
			continue
		}
		x := result{name: c.name, server: c.server, sample: middle(samples[i]), more: map[string]float64{}}
		for key, values := range more[i] {
			x.more[key] = median(values)
		}
		results = append(results, x)
	}
	return results, b.profileAll(ctx, name+" "+label, contenders)
}

// leaveOut notes that a peer could not do something.
func (b *bench) leaveOut(what string, s *server, err error) {
	fact := fmt.Sprintf("%s is not in %q: %v.", s.name, what, err)
	if !slices.Contains(b.report.Facts, fact) {
		b.report.Facts = append(b.report.Facts, fact)
	}
	fmt.Fprintln(b.progress, "#", fact)
}

// note keeps a sample and shows it.
func (b *bench) note(name, label, who string, round int, one sample, extra map[string]float64) {
	b.report.Records = append(b.report.Records, record{name, label, who, round, one, extra})
	fmt.Fprintf(b.progress, "%-9s %-24s %-10s %9.0f msg/s  server %7.2f µs/msg  client %6.2f  p50 %.2f p99 %.2f ms  rss %.0f MB  other %.2f\n",
		name, label, who, one.Throughput, one.ServerCPU, one.ClientCPU, one.P50, one.P99, one.RSS, one.OtherCores)
}

// profileAll repeats a case on each contender that serves profiles, while a
// profile of its CPU and one of its allocations are taken. The figures of that
// round are not used: a profile costs.
func (b *bench) profileAll(ctx context.Context, name string, contenders []contender) error {
	for _, c := range contenders {
		if c.server.pprofHost == "" || b.profiles == "" {
			continue
		}
		file := name
		if c.name != c.server.name || c.server.role == earlier {
			file += " " + c.name
		}
		fetched := make(chan error, len(profileKinds))
		for kind, ending := range profileKinds {
			path := filepath.Join(b.profiles, strings.ReplaceAll(file, " ", "-")+ending)
			go func() { fetched <- c.server.profile(ctx, kind, b.warm+b.window, path) }()
		}
		_, _, err := c.try(ctx)
		for range profileKinds {
			err = errors.Join(err, <-fetched)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// judge notes whether a target is met.
func (b *bench) judge(met bool, says, what string, args ...any) {
	b.report.Verdicts = append(b.report.Verdicts, verdict{What: fmt.Sprintf(what, args...), Met: met, Says: says})
}

// loadHeader is the head of the columns that every scenario with requests has:
// each figure beside that of the references, and of a peer if there is one.
func (b *bench) loadHeader(first ...string) []string {
	times := []string{"× r", "× m"}
	if len(b.of(peer)) > 0 {
		times = append(times, "× peer")
	}
	return slices.Concat(first, []string{"server", "CPU µs/msg"}, times, []string{"msg/s"}, times,
		[]string{"p50 ms", "p99 ms", "p99.9 ms", "max ms", "client µs/msg", "other cores", "RSS MB"})
}

// loadCells are those columns of one server.
func (b *bench) loadCells(x result, all []result, first ...string) []string {
	times := func(of func(result) float64) (cells []string) {
		roles := []role{durable, inMemory}
		if len(b.of(peer)) > 0 {
			roles = append(roles, peer)
		}
		for _, r := range roles {
			other, _ := find(all, r)
			cells = append(cells, figure(ratio(of(x), of(other))))
		}
		return cells
	}
	cpu := func(x result) float64 { return x.ServerCPU }
	throughput := func(x result) float64 { return x.Throughput }
	return slices.Concat(first,
		[]string{x.name, figure(x.ServerCPU)}, times(cpu),
		[]string{figure(x.Throughput)}, times(throughput),
		[]string{
			figure(x.P50), figure(x.P99), figure(x.P999), figure(x.Max),
			figure(x.ClientCPU), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS),
		})
}
