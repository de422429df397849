package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// ingestTarget is how many times the CPU of a publish a post to a source may cost.
const ingestTarget = 1.3

const ingestSecret = "a secret of the benchmark's source"

// runIngest posts to a source with GitHub's signature and publishes the same to the same
// topic, in turn, on one server. The topic has a queue.
func runIngest(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	posts, err := freeAddress()
	if err != nil {
		return err
	}
	sp := specs[0]
	sp.argv = append(slices.Clip(sp.argv), "--ingest-listen", posts)
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title:  "Ingest",
		note:   "Posts to a source, verified by an HMAC, and publishes by the Query protocol, to a topic with one queue; every one is on the disk before its answer.",
		header: []string{"batch", "conns", "by", "CPU µs/msg", "× publish", "msg/s", "p50 ms", "p99 ms"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, width := range b.connections {
		label := fmt.Sprintf("conns %d", width)
		window := func(at string) func(context.Context) (sample, map[string]float64, error) {
			return func(ctx context.Context) (sample, map[string]float64, error) {
				one, err := b.ingestWindow(ctx, servers[0], at, from, width)
				return one, nil, err
			}
		}
		results, err := b.contest(ctx, "ingest", label, b.rounds, []contender{
			{"post", servers[0], window(posts)}, {"publish", servers[0], window("")},
		})
		if err != nil {
			return err
		}
		post, publish := results[0], results[1]
		t.addLoads(1, width, results, publish)
		times := ratio(post.ServerCPU, publish.ServerCPU)
		b.judge(times > 0 && times <= ingestTarget, fmt.Sprintf("%s × (%s against %s µs)", figure(times), figure(post.ServerCPU), figure(publish.ServerCPU)),
			"a post to a source, %s: at most %.4g × the CPU of a publish", label, ingestTarget)
	}
	return nil
}

// ingestWindow posts at an address, or publishes if that is empty.
func (b *bench) ingestWindow(ctx context.Context, s *server, at string, from texts, width int) (sample, error) {
	all, release := conns(s, width)
	defer release()
	topic, err := makeTopic(all[0], b.newName())
	if err != nil {
		return sample{}, err
	}
	name := b.newName()
	url, err := makeQueue(all[0], name)
	if err != nil {
		return sample{}, err
	}
	if err := subscribe(all[0], topic, "sqs", strings.Replace(topic[:strings.LastIndex(topic, ":")+1], ":sns:", ":sqs:", 1)+name, true); err != nil {
		return sample{}, err
	}
	steps := make([]step, width)
	for i, c := range all {
		p := newPublisher(c, topic, uint64(i))
		steps[i] = func() (work, error) { return work{messages: 1}, p.publish(from) }
	}
	if at != "" {
		source := fmt.Sprintf(`{"name":%q,"target":%q,"verification":{"kind":"github"},"secrets":[%q],"limits":{"perSecond":100000,"concurrent":1000}}`, name, topic, ingestSecret)
		if _, err := all[0].do(&operation{service: "sqs", path: "/_godwit/v1/sources", contentType: "application/json"}, []byte(source)); err != nil {
			return sample{}, err
		}
		to := &operation{service: "ingest", path: "/in/" + name, contentType: "text/plain", prove: proveAsGitHub}
		for i := range all {
			c := newConn(at)
			defer c.close()
			rng := rand.New(rand.NewPCG(4, uint64(i)))
			steps[i] = func() (work, error) {
				_, err := c.do(to, from[rng.IntN(len(from))].plain)
				return work{messages: 1}, err
			}
		}
	}
	out, err := measure(ctx, s, b.warm, b.window, steps)
	if err != nil {
		return sample{}, err
	}
	if at != "" {
		if _, err := all[0].do(&operation{service: "sqs", path: "/_godwit/v1/source/delete", contentType: "application/json"}, []byte(`{"name":`+strconv.Quote(name)+`}`)); err != nil {
			return sample{}, err
		}
	}
	if err := dropTopic(all[0], topic); err != nil {
		return sample{}, err
	}
	return out, dropQueue(all[0], url)
}

// proveAsGitHub writes the headers that GitHub signs a body with.
func proveAsGitHub(dst, body []byte) []byte {
	m := hmac.New(sha256.New, []byte(ingestSecret))
	m.Write(body)
	dst = append(dst, "X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958\r\nX-GitHub-Event: push\r\nX-Hub-Signature-256: sha256="...)
	return hex.AppendEncode(dst, m.Sum(nil))
}
