package sdk_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"

	"godwit.dev/godwit/internal/config"
)

func firehoseAs(endpoint, who string) *firehose.Client {
	return firehose.New(firehose.Options{Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider(who, secretOf(who), ""), RetryMaxAttempts: 1, HTTPClient: eager})
}

// startHoses starts a server whose streams' objects are files of a directory. Roles need
// not be there.
func startHoses(t *testing.T) (c *firehose.Client, endpoint, dir string) {
	t.Helper()
	dir = t.TempDir()
	endpoint = startWith(t, func(c *config.Config) { c.FirehoseDirectory, c.Enforce = dir, false })
	return firehoseAs(endpoint, account), endpoint, dir
}

var hoseRole = new("arn:aws:iam::" + account + ":role/hose")

// toBucket is a destination that is delivered after 60 seconds or 1 MiB.
func toBucket(change ...func(d *types.ExtendedS3DestinationConfiguration)) *types.ExtendedS3DestinationConfiguration {
	d := &types.ExtendedS3DestinationConfiguration{
		RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::bucket"),
		BufferingHints: &types.BufferingHints{SizeInMBs: new(int32(1)), IntervalInSeconds: new(int32(60))},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func makeHose(t *testing.T, c *firehose.Client, name string, change ...func(d *types.ExtendedS3DestinationConfiguration)) {
	t.Helper()
	made := must(c.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: &name, ExtendedS3DestinationConfiguration: toBucket(change...)}))(t)
	equal(t, "ARN", "arn:aws:firehose:"+region+":"+account+":deliverystream/"+name, *made.DeliveryStreamARN)
}

func putHose(t *testing.T, c *firehose.Client, name string, data ...string) {
	t.Helper()
	var records []types.Record
	for _, d := range data {
		records = append(records, types.Record{Data: []byte(d)})
	}
	out := must(c.PutRecordBatch(t.Context(), &firehose.PutRecordBatchInput{DeliveryStreamName: &name, Records: records}))(t)
	equal(t, "failed", int32(0), *out.FailedPutCount)
	seen := map[string]bool{}
	for _, r := range out.RequestResponses {
		seen[*r.RecordId] = true
	}
	equal(t, "distinct ids", len(data), len(seen))
}

// objects are the files below a directory, by their names in it.
func objects(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// only is the one object whose name begins so, and its name.
func only(t *testing.T, all map[string]string, prefix string) (name, text string) {
	t.Helper()
	for n, s := range all {
		if strings.HasPrefix(n, prefix) {
			if name != "" {
				t.Fatalf("several objects begin with %s: %v", prefix, all)
			}
			name, text = n, s
		}
	}
	if name == "" {
		t.Fatalf("no object begins with %s: %v", prefix, all)
	}
	return name, text
}

// Records are delivered together once their time is over, or once there are enough.
func TestFirehoseBuffers(t *testing.T) {
	c, endpoint, dir := startHoses(t)
	makeHose(t, c, "orders")
	one := must(c.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: new("orders"), Record: &types.Record{Data: []byte("a")}}))(t)
	if *one.RecordId == "" || *one.Encrypted {
		t.Errorf("%+v", one)
	}
	putHose(t, c, "orders", "b\n", "", "c")
	advance(t, endpoint, "59s")
	equal(t, "objects before their time", 0, len(objects(t, dir)))
	advance(t, endpoint, "1s")
	name, text := only(t, objects(t, dir), "bucket/")
	equal(t, "the object", "ab\nc", text)
	parts := strings.Split(name, "/")
	if len(parts) != 6 || !strings.HasPrefix(parts[5], "orders-1-"+parts[1]+"-"+parts[2]+"-"+parts[3]+"-"+parts[4]+"-") {
		t.Errorf("its name is %s", name)
	}
	// 1 MiB is enough.
	large := strings.Repeat("x", 300<<10)
	putHose(t, c, "orders", large, large)
	putHose(t, c, "orders", large, large)
	advance(t, endpoint, "1ms")
	all := objects(t, dir)
	delete(all, name)
	_, text = only(t, all, "bucket/")
	equal(t, "bytes of the object", 4*len(large), len(text))
	advance(t, endpoint, "1h")
	equal(t, "objects", 2, len(objects(t, dir)))
}

// Names, compression, delimiters and time zones of objects are as the destination says.
func TestFirehoseObjects(t *testing.T) {
	c, endpoint, dir := startHoses(t)
	makeHose(t, c, "named", func(d *types.ExtendedS3DestinationConfiguration) {
		d.Prefix, d.ErrorOutputPrefix = new("in/year=!{timestamp:yyyy}/!{timestamp:'day='DDD}/!{firehose:random-string}/"), new("err/!{firehose:error-output-type}/")
		d.FileExtension, d.CustomTimeZone = new(".json"), new("Asia/Tokyo")
	})
	makeHose(t, c, "zipped", func(d *types.ExtendedS3DestinationConfiguration) {
		d.Prefix, d.CompressionFormat = new("../../zipped/"), types.CompressionFormatGzip
		d.ProcessingConfiguration = &types.ProcessingConfiguration{Enabled: new(true), Processors: []types.Processor{{Type: types.ProcessorTypeAppendDelimiterToRecord}}}
	})
	plain := "plain"
	must(c.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: &plain,
		//nolint:staticcheck // older clients give it
		S3DestinationConfiguration: &types.S3DestinationConfiguration{
			RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::other"), Prefix: new("p/"), BufferingHints: &types.BufferingHints{SizeInMBs: new(int32(128)), IntervalInSeconds: new(int32(0))},
		},
	}))(t)
	putHose(t, c, "named", "1", "2")
	putHose(t, c, "zipped", "1", "2")
	putHose(t, c, plain, "1")
	advance(t, endpoint, "60s")
	all := objects(t, dir)
	name, text := only(t, all, "bucket/in/year=20")
	equal(t, "the records", "12", text)
	if parts := strings.Split(name, "/"); len(parts) != 6 || !strings.HasPrefix(parts[3], "day=") || len(parts[4]) != 11 || !strings.HasSuffix(name, ".json") {
		t.Errorf("the name is %s", name)
	}
	name, text = only(t, all, "bucket/%2E%2E/%2E%2E/zipped/")
	if !strings.HasSuffix(name, ".gz") {
		t.Errorf("the name is %s", name)
	}
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := io.ReadAll(z)
	if err != nil || string(unzipped) != "1\n2\n" {
		t.Errorf("%q, %v", unzipped, err)
	}
	only(t, all, "other/p/20")
	equal(t, "objects", 3, len(all))
}

// hoseEndpoint is an HTTP endpoint of streams.
type hoseEndpoint struct {
	*httptest.Server

	mu       sync.Mutex
	status   int // of answers; 0: what is sent is taken
	requests []hoseRequest
}

type hoseRequest struct {
	header  http.Header
	id      string
	records []string
}

func newHoseEndpoint(t *testing.T) *hoseEndpoint {
	e := &hoseEndpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		var in struct {
			RequestID string `json:"requestId"`
			Timestamp int64  `json:"timestamp"`
			Records   []struct {
				Data []byte `json:"data"`
			} `json:"records"`
		}
		if err := json.NewDecoder(body).Decode(&in); err != nil || in.Timestamp == 0 || in.RequestID != r.Header.Get("X-Amz-Firehose-Request-Id") {
			t.Errorf("%+v, %v", in, err)
		}
		got := hoseRequest{header: r.Header.Clone(), id: in.RequestID}
		for _, one := range in.Records {
			got.records = append(got.records, string(one.Data))
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.requests = append(e.requests, got)
		w.Header().Set("Content-Type", "application/json")
		if e.status != 0 {
			w.WriteHeader(e.status)
		}
		fmt.Fprintf(w, `{"requestId":%q,"timestamp":%d}`, in.RequestID, in.Timestamp)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *hoseEndpoint) answer(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

func (e *hoseEndpoint) got() []hoseRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// toEndpoint is a destination of requests that gives up after 60 seconds.
func toEndpoint(url string) *types.HttpEndpointDestinationConfiguration {
	return &types.HttpEndpointDestinationConfiguration{
		EndpointConfiguration: &types.HttpEndpointConfiguration{Url: &url, Name: new("logs"), AccessKey: new("s3cr3t")},
		BufferingHints:        &types.HttpEndpointBufferingHints{SizeInMBs: new(int32(1)), IntervalInSeconds: new(int32(1))},
		RequestConfiguration: &types.HttpEndpointRequestConfiguration{ContentEncoding: types.ContentEncodingGzip, CommonAttributes: []types.HttpEndpointCommonAttribute{
			{AttributeName: new("stage"), AttributeValue: new("test")},
		}},
		RetryOptions:    &types.HttpEndpointRetryOptions{DurationInSeconds: new(int32(60))},
		RoleARN:         hoseRole,
		S3Configuration: &types.S3DestinationConfiguration{RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::backup"), Prefix: new("b/")},
	}
}

// An HTTP endpoint gets requests in Firehose's form; what it does not take goes to the
// bucket behind it.
func TestFirehoseHTTPEndpoint(t *testing.T) {
	c, endpoint, dir := startHoses(t)
	e := newHoseEndpoint(t)
	must(c.CreateDeliveryStream(t.Context(), &firehose.CreateDeliveryStreamInput{DeliveryStreamName: new("web"), HttpEndpointDestinationConfiguration: toEndpoint(e.URL + "/in")}))(t)
	putHose(t, c, "web", "one", "two")
	advance(t, endpoint, "1s")
	got := e.got()
	if len(got) != 1 || !slices.Equal(got[0].records, []string{"one", "two"}) {
		t.Fatalf("%+v", got)
	}
	h := got[0].header
	for name, want := range map[string]string{
		"X-Amz-Firehose-Protocol-Version": "1.0", "X-Amz-Firehose-Access-Key": "s3cr3t", "Content-Type": "application/json", "Content-Encoding": "gzip",
		"X-Amz-Firehose-Source-Arn": "arn:aws:firehose:" + region + ":" + account + ":deliverystream/web", "X-Amz-Firehose-Common-Attributes": `{"commonAttributes":{"stage":"test"}}`,
	} {
		equal(t, name, want, h.Get(name))
	}
	equal(t, "objects", 0, len(objects(t, dir)))

	e.answer(http.StatusServiceUnavailable)
	putHose(t, c, "web", "three")
	advance(t, endpoint, "2s")
	e.answer(0)
	advance(t, endpoint, "10s")
	if got = e.got(); len(got) < 3 || got[1].id != got[len(got)-1].id {
		t.Fatalf("%+v", got)
	}
	equal(t, "objects after a success", 0, len(objects(t, dir)))

	e.answer(http.StatusForbidden)
	putHose(t, c, "web", "four", "five")
	advance(t, endpoint, "10m")
	_, text := only(t, objects(t, dir), "backup/b/http-endpoint-failed/20")
	var lines []string
	for line := range strings.Lines(text) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		data, _ := base64.StdEncoding.DecodeString(r["rawData"].(string))
		lines = append(lines, fmt.Sprint(r["errorCode"], string(data), r["attemptsMade"].(float64) > 2))
	}
	equal(t, "the backup", "[HttpEndpoint.DestinationExceptionfourtrue HttpEndpoint.DestinationExceptionfivetrue]", fmt.Sprint(lines))

	shown := must(c.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: new("web")}))(t).DeliveryStreamDescription
	to := shown.Destinations[0].HttpEndpointDestinationDescription
	if *to.EndpointConfiguration.Url != e.URL+"/in" || *to.EndpointConfiguration.Name != "logs" || to.S3BackupMode != types.HttpEndpointS3BackupModeFailedDataOnly || *to.S3DestinationDescription.Prefix != "b/" {
		t.Errorf("%+v", to)
	}
	// All data goes to the bucket, too, once that is asked for; the key stays as it was.
	e.answer(0)
	must(c.UpdateDestination(t.Context(), &firehose.UpdateDestinationInput{
		DeliveryStreamName: new("web"), CurrentDeliveryStreamVersionId: shown.VersionId, DestinationId: shown.Destinations[0].DestinationId,
		HttpEndpointDestinationUpdate: &types.HttpEndpointDestinationUpdate{S3BackupMode: types.HttpEndpointS3BackupModeAllData, RetryOptions: &types.HttpEndpointRetryOptions{DurationInSeconds: new(int32(0))}},
	}))(t)
	putHose(t, c, "web", "six")
	advance(t, endpoint, "1s")
	got = e.got()
	equal(t, "the key", "s3cr3t", got[len(got)-1].header.Get("X-Amz-Firehose-Access-Key"))
	_, text = only(t, objects(t, dir), "backup/b/20")
	equal(t, "all data", "six", text)

	// Whoever may lead a stream elsewhere is not shown the key so: it stays with its address.
	update := func(version, url string) {
		must(c.UpdateDestination(t.Context(), &firehose.UpdateDestinationInput{
			DeliveryStreamName: new("web"), CurrentDeliveryStreamVersionId: &version, DestinationId: shown.Destinations[0].DestinationId,
			HttpEndpointDestinationUpdate: &types.HttpEndpointDestinationUpdate{EndpointConfiguration: &types.HttpEndpointConfiguration{Url: &url, Name: new("other")}},
		}))(t)
		putHose(t, c, "web", "seven")
		advance(t, endpoint, "1s")
	}
	update("2", e.URL+"/in")
	got = e.got()
	equal(t, "the key of the same address", "s3cr3t", got[len(got)-1].header.Get("X-Amz-Firehose-Access-Key"))
	elsewhere := newHoseEndpoint(t)
	update("3", elsewhere.URL+"/in")
	got = elsewhere.got()
	equal(t, "the key of another address", "", got[len(got)-1].header.Get("X-Amz-Firehose-Access-Key"))
}

// Streams are described, listed, changed, tagged and deleted.
func TestFirehoseManages(t *testing.T) {
	c, _, _ := startHoses(t)
	ctx := t.Context()
	must(c.CreateDeliveryStream(ctx, &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: new("orders"), DeliveryStreamType: types.DeliveryStreamTypeDirectPut, ExtendedS3DestinationConfiguration: toBucket(),
		DirectPutSourceConfiguration:               &types.DirectPutSourceConfiguration{ThroughputHintInMBs: new(int32(5))},
		DeliveryStreamEncryptionConfigurationInput: &types.DeliveryStreamEncryptionConfigurationInput{KeyType: types.KeyTypeAwsOwnedCmk},
		Tags: []types.Tag{{Key: new("team"), Value: new("red")}, {Key: new("stage")}},
	}))(t)
	makeHose(t, c, "b")
	makeHose(t, c, "a")
	describe := func() *types.DeliveryStreamDescription {
		return must(c.DescribeDeliveryStream(ctx, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: new("orders")}))(t).DeliveryStreamDescription
	}
	d := describe()
	if d.DeliveryStreamStatus != types.DeliveryStreamStatusActive || d.DeliveryStreamType != types.DeliveryStreamTypeDirectPut || *d.VersionId != "1" || *d.HasMoreDestinations ||
		d.CreateTimestamp == nil || d.LastUpdateTimestamp != nil || *d.Source.DirectPutSourceDescription.ThroughputHintInMBs != 5 ||
		d.DeliveryStreamEncryptionConfiguration.Status != types.DeliveryStreamEncryptionStatusEnabled || d.DeliveryStreamEncryptionConfiguration.KeyType != types.KeyTypeAwsOwnedCmk {
		t.Errorf("%+v", d)
	}
	to := d.Destinations[0]
	x := to.ExtendedS3DestinationDescription
	if *to.DestinationId != "destinationId-000000000001" || *x.BucketARN != "arn:aws:s3:::bucket" || *x.RoleARN != *hoseRole || *x.BufferingHints.SizeInMBs != 1 || *x.BufferingHints.IntervalInSeconds != 60 ||
		x.CompressionFormat != types.CompressionFormatUncompressed || x.S3BackupMode != types.S3BackupModeDisabled || x.EncryptionConfiguration.NoEncryptionConfig != types.NoEncryptionConfigNoEncryption ||
		*x.CloudWatchLoggingOptions.Enabled || *to.S3DestinationDescription.BucketARN != *x.BucketARN {
		t.Errorf("%+v", x)
	}
	none := must(c.DescribeDeliveryStream(ctx, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: new("orders"), ExclusiveStartDestinationId: to.DestinationId}))(t)
	equal(t, "destinations behind the only one", 0, len(none.DeliveryStreamDescription.Destinations))

	list := must(c.ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{Limit: new(int32(2))}))(t)
	equal(t, "the list", "[a b] true", fmt.Sprint(list.DeliveryStreamNames, *list.HasMoreDeliveryStreams))
	list = must(c.ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{ExclusiveStartDeliveryStreamName: new("b")}))(t)
	equal(t, "the rest", "[orders] false", fmt.Sprint(list.DeliveryStreamNames, *list.HasMoreDeliveryStreams))
	list = must(c.ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{DeliveryStreamType: types.DeliveryStreamTypeKinesisStreamAsSource}))(t)
	equal(t, "those of Kinesis", 0, len(list.DeliveryStreamNames))

	must(c.UpdateDestination(ctx, &firehose.UpdateDestinationInput{
		DeliveryStreamName: new("orders"), CurrentDeliveryStreamVersionId: new("1"), DestinationId: to.DestinationId,
		ExtendedS3DestinationUpdate: &types.ExtendedS3DestinationUpdate{Prefix: new("new/"), CompressionFormat: types.CompressionFormatGzip},
	}))(t)
	d = describe()
	x = d.Destinations[0].ExtendedS3DestinationDescription
	if *d.VersionId != "2" || d.LastUpdateTimestamp == nil || *x.Prefix != "new/" || x.CompressionFormat != types.CompressionFormatGzip || *x.BufferingHints.SizeInMBs != 1 {
		t.Errorf("%+v", x)
	}
	must(c.UpdateDestination(ctx, &firehose.UpdateDestinationInput{
		DeliveryStreamName: new("orders"), CurrentDeliveryStreamVersionId: new("2"), DestinationId: to.DestinationId,
		S3DestinationUpdate: &types.S3DestinationUpdate{BucketARN: new("arn:aws:s3:::another")}, //nolint:staticcheck // older clients give it
	}))(t)
	equal(t, "the bucket", "arn:aws:s3:::another", *describe().Destinations[0].S3DestinationDescription.BucketARN)

	must(c.TagDeliveryStream(ctx, &firehose.TagDeliveryStreamInput{DeliveryStreamName: new("orders"), Tags: []types.Tag{{Key: new("team"), Value: new("blue")}, {Key: new("a"), Value: new("1")}}}))(t)
	must(c.UntagDeliveryStream(ctx, &firehose.UntagDeliveryStreamInput{DeliveryStreamName: new("orders"), TagKeys: []string{"stage", "none"}}))(t)
	tags := must(c.ListTagsForDeliveryStream(ctx, &firehose.ListTagsForDeliveryStreamInput{DeliveryStreamName: new("orders"), Limit: new(int32(1))}))(t)
	equal(t, "the first tag", "a=1 true", fmt.Sprintf("%s=%s %t", *tags.Tags[0].Key, *tags.Tags[0].Value, *tags.HasMoreTags))
	tags = must(c.ListTagsForDeliveryStream(ctx, &firehose.ListTagsForDeliveryStreamInput{DeliveryStreamName: new("orders"), ExclusiveStartTagKey: new("a")}))(t)
	equal(t, "the other tag", "team=blue false", fmt.Sprintf("%s=%s %t", *tags.Tags[0].Key, *tags.Tags[0].Value, *tags.HasMoreTags))

	must(c.StopDeliveryStreamEncryption(ctx, &firehose.StopDeliveryStreamEncryptionInput{DeliveryStreamName: new("orders")}))(t)
	equal(t, "encryption", types.DeliveryStreamEncryptionStatusDisabled, describe().DeliveryStreamEncryptionConfiguration.Status)
	must(c.StartDeliveryStreamEncryption(ctx, &firehose.StartDeliveryStreamEncryptionInput{DeliveryStreamName: new("orders")}))(t)
	equal(t, "encryption", types.DeliveryStreamEncryptionStatusEnabled, describe().DeliveryStreamEncryptionConfiguration.Status)

	must(c.DeleteDeliveryStream(ctx, &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: new("orders")}))(t)
	_, err := c.DescribeDeliveryStream(ctx, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: new("orders")})
	refusedWith(t, err, "ResourceNotFoundException", "Firehose orders under account "+account+" not found.")
}

// What is wrong is refused in Firehose's words, and changes nothing.
func TestFirehoseErrors(t *testing.T) {
	dir := t.TempDir()
	endpoint := startWith(t, func(c *config.Config) { c.FirehoseDirectory, c.Enforce, c.FirehoseMaxStreams = dir, false, 1 })
	c, ctx := firehoseAs(endpoint, account), t.Context()
	makeHose(t, c, "orders")
	orders := new("orders")
	create := func(in firehose.CreateDeliveryStreamInput) func() error {
		if in.DeliveryStreamName == nil {
			in.DeliveryStreamName = new("other")
		}
		return func() error {
			_, err := c.CreateDeliveryStream(ctx, &in)
			return err
		}
	}
	to := func(f func(d *types.ExtendedS3DestinationConfiguration)) func() error {
		return create(firehose.CreateDeliveryStreamInput{ExtendedS3DestinationConfiguration: toBucket(f)})
	}
	web := func(f func(d *types.HttpEndpointDestinationConfiguration)) func() error {
		d := toEndpoint("https://localhost/x")
		f(d)
		return create(firehose.CreateDeliveryStreamInput{HttpEndpointDestinationConfiguration: d})
	}
	update := func(in firehose.UpdateDestinationInput) func() error {
		if in.DeliveryStreamName == nil {
			in.DeliveryStreamName = orders
		}
		if in.CurrentDeliveryStreamVersionId == nil {
			in.CurrentDeliveryStreamVersionId = new("1")
		}
		if in.DestinationId == nil {
			in.DestinationId = new("destinationId-000000000001")
		}
		return func() error {
			_, err := c.UpdateDestination(ctx, &in)
			return err
		}
	}
	batch := func(n, size int) func() error {
		return func() error {
			_, err := c.PutRecordBatch(ctx, &firehose.PutRecordBatchInput{DeliveryStreamName: orders, Records: slices.Repeat([]types.Record{{Data: make([]byte, size)}}, n)})
			return err
		}
	}
	const invalid, constraint = "InvalidArgumentException", "ValidationException"
	for _, tt := range []struct {
		what string
		call func() error
		code string
		text string
	}{
		{"taken", create(firehose.CreateDeliveryStreamInput{DeliveryStreamName: orders, ExtendedS3DestinationConfiguration: toBucket()}), "ResourceInUseException", "Firehose orders under accountId " + account + " already exists"},
		{"too many", create(firehose.CreateDeliveryStreamInput{ExtendedS3DestinationConfiguration: toBucket()}), "LimitExceededException", "You have already consumed your firehose quota of 1 hoses."},
		{"name", create(firehose.CreateDeliveryStreamInput{DeliveryStreamName: new("a b"), ExtendedS3DestinationConfiguration: toBucket()}), constraint, "1 validation error detected: Value 'a b' at 'deliveryStreamName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"long name", create(firehose.CreateDeliveryStreamInput{DeliveryStreamName: new(strings.Repeat("a", 65)), ExtendedS3DestinationConfiguration: toBucket()}), constraint, "*"},
		{"no destination", create(firehose.CreateDeliveryStreamInput{}), invalid, "Exactly one destination configuration is supported for a Firehose"},
		{"two destinations", create(firehose.CreateDeliveryStreamInput{ExtendedS3DestinationConfiguration: toBucket(), HttpEndpointDestinationConfiguration: toEndpoint("https://a")}), invalid, "*"},
		{"a stream of Kinesis", create(firehose.CreateDeliveryStreamInput{DeliveryStreamType: types.DeliveryStreamTypeKinesisStreamAsSource, ExtendedS3DestinationConfiguration: toBucket()}), invalid, "*"},
		{"Splunk", create(firehose.CreateDeliveryStreamInput{SplunkDestinationConfiguration: &types.SplunkDestinationConfiguration{HECEndpoint: new("a"), HECEndpointType: "Raw", S3Configuration: &types.S3DestinationConfiguration{RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::b")}}}), invalid, "SplunkDestinationConfiguration is not built: streams are written to directly, and deliver to S3 and HTTP endpoints."},
		{"a customer's key", create(firehose.CreateDeliveryStreamInput{DeliveryStreamEncryptionConfigurationInput: &types.DeliveryStreamEncryptionConfigurationInput{KeyType: types.KeyTypeCustomerManagedCmk, KeyARN: new("arn:aws:kms:x")}, ExtendedS3DestinationConfiguration: toBucket()}), invalid, "*"},
		{"tags", create(firehose.CreateDeliveryStreamInput{Tags: []types.Tag{{Key: new("aws:x")}}, ExtendedS3DestinationConfiguration: toBucket()}), constraint, "*"},
		{"tags twice", create(firehose.CreateDeliveryStreamInput{Tags: []types.Tag{{Key: new("x")}, {Key: new("x")}}, ExtendedS3DestinationConfiguration: toBucket()}), invalid, "*"},
		{"hint", create(firehose.CreateDeliveryStreamInput{DirectPutSourceConfiguration: &types.DirectPutSourceConfiguration{ThroughputHintInMBs: new(int32(101))}, ExtendedS3DestinationConfiguration: toBucket()}), constraint, "*"},
		{"role", to(func(d *types.ExtendedS3DestinationConfiguration) { d.RoleARN = new("r") }), constraint, "*"},
		{"bucket", to(func(d *types.ExtendedS3DestinationConfiguration) { d.BucketARN = new("b") }), constraint, "*"},
		{"size", to(func(d *types.ExtendedS3DestinationConfiguration) { d.BufferingHints.SizeInMBs = new(int32(129)) }), constraint, "1 validation error detected: Value '129' at 'extendedS3DestinationConfiguration.bufferingHints.sizeInMBs' failed to satisfy constraint: Member must have value less than or equal to 128"},
		{"interval", to(func(d *types.ExtendedS3DestinationConfiguration) {
			d.BufferingHints.IntervalInSeconds = new(int32(901))
		}), constraint, "*"},
		{"Snappy", to(func(d *types.ExtendedS3DestinationConfiguration) { d.CompressionFormat = types.CompressionFormatSnappy }), invalid, "*"},
		{"compression", to(func(d *types.ExtendedS3DestinationConfiguration) { d.CompressionFormat = "rar" }), constraint, "*"},
		{"expression", to(func(d *types.ExtendedS3DestinationConfiguration) { d.Prefix = new("!{timestamp:jjj}/") }), invalid, "Prefix expression is not valid: !{timestamp:jjj}/"},
		{"error prefix", to(func(d *types.ExtendedS3DestinationConfiguration) { d.Prefix = new("!{timestamp:yyyy}/") }), invalid, "ErrorOutputPrefix must be specified when Prefix contains expressions."},
		{"error type", to(func(d *types.ExtendedS3DestinationConfiguration) { d.ErrorOutputPrefix = new("!{timestamp:yyyy}/") }), invalid, "*"},
		{"error type outside", to(func(d *types.ExtendedS3DestinationConfiguration) { d.Prefix = new("!{firehose:error-output-type}/") }), invalid, "*"},
		{"zone", to(func(d *types.ExtendedS3DestinationConfiguration) { d.CustomTimeZone = new("Mars/Base") }), invalid, "CustomTimeZone Mars/Base is not supported."},
		{"extension", to(func(d *types.ExtendedS3DestinationConfiguration) { d.FileExtension = new("json") }), constraint, "*"},
		{"logging", to(func(d *types.ExtendedS3DestinationConfiguration) {
			d.CloudWatchLoggingOptions = &types.CloudWatchLoggingOptions{Enabled: new(true)}
		}), invalid, "*"},
		{"a function", to(func(d *types.ExtendedS3DestinationConfiguration) {
			d.ProcessingConfiguration = &types.ProcessingConfiguration{Enabled: new(true), Processors: []types.Processor{{Type: types.ProcessorTypeLambda}}}
		}), invalid, "*"},
		{"backup", to(func(d *types.ExtendedS3DestinationConfiguration) { d.S3BackupMode = types.S3BackupModeEnabled }), invalid, "*"},
		{"key of the bucket", to(func(d *types.ExtendedS3DestinationConfiguration) {
			d.EncryptionConfiguration = &types.EncryptionConfiguration{KMSEncryptionConfig: &types.KMSEncryptionConfig{AWSKMSKeyARN: new("arn:aws:kms:x")}}
		}), invalid, "*"},
		{"Parquet", to(func(d *types.ExtendedS3DestinationConfiguration) {
			d.DataFormatConversionConfiguration = &types.DataFormatConversionConfiguration{Enabled: new(true)}
		}), invalid, "*"},
		{"partitions", to(func(d *types.ExtendedS3DestinationConfiguration) {
			d.DynamicPartitioningConfiguration = &types.DynamicPartitioningConfiguration{Enabled: new(true)}
		}), invalid, "*"},
		{"URL", web(func(d *types.HttpEndpointDestinationConfiguration) { d.EndpointConfiguration.Url = new("ftp://a") }), constraint, "*"},
		{"URL with a user", web(func(d *types.HttpEndpointDestinationConfiguration) {
			d.EndpointConfiguration.Url = new("https://a:b@c")
		}), invalid, "*"},
		{"retry", web(func(d *types.HttpEndpointDestinationConfiguration) {
			d.RetryOptions.DurationInSeconds = new(int32(7201))
		}), constraint, "*"},
		{"secret", web(func(d *types.HttpEndpointDestinationConfiguration) {
			d.SecretsManagerConfiguration = &types.SecretsManagerConfiguration{Enabled: new(true)}
		}), invalid, "*"},
		{"attribute twice", web(func(d *types.HttpEndpointDestinationConfiguration) {
			d.RequestConfiguration.CommonAttributes = append(d.RequestConfiguration.CommonAttributes, d.RequestConfiguration.CommonAttributes[0])
		}), invalid, "*"},
		{"no update", update(firehose.UpdateDestinationInput{}), invalid, "*"},
		{"version", update(firehose.UpdateDestinationInput{CurrentDeliveryStreamVersionId: new("2"), ExtendedS3DestinationUpdate: &types.ExtendedS3DestinationUpdate{}}), "ConcurrentModificationException", "Cannot update firehose: the current version is 1 and not 2."},
		{"destination", update(firehose.UpdateDestinationInput{DestinationId: new("x"), ExtendedS3DestinationUpdate: &types.ExtendedS3DestinationUpdate{}}), invalid, "Destination Id x not found"},
		{"Splunk update", update(firehose.UpdateDestinationInput{SplunkDestinationUpdate: &types.SplunkDestinationUpdate{}}), invalid, "*"},
		{"endpoint without a bucket", update(firehose.UpdateDestinationInput{HttpEndpointDestinationUpdate: &types.HttpEndpointDestinationUpdate{EndpointConfiguration: &types.HttpEndpointConfiguration{Url: new("https://a")}}}), constraint, "*"},
		{"update of none", update(firehose.UpdateDestinationInput{DeliveryStreamName: new("none"), ExtendedS3DestinationUpdate: &types.ExtendedS3DestinationUpdate{}}), "ResourceNotFoundException", "*"},
		{"501 records", batch(501, 1), constraint, "1 validation error detected: Value '[501 records]' at 'records' failed to satisfy constraint: Member must have length less than or equal to 500"},
		{"no records", batch(0, 1), constraint, "*"},
		{"a record too large", batch(1, 1024001), constraint, "1 validation error detected: Value at 'records.1.member.data' failed to satisfy constraint: Member must have length less than or equal to 1024000"},
		{"more than 4 MiB", batch(5, 900000), invalid, "Records size exceeds 4 MB limit"},
		{"limit", func() error {
			_, err := c.ListDeliveryStreams(ctx, &firehose.ListDeliveryStreamsInput{Limit: new(int32(0))})
			return err
		}, constraint, "*"},
		{"many tags", func() error {
			var tags []types.Tag
			for i := range 51 {
				tags = append(tags, types.Tag{Key: new(fmt.Sprint(i))})
			}
			must(c.TagDeliveryStream(ctx, &firehose.TagDeliveryStreamInput{DeliveryStreamName: orders, Tags: tags[:50]}))(t)
			_, err := c.TagDeliveryStream(ctx, &firehose.TagDeliveryStreamInput{DeliveryStreamName: orders, Tags: tags[50:]})
			return err
		}, "LimitExceededException", "A delivery stream cannot have more than 50 tags."},
		{"no tags", func() error {
			_, err := c.TagDeliveryStream(ctx, &firehose.TagDeliveryStreamInput{DeliveryStreamName: orders, Tags: []types.Tag{}})
			return err
		}, constraint, "*"},
		{"a tag twice", func() error {
			_, err := c.TagDeliveryStream(ctx, &firehose.TagDeliveryStreamInput{DeliveryStreamName: orders, Tags: []types.Tag{{Key: new("k")}, {Key: new("k")}}})
			return err
		}, invalid, "Duplicate tag keys found: k"},
		{"no keys", func() error {
			_, err := c.UntagDeliveryStream(ctx, &firehose.UntagDeliveryStreamInput{DeliveryStreamName: orders, TagKeys: []string{}})
			return err
		}, constraint, "*"},
		{"encryption", func() error {
			_, err := c.StartDeliveryStreamEncryption(ctx, &firehose.StartDeliveryStreamEncryptionInput{DeliveryStreamName: orders, DeliveryStreamEncryptionConfigurationInput: &types.DeliveryStreamEncryptionConfigurationInput{KeyType: types.KeyTypeCustomerManagedCmk}})
			return err
		}, invalid, "*"},
	} {
		t.Run(tt.what, func(t *testing.T) { refusedWith(t, tt.call(), tt.code, tt.text) })
	}
	none := new("none")
	for what, call := range map[string]func() error{
		"delete": func() error {
			_, err := c.DeleteDeliveryStream(ctx, &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: none})
			return err
		},
		"put": func() error {
			_, err := c.PutRecord(ctx, &firehose.PutRecordInput{DeliveryStreamName: none, Record: &types.Record{Data: []byte("x")}})
			return err
		},
		"put many": func() error {
			_, err := c.PutRecordBatch(ctx, &firehose.PutRecordBatchInput{DeliveryStreamName: none, Records: []types.Record{{Data: []byte("x")}}})
			return err
		},
		"tag": func() error {
			_, err := c.TagDeliveryStream(ctx, &firehose.TagDeliveryStreamInput{DeliveryStreamName: none, Tags: []types.Tag{{Key: new("x")}}})
			return err
		},
		"untag": func() error {
			_, err := c.UntagDeliveryStream(ctx, &firehose.UntagDeliveryStreamInput{DeliveryStreamName: none, TagKeys: []string{"x"}})
			return err
		},
		"tags": func() error {
			_, err := c.ListTagsForDeliveryStream(ctx, &firehose.ListTagsForDeliveryStreamInput{DeliveryStreamName: none})
			return err
		},
		"encrypt": func() error {
			_, err := c.StartDeliveryStreamEncryption(ctx, &firehose.StartDeliveryStreamEncryptionInput{DeliveryStreamName: none})
			return err
		},
		"stop": func() error {
			_, err := c.StopDeliveryStreamEncryption(ctx, &firehose.StopDeliveryStreamEncryptionInput{DeliveryStreamName: none})
			return err
		},
	} {
		t.Run("no stream: "+what, func(t *testing.T) {
			refusedWith(t, call(), "ResourceNotFoundException", "Firehose none under account "+account+" not found.")
		})
	}
}

// Streams fail on purpose, and hold only so much.
func TestFirehoseFaults(t *testing.T) {
	c, endpoint, _ := startHoses(t)
	makeHose(t, c, "orders")
	put := func() error {
		_, err := c.PutRecord(t.Context(), &firehose.PutRecordInput{DeliveryStreamName: new("orders"), Record: &types.Record{Data: []byte("x")}})
		return err
	}
	for _, name := range []string{"throttled", "unavailable"} {
		admin(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:firehose:`+region+":"+account+`:deliverystream/orders","fault":"`+name+`"}`)
		refusedWith(t, put(), "ServiceUnavailableException", "*")
		out := must(c.PutRecordBatch(t.Context(), &firehose.PutRecordBatchInput{DeliveryStreamName: new("orders"), Records: []types.Record{{Data: []byte("x")}, {Data: []byte("y")}}}))(t)
		if *out.FailedPutCount != 2 || *out.RequestResponses[1].ErrorCode != "ServiceUnavailableException" || out.RequestResponses[1].RecordId != nil {
			t.Errorf("%+v", out)
		}
	}
	admin(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:firehose:`+region+":"+account+`:deliverystream/orders","fault":"none"}`)
	if err := put(); err != nil {
		t.Error(err)
	}
}

// TestFirehoseHoldsSoMuch: beyond its bound a stream tells callers to slow down.
func TestFirehoseHoldsSoMuch(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) {
		c.FirehoseDirectory, c.Enforce, c.FirehoseMaxBuffer = t.TempDir(), false, 8<<20
	})
	c := firehoseAs(endpoint, account)
	makeHose(t, c, "orders", func(d *types.ExtendedS3DestinationConfiguration) { d.BufferingHints.SizeInMBs = new(int32(50)) })
	data := bytes.Repeat([]byte("x"), 900<<10)
	put := func(ctx context.Context) error {
		_, err := c.PutRecord(ctx, &firehose.PutRecordInput{DeliveryStreamName: new("orders"), Record: &types.Record{Data: data}})
		return err
	}
	for range 9 {
		if err := put(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refusedWith(t, put(t.Context()), "ServiceUnavailableException", "Slow down.")
	advance(t, endpoint, "1m")
	if err := put(t.Context()); err != nil {
		t.Error(err)
	}
}
