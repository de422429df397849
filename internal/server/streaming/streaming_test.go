package streaming

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/outlet"
)

// TestBuckets: objects go where the settings say, or nowhere.
func TestBuckets(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		config config.Config
		want   string // the type; empty: an error
	}{
		"nowhere":             {config.Config{Store: config.MemoryStore}, "<nil>"},
		"beside the data":     {config.Config{Data: dir}, "*files.Directory"},
		"not in production":   {config.Config{Data: dir, Production: true}, "<nil>"},
		"a server":            {config.Config{FirehoseS3Endpoint: "http://127.0.0.1:9", Data: dir}, "*bucket.Server"},
		"a server's bad key":  {config.Config{FirehoseS3Endpoint: "http://127.0.0.1:9", FirehoseS3Credentials: dir + "/none"}, ""},
		"what is no server":   {config.Config{FirehoseS3Endpoint: "127.0.0.1:9"}, ""},
		"what cannot be made": {config.Config{FirehoseDirectory: "/dev/null/d"}, ""},
	} {
		s := &Streaming{options: Options{Config: c.config}}
		to, err := s.buckets(nil)
		if got := fmt.Sprintf("%T", to); c.want == "" && err == nil || c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
		s.Close()
	}
}

// TestFailuresAreLogged: in the group of the destination that failed, as its own role, if it
// is to be; successes are not.
func TestFailuresAreLogged(t *testing.T) {
	on := func(group string) *deliverystream.Logging {
		return &deliverystream.Logging{Enabled: new(true), LogGroupName: &group, LogStreamName: new("s")}
	}
	const objects, posts = "arn:aws:iam::000000000000:role/objects", "arn:aws:iam::000000000000:role/posts"
	failed := &outlet.Error{Code: "Code", Message: "no"}
	toBucket := &deliverystream.Stream{Account: "000000000000", Region: "us-east-1", Name: "n", Version: 3, S3: &deliverystream.ExtendedS3{
		RoleARN: new(objects), BucketARN: new("arn:aws:s3:::b"), CloudWatchLoggingOptions: on("of-bucket"),
	}}
	toWeb := &deliverystream.Stream{Account: "000000000000", Region: "us-east-1", Name: "n", HTTP: &deliverystream.HTTPEndpoint{
		EndpointConfiguration: &deliverystream.HTTPTarget{Url: new("https://e.example/")}, RoleARN: new(posts), CloudWatchLoggingOptions: on("of-posts"),
		S3Configuration: &deliverystream.S3{RoleARN: new(objects), BucketARN: new("arn:aws:s3:::b"), CloudWatchLoggingOptions: on("of-backup")},
	}}
	roleless, silent := *toWeb, *toBucket
	endpoint, bucket := *toWeb.HTTP, *toBucket.S3
	roleless.HTTP, silent.S3 = &endpoint, &bucket
	endpoint.RoleARN, bucket.CloudWatchLoggingOptions = nil, &deliverystream.Logging{Enabled: new(false)}
	for name, c := range map[string]struct {
		event outlet.Event
		want  string
	}{
		"a bucket":                {outlet.Event{Kind: outlet.ToS3, Stream: toBucket, Failed: failed}, objects + ` of-bucket s {"deliveryStreamARN":"arn:aws:firehose:us-east-1:000000000000:deliverystream/n","deliveryStreamVersionId":3,"destination":"arn:aws:s3:::b","errorCode":"Code","message":"no"}`},
		"an endpoint":             {outlet.Event{Kind: outlet.ToHTTP, Stream: toWeb, Failed: failed}, posts + ` of-posts s {"deliveryStreamARN":"arn:aws:firehose:us-east-1:000000000000:deliverystream/n","deliveryStreamVersionId":0,"destination":"https://e.example/","errorCode":"Code","message":"no"}`},
		"without its own role":    {outlet.Event{Kind: outlet.ToHTTP, Stream: &roleless, Failed: failed}, objects + ` of-posts s {"deliveryStreamARN":"arn:aws:firehose:us-east-1:000000000000:deliverystream/n","deliveryStreamVersionId":0,"destination":"https://e.example/","errorCode":"Code","message":"no"}`},
		"an endpoint's backup":    {outlet.Event{Kind: outlet.ToHTTPBackup, Stream: toWeb, Failed: failed}, objects + ` of-backup s {"deliveryStreamARN":"arn:aws:firehose:us-east-1:000000000000:deliverystream/n","deliveryStreamVersionId":0,"destination":"arn:aws:s3:::b","errorCode":"Code","message":"no"}`},
		"a success":               {outlet.Event{Kind: outlet.ToS3, Stream: toBucket}, ""},
		"a stream that is not to": {outlet.Event{Kind: outlet.ToS3, Stream: &silent, Failed: failed}, ""},
	} {
		got := ""
		s := &Streaming{options: Options{Log: func(of arn.ARN, role string, group arn.ARN, stream string, _ time.Time, line []byte) {
			got += fmt.Sprintf("%s %s %s %s", role, strings.TrimPrefix(group.Resource, "log-group:"), stream, line)
		}}}
		if s.attempted(&c.event); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// next are streams of which a batch is always due.
type next struct{ outlet.Streams }

func (next) Next(deliverystream.Instance) (*deliverystream.Stream, *deliverystream.Batch, error) {
	return &deliverystream.Stream{}, &deliverystream.Batch{}, nil
}

// A batch that was made while another process took the state over is not delivered.
func TestOwned(t *testing.T) {
	for _, owned := range []bool{true, false} {
		of := whileOwned{next{}, func() bool { return owned }}
		if s, b, err := of.Next(deliverystream.Instance{}); (s != nil) != owned || (b != nil) != owned || err != nil {
			t.Errorf("owned: %t: %v, %v, %v", owned, s, b, err)
		}
	}
}
