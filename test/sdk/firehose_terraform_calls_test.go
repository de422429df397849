package sdk_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/firehose"
	"github.com/aws/aws-sdk-go-v2/service/firehose/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/internal/config"
)

// TestTerraformsStreamCalls is TestTerraformsCalls of aws_kinesis_firehose_delivery_stream:
// the provider names every member each time, waits for streams to be active, for their
// encryption, and for their end.
func TestTerraformsStreamCalls(t *testing.T) {
	for name, enforced := range map[string]bool{"enforced": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			endpoint := startWith(t, func(c *config.Config) { c.FirehoseDirectory, c.Enforce = dir, enforced })
			s := &hoseStack{Client: firehoseAs(endpoint, account), iam: iamClient(endpoint), enforced: enforced}
			lifeCycle(t, []resource{
				s.bucketStream("plain", usualHose, usualHose),
				s.bucketStream("orders", hoseValues{
					bucket: "lake", prefix: "in/!{timestamp:yyyy}/a/", failed: "err/!{firehose:error-output-type}/", size: 5, interval: 60, compression: "GZIP",
					zone: "Asia/Tokyo", extension: ".json.gz", group: "/hoses", processors: []types.Processor{{Type: "AppendDelimiterToRecord", Parameters: []types.ProcessorParameter{}}},
					partitioning: 300, sealed: true, tags: map[string]string{"team": "a", "project": "rental"},
				}, hoseValues{
					bucket: "ocean", prefix: "in/!{timestamp:yyyy}/b/", failed: "err/!{firehose:error-output-type}/", size: 64, interval: 0, compression: "UNCOMPRESSED",
					zone: "UTC", extension: ".json", processors: []types.Processor{{Type: "AppendDelimiterToRecord", Parameters: []types.ProcessorParameter{
						{ParameterName: "Delimiter", ParameterValue: new("\\n")},
					}}},
					partitioning: 60, tags: map[string]string{"team": "b", "more": ""},
				}),
				s.bucketStream("tagged", usualHose.with(func(v *hoseValues) { v.tags = map[string]string{"team": "a"} }), usualHose.with(func(v *hoseValues) { v.tags = map[string]string{"team": "b"} })),
				s.bucketStream("sealed", usualHose, usualHose.with(func(v *hoseValues) { v.sealed = true })),
				s.endpointStream("web", hoseEndpointValues{
					url: "https://example.com/a", name: "logs", key: "s3cr3t", size: 1, interval: 1, retry: 60, mode: "FailedDataOnly", encoding: "GZIP",
					attributes: []types.HttpEndpointCommonAttribute{{AttributeName: new("stage"), AttributeValue: new("test")}, {AttributeName: new("place"), AttributeValue: new("eu")}},
					group:      "/hoses", backup: usualHose.with(func(v *hoseValues) { v.compression, v.failed, v.size, v.interval = "GZIP", "err/", 10, 400 }),
				}, hoseEndpointValues{
					url: "https://example.com/b", name: "logs", key: "another", size: 15, interval: 60, retry: 0, mode: "AllData", encoding: "NONE",
					attributes: []types.HttpEndpointCommonAttribute{{AttributeName: new("stage"), AttributeValue: new("live")}},
					group:      "/hoses", backup: usualHose.with(func(v *hoseValues) { v.prefix, v.failed, v.size, v.interval = "web/", "err/", 10, 400 }),
				}),
				s.endpointStream("small", usualHoseEndpoint, usualHoseEndpoint),
			})
		})
	}
}

type hoseStack struct {
	*firehose.Client

	iam      *iam.Client
	enforced bool
}

// hoseValues are those of a destination in a bucket, in a configuration.
type hoseValues struct {
	bucket, prefix, failed string
	size, interval         int32
	compression            types.CompressionFormat
	zone, extension        string
	group                  string // of logs; empty: logging is off
	processors             []types.Processor
	partitioning           int32 // the time of retries; 0: no block
	sealed                 bool
	tags                   map[string]string
}

func (v hoseValues) with(change func(v *hoseValues)) hoseValues {
	change(&v)
	return v
}

// usualHose are the provider's defaults.
var usualHose = hoseValues{bucket: "lake", size: 5, interval: 300, compression: "UNCOMPRESSED", zone: "UTC"}

func hoseLogging(group string) *types.CloudWatchLoggingOptions {
	if group == "" {
		return &types.CloudWatchLoggingOptions{Enabled: new(false)}
	}
	return &types.CloudWatchLoggingOptions{Enabled: new(true), LogGroupName: &group, LogStreamName: new("s")}
}

func (v *hoseValues) create() *types.ExtendedS3DestinationConfiguration {
	d := &types.ExtendedS3DestinationConfiguration{
		RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::" + v.bucket), BufferingHints: &types.BufferingHints{SizeInMBs: &v.size, IntervalInSeconds: &v.interval},
		Prefix: &v.prefix, CompressionFormat: v.compression, CustomTimeZone: &v.zone, FileExtension: &v.extension,
		DataFormatConversionConfiguration: &types.DataFormatConversionConfiguration{Enabled: new(false)},
		EncryptionConfiguration:           &types.EncryptionConfiguration{NoEncryptionConfig: types.NoEncryptionConfigNoEncryption},
		ProcessingConfiguration:           v.processing(), DynamicPartitioningConfiguration: v.partitions(), S3BackupMode: types.S3BackupModeDisabled,
	}
	if v.group != "" {
		d.CloudWatchLoggingOptions = hoseLogging(v.group)
	}
	if v.failed != "" {
		d.ErrorOutputPrefix = &v.failed
	}
	return d
}

// update names the empty prefix of errors and that logging is off, which create leaves out.
func (v *hoseValues) update() *types.ExtendedS3DestinationUpdate {
	return &types.ExtendedS3DestinationUpdate{
		RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::" + v.bucket), BufferingHints: &types.BufferingHints{SizeInMBs: &v.size, IntervalInSeconds: &v.interval},
		Prefix: &v.prefix, ErrorOutputPrefix: &v.failed, CompressionFormat: v.compression, CustomTimeZone: &v.zone, FileExtension: &v.extension,
		DataFormatConversionConfiguration: &types.DataFormatConversionConfiguration{Enabled: new(false)},
		EncryptionConfiguration:           &types.EncryptionConfiguration{NoEncryptionConfig: types.NoEncryptionConfigNoEncryption},
		ProcessingConfiguration:           v.processing(), DynamicPartitioningConfiguration: v.partitions(), S3BackupMode: types.S3BackupModeDisabled,
		CloudWatchLoggingOptions: hoseLogging(v.group),
	}
}

func (v *hoseValues) processing() *types.ProcessingConfiguration {
	return &types.ProcessingConfiguration{Enabled: aws.Bool(v.processors != nil), Processors: append([]types.Processor{}, v.processors...)}
}

func (v *hoseValues) partitions() *types.DynamicPartitioningConfiguration {
	if v.partitioning == 0 {
		return nil
	}
	return &types.DynamicPartitioningConfiguration{Enabled: new(false), RetryOptions: &types.RetryOptions{DurationInSeconds: &v.partitioning}}
}

func (v *hoseValues) backup() *types.S3DestinationConfiguration {
	d := &types.S3DestinationConfiguration{
		RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::" + v.bucket), BufferingHints: &types.BufferingHints{SizeInMBs: &v.size, IntervalInSeconds: &v.interval},
		Prefix: &v.prefix, CompressionFormat: v.compression, EncryptionConfiguration: &types.EncryptionConfiguration{NoEncryptionConfig: types.NoEncryptionConfigNoEncryption},
	}
	if v.failed != "" {
		d.ErrorOutputPrefix = &v.failed
	}
	return d
}

func (v *hoseValues) backupUpdate() *types.S3DestinationUpdate {
	return &types.S3DestinationUpdate{
		RoleARN: hoseRole, BucketARN: new("arn:aws:s3:::" + v.bucket), BufferingHints: &types.BufferingHints{SizeInMBs: &v.size, IntervalInSeconds: &v.interval},
		Prefix: &v.prefix, ErrorOutputPrefix: &v.failed, CompressionFormat: v.compression, CloudWatchLoggingOptions: hoseLogging(""),
		EncryptionConfiguration: &types.EncryptionConfiguration{NoEncryptionConfig: types.NoEncryptionConfigNoEncryption},
	}
}

// want is what the provider has of it in its state, as it reads answers.
func (v *hoseValues) want(name string) fields {
	f := wantedHose(name, v.sealed, v.tags).and(v.wantPlain())
	f["time zone"], f["extension"], f["backup"], f["processing"], f["partitioning"] = v.zone, v.extension, "Disabled []", processingText(v.processing()), partitioningText(v.partitions())
	f["logging"] = loggingText(hoseLogging(v.group))
	return f
}

func (v *hoseValues) wantPlain() fields {
	return fields{
		"bucket": "arn:aws:s3:::" + v.bucket, "prefix": v.prefix, "failed": v.failed, "buffers": fmt.Sprint(v.size, v.interval), "compression": string(v.compression), "role": *hoseRole,
	}
}

func wantedHose(name string, sealed bool, tags map[string]string) fields {
	f := fields{"arn": hoseARN(name), "status": "ACTIVE", "type": "DirectPut", "sealed": fmt.Sprint(sealed, " AWS_OWNED_CMK"), "destination": "destinationId-000000000001"}
	for key, value := range tags {
		f["tag "+key] = value
	}
	return f
}

func processingText(p *types.ProcessingConfiguration) string {
	if p == nil {
		return "none"
	}
	text := fmt.Sprint(aws.ToBool(p.Enabled))
	for _, one := range p.Processors {
		text += " " + string(one.Type)
		for _, parameter := range one.Parameters {
			text += fmt.Sprintf(" %s=%q", parameter.ParameterName, *parameter.ParameterValue)
		}
	}
	return text
}

func partitioningText(p *types.DynamicPartitioningConfiguration) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprint(*p.Enabled, *p.RetryOptions.DurationInSeconds)
}

func loggingText(l *types.CloudWatchLoggingOptions) string {
	if !aws.ToBool(l.Enabled) {
		return "off"
	}
	return *l.LogGroupName + " " + *l.LogStreamName
}

// read describes a stream, as the provider has it in its state.
func (s *hoseStack) read(t *testing.T, name string) fields {
	t.Helper()
	d := must(s.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: &name}))(t).DeliveryStreamDescription
	e := d.DeliveryStreamEncryptionConfiguration
	f := fields{"arn": *d.DeliveryStreamARN, "status": string(d.DeliveryStreamStatus), "type": string(d.DeliveryStreamType), "sealed": "false AWS_OWNED_CMK", "destination": *d.Destinations[0].DestinationId}
	if e.Status == types.DeliveryStreamEncryptionStatusEnabled {
		f["sealed"] = "true " + string(e.KeyType)
		if e.KeyARN != nil {
			t.Errorf("the key is %q", *e.KeyARN)
		}
	}
	if d.Source != nil {
		t.Errorf("there is a source: %+v", d.Source)
	}
	to := d.Destinations[0]
	if h := to.HttpEndpointDestinationDescription; h != nil {
		f = f.and(plainText(h.S3DestinationDescription))
		f["url"], f["name"], f["endpoint's buffers"], f["retry"], f["mode"] = *h.EndpointConfiguration.Url, aws.ToString(h.EndpointConfiguration.Name),
			fmt.Sprint(*h.BufferingHints.SizeInMBs, *h.BufferingHints.IntervalInSeconds), fmt.Sprint(*h.RetryOptions.DurationInSeconds), string(h.S3BackupMode)
		f["requests"], f["processing"], f["logging"], f["secrets"] = requestsText(h.RequestConfiguration), processingText(h.ProcessingConfiguration), loggingText(h.CloudWatchLoggingOptions), fmt.Sprint(h.SecretsManagerConfiguration != nil)
	} else {
		x := to.ExtendedS3DestinationDescription
		f = f.and(plainText(to.S3DestinationDescription))
		f["time zone"], f["extension"], f["backup"], f["processing"], f["partitioning"] = aws.ToString(x.CustomTimeZone), aws.ToString(x.FileExtension),
			fmt.Sprint(x.S3BackupMode, " []"), processingText(x.ProcessingConfiguration), partitioningText(x.DynamicPartitioningConfiguration)
		f["logging"] = loggingText(x.CloudWatchLoggingOptions)
		if c := x.DataFormatConversionConfiguration; c != nil && aws.ToBool(c.Enabled) || x.S3BackupDescription != nil {
			t.Errorf("%+v", x)
		}
	}
	tags := must(s.ListTagsForDeliveryStream(t.Context(), &firehose.ListTagsForDeliveryStreamInput{DeliveryStreamName: &name}))(t).Tags
	for _, tag := range tags {
		f["tag "+*tag.Key] = aws.ToString(tag.Value)
	}
	return f
}

func plainText(d *types.S3DestinationDescription) fields {
	return fields{
		"bucket": *d.BucketARN, "prefix": aws.ToString(d.Prefix), "failed": aws.ToString(d.ErrorOutputPrefix), "buffers": fmt.Sprint(*d.BufferingHints.SizeInMBs, *d.BufferingHints.IntervalInSeconds),
		"compression": string(d.CompressionFormat), "role": *d.RoleARN,
	}
}

// hoseEndpointValues are those of an HTTP endpoint in a configuration.
type hoseEndpointValues struct {
	url, name, key        string
	size, interval, retry int32
	mode                  types.HttpEndpointS3BackupMode
	encoding              types.ContentEncoding
	attributes            []types.HttpEndpointCommonAttribute
	group                 string
	backup                hoseValues
}

var usualHoseEndpoint = hoseEndpointValues{url: "https://example.com/", name: "small", size: 5, interval: 300, retry: 300, mode: "FailedDataOnly", encoding: "NONE", backup: usualHose}

func requestsText(c *types.HttpEndpointRequestConfiguration) string {
	text := string(c.ContentEncoding)
	for _, a := range c.CommonAttributes {
		text += " " + *a.AttributeName + "=" + *a.AttributeValue
	}
	return text
}

func (v *hoseEndpointValues) target() *types.HttpEndpointConfiguration {
	target := &types.HttpEndpointConfiguration{Url: &v.url}
	if v.name != "" {
		target.Name = &v.name
	}
	if v.key != "" {
		target.AccessKey = &v.key
	}
	return target
}

func (v *hoseEndpointValues) requests() *types.HttpEndpointRequestConfiguration {
	return &types.HttpEndpointRequestConfiguration{ContentEncoding: v.encoding, CommonAttributes: append([]types.HttpEndpointCommonAttribute{}, v.attributes...)}
}

func (v *hoseEndpointValues) create() *types.HttpEndpointDestinationConfiguration {
	return &types.HttpEndpointDestinationConfiguration{
		EndpointConfiguration: v.target(), BufferingHints: &types.HttpEndpointBufferingHints{SizeInMBs: &v.size, IntervalInSeconds: &v.interval}, RoleARN: hoseRole,
		RetryOptions: &types.HttpEndpointRetryOptions{DurationInSeconds: &v.retry}, S3BackupMode: v.mode, S3Configuration: v.backup.backup(),
		RequestConfiguration: v.requests(), ProcessingConfiguration: (&hoseValues{}).processing(), CloudWatchLoggingOptions: hoseLogging(v.group),
	}
}

func (v *hoseEndpointValues) update() *types.HttpEndpointDestinationUpdate {
	return &types.HttpEndpointDestinationUpdate{
		EndpointConfiguration: v.target(), BufferingHints: &types.HttpEndpointBufferingHints{SizeInMBs: &v.size, IntervalInSeconds: &v.interval}, RoleARN: hoseRole,
		RetryOptions: &types.HttpEndpointRetryOptions{DurationInSeconds: &v.retry}, S3BackupMode: v.mode, S3Update: v.backup.backupUpdate(),
		RequestConfiguration: v.requests(), ProcessingConfiguration: (&hoseValues{}).processing(), CloudWatchLoggingOptions: hoseLogging(v.group),
	}
}

func (v *hoseEndpointValues) want(name string) fields {
	f := wantedHose(name, false, nil).and(v.backup.wantPlain())
	f["url"], f["name"], f["endpoint's buffers"], f["retry"], f["mode"] = v.url, v.name, fmt.Sprint(v.size, v.interval), fmt.Sprint(v.retry), string(v.mode)
	f["requests"], f["processing"], f["logging"], f["secrets"] = requestsText(v.requests()), "false", loggingText(hoseLogging(v.group)), "false"
	return f
}

// bucketStream is an aws_kinesis_firehose_delivery_stream to a bucket.
func (s *hoseStack) bucketStream(name string, made, changed hoseValues) resource {
	r := s.resource(name, made.want(name), changed.want(name))
	r.create = func(t *testing.T) {
		s.create(t, &firehose.CreateDeliveryStreamInput{DeliveryStreamName: &name, DeliveryStreamType: types.DeliveryStreamTypeDirectPut, ExtendedS3DestinationConfiguration: made.create(), Tags: hoseTags(made.tags)})
		s.seal(t, name, false, made.sealed)
	}
	r.change = func(t *testing.T) {
		if fmt.Sprint(made.with(func(v *hoseValues) { v.tags = nil })) != fmt.Sprint(changed.with(func(v *hoseValues) { v.tags = nil })) {
			s.update(t, &firehose.UpdateDestinationInput{DeliveryStreamName: &name, ExtendedS3DestinationUpdate: changed.update()})
		}
		s.seal(t, name, made.sealed, changed.sealed)
		s.tag(t, name, made.tags, changed.tags)
	}
	return r
}

// endpointStream is one to an HTTP endpoint.
func (s *hoseStack) endpointStream(name string, made, changed hoseEndpointValues) resource {
	r := s.resource(name, made.want(name), changed.want(name))
	r.create = func(t *testing.T) {
		s.create(t, &firehose.CreateDeliveryStreamInput{DeliveryStreamName: &name, DeliveryStreamType: types.DeliveryStreamTypeDirectPut, HttpEndpointDestinationConfiguration: made.create()})
	}
	r.change = func(t *testing.T) {
		s.update(t, &firehose.UpdateDestinationInput{DeliveryStreamName: &name, HttpEndpointDestinationUpdate: changed.update()})
	}
	return r
}

func (s *hoseStack) resource(name string, made, changed fields) resource {
	return resource{
		name: "stream " + name, want: [2]fields{made, changed},
		read: func(t *testing.T) fields { return s.read(t, name) },
		destroy: func(t *testing.T) {
			must(s.DeleteDeliveryStream(t.Context(), &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: &name}))(t)
			_, err := s.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: &name})
			gone(t, err, "ResourceNotFoundException")
		},
	}
}

// create makes a stream. Where its role cannot be assumed yet the provider tries it again.
func (s *hoseStack) create(t *testing.T, in *firehose.CreateDeliveryStreamInput) {
	t.Helper()
	_, err := s.CreateDeliveryStream(t.Context(), in)
	if err != nil && s.enforced && *in.DeliveryStreamName == "plain" {
		refused(t, err, "InvalidArgumentException", http.StatusBadRequest, "Firehose is unable to assume role "+*hoseRole+". Please check the role provided.")
		must(s.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: new("hose"), AssumeRolePolicyDocument: new(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"firehose.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)}))(t)
		_, err = s.CreateDeliveryStream(t.Context(), in)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *hoseStack) update(t *testing.T, in *firehose.UpdateDestinationInput) {
	t.Helper()
	d := must(s.DescribeDeliveryStream(t.Context(), &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: in.DeliveryStreamName}))(t).DeliveryStreamDescription
	in.CurrentDeliveryStreamVersionId, in.DestinationId = d.VersionId, d.Destinations[0].DestinationId
	must(s.UpdateDestination(t.Context(), in))(t)
}

func (s *hoseStack) seal(t *testing.T, name string, from, to bool) {
	t.Helper()
	switch {
	case to && !from:
		must(s.StartDeliveryStreamEncryption(t.Context(), &firehose.StartDeliveryStreamEncryptionInput{
			DeliveryStreamName: &name, DeliveryStreamEncryptionConfigurationInput: &types.DeliveryStreamEncryptionConfigurationInput{KeyType: types.KeyTypeAwsOwnedCmk},
		}))(t)
	case from && !to:
		must(s.StopDeliveryStreamEncryption(t.Context(), &firehose.StopDeliveryStreamEncryptionInput{DeliveryStreamName: &name}))(t)
	}
}

func hoseTags(tags map[string]string) (all []types.Tag) {
	for key, value := range tags {
		all = append(all, types.Tag{Key: &key, Value: &value})
	}
	slices.SortFunc(all, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	return all
}

// tag removes the tags that are no more, and sets those that are others.
func (s *hoseStack) tag(t *testing.T, name string, from, to map[string]string) {
	t.Helper()
	var gone []string
	others := map[string]string{}
	for key := range from {
		if _, stays := to[key]; !stays {
			gone = append(gone, key)
		}
	}
	for key, value := range to {
		if was, there := from[key]; !there || was != value {
			others[key] = value
		}
	}
	if gone != nil {
		must(s.UntagDeliveryStream(t.Context(), &firehose.UntagDeliveryStreamInput{DeliveryStreamName: &name, TagKeys: gone}))(t)
	}
	if len(others) > 0 {
		must(s.TagDeliveryStream(t.Context(), &firehose.TagDeliveryStreamInput{DeliveryStreamName: &name, Tags: hoseTags(others)}))(t)
	}
}
