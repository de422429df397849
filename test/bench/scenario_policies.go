package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The targets of filter policies that are made to be hard.
const (
	policyTime    = 20.0    // ms of CPU to take or refuse one
	policyPublish = 100.0   // ms until a small message is accepted that any of them may match
	policyStart   = 5.0     // s
	policyBytes   = 255_000 // of a policy
	policyMany    = 80
	policyTries   = 5
	policyLevels  = 140
)

// runPolicies sets filter policies of almost the greatest size, publishes past many of
// them, and restarts.
func runPolicies(ctx context.Context, b *bench) error {
	return b.alone(ctx, func(s *server) error {
		c := newConn(s.host)
		defer c.close()
		topic, err := makeTopic(c, b.newName())
		if err != nil {
			return err
		}
		t := &table{
			title:  "Hard filter policies",
			note:   fmt.Sprintf("Policies of %d bytes: a call each, the one of %d with the least CPU, in ms, with all that a request takes. Then %d of them on one topic.", policyBytes, policyTries, policyMany),
			header: []string{"", "ms", "CPU ms"},
		}
		b.report.tables = append(b.report.tables, t)
		worst := 0.0
		for _, one := range hardPolicies() {
			var took, cpu float64
			var refused error
			for n := range policyTries { // the least counts: a fresh server has yet to grow, and others only add
				t, spent, err := s.timed(func() error { return setPolicy(c, topic, 1000+n, one.policy) })
				if n == 0 || spent < cpu {
					took, cpu = t, spent
				}
				refused = err
				c.close()
			}
			what := "taken"
			if refused != nil {
				what = "refused"
			}
			t.add(one.name+", "+what, figure(took), figure(cpu))
			worst = max(worst, cpu)
		}
		b.judge(worst <= policyTime, fmt.Sprintf("%s ms", figure(worst)), "a filter policy of %d bytes: at most %.0f ms of CPU to take or refuse", policyBytes, policyTime)
		levels := hardPolicies()[0].policy
		for i := range policyMany {
			if err := setPolicy(c, topic, i+1, levels); err != nil {
				return err
			}
		}
		publish := func() error {
			_, err := query(c, "MessageId", "Publish", url.Values{"TopicArn": {topic}, "Message": {`{"k":{"k":1}}`}})
			return err
		}
		took, cpu, err := s.timed(publish)
		if err != nil {
			return err
		}
		t.add(fmt.Sprintf("a publish past %d of %d levels", policyMany, policyLevels), figure(took), figure(cpu))
		b.judge(took <= policyPublish, fmt.Sprintf("%s ms", figure(took)), "a publish past %d such policies: at most %.0f ms", policyMany, policyPublish)
		c.close()
		if err := s.restart(ctx, false); err != nil {
			return err
		}
		t.add("a start with them", figure(milliseconds(s.readyIn)), "")
		b.judge(s.readyIn.Seconds() <= policyStart, fmt.Sprintf("%s s", figure(s.readyIn.Seconds())), "a start with them: at most %.0f s", policyStart)
		return nil
	})
}

type namedPolicy struct{ name, policy string }

// hardPolicies are policies in the scope of bodies; the first is taken.
func hardPolicies() []namedPolicy {
	fill := func(begin, each, end string) string {
		return begin + strings.TrimSuffix(strings.Repeat(each, (policyBytes-len(begin)-len(end))/len(each)), ",") + end
	}
	above, below := strings.Repeat(`{"k":`, policyLevels), strings.Repeat(`}`, policyLevels)
	var members strings.Builder
	for i := 0; members.Len() < policyBytes-50; i++ {
		fmt.Fprintf(&members, `"%d":["x"],`, i)
	}
	many := strings.TrimSuffix(members.String(), ",")
	return []namedPolicy{
		{fmt.Sprintf("%d levels", policyLevels), strings.Repeat(`{"`+strings.Repeat("k", policyBytes/policyLevels-6)+`":`, policyLevels) + `["x"]` + below},
		{"much below them", fill(above+`[{"anything-but":[`, `1,`, `]}]`+below)},
		{"members below them", above + `{` + many[:len(many)-2000+strings.IndexByte(many[len(many)-2000:], ',')] + `}` + below},
		{"values", fill(`{"k":[`, `1,`, `]}`)},
		{"members of an $or", `{"$or":[{"a":["x"]},{` + many + `}]}`},
		{"a wildcard", fill(`{"k":[{"wildcard":"`, `*a`, `"}]}`)},
		{"no JSON at the end", fill(`{"k":[`, `"x",`, `]`)},
	}
}

func setPolicy(c *conn, topic string, n int, policy string) error {
	_, err := query(c, "SubscriptionArn", "Subscribe", url.Values{
		"TopicArn": {topic}, "Protocol": {"sqs"}, "Endpoint": {"arn:aws:sqs:us-east-1:000000000000:hard-" + strconv.Itoa(n) + "-" + strconv.Itoa(len(policy))},
		"Attributes.entry.1.key": {"FilterPolicyScope"}, "Attributes.entry.1.value": {"MessageBody"},
		"Attributes.entry.2.key": {"FilterPolicy"}, "Attributes.entry.2.value": {policy},
	})
	return err
}

// timed gives the time that a call took and the CPU that the server spent, in ms.
func (s *server) timed(call func() error) (took, cpu float64, err error) {
	before, began := readUsage(s.pid), time.Now()
	err = call()
	return milliseconds(time.Since(began)), milliseconds(readUsage(s.pid).server - before.server), err
}
