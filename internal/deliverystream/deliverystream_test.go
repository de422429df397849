package deliverystream_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/deliverystream"
)

var afternoon = time.Date(2024, 2, 5, 13, 7, 9, 123_456_789, time.UTC) // a Monday

// Patterns are read as Java's DateTimeFormatter reads them.
func TestTimestamps(t *testing.T) {
	for pattern, want := range map[string]string{
		"yyyy":                "2024",
		"yy":                  "24",
		"y":                   "2024",
		"uuuu-MM-dd":          "2024-02-05",
		"M/d":                 "2/5",
		"MMM":                 "Feb",
		"MMMM":                "February",
		"DDD":                 "036",
		"EEE EEEE":            "Mon Monday",
		"HH:mm:ss.SSS":        "13:07:09.123",
		"h a":                 "1 PM",
		"KK":                  "01",
		"kk":                  "13",
		"q":                   "1",
		"'year='yyyy":         "year=2024",
		"'o''clock'":          "oclock",
		"''":                  "'",
		"Z":                   "+0000",
		"XXX":                 "Z",
		"VV":                  "UTC",
		"yyyy_MM-dd'T'HH":     "2024_02-05T13",
		"A":                   "47229123",
		"SSSSSSSSS":           "123456789",
		"zzz":                 "UTC",
		"e":                   "2",
		"n":                   "123456789",
		"yyyy/MM/dd/HH/mm/ss": "2024/02/05/13/07/09",
	} {
		p, err := deliverystream.ParsePrefix("a/!{timestamp:" + pattern + "}/b")
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if got := p.Evaluate(afternoon, "", "seed"); got != "a/"+want+"/b" {
			t.Errorf("%s: %s, want a/%s/b", pattern, got, want)
		}
	}
	for _, pattern := range []string{"jj", "'open", "[yyyy]", "#", "MMMMM", "ddd", "VVV", "B"} {
		if _, err := deliverystream.ParsePrefix("!{timestamp:" + pattern + "}"); !errors.Is(err, deliverystream.ErrExpression) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// A name is the same each time, and another one for another batch.
func TestKey(t *testing.T) {
	key := func(prefix, failed, errorType, id string, gzip bool) string {
		o := deliverystream.Object{
			Stream:  &deliverystream.Stream{Name: "s", S3: &deliverystream.ExtendedS3{Prefix: &prefix, ErrorOutputPrefix: &failed}},
			Version: 3, Oldest: afternoon, ID: id, Failed: errorType, GZIP: gzip,
		}
		first := o.Key()
		if again := o.Key(); again != first {
			t.Errorf("%s has two names", prefix)
		}
		return first
	}
	const end = "s-3-2024-02-05-13-07-09-"
	for _, tt := range []struct{ prefix, failed, errorType, want string }{
		{"", "", "", "2024/02/05/13/" + end},
		{"p", "", "", "p2024/02/05/13/" + end},
		{"p/", "", deliverystream.HTTPFailed, "p/http-endpoint-failed/2024/02/05/13/" + end},
		{"p/", "e/", deliverystream.HTTPFailed, "e/http-endpoint-failed/2024/02/05/13/" + end},
		{"p/!{timestamp:yyyy}/", "e/!{firehose:error-output-type}/!{timestamp:MM}/", "", "p/2024/" + end},
		{"p/!{timestamp:yyyy}/", "e/!{firehose:error-output-type}/!{timestamp:MM}/", deliverystream.HTTPFailed, "e/http-endpoint-failed/02/" + end},
	} {
		if got := key(tt.prefix, tt.failed, tt.errorType, "id", true); got != tt.want+"id.gz" {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	const random = "!{firehose:random-string}/!{firehose:random-string}/"
	one, two := key(random, "x", "", "1", false), key(random, "x", "", "2", false)
	a, b, _ := strings.Cut(one, "/")
	if len(a) != 11 || one == two || strings.HasPrefix(b, a) {
		t.Errorf("%s, %s", one, two)
	}
}

func TestCheckPrefixes(t *testing.T) {
	for _, tt := range []struct {
		ordinary, failed string
		want             error
	}{
		{"", "", nil},
		{"plain/", "plain/", nil},
		{"!{timestamp:yyyy}/", "", deliverystream.ErrErrorPrefix},
		{"!{timestamp:yyyy}/", "failed/", nil},
		{"", "!{timestamp:yyyy}/", deliverystream.ErrErrorType},
		{"!{firehose:error-output-type}/", "x", deliverystream.ErrTypeOutside},
		{"!{partitionKeyFromQuery:a}/", "x", deliverystream.ErrExpression},
		{"!{timestamp}", "x", deliverystream.ErrExpression},
		{"!{timestamp:yyyy", "x", deliverystream.ErrExpression},
		{"", "!{firehose:other}", deliverystream.ErrExpression},
	} {
		if got := deliverystream.CheckPrefixes(tt.ordinary, tt.failed); !errors.Is(got, tt.want) || tt.want == nil && got != nil {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestRecords(t *testing.T) {
	records := []deliverystream.Record{{Data: []byte("a"), Line: true}, {Data: []byte{}}, {Data: []byte(strings.Repeat("x", 300))}, {Data: []byte("b\n"), Line: true}, {Data: []byte{}, Line: true}}
	kept := deliverystream.AppendRecords(nil, records)
	got, err := deliverystream.DecodeRecords(nil, kept)
	if err != nil || !cmp.Equal(got, records) {
		t.Errorf("%v: %s", err, cmp.Diff(records, got))
	}
	var object []byte
	for i := range got {
		object = got[i].AppendTo(object, "")
	}
	if want := "a\n" + strings.Repeat("x", 300) + "b\n\n"; string(object) != want {
		t.Errorf("%q", object)
	}
	if got := (&deliverystream.Record{Data: []byte("a"), Line: true}).AppendTo(nil, ";"); string(got) != "a;" {
		t.Errorf("%q", got)
	}
	var sizes []int
	deliverystream.Split(records, 301, func(part []deliverystream.Record, bytes int) { sizes = append(sizes, len(part), bytes) })
	if want := []int{3, 301, 2, 2}; !cmp.Equal(sizes, want) {
		t.Errorf("%v", sizes)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(deliverystream.AppendRecords(nil, []deliverystream.Record{{Data: []byte("a"), Line: true}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, kept []byte) {
		records, err := deliverystream.DecodeRecords(nil, kept)
		if err != nil {
			return
		}
		again, err := deliverystream.DecodeRecords(nil, deliverystream.AppendRecords(nil, records))
		if err != nil || !cmp.Equal(again, records) {
			t.Errorf("%v: %v, %v", err, records, again)
		}
	})
}

func FuzzPrefix(f *testing.F) {
	f.Add("a/!{timestamp:yyyy'x'}/!{firehose:random-string}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := deliverystream.ParsePrefix(text)
		if err != nil {
			return
		}
		first := p.Evaluate(afternoon, "", "id")
		if again := p.Evaluate(afternoon, "", "id"); again != first {
			t.Errorf("%q has two names", text)
		}
	})
}

func TestPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 7: 64 * time.Second, 8: 2 * time.Minute, 1000: 2 * time.Minute} {
		if got := deliverystream.Pause(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}

// Records are read as the first version has written them. What changes this test needs a
// version of its own.
func TestRecordsOfTheFirstVersion(t *testing.T) {
	const written = "\x01" + `{"Account":"000000000000","Region":"us-east-1","Name":"orders","Number":7,"Version":2,"Created":"2024-02-05T13:07:09Z","Updated":"2024-02-05T14:00:00Z",` +
		`"Tags":{"team":"a"},"Throughput":5,"Encryption":{"Enabled":true,"KeyType":"AWS_OWNED_CMK","Changed":true},` +
		`"S3":{"RoleARN":"arn:aws:iam::000000000000:role/r","BucketARN":"arn:aws:s3:::b","Prefix":"p/","BufferingHints":{"SizeInMBs":5,"IntervalInSeconds":60},` +
		`"CompressionFormat":"GZIP","EncryptionConfiguration":{"NoEncryptionConfig":"NoEncryption"},"CloudWatchLoggingOptions":{"Enabled":false},` +
		`"ProcessingConfiguration":{"Enabled":true,"Processors":[{"Type":"AppendDelimiterToRecord","Parameters":[{"ParameterName":"Delimiter","ParameterValue":"\\n"}]}]},` +
		`"S3BackupMode":"Disabled","DynamicPartitioningConfiguration":{"Enabled":false}},"Extended":true,"Sealed":"c2VhbGVk"}`
	s, err := deliverystream.Decode([]byte(written))
	if err != nil {
		t.Fatal(err)
	}
	if again := string(s.Encode()); again != written {
		t.Errorf("a stream becomes %s", cmp.Diff(written, again))
	}
	size, interval := s.Hints()
	if s.ARN() != deliverystream.Name("us-east-1", "000000000000", "orders") || size != 5<<20 || interval != time.Minute || s.S3.Delimiter() != "\n" || s.Number != 7 || s.Version != 2 || !s.Encryption.Enabled {
		t.Errorf("%+v", s)
	}
	const batch = "\x01" + `{"ID":"0c1f","From":3,"To":9,"Oldest":1707138429000,"Records":12,"Bytes":3456,"Version":2,"Begun":1707138489000,"Attempts":4,"Next":1707138500000,` +
		`"Delivered":true,"Failed":{"Code":"HttpEndpoint.RequestTimeout","Message":"m","At":1707138490000}}`
	b, err := deliverystream.DecodeBatch([]byte(batch))
	if err != nil {
		t.Fatal(err)
	}
	if again := string(b.Encode()); again != batch {
		t.Errorf("a batch becomes %s", cmp.Diff(batch, again))
	}
	const chunk = "\x00\x00\x01\x8d\x78\xd1\x4f\x48\x00\x00\x00\x0c\x00\x00\x0d\x80"
	c, err := deliverystream.DecodeChunk([]byte(chunk))
	if err != nil || c != (deliverystream.Chunk{Arrival: 0x18d78d14f48, Records: 12, Bytes: 3456}) || string(c.Encode()) != chunk {
		t.Errorf("%+v, %v", c, err)
	}
	records, err := deliverystream.DecodeRecords(nil, []byte("\x06one\x07two\x00"))
	if want := []deliverystream.Record{{Data: []byte("one")}, {Data: []byte("two"), Line: true}, {Data: []byte{}}}; err != nil || !cmp.Equal(records, want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, records))
	}
}
