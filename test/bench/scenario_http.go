package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// The targets of deliveries over HTTP.
const (
	rawShare       = 0.5 // of the rate of a bare client
	envelopedShare = 0.7 // of the rate of signatures
	deliveredP50   = 3.0 // ms, from the publish to the delivery
)

const (
	endpointConns = 50 // the server's own limit of attempts at one host
	signers       = 2  // cores that sign
	rsaBits       = 2048
	publishWithin = 8 * time.Second // an attempt that the sink lets wait times out at 15 s
)

// limit is what the machine can do without a server: no server of the run.
const limit role = "limit"

// runHTTP delivers to a sink in this process, and lets a bare client post the
// same to it.
func runHTTP(ctx context.Context, b *bench) error {
	specs := b.of(subject, earlier, peer)
	if len(specs) == 0 {
		fmt.Fprintln(b.progress, "# http: the references have no topics")
		return nil
	}
	servers, stop, err := startAll(ctx, specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	to, err := newSink()
	if err != nil {
		return err
	}
	defer to.close()
	if err := b.httpRates(ctx, servers, to); err != nil {
		return err
	}
	return b.httpLatency(ctx, servers, to)
}

// delivery is a kind of delivery to measure.
type delivery struct {
	subscriptions, deliveries int
	raw                       bool
}

func (b *bench) httpRates(ctx context.Context, servers []*server, to *sink) error {
	from := newTexts(b.size, b.escapes)
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return err
	}
	t := &table{
		title: "Deliveries over HTTP",
		note: fmt.Sprintf("From the moment when the endpoint, which has let the first wait, begins to answer, until all that was published before is delivered. "+
			"Bare: %d goroutines that post bodies of the same size with net/http to the same endpoint. "+
			"Signing: RSA of %d bits on %d cores, once a message.", endpointConns, rsaBits, signers),
		header: []string{"case", "who", "per s", "× limit", "server µs/delivery", "client µs", "other cores", "RSS MB"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, group := range []struct {
		label, limitName string
		limit            func(context.Context) (sample, error)
		kinds            []delivery
		share            float64
		what             string
	}{
		{
			"raw", "bare client", func(ctx context.Context) (sample, error) { return b.barePosts(ctx, to, from) },
			[]delivery{{1, b.posts, true}, {slices.Max(b.subscriptions), b.posts, true}},
			rawShare, "a bare client's rate",
		},
		{
			"enveloped", "signing", func(ctx context.Context) (sample, error) { return b.signatures(ctx, key) },
			[]delivery{{1, max(1, b.posts/4), false}},
			envelopedShare, "the rate of signatures",
		},
	} {
		contenders := []contender{{group.limitName, &server{name: group.limitName, role: limit}, func(ctx context.Context) (sample, map[string]float64, error) {
			one, err := group.limit(ctx)
			return one, nil, err
		}}}
		for _, s := range servers {
			for _, kind := range group.kinds {
				contenders = append(contenders, contender{
					fmt.Sprintf("%s, %d subscriptions", s.name, kind.subscriptions), s,
					func(ctx context.Context) (sample, map[string]float64, error) {
						return b.deliverAll(ctx, s, to, from, kind)
					},
				})
			}
		}
		results, err := b.contest(ctx, "http", group.label, b.rounds, contenders)
		if err != nil {
			return err
		}
		for _, x := range results {
			share := ratio(x.Throughput, results[0].Throughput)
			t.add(group.label, x.name, figure(x.Throughput), figure(share), figure(x.ServerCPU), figure(x.ClientCPU),
				fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
			if unsigned := x.more["unsigned"]; unsigned > 0 && x.server.role == subject {
				b.judge(false, fmt.Sprintf("%.0f envelopes were not signed", unsigned), "HTTP, %s: signed", group.label)
			}
			if x.server.role == subject {
				b.judge(share >= group.share, fmt.Sprintf("%s × (%s against %s/s)", figure(share), figure(x.Throughput), figure(results[0].Throughput)),
					"HTTP, %s, %s: at least %.1f × %s", group.label, x.name, group.share, group.what)
			}
		}
	}
	return nil
}

// barePosts is what a client without a server in front of it reaches.
func (b *bench) barePosts(ctx context.Context, to *sink, from texts) (sample, error) {
	run := to.begin()
	address := "http://" + to.host + run.prefix
	client := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: endpointConns}}
	defer client.CloseIdleConnections()
	steps := make([]step, endpointConns)
	for i := range steps {
		turn := i
		steps[i] = func() (work, error) {
			turn++
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(from[turn%len(from)].plain))
			if err != nil {
				return work{}, err
			}
			for name, value := range deliveryHeaders {
				request.Header.Set(name, value)
			}
			answer, err := client.Do(request)
			if err != nil {
				return work{}, err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return work{}, fmt.Errorf("the sink answers %s", answer.Status)
			}
			return work{messages: 1}, err
		}
	}
	return measure(ctx, &server{name: "bare client"}, b.warm, b.window, steps)
}

// deliveryHeaders are as long as those of a raw delivery.
var deliveryHeaders = map[string]string{
	"Content-Type":               "text/plain; charset=UTF-8",
	"User-Agent":                 "Amazon Simple Notification Service Agent",
	"X-Amz-Sns-Message-Id":       "219f8380-5770-4cc2-8c3e-5c715e145f5e",
	"X-Amz-Sns-Message-Type":     "Notification",
	"X-Amz-Sns-Rawdelivery":      "true",
	"X-Amz-Sns-Subscription-Arn": "arn:aws:sns:us-east-1:000000000000:bench-187a0000000000000-1:219f8380-5770-4cc2-8c3e-5c715e145f5e",
	"X-Amz-Sns-Topic-Arn":        "arn:aws:sns:us-east-1:000000000000:bench-187a0000000000000-1",
}

// signatures signs messages as an envelope of version 2 is signed.
func (b *bench) signatures(ctx context.Context, key *rsa.PrivateKey) (sample, error) {
	steps := make([]step, signers)
	for i := range steps {
		n := 0
		steps[i] = func() (work, error) {
			n++
			sum := sha256.Sum256([]byte(strconv.Itoa(n)))
			_, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
			return work{messages: 1}, err
		}
	}
	return measure(ctx, &server{name: "signing"}, b.warm, b.window, steps)
}

// deliverAll publishes while the endpoint lets the first deliveries wait, then
// lets it answer, and measures from there to the last delivery.
func (b *bench) deliverAll(ctx context.Context, s *server, to *sink, from texts, kind delivery) (out sample, more map[string]float64, err error) {
	run := to.begin()
	run.hang = make(chan struct{})
	c := newConn(s.host)
	defer c.close()
	topic, err := b.topicWith(ctx, s, run, kind.subscriptions, kind.raw, func(i int) string {
		return "http://" + to.host + run.prefix + "/" + strconv.Itoa(i)
	})
	if err != nil {
		return out, nil, err
	}
	published, err := b.publishAll(ctx, s, topic, from, max(1, kind.deliveries/kind.subscriptions))
	if err != nil {
		close(run.hang)
		return out, nil, err
	}
	n := published * int64(kind.subscriptions)
	run.expect(n)
	begin := readUsage(s.pid)
	close(run.hang)
	if err := run.await(ctx); err != nil {
		return out, nil, err
	}
	out = newSample(s, begin, readUsage(s.pid), &tally{messages: n})
	return out, map[string]float64{"unsigned": float64(run.unsigned.Load())}, dropTopic(c, topic)
}

// topicWith makes a topic with confirmed subscriptions of HTTP endpoints.
func (b *bench) topicWith(ctx context.Context, s *server, run *sinkRun, subscriptions int, raw bool, endpoint func(int) string) (string, error) {
	c := newConn(s.host)
	defer c.close()
	topic, err := makeTopic(c, b.newName())
	if err != nil {
		return "", err
	}
	for i := range subscriptions {
		if err := subscribe(c, topic, "http", endpoint(i), raw); err != nil {
			return "", err
		}
	}
	return topic, run.confirm(ctx, c, subscriptions)
}

// publishAll publishes n messages, or as many as it can in a given time, and
// says how many.
func (b *bench) publishAll(ctx context.Context, s *server, topic string, from texts, n int) (int64, error) {
	all, release := conns(s, publishers)
	defer release()
	var left, published atomic.Int64
	left.Store(int64(n))
	steps := make([]step, len(all))
	for i, c := range all {
		p := newPublisher(c, topic, uint64(i))
		steps[i] = func() (work, error) {
			if left.Add(-1) < 0 {
				return work{}, errDone
			}
			if err := p.publish(from); err != nil {
				return work{}, err
			}
			published.Add(1)
			return work{messages: 1}, nil
		}
	}
	_, err := measure(ctx, s, 0, publishWithin, steps)
	return published.Load(), err
}

// httpLatency publishes by a schedule to one endpoint that answers at once.
func (b *bench) httpLatency(ctx context.Context, servers []*server, to *sink) error {
	t := &table{
		title: "From a publish to its delivery",
		note:  fmt.Sprintf("Raw, to one endpoint, %d publishes a second by a schedule; from the beginning of the publish to the delivery.", b.publishes),
		header: []string{
			"server", "publish/s", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "publish p50 ms", "p99 ms",
			"server µs/publish", "other cores", "RSS MB",
		},
	}
	b.report.tables = append(b.report.tables, t)
	from := newTexts(max(b.size, stampSize), false)
	results, err := b.compare(ctx, "http", fmt.Sprintf("rate %d", b.publishes), b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
		run := to.begin()
		run.stamped = true
		topic, err := b.topicWith(ctx, s, run, 1, true, func(int) string { return "http://" + to.host + run.prefix })
		if err != nil {
			return sample{}, nil, err
		}
		if _, _, err := b.publishStamped(ctx, s, run, topic, from, float64(b.publishes), b.warm); err != nil {
			return sample{}, nil, err
		}
		one, more, err := b.publishStamped(ctx, s, run, topic, from, float64(b.publishes), b.window)
		if err != nil {
			return one, more, err
		}
		c := newConn(s.host)
		defer c.close()
		return one, more, dropTopic(c, topic)
	})
	if err != nil {
		return err
	}
	for _, x := range results {
		t.add(x.name, figure(x.Throughput), figure(x.P50), figure(x.P99), figure(x.P999), figure(x.Max),
			figure(x.more["publish_p50_ms"]), figure(x.more["publish_p99_ms"]),
			figure(x.ServerCPU), fmt.Sprintf("%.2f", x.OtherCores), figure(x.RSS))
	}
	if x, ok := find(results, subject); ok {
		b.judge(x.P50 < deliveredP50, fmt.Sprintf("%s ms (p99 %s) at %s/s", figure(x.P50), figure(x.P99), figure(x.Throughput)),
			"HTTP, raw, %d publishes a second: median from publish to delivery under %.0f ms", b.publishes, deliveredP50)
	}
	return nil
}

// publishStamped publishes to one subscription in a run by a schedule, waits
// until all is delivered, and reports the latencies of the deliveries; those of
// the publishes stand beside them.
func (b *bench) publishStamped(ctx context.Context, s *server, run *sinkRun, topic string, from texts, perSecond float64, length time.Duration) (sample, map[string]float64, error) {
	all, release := conns(s, openConns)
	defer release()
	var published atomic.Int64
	before := run.delivered.Load()
	run.mu.Lock()
	run.latencies = histogram{}
	run.mu.Unlock()
	callers := make([]func(time.Time) error, len(all))
	for i, c := range all {
		p := newPublisher(c, topic, uint64(i))
		stamp := make([]byte, 0, stampSize)
		callers[i] = func(time.Time) error {
			stamp = fmt.Appendf(stamp[:0], "%0*x", stampSize, int64(time.Since(run.epoch)))
			published.Add(1)
			return p.publishStamped(from, stamp)
		}
	}
	out, err := schedule(ctx, s, perSecond, length, callers)
	if err != nil {
		return out, nil, err
	}
	for began := time.Now(); run.delivered.Load() < before+published.Load(); {
		if time.Since(began) > settledWithin {
			return out, nil, fmt.Errorf("%d of %d messages delivered after %s", run.delivered.Load()-before, published.Load(), settledWithin)
		}
		if err := pause(ctx, settleInterval); err != nil {
			return out, nil, err
		}
	}
	more := map[string]float64{"publish_p50_ms": out.P50, "publish_p99_ms": out.P99}
	run.mu.Lock()
	defer run.mu.Unlock()
	out.latency = run.latencies.latency()
	return out, more, nil
}
