package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// pushRate is how many push messages go out in a second over one connection.
const pushRate = 2000.0

// device is a token as Apple gives them.
var device = strings.Repeat("0a", 32)

// pushGateway stands in for APNs: it counts, and lets requests wait if told so.
type pushGateway struct {
	*httptest.Server
	hang      chan struct{}
	taken     atomic.Int64
	want      atomic.Int64
	complete  chan struct{}
	once      sync.Once
	addresses sync.Map // of connections
}

func newPushGateway() *pushGateway {
	g := &pushGateway{hang: make(chan struct{}), complete: make(chan struct{})}
	g.Server = httptest.NewUnstartedServer(g)
	g.EnableHTTP2 = true
	g.StartTLS()
	return g
}

func (g *pushGateway) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	g.addresses.Store(r.RemoteAddr, true)
	select {
	case <-g.hang:
	case <-r.Context().Done():
		return
	}
	g.taken.Add(1)
	g.look()
}

// look ends the wait once all has come.
func (g *pushGateway) look() {
	if want := g.want.Load(); want > 0 && g.taken.Load() >= want {
		g.once.Do(func() { close(g.complete) })
	}
}

func (g *pushGateway) connections() (n int) {
	g.addresses.Range(func(any, any) bool { n++; return true })
	return n
}

// runPush publishes to an endpoint of APNs, whose stand-in lets the first messages wait, and
// measures from when it answers to the last message.
func runPush(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	t := &table{
		title: "Push messages",
		note: "Published to one endpoint of APNS. From the moment when the stand-in of APNs, which has let the first wait, begins to answer, until all are there: " +
			"HTTP/2 over TLS, a token of ES256.",
		header: []string{"server", "per s", "server µs/message", "other cores", "RSS MB", "connections"},
	}
	b.report.tables = append(b.report.tables, t)
	for round := range b.rounds {
		if err := b.pushRound(ctx, specs[0], t, round); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) pushRound(ctx context.Context, sp spec, t *table, round int) error {
	g := newPushGateway()
	defer g.Close()
	release := sync.OnceFunc(func() { close(g.hang) })
	defer release()
	ca := filepath.Join(b.dir, fmt.Sprintf("push-%d.pem", round))
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}), 0o600); err != nil {
		return err
	}
	sp.argv = append(slices.Clone(sp.argv), "--push-apns-url", g.URL, "--endpoint-ca", ca)
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	s := servers[0]
	endpoint, err := makePushEndpoint(s)
	if err != nil {
		return err
	}
	published, err := b.publishAll(ctx, s, endpoint, newTexts(b.size, b.escapes), b.posts)
	if err != nil {
		return err
	}
	g.want.Store(published)
	begin := readUsage(s.pid)
	release()
	g.look()
	select {
	case <-g.complete:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settledWithin):
		return fmt.Errorf("push: %d of %d messages after %s", g.taken.Load(), published, settledWithin)
	}
	one := newSample(s, begin, readUsage(s.pid), &tally{messages: published})
	t.add(s.name, figure(one.Throughput), figure(one.ServerCPU), fmt.Sprintf("%.2f", one.OtherCores), figure(one.RSS), fmt.Sprint(g.connections()))
	b.judge(one.Throughput >= pushRate && g.connections() == 1, fmt.Sprintf("%s/s over %d connections", figure(one.Throughput), g.connections()),
		"push: at least %.0f messages a second over one connection", pushRate)
	return nil
}

// makePushEndpoint makes an application of APNs with a key, and an endpoint of it.
func makePushEndpoint(s *server) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	c := newConn(s.host)
	defer c.close()
	in := url.Values{"Name": {"bench"}, "Platform": {"APNS"}}
	for i, pair := range [][2]string{
		{"PlatformPrincipal", "KEY1234567"},
		{"PlatformCredential", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))},
		{"ApplePlatformTeamID", "TEAM123456"},
		{"ApplePlatformBundleID", "dev.godwit.Bench"},
	} {
		in.Set(fmt.Sprintf("Attributes.entry.%d.key", i+1), pair[0])
		in.Set(fmt.Sprintf("Attributes.entry.%d.value", i+1), pair[1])
	}
	app, err := query(c, "PlatformApplicationArn", "CreatePlatformApplication", in)
	if err != nil {
		return "", err
	}
	return query(c, "EndpointArn", "CreatePlatformEndpoint", url.Values{"PlatformApplicationArn": {app}, "Token": {device}})
}
