package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Targets of a cluster of three processes on one machine, beside one of them alone.
const (
	clusterNodes      = 3
	clusterQueues     = 64
	clusterRate       = 0.3 // of the rate, at least
	clusterCPU        = 3.0 // of the CPU a message, of all nodes, at most, on 64 connections
	clusterManyCPU    = 2.1 // the same from 256 connections on
	clusterManyConns  = 256
	clusterLatency    = 10 // ms, the median, on 64 connections
	clusterLatencyFor = 64
	clusterIdle       = 0.03 // of a core, a node
	handoverWithin    = 200 * time.Millisecond
	ownerLostWithin   = 2 * time.Second
	bothLostWithin    = 10 * time.Second
	bothLostMedian    = 7 * time.Second
)

// runCluster measures sends to three nodes beside the server alone, to the node that serves
// and to all of them, two of which forward them; what nodes cost that have nothing to do; and
// how long a change of the owner takes.
func runCluster(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	alone := specs[0]
	many := alone
	many.name, many.argv, many.pprof = "cluster", append(append([]string{}, alone.argv...), "--nodes", strconv.Itoa(clusterNodes)), false
	servers, stop, err := startAll(ctx, []spec{alone, many}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	if err := b.clusterSends(ctx, servers[0], servers[1]); err != nil {
		return err
	}
	if err := b.clusterRests(ctx, servers[1]); err != nil {
		return err
	}
	return b.clusterOwners(ctx, servers[1])
}

func (b *bench) clusterSends(ctx context.Context, alone, cluster *server) error {
	from := newTexts(b.size, b.escapes)
	loads := &table{title: "Cluster: three nodes on this machine, beside one", header: []string{"queues", "batch", "conns", "server", "CPU µs/msg", "× one", "msg/s", "× one", "p50 ms", "p99 ms", "max ms"}}
	traffic := &table{
		title: "Cluster: records and the disk",
		note: "Forwarded: the share of requests that went to a node that does not own the state. A record is a commit. Bytes written are those that all nodes gave to the disk, their stores' merges too; " +
			"flushes are those of the whole disk: who syncs while another does may share one.",
		header: []string{"queues", "batch", "conns", "server", "forwarded", "messages a record", "KB written a record", "flushes a record", "KB written a message", "messages a flush"},
	}
	b.report.tables = append(b.report.tables, loads, traffic)
	connections := b.connections
	if len(connections) > 1 {
		connections = []int{clusterLatencyFor, clusterManyConns}
	}
	for _, queues := range []int{1, clusterQueues} {
		for _, batch := range b.batches {
			for _, width := range connections {
				label := fmt.Sprintf("batch %d conns %d", batch, width)
				if queues > 1 {
					label = fmt.Sprintf("queues %d %s", queues, label)
				}
				try := func(s *server, nodes int) func(context.Context) (sample, map[string]float64, error) {
					return func(ctx context.Context) (sample, map[string]float64, error) {
						return b.spreadWindow(ctx, s, from, queues, batch, width, nodes)
					}
				}
				results, err := b.contest(ctx, "cluster", label, b.rounds, []contender{
					{alone.name, alone, try(alone, 1)},
					{"its first node", cluster, try(cluster, 1)},
					{"all its nodes", cluster, try(cluster, clusterNodes)},
				})
				if err != nil {
					return err
				}
				first := []string{strconv.Itoa(queues), strconv.Itoa(batch), strconv.Itoa(width)}
				for _, x := range results {
					loads.add(append(first[:3:3], x.name, figure(x.ServerCPU), figure(ratio(x.ServerCPU, results[0].ServerCPU)),
						figure(x.Throughput), figure(ratio(x.Throughput, results[0].Throughput)), figure(x.P50), figure(x.P99), figure(x.Max))...)
					traffic.add(append(first[:3:3], x.name, figure(x.more["forwarded"]), figure(x.more["messages a record"]), figure(x.more["bytes a record"]/1000),
						figure(x.more["flushes a record"]), figure(x.more["bytes a message"]/1000), figure(x.more["messages a flush"]))...)
				}
				b.judgeCluster(label, width, results[0], results[1])
			}
		}
	}
	return nil
}

func (b *bench) judgeCluster(label string, width int, one, cluster result) {
	rate := ratio(cluster.Throughput, one.Throughput)
	b.judge(rate >= clusterRate, figure(rate)+" ×", "cluster, %s: at least %v × the rate of one node", label, clusterRate)
	most := clusterCPU
	if width >= clusterManyConns {
		most = clusterManyCPU
	}
	cpu := ratio(cluster.ServerCPU, one.ServerCPU)
	b.judge(cpu > 0 && cpu <= most, figure(cpu)+" ×", "cluster, %s: at most %v × the CPU of one node, all nodes together", label, most)
	if width == clusterLatencyFor {
		b.judge(cluster.P50 <= clusterLatency, figure(cluster.P50)+" ms", "cluster, %s: a median of %d ms at most", label, clusterLatency)
	}
}

// spreadWindow is sendWindow to so many queues in turn over the first nodes of a cluster, and
// what its records and the disk took.
func (b *bench) spreadWindow(ctx context.Context, s *server, from texts, queues, batch, width, nodes int) (out sample, more map[string]float64, err error) {
	c := newConn(s.host)
	defer c.close()
	urls := make([]string, queues)
	for i := range urls {
		if urls[i], err = makeQueue(c, b.newName()); err != nil {
			return out, nil, err
		}
	}
	steps := make([]step, width)
	for i := range steps {
		host, err := nodeOf(s, i%nodes)
		if err != nil {
			return out, nil, err
		}
		c := newConn(host)
		defer c.close()
		to := make([]*queue, queues)
		for j := range to {
			to[j] = openQueue(c, urls[j], uint64(i))
		}
		next := i
		steps[i] = func() (work, error) {
			next++
			return work{messages: batch}, to[next%queues].send(from, batch, 0)
		}
	}
	before, err := footprintOf(ctx, s)
	if err != nil {
		return out, nil, err
	}
	if out, err = measure(ctx, s, b.warm, b.window, steps); err != nil {
		return out, nil, err
	}
	after, err := footprintOf(ctx, s)
	if err != nil {
		return out, nil, err
	}
	for _, url := range urls {
		err = errors.Join(err, dropQueue(c, url))
	}
	return out, after.since(before, messagesIn(out, b.warm)), err
}

// messagesIn is about how many messages were sent with those of the time before a window.
func messagesIn(one sample, warm time.Duration) int64 {
	return int64(one.Throughput * (one.Seconds + warm.Seconds()))
}

// clusterRests measures nodes that nobody asks for anything.
func (b *bench) clusterRests(ctx context.Context, s *server) error {
	if _, err := awaitCluster(ctx, s, "all nodes follow", (*clusterStatus).whole); err != nil {
		return err
	}
	if err := pause(ctx, min(b.settle, b.idle)); err != nil { // merges of what was sent
		return err
	}
	begin := readUsage(s.pid)
	if err := pause(ctx, b.idle); err != nil {
		return err
	}
	end := readUsage(s.pid)
	cores := (end.server - begin.server).Seconds() / end.at.Sub(begin.at).Seconds() / clusterNodes
	b.judge(cores <= clusterIdle, fmt.Sprintf("%.1f %%", cores*100), "cluster, idle: at most %.0f %% of a core a node", clusterIdle*100)
	return nil
}
