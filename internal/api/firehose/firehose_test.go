package firehose_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/api/firehose"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
)

const (
	account = "000000000000"
	role    = "arn:aws:iam::000000000000:role/r"
	bucket  = `"RoleARN":"` + role + `","BucketARN":"arn:aws:s3:::b"`
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// owner holds streams by name, and refuses puts with err.
type owner struct {
	held map[string]*deliverystream.Stream
	keys map[string]string
	put  []deliverystream.Record
	err  error
}

func newOwner() *owner {
	return &owner{held: map[string]*deliverystream.Stream{}, keys: map[string]string{}}
}

func (o *owner) Create(s *deliverystream.Stream, key string) error {
	if o.held[s.Name] != nil {
		return deliverystream.ErrTaken.With(s.Name, s.Account)
	}
	s.Version, s.Created = 1, began
	o.held[s.Name], o.keys[s.Name] = s, key
	return nil
}

func (o *owner) Find(a arn.ARN) (*deliverystream.Stream, error) {
	name, _ := deliverystream.NameOf(a)
	if s := o.held[name]; s != nil && s.Account == a.Account && s.Region == a.Region {
		return s, nil
	}
	return nil, deliverystream.ErrNoStream.With(name, a.Account)
}

func (o *owner) Change(a arn.ARN, key *string, command func(s *deliverystream.Stream, now time.Time) error) error {
	s, err := o.Find(a)
	if err != nil {
		return err
	}
	next := s.Clone()
	if err := command(next, began.Add(time.Hour)); err != nil {
		return err
	}
	if o.held[s.Name] = next; key != nil {
		o.keys[s.Name] = *key
	}
	return nil
}

func (o *owner) Delete(a arn.ARN) error {
	s, err := o.Find(a)
	if err == nil {
		delete(o.held, s.Name)
	}
	return err
}

func (o *owner) List(_, _, after string, limit int) (names []string, more bool) {
	for name := range o.held {
		if name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(limit, len(names))], len(names) > limit
}

func (o *owner) Put(_ context.Context, _ arn.ARN, records []deliverystream.Record) (ids []string, err error) {
	if o.err != nil {
		return nil, o.err
	}
	o.put = append(o.put, records...)
	for i := range records {
		ids = append(ids, fmt.Sprint("id", i))
	}
	return ids, nil
}

func newAsker(t *testing.T, o firehose.Options) *apitest.Asker {
	o.Clock = clock.System
	return apitest.New(t, firehose.New(o).Operations(), func(operation string) *api.Call {
		return &api.Call{
			Operation: operation, Region: "us-east-1", Account: account, Time: began,
			Describe: func(err error) (code, message string, senderFault bool) { return "Code", err.Error(), false },
		}
	})
}

// TestDestinations: what is left out is filled in, what is given is kept, and an access key
// goes to the owner and is described to nobody.
func TestDestinations(t *testing.T) {
	o := newOwner()
	a := newAsker(t, firehose.Options{Store: o})
	a.Check("CreateDeliveryStream", `{"DeliveryStreamName":"plain","S3DestinationConfiguration":{`+bucket+`}}`, apitest.Answered,
		`{"DeliveryStreamARN":"arn:aws:firehose:us-east-1:000000000000:deliverystream/plain"}`)
	for _, want := range []string{`"SizeInMBs":5`, `"IntervalInSeconds":300`, `"CompressionFormat":"UNCOMPRESSED"`, `"VersionId":"1"`, `"DeliveryStreamStatus":"ACTIVE"`, `"ExtendedS3DestinationDescription":null`} {
		a.Check("DescribeDeliveryStream", `{"DeliveryStreamName":"plain"}`, apitest.Answered, want)
	}
	a.Check("CreateDeliveryStream", `{"DeliveryStreamName":"web","HttpEndpointDestinationConfiguration":{"EndpointConfiguration":{"Url":"https://e.example/","AccessKey":"hidden"},"S3Configuration":{`+bucket+`}}}`, apitest.Answered, "web")
	if o.keys["web"] != "hidden" {
		t.Errorf("the owner has the key %q", o.keys["web"])
	}
	shown, err := a.Ask("DescribeDeliveryStream", `{"DeliveryStreamName":"web"}`)
	if err != nil || strings.Contains(shown, "hidden") || !strings.Contains(shown, `"S3BackupMode":"FailedDataOnly"`) || !strings.Contains(shown, `"DurationInSeconds":300`) {
		t.Error(shown, err)
	}
	// Another address does not get the key that the one before had; the same keeps it.
	to := func(version int, url string) string {
		return fmt.Sprintf(`{"DeliveryStreamName":"web","CurrentDeliveryStreamVersionId":"%d","DestinationId":%q,"HttpEndpointDestinationUpdate":{"EndpointConfiguration":{"Url":%q}}}`, version, deliverystream.DestinationID, url)
	}
	a.Check("UpdateDestination", to(1, "https://e.example/"), apitest.Answered, "")
	if o.keys["web"] != "hidden" {
		t.Error("an update that named the same address took the key away")
	}
	a.Check("UpdateDestination", to(1, "https://f.example/"), fault.Conflict, "")
	a.Check("UpdateDestination", to(2, "https://f.example/"), apitest.Answered, "")
	if o.keys["web"] != "" {
		t.Error("another address has the key of the one before")
	}
	// A bucket instead: with it goes what was of the endpoint.
	a.Check("UpdateDestination", `{"DeliveryStreamName":"web","CurrentDeliveryStreamVersionId":"3","DestinationId":"`+deliverystream.DestinationID+`","ExtendedS3DestinationUpdate":{`+bucket+`,"Prefix":"p/"}}`, apitest.Answered, "")
	if s := o.held["web"]; s.HTTP != nil || !s.Extended || *s.S3.Prefix != "p/" || s.Version != 4 {
		t.Errorf("%+v", s)
	}
}

// TestRefused: none of these makes or changes a stream.
func TestRefused(t *testing.T) {
	o := newOwner()
	a := newAsker(t, firehose.Options{Store: o})
	s3 := func(more string) string {
		return `{"DeliveryStreamName":"s","ExtendedS3DestinationConfiguration":{` + bucket + `,` + more + `}}`
	}
	web := func(url, more string) string {
		return `{"DeliveryStreamName":"s","HttpEndpointDestinationConfiguration":{"EndpointConfiguration":{"Url":"` + url + `"` + more + `},"S3Configuration":{` + bucket + `}}}`
	}
	for in, c := range map[string]struct {
		kind fault.Kind
		text string
	}{
		`{"DeliveryStreamName":""}`:                                {fault.ValidationFailed, "length greater than or equal to 1"},
		`{"DeliveryStreamName":"a b"}`:                             {fault.ValidationFailed, "regular expression pattern"},
		`{"DeliveryStreamName":"s"}`:                               {fault.InvalidParameter, "Exactly one destination"},
		`{"DeliveryStreamName":"` + strings.Repeat("n", 65) + `"}`: {fault.ValidationFailed, "less than or equal to 64"},
		`{"DeliveryStreamName":"s","S3DestinationConfiguration":{` + bucket + `},"ExtendedS3DestinationConfiguration":{` + bucket + `}}`: {fault.InvalidParameter, "Exactly one destination"},
		`{"DeliveryStreamName":"s","DeliveryStreamType":"KinesisStreamAsSource"}`:                                                        {fault.InvalidParameter, "not built"},
		`{"DeliveryStreamName":"s","SplunkDestinationConfiguration":{}}`:                                                                 {fault.InvalidParameter, "SplunkDestinationConfiguration is not built"},
		`{"DeliveryStreamName":"s","S3DestinationConfiguration":{"BucketARN":"arn:aws:s3:::b"}}`:                                         {fault.ValidationFailed, "roleARN"},
		`{"DeliveryStreamName":"s","S3DestinationConfiguration":{"RoleARN":"` + role + `"}}`:                                             {fault.ValidationFailed, "bucketARN"},
		s3(`"BufferingHints":{"SizeInMBs":129}`):                                                                                         {fault.ValidationFailed, "less than or equal to 128"},
		s3(`"BufferingHints":{"IntervalInSeconds":901}`):                                                                                 {fault.ValidationFailed, "less than or equal to 900"},
		s3(`"CompressionFormat":"ZIP"`):                                                                                                  {fault.InvalidParameter, "Compression with ZIP is not built"},
		s3(`"S3BackupMode":"Enabled"`):                                                                                                   {fault.InvalidParameter, "backup"},
		s3(`"DynamicPartitioningConfiguration":{"Enabled":true}`):                                                                        {fault.InvalidParameter, "Dynamic partitioning"},
		s3(`"CustomTimeZone":"Nowhere/At_all"`):                                                                                          {fault.InvalidParameter, "CustomTimeZone"},
		s3(`"CloudWatchLoggingOptions":{"Enabled":true}`):                                                                                {fault.InvalidParameter, "must be specified when"},
		s3(`"ProcessingConfiguration":{"Enabled":true,"Processors":[{"Type":"Lambda"}]}`):                                                {fault.InvalidParameter, "Lambda are not built"},
		web("http://e.example/", ""):                                                                                                     {fault.ValidationFailed, "https://.*"},
		web("https://user@e.example/", ""):                                                                                               {fault.InvalidParameter, "no user"},
		web("https://e.example/", `,"AccessKey":"hidden`+strings.Repeat("k", 4091)+`"`):                                                  {fault.ValidationFailed, "accessKey"},
		web("https://e.example/", `,"AccessKey":"hidden\n"`):                                                                             {fault.ValidationFailed, "accessKey"},
		`{"DeliveryStreamName":"s","Tags":[{"Key":"a"},{"Key":"a"}],"S3DestinationConfiguration":{` + bucket + `}}`:                      {fault.InvalidParameter, "Duplicate tag keys"},
		`{"DeliveryStreamName":"s","Tags":[{"Key":"aws:a"}],"S3DestinationConfiguration":{` + bucket + `}}`:                              {fault.ValidationFailed, "aws:"},
	} {
		a.Check("CreateDeliveryStream", in, c.kind, c.text)
		if _, err := a.Ask("CreateDeliveryStream", in); err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("the access key is shown: %v", err)
		}
	}
	if len(o.held) > 0 {
		t.Errorf("there are streams: %v", o.held)
	}
	strict := newAsker(t, firehose.Options{Store: o, PlainEndpoints: true, Assumable: func(arn.ARN, string) error { return errors.New("no") }})
	strict.Check("CreateDeliveryStream", web("http://e.example/", ""), fault.InvalidParameter, "unable to assume role "+role)
	nowhere := newAsker(t, firehose.Options{Store: o, NoBuckets: true})
	nowhere.Check("CreateDeliveryStream", s3(`"Prefix":"p"`), fault.InvalidParameter, "nowhere to put objects")
}

// TestRecords: a batch is taken whole or not at all; a stream that is full for now fails
// each record of it, for the caller to put again.
func TestRecords(t *testing.T) {
	var seen []firehose.Request
	o := newOwner()
	a := newAsker(t, firehose.Options{Store: o, Observe: func(r *firehose.Request) { seen = append(seen, *r) }})
	a.Check("CreateDeliveryStream", `{"DeliveryStreamName":"s","S3DestinationConfiguration":{`+bucket+`}}`, apitest.Answered, "")
	data := func(n int) string { return `{"Data":"` + base64.StdEncoding.EncodeToString(make([]byte, n)) + `"}` }
	batch := func(records ...string) string {
		return `{"DeliveryStreamName":"s","Records":[` + strings.Join(records, ",") + `]}`
	}
	a.Check("PutRecord", `{"DeliveryStreamName":"s","Record":`+data(3)+`}`, apitest.Answered, `{"RecordId":"id0","Encrypted":false}`)
	a.Check("PutRecordBatch", batch(data(1), data(2)), apitest.Answered, `{"FailedPutCount":0,"Encrypted":false,"RequestResponses":[{"RecordId":"id0"`)
	for in, text := range map[string]string{
		batch(): "greater than or equal to 1",
		batch(slices.Repeat([]string{data(0)}, 501)...):  "less than or equal to 500",
		batch(data(1), `{}`):                             "records.2.member.data",
		batch(data(1), data(deliverystream.MaxRecord+1)): "records.2.member.data",
	} {
		a.Check("PutRecordBatch", in, fault.ValidationFailed, text)
	}
	a.Check("PutRecordBatch", batch(slices.Repeat([]string{data(deliverystream.MaxRecord)}, 5)...), fault.InvalidParameter, "4 MB")
	a.Check("PutRecord", `{"DeliveryStreamName":"none","Record":`+data(3)+`}`, fault.ResourceNotFound, "none")
	if len(o.put) != 3 {
		t.Errorf("%d records were put, want 3", len(o.put))
	}
	o.err = deliverystream.ErrFull
	a.Check("PutRecordBatch", batch(data(1), data(2)), apitest.Answered, `{"FailedPutCount":2,"Encrypted":false,"RequestResponses":[{"RecordId":"","ErrorCode":"Code"`)
	a.Check("PutRecord", `{"DeliveryStreamName":"s","Record":`+data(3)+`}`, fault.Throttled, "")
	o.err = errors.New("lost")
	if _, err := a.Ask("PutRecordBatch", batch(data(1))); !errors.Is(err, o.err) {
		t.Errorf("a batch of a stream that is broken: %v", err)
	}
	var told []string
	for _, r := range seen {
		told = append(told, fmt.Sprint(r.Name, " ", r.Records, " ", r.Bytes, " ", r.Throttled))
	}
	if want := []string{"PutRecord 1 3 0", "PutRecordBatch 2 3 0", "PutRecordBatch 0 0 2", "PutRecord 0 0 1", "PutRecordBatch 0 0 0"}; !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
}

// TestPages: tags and streams come in order, from where the caller left off.
func TestPages(t *testing.T) {
	o := newOwner()
	a := newAsker(t, firehose.Options{Store: o})
	for _, name := range []string{"c", "a", "b"} {
		a.Check("CreateDeliveryStream", `{"DeliveryStreamName":"`+name+`","Tags":[{"Key":"y","Value":"1"},{"Key":"x"}],"S3DestinationConfiguration":{`+bucket+`}}`, apitest.Answered, "")
	}
	a.Check("ListDeliveryStreams", `{"Limit":2}`, apitest.Answered, `{"DeliveryStreamNames":["a","b"],"HasMoreDeliveryStreams":true}`)
	a.Check("ListDeliveryStreams", `{"ExclusiveStartDeliveryStreamName":"b"}`, apitest.Answered, `{"DeliveryStreamNames":["c"],"HasMoreDeliveryStreams":false}`)
	a.Check("ListDeliveryStreams", `{"DeliveryStreamType":"MSKAsSource"}`, apitest.Answered, `{"DeliveryStreamNames":[],"HasMoreDeliveryStreams":false}`)
	a.Check("TagDeliveryStream", `{"DeliveryStreamName":"a","Tags":[{"Key":"z","Value":"3"}]}`, apitest.Answered, "")
	a.Check("TagDeliveryStream", `{"DeliveryStreamName":"a","Tags":[]}`, fault.ValidationFailed, "tags")
	a.Check("ListTagsForDeliveryStream", `{"DeliveryStreamName":"a","Limit":1,"ExclusiveStartTagKey":"x"}`, apitest.Answered, `{"Tags":[{"Key":"y","Value":"1"}],"HasMoreTags":true}`)
	a.Check("UntagDeliveryStream", `{"DeliveryStreamName":"a","TagKeys":["x","y"]}`, apitest.Answered, "")
	a.Check("ListTagsForDeliveryStream", `{"DeliveryStreamName":"a"}`, apitest.Answered, `{"Tags":[{"Key":"z","Value":"3"}],"HasMoreTags":false}`)
	a.Check("StartDeliveryStreamEncryption", `{"DeliveryStreamName":"a"}`, apitest.Answered, "")
	a.Check("DescribeDeliveryStream", `{"DeliveryStreamName":"a"}`, apitest.Answered, `"Status":"ENABLED"`)
	a.Check("StopDeliveryStreamEncryption", `{"DeliveryStreamName":"a"}`, apitest.Answered, "")
	a.Check("DescribeDeliveryStream", `{"DeliveryStreamName":"a"}`, apitest.Answered, `"Status":"DISABLED"`)
	a.Check("StartDeliveryStreamEncryption", `{"DeliveryStreamName":"a","DeliveryStreamEncryptionConfigurationInput":{"KeyType":"CUSTOMER_MANAGED_CMK"}}`, fault.InvalidParameter, "not built")
	a.Check("DeleteDeliveryStream", `{"DeliveryStreamName":"a"}`, apitest.Answered, "")
	a.Check("DescribeDeliveryStream", `{"DeliveryStreamName":"a"}`, fault.ResourceNotFound, "a")
}

// TestNeeds: who makes or redirects a stream must be allowed to pass each role that it names,
// once, and to tag if there are tags.
func TestNeeds(t *testing.T) {
	needs := func(operation string, in any) (all []string) {
		for _, op := range firehose.New(firehose.Options{Clock: clock.System}).Operations() {
			if op.Name != operation {
				continue
			}
			found, err := op.Access(t.Context(), &api.Call{Region: "us-east-1", Account: account}, in)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range found {
				all = append(all, n.Action+" "+n.Resource)
			}
		}
		return all
	}
	const s, other = "arn:aws:firehose:us-east-1:000000000000:deliverystream/s", "arn:aws:iam::111122223333:role/r"
	one, two := role, other
	made := &firehose.CreateDeliveryStreamInput{
		DeliveryStreamName: "s", Tags: []firehose.Tag{{Key: new("k")}},
		HttpEndpointDestinationConfiguration: &deliverystream.HTTPEndpoint{RoleARN: &one, S3Configuration: &deliverystream.S3{RoleARN: &two}},
	}
	if got, want := needs("CreateDeliveryStream", made), []string{"firehose:CreateDeliveryStream " + s, "firehose:TagDeliveryStream " + s, "iam:PassRole " + one, "iam:PassRole " + two}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	changed := &firehose.UpdateDestinationInput{
		DeliveryStreamName: "s", HttpEndpointDestinationUpdate: &firehose.HTTPUpdate{RoleARN: &one, S3Update: &deliverystream.S3{RoleARN: &one}},
	}
	if got, want := needs("UpdateDestination", changed), []string{"firehose:UpdateDestination " + s, "iam:PassRole " + one}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := needs("PutRecord", &firehose.PutRecordInput{DeliveryStreamName: "s"}), []string{"firehose:PutRecord " + s}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
