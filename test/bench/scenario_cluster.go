package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// Targets of a cluster of three processes on one machine, beside one of them alone.
const (
	clusterNodes      = 3
	clusterRate       = 0.3 // of the rate, at least
	clusterCPU        = 3.0 // of the CPU a message, of all nodes, at most, on 64 connections
	clusterManyCPU    = 2.1 // the same from 256 connections on
	clusterManyConns  = 256
	clusterLatency    = 10 // ms, the median, on 64 connections
	clusterLatencyFor = 64
)

// runCluster measures sends to three nodes beside the server alone: to the node that serves,
// and to all of them, two of which hand them on.
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
	from := newTexts(b.size, b.escapes)
	t := &table{title: "Cluster: three nodes on this machine, beside one", header: []string{"batch", "conns", "server", "CPU µs/msg", "× one", "msg/s", "× one", "p50 ms", "p99 ms", "max ms"}}
	b.report.tables = append(b.report.tables, t)
	connections := b.connections
	if len(connections) > 1 {
		connections = []int{clusterLatencyFor, clusterManyConns}
	}
	for _, batch := range b.batches {
		for _, width := range connections {
			label := fmt.Sprintf("batch %d conns %d", batch, width)
			try := func(s *server, nodes int) func(context.Context) (sample, map[string]float64, error) {
				return func(ctx context.Context) (sample, map[string]float64, error) {
					one, err := b.spreadWindow(ctx, s, from, batch, width, nodes)
					return one, nil, err
				}
			}
			results, err := b.contest(ctx, "cluster", label, b.rounds, []contender{
				{alone.name, servers[0], try(servers[0], 1)},
				{"its first node", servers[1], try(servers[1], 1)},
				{"all its nodes", servers[1], try(servers[1], clusterNodes)},
			})
			if err != nil {
				return err
			}
			for _, x := range results {
				t.add(strconv.Itoa(batch), strconv.Itoa(width), x.name, figure(x.ServerCPU), figure(ratio(x.ServerCPU, results[0].ServerCPU)),
					figure(x.Throughput), figure(ratio(x.Throughput, results[0].Throughput)), figure(x.P50), figure(x.P99), figure(x.Max))
			}
			b.judgeCluster(label, width, results[0], results[1])
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

// spreadWindow is sendWindow over the first nodes of a cluster, whose ports follow each
// other.
func (b *bench) spreadWindow(ctx context.Context, s *server, from texts, batch, width, nodes int) (out sample, err error) {
	host, digits, err := net.SplitHostPort(s.host)
	if err != nil {
		return out, err
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		return out, err
	}
	err = b.withQueue(s, func(url string) error {
		steps := make([]step, width)
		for i := range steps {
			c := newConn(net.JoinHostPort(host, strconv.Itoa(port+i%nodes)))
			defer c.close()
			q := openQueue(c, url, uint64(i))
			steps[i] = func() (work, error) { return work{messages: batch}, q.send(from, batch, 0) }
		}
		out, err = measure(ctx, s, b.warm, b.window, steps)
		return err
	})
	return out, err
}
