package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Changes of the owner of a cluster's state.
const (
	handedOver = "the owner hands over"
	ownerLost  = "the owner is killed, another node leads the log"
	bothLost   = "the owner is killed, which leads the log"

	mostChanges = 8 // of each kind, times the rounds, until all kinds have come
)

// clusterOwners has a client send without a pause through a node that stays, while the owner
// changes.
func (b *bench) clusterOwners(ctx context.Context, s *server) error {
	c := newConn(s.host)
	url, err := makeQueue(c, b.newName())
	c.close()
	if err != nil {
		return err
	}
	took := map[string][]float64{} // seconds
	rounds := min(b.rounds, 5)
	lacks := func(kind string) bool { return len(took[kind]) < rounds }
	for range mostChanges * rounds {
		if !lacks(ownerLost) && !lacks(bothLost) && !lacks(handedOver) {
			break
		}
		kind, gap, err := b.changeOwner(ctx, s, url, lacks)
		if err != nil {
			return err
		}
		took[kind] = append(took[kind], gap.Seconds())
		fmt.Fprintf(b.progress, "%-9s %-50s %9.0f ms without an answer\n", "cluster", kind, gap.Seconds()*1000)
	}
	t := &table{
		title:  "Cluster: when the owner changes",
		note:   "How long a client of another node that sends one message after the other was without an answer, in ms.",
		header: []string{"what", "times", "median ms", "longest ms"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, kind := range []string{handedOver, ownerLost, bothLost} {
		if len(took[kind]) == 0 {
			continue
		}
		t.add(kind, strconv.Itoa(len(took[kind])), figure(median(took[kind])*1000), figure(slices.Max(took[kind])*1000))
	}
	b.judgeOwner(handedOver, took, handoverWithin)
	b.judgeOwner(ownerLost, took, ownerLostWithin)
	b.judgeOwner(bothLost, took, bothLostWithin)
	if all := took[bothLost]; len(all) > 0 {
		b.judge(median(all) <= bothLostMedian.Seconds(), figure(median(all)*1000)+" ms", "cluster, %s: a median of %v at most", bothLost, bothLostMedian)
	}
	return nil
}

func (b *bench) judgeOwner(kind string, took map[string][]float64, most time.Duration) {
	if all := took[kind]; len(all) > 0 {
		longest := slices.Max(all)
		b.judge(longest <= most.Seconds(), figure(longest*1000)+" ms", "cluster, %s: %v at most", kind, most)
	}
}

// changeOwner has the owner killed if it lacks a figure of that as the nodes stand, and has it
// hand over else, as the log's leader stays then.
func (b *bench) changeOwner(ctx context.Context, s *server, url string, lacks func(string) bool) (kind string, gap time.Duration, err error) {
	if _, err := awaitCluster(ctx, s, "all nodes follow", (*clusterStatus).whole); err != nil {
		return "", 0, err
	}
	// Who leads the log is told with a delay.
	if err := pause(ctx, leaderTold); err != nil {
		return "", 0, err
	}
	status, err := awaitCluster(ctx, s, "the log has a leader", func(s *clusterStatus) bool { return s.whole() && s.Cells[0].Leader != "" })
	if err != nil {
		return "", 0, err
	}
	owner, leads := status.owner()
	kind = ownerLost
	if leads {
		kind = bothLost
	}
	change := func() error { return kill(status.Nodes[owner].PID) }
	if !lacks(kind) {
		kind, change = handedOver, func() error { return stepDown(ctx, s) }
	}
	host, err := nodeOf(s, (owner+1)%clusterNodes)
	if err != nil {
		return "", 0, err
	}
	gap, err = b.outage(ctx, host, url, func() error {
		if err := change(); err != nil {
			return err
		}
		_, err := awaitCluster(ctx, s, "another node serves", func(now *clusterStatus) bool {
			i, _ := now.owner()
			return i >= 0 && now.Nodes[i].PID != status.Nodes[owner].PID
		})
		return err
	})
	return kind, gap, err
}

// leaderTold is how old what a node tells of the log's leader may be.
const leaderTold = 6 * time.Second
