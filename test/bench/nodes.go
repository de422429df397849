package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

// clusterWithin bounds each wait for a cluster to stand in some way.
const clusterWithin = time.Minute

// clusterStatus is what is used of GET /_godwit/v1/cluster.
type clusterStatus struct {
	Nodes []clusterNode
	Cells []struct {
		Owner, Leader string
		Number        uint64
	}
}

type clusterNode struct {
	Name, State              string
	PID                      int
	Lag, Answered, Forwarded uint64
}

// owner is the number of the node that serves, and whether it leads the log as well.
func (s *clusterStatus) owner() (i int, leads bool) {
	i = slices.IndexFunc(s.Nodes, func(n clusterNode) bool { return n.State == "serving" })
	return i, i >= 0 && len(s.Cells) > 0 && s.Cells[0].Leader == s.Nodes[i].Name
}

var clusterClient = &http.Client{Timeout: 2 * time.Second}

func statusOf(ctx context.Context, host string) (s clusterStatus, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/_godwit/v1/cluster", nil)
	if err != nil {
		return s, err
	}
	answer, err := clusterClient.Do(r)
	if err != nil {
		return s, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s: %s", r.URL, answer.Status)
	}
	return s, json.NewDecoder(answer.Body).Decode(&s)
}

// whole reports that a node serves, and all others follow it closely.
func (s *clusterStatus) whole() bool {
	for _, n := range s.Nodes {
		if n.State != "serving" && n.State != "following" || n.Lag > 100 {
			return false
		}
	}
	i, _ := s.owner()
	return i >= 0
}

// awaitCluster asks all nodes of a cluster in turn until one tells what is waited for.
func awaitCluster(ctx context.Context, s *server, what string, stands func(*clusterStatus) bool) (last clusterStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, clusterWithin)
	defer cancel()
	for i := 0; ; i++ {
		host, err := nodeOf(s, i%clusterNodes)
		if err != nil {
			return last, err
		}
		if status, err := statusOf(ctx, host); err == nil {
			if last = status; stands(&status) {
				return status, nil
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return last, fmt.Errorf("%s: %w; last: %+v", what, err, last)
		}
	}
}

// nodeOf is the address of a cluster's node: their ports follow each other.
func nodeOf(s *server, i int) (host string, err error) {
	name, digits, err := net.SplitHostPort(s.host)
	if err != nil {
		return "", err
	}
	port, err := strconv.Atoi(digits)
	return net.JoinHostPort(name, strconv.Itoa(port+i)), err
}

// footprint is what a server has done since its start.
type footprint struct {
	answered, forwarded uint64 // requests
	records             uint64 // of a cluster's log
	written             uint64 // bytes given to the disk, of all its processes
	flushes             uint64 // of the whole disk: a sync ends with one
}

// footprintOf reads it; what is not known is 0.
func footprintOf(ctx context.Context, s *server) (f footprint, err error) {
	status, err := statusOf(ctx, s.host)
	if err != nil {
		return f, err
	}
	for _, n := range status.Nodes {
		f.answered, f.forwarded = f.answered+n.Answered, f.forwarded+n.Forwarded
	}
	for _, c := range status.Cells {
		f.records += c.Number
	}
	f.written, f.flushes = writtenBy(s.pid), flushesBelow(s.dir)
	return f, nil
}

// since has what came after an earlier footprint, by the names of a result's figures.
func (f footprint) since(earlier footprint, messages int64) map[string]float64 {
	of := func(part, whole uint64) float64 { return ratio(float64(part), float64(whole)) }
	more := func(now, before uint64) uint64 { // 0: a process has gone, or did not answer
		return max(now, before) - before
	}
	records, flushes := more(f.records, earlier.records), more(f.flushes, earlier.flushes)
	written := more(f.written, earlier.written)
	return map[string]float64{
		"forwarded":         of(more(f.forwarded, earlier.forwarded), more(f.answered, earlier.answered)),
		"messages a record": of(uint64(max(messages, 0)), records),
		"bytes a record":    of(written, records),
		"flushes a record":  of(flushes, records),
		"bytes a message":   of(written, uint64(max(messages, 0))),
		"messages a flush":  of(uint64(max(messages, 0)), flushes),
	}
}

// kill ends a process, and gives it no time.
func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// stepDown has the owner hand over.
func stepDown(ctx context.Context, s *server) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.host+"/_godwit/v1/cluster/step-down", nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Godwit-Operator", "bench")
	answer, err := (&http.Client{Timeout: clusterWithin}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", r.URL, answer.Status)
	}
	return nil
}

// outage is how long a client of a node got no answer at most, while something happened:
// from one answer to the next.
func (b *bench) outage(ctx context.Context, host, url string, happens func() error) (longest time.Duration, err error) {
	from := newTexts(b.size, b.escapes)
	over := make(chan struct{})
	gaps := make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		c := newConn(host)
		defer func() { c.close() }()
		last := time.Now()
		for n := uint64(0); ; n++ {
			err := openQueue(c, url, n).send(from, 1, 0)
			now := time.Now()
			longest = max(longest, now.Sub(last))
			if err == nil {
				last = now
				select {
				case <-over:
					gaps <- longest
					return
				default:
				}
				continue
			}
			c.close()
			c = newConn(host)
			if now.Sub(last) > clusterWithin || ctx.Err() != nil {
				gaps <- now.Sub(last)
				return
			}
			_ = pause(ctx, time.Millisecond)
		}
	}()
	err = pause(ctx, 100*time.Millisecond) // of answers before it
	if err == nil {
		err = happens()
	}
	close(over)
	return <-gaps, err
}
