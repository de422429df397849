package clients_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
)

// gateway is versitygw, a server of S3 that others have written, on a directory.
type gateway struct {
	*s3.Client

	program, address, dir string
	stop                  func()
}

const (
	gatewayKey    = "lake"
	gatewaySecret = "secret of the lake"
)

// builtGateway is the program, which is built once.
var builtGateway = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(scratch, "versitygw")
	build := exec.Command("go", "build", "-o", program, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = filepath.Join("..", "..", "tools", "versitygw")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// newGateway starts a gateway with a bucket.
func newGateway(t *testing.T, bucket string) *gateway {
	t.Helper()
	installed(t)
	const client = "versitygw"
	dir := t.TempDir()
	program, err := builtGateway()
	if err != nil {
		skips.skip(t, client, "it cannot be built: "+lastLines(err.Error()))
	}
	g := &gateway{program: program, dir: dir}
	if g.address, err = freeAddress(); err != nil {
		t.Fatal(err)
	}
	g.Client = s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(g.url()), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(gatewayKey, gatewaySecret, ""),
	})
	for _, name := range []string{"buckets", "attributes"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g.start(t)
	t.Cleanup(func() { g.stop() })
	g.bucket(t, bucket)
	return g
}

func (g *gateway) url() string { return "http://" + g.address }

// start runs the gateway, until stop, and waits for it to answer.
func (g *gateway) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(g.program, "--access", gatewayKey, "--secret", gatewaySecret, "--region", "us-east-1", "--port", g.address, "--quiet",
		"posix", "--sidecar", filepath.Join(g.dir, "attributes"), filepath.Join(g.dir, "buckets"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its output
	}()
	g.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // fails only if it has ended
		<-ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := http.Get(g.url())
		if err == nil {
			answer.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatalf("versitygw ended:\n%s", output.String())
		case <-ctx.Done():
			g.stop()
			t.Fatalf("versitygw does not answer:\n%s", output.String())
		}
	}
}

func (g *gateway) bucket(t *testing.T, name string) {
	t.Helper()
	if _, err := g.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
}

// objects reads what a bucket has, by its keys. What is compressed is shown as it was.
func (g *gateway) objects(t *testing.T, bucket string) map[string]string {
	t.Helper()
	all := map[string]string{}
	pages := s3.NewListObjectsV2Paginator(g, &s3.ListObjectsV2Input{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Contents {
			out, err := g.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: one.Key})
			if err != nil {
				t.Fatalf("%s: %v", *one.Key, err)
			}
			text, err := io.ReadAll(out.Body)
			if out.Body.Close(); err != nil || int64(len(text)) != *one.Size {
				t.Fatalf("%s: %d of %d bytes, %v", *one.Key, len(text), *one.Size, err)
			}
			if strings.HasSuffix(*one.Key, ".gz") {
				if encoding := aws.ToString(out.ContentEncoding); encoding != "gzip" {
					t.Errorf("%s has the encoding %q", *one.Key, encoding)
				}
				text = unzipped(t, text)
			}
			all[*one.Key] = string(text)
		}
	}
	return all
}

func unzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	text, err = io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// streams is a server whose streams' objects go to a gateway.
type streams struct {
	*firehose.Client

	data  string
	flags []string
	at    *url.URL
	stop  func() (logged string) // with kill -9
}

// newStreams starts a server with the secret that it has for the gateway.
func newStreams(t *testing.T, g *gateway, secret string, flags ...string) *streams {
	t.Helper()
	h := &streams{data: filepath.Join(t.TempDir(), "data")}
	h.flags = append([]string{"--firehose-s3-endpoint", g.url(), "--firehose-s3-credentials", h.credentials(t, secret)}, flags...)
	h.start(t)
	t.Cleanup(func() { h.stop() })
	return h
}

// credentials is a file with the gateway's key.
func (h *streams) credentials(t *testing.T, secret string) string {
	t.Helper()
	path := h.data + ".credentials"
	if err := os.WriteFile(path, []byte(gatewayKey+"\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *streams) start(t *testing.T) {
	t.Helper()
	at, stop, err := startServer(h.data, h.flags...)
	if err != nil {
		t.Fatal(err)
	}
	h.at, h.stop = at, sync.OnceValue(stop)
	h.Client = firehose.NewFromConfig(awsConfig(), func(o *firehose.Options) { o.BaseEndpoint, o.RetryMaxAttempts = aws.String(at.String()), 1 })
}

// advance moves the virtual clock, and returns once what was due has been tried.
func (h *streams) advance(t *testing.T, by string) {
	t.Helper()
	answer, err := http.Post(h.at.String()+"/_godwit/clock", "application/json", strings.NewReader(`{"advance":"`+by+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the clock answers %s", answer.Status)
	}
}

var role = aws.String("arn:aws:iam::000000000000:role/hose")

// toBucket is a destination that is delivered after 60 seconds or so many MiB.
func toBucket(bucket, prefix string, size int32) *types.ExtendedS3DestinationConfiguration {
	return &types.ExtendedS3DestinationConfiguration{
		RoleARN: role, BucketARN: aws.String("arn:aws:s3:::" + bucket), Prefix: &prefix,
		BufferingHints: &types.BufferingHints{SizeInMBs: &size, IntervalInSeconds: aws.Int32(60)},
	}
}

func (h *streams) create(t *testing.T, name string, to *types.ExtendedS3DestinationConfiguration) {
	t.Helper()
	if _, err := h.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: &name, ExtendedS3DestinationConfiguration: to}); err != nil {
		t.Fatal(err)
	}
}

func (h *streams) put(t *testing.T, name string, data ...string) {
	t.Helper()
	if err := h.tryPut(t.Context(), name, data...); err != nil {
		t.Fatal(err)
	}
}

// tryPut fails unless all records are taken.
func (h *streams) tryPut(ctx context.Context, name string, data ...string) error {
	var records []types.Record
	for _, one := range data {
		records = append(records, types.Record{Data: []byte(one)})
	}
	out, err := h.PutRecordBatch(ctx, &firehose.PutRecordBatchInput{DeliveryStreamName: &name, Records: records})
	if err == nil && *out.FailedPutCount > 0 {
		err = fmt.Errorf("%d records were not taken", *out.FailedPutCount)
	}
	return err
}

// one is the text of the only object whose key begins so.
func one(t *testing.T, all map[string]string, prefix string) string {
	t.Helper()
	var found []string
	for key, text := range all {
		if strings.HasPrefix(key, prefix) {
			found = append(found, text)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects begin with %s", len(found), prefix)
	}
	return found[0]
}

// TestS3 delivers to versitygw, and reads what is there with another client of S3.
func TestS3(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "lake")
	h := newStreams(t, g, gatewaySecret, "--clock", "virtual")
	year := time.Now().UTC().Format("2006")

	h.create(t, "plain", toBucket("lake", "", 1))
	named := toBucket("lake", "in/year=!{timestamp:yyyy}/a b+c&d=ü%20/!{firehose:random-string}/", 1)
	named.ErrorOutputPrefix, named.CompressionFormat = aws.String("err/!{firehose:error-output-type}/"), types.CompressionFormatGzip
	h.create(t, "named", named)
	h.create(t, "large", toBucket("lake", "large/", 64))
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	if _, err := h.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: aws.String("web"), HttpEndpointDestinationConfiguration: &types.HttpEndpointDestinationConfiguration{
		EndpointConfiguration: &types.HttpEndpointConfiguration{Url: aws.String(refusing.URL)}, RoleARN: role, RetryOptions: &types.HttpEndpointRetryOptions{DurationInSeconds: aws.Int32(30)},
		S3Configuration: &types.S3DestinationConfiguration{
			RoleARN: role, BucketARN: aws.String("arn:aws:s3:::lake"), Prefix: aws.String("web/"),
			ErrorOutputPrefix: aws.String("err/!{firehose:error-output-type}/!{timestamp:yyyy}/"),
		},
	}}); err != nil {
		t.Fatal(err)
	}

	h.put(t, "plain", "1\n", "2\n")
	h.put(t, "named", "3\n", "4\n")
	h.put(t, "web", "5\n")
	var whole strings.Builder // several parts, as a server of S3 takes them
	for range 12 {
		var data []string
		for range 4 {
			random := make([]byte, 900<<10)
			for i := range random {
				random[i] = 'a' + byte(rand.IntN(26))
			}
			data = append(data, string(random))
			whole.Write(random)
		}
		h.put(t, "large", data...)
	}
	h.advance(t, "10m")
	all := g.objects(t, "lake")
	if text := one(t, all, year+"/"); text != "1\n2\n" {
		t.Errorf("the plain object is %q", text)
	}
	if text := one(t, all, "in/year="+year+"/a b+c&d=ü%20/"); text != "3\n4\n" {
		t.Errorf("the compressed object is %q", text)
	}
	if text := one(t, all, "large/"+year+"/"); text != whole.String() {
		t.Errorf("the large object has %d bytes and not the %d that were put", len(text), whole.Len())
	}
	var failed struct {
		ErrorCode, RawData string
	}
	if text := one(t, all, "err/http-endpoint-failed/"+year+"/"); json.Unmarshal([]byte(text), &failed) != nil || failed.ErrorCode != "HttpEndpoint.DestinationException" || failed.RawData != "NQo=" {
		t.Errorf("what the endpoint did not take is %s", text)
	}
	if len(all) != 4 {
		t.Errorf("there are %d objects", len(all))
	}

	// What the server is killed with is delivered by the next.
	h.put(t, "plain", "6\n")
	h.stop()
	h.start(t)
	h.put(t, "plain", "7\n")
	h.advance(t, "1m")
	later := g.objects(t, "lake")
	if text := one(t, without(later, all), ""); text != "6\n7\n" {
		t.Errorf("what was in the buffer became %q", text)
	}

	// A server of S3 that is away for an hour gets all of it, also if this one is killed
	// meanwhile.
	g.stop()
	for n := range 4 {
		h.put(t, "plain", fmt.Sprintf("away %d\n", n))
		h.advance(t, "15m")
		if n == 1 {
			if logged := h.stop(); !strings.Contains(logged, "S3.Unreachable") {
				t.Errorf("the log says nothing of a server that is away:\n%s", logged)
			}
			h.start(t)
		}
	}
	g.start(t)
	h.advance(t, "10m")
	var lines []string
	for _, text := range without(g.objects(t, "lake"), later) {
		lines = append(lines, strings.Split(strings.TrimSpace(text), "\n")...)
	}
	slices.Sort(lines)
	if diff := cmp.Diff([]string{"away 0", "away 1", "away 2", "away 3"}, lines); diff != "" {
		t.Errorf("what came while it was away: %s", diff)
	}
}

func without(all, those map[string]string) map[string]string {
	rest := map[string]string{}
	for key, text := range all {
		if _, there := those[key]; !there {
			rest[key] = text
		}
	}
	return rest
}

// TestS3Refuses: what versitygw refuses waits until it takes it.
func TestS3Refuses(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "lake")
	h := newStreams(t, g, "not the secret", "--clock", "virtual")
	h.create(t, "a", toBucket("lake", "", 1))
	h.create(t, "b", toBucket("puddle", "", 1))
	h.put(t, "a", "1\n")
	h.put(t, "b", "2\n")
	h.advance(t, "10m")
	if all := g.objects(t, "lake"); len(all) != 0 {
		t.Errorf("with a wrong secret there are %d objects", len(all))
	}
	if logged := h.stop(); !strings.Contains(logged, "S3.SignatureDoesNotMatch") {
		t.Errorf("the log does not say why:\n%s", logged)
	}
	h.credentials(t, gatewaySecret)
	h.start(t)
	h.advance(t, "10m")
	if text := one(t, g.objects(t, "lake"), ""); text != "1\n" {
		t.Errorf("with the right one it is %q", text)
	}
	g.bucket(t, "puddle")
	h.advance(t, "2m")
	if text := one(t, g.objects(t, "puddle"), ""); text != "2\n" {
		t.Errorf("in a bucket that came later it is %q", text)
	}
	if logged := h.stop(); !strings.Contains(logged, "S3.NoSuchBucket") {
		t.Errorf("the log does not say why:\n%s", logged)
	}
}

// TestS3Kill9 kills the server while clients put records and objects are sent, and finds
// each record that was acknowledged in an object, once.
func TestS3Kill9(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "lake")
	h := newStreams(t, g, gatewaySecret)
	to := toBucket("lake", "", 1)
	to.BufferingHints.IntervalInSeconds = aws.Int32(0)
	h.create(t, "orders", to)
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	const writers, batch, rounds, acknowledgedInRound = 4, 20, 3, 40
	padding := strings.Repeat("x", 5000)
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		enough := make(chan struct{}, writers*acknowledgedInRound)
		var clients sync.WaitGroup
		for w := range writers {
			clients.Go(func() {
				for n := range acknowledgedInRound {
					var names []string
					for i := range batch {
						names = append(names, fmt.Sprintf("%d-%d-%d-%d %s\n", round, w, n, i, padding))
					}
					if h.tryPut(ctx, "orders", names...) != nil {
						return
					}
					mu.Lock()
					for _, name := range names {
						acknowledged[strings.TrimSpace(name)] = true
					}
					mu.Unlock()
					enough <- struct{}{}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			clients.Wait()
		}()
		for range acknowledgedInRound {
			select {
			case <-enough:
			case <-done: // something is wrong, which the end tells
			}
		}
		h.stop()
		cancel()
		<-done
		h.start(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		counts := map[string]int{}
		for _, text := range g.objects(t, "lake") {
			for line := range strings.Lines(text) {
				counts[strings.TrimSpace(line)]++
			}
		}
		missing := 0
		for name := range acknowledged {
			if counts[name] == 0 {
				missing++
			}
		}
		if missing == 0 {
			for name, n := range counts {
				if n != 1 {
					t.Errorf("%.20s is there %d times", name, n)
				}
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("of %d records that were acknowledged, %d are in no object", len(acknowledged), missing)
		}
	}
}
