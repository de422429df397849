package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
)

const (
	subscriptionsMemory = 200.0 // MB resident, of which none is for what waits
	perTopic            = 10_000
)

// runSubscriptions subscribes queues with filter policies, all different, to topics
// that nothing is published to, and looks at what they keep resident.
func runSubscriptions(ctx context.Context, b *bench) error {
	return b.alone(ctx, func(s *server) error {
		before, _ := memory(s.pid)
		made, err := b.subscribeAll(ctx, s)
		if err != nil {
			return err
		}
		if err := pause(ctx, b.idle); err != nil {
			return err
		}
		full, _ := memory(s.pid)
		if err := s.restart(ctx, false); err != nil {
			return err
		}
		if err := pause(ctx, b.idle); err != nil {
			return err
		}
		restarted, _ := memory(s.pid)
		n := b.idleSubscriptions
		t := &table{
			title:  "Idle subscriptions",
			note:   fmt.Sprintf("Queues with a filter policy of their own and a dead-letter queue, %d to a topic. CPU in µs a Subscribe.", perTopic),
			header: []string{"subscriptions", "server", "RSS MB before", "made", "restarted", "bytes each", "restarted", "Subscribe µs", "restart s"},
		}
		b.report.tables = append(b.report.tables, t)
		t.add(strconv.Itoa(n), s.name, figure(before), figure(full), figure(restarted), figure((full-before)*1e6/float64(n)),
			figure((restarted-before)*1e6/float64(n)), figure(made.ServerCPU), figure(s.readyIn.Seconds()))
		b.judge(max(full, restarted) < subscriptionsMemory, fmt.Sprintf("%s MB, %s after a restart", figure(full), figure(restarted)),
			"%d idle subscriptions with filter policies: under %.0f MB resident", n, subscriptionsMemory)
		return nil
	})
}

func (b *bench) subscribeAll(ctx context.Context, s *server) (sample, error) {
	all, release := conns(s, probeConns)
	defer release()
	var topics []string
	for range (b.idleSubscriptions + perTopic - 1) / perTopic {
		arn, err := makeTopic(all[0], b.newName())
		if err != nil {
			return sample{}, err
		}
		topics = append(topics, arn)
	}
	var next atomic.Int64
	steps := make([]step, len(all))
	for i, c := range all {
		steps[i] = func() (work, error) {
			n := int(next.Add(1)) - 1
			if n >= b.idleSubscriptions {
				return work{}, errDone
			}
			_, err := query(c, "SubscriptionArn", "Subscribe", url.Values{
				"TopicArn":                 {topics[n/perTopic]},
				"Protocol":                 {"sqs"},
				"Endpoint":                 {fmt.Sprintf("arn:aws:sqs:us-east-1:000000000000:orders-of-%d", n)},
				"Attributes.entry.1.key":   {"FilterPolicy"},
				"Attributes.entry.1.value": {fmt.Sprintf(`{"customer":["c-%d"],"order-status":["confirmed","canceled"]}`, n)},
				"Attributes.entry.2.key":   {"RedrivePolicy"},
				"Attributes.entry.2.value": {`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead-letters"}`},
			})
			return work{messages: 1}, err
		}
	}
	return measure(ctx, s, 0, phaseWithin, steps)
}
