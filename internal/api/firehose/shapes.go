package firehose

import (
	"encoding/json"
	"reflect"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/deliverystream"
)

// Empty is an output without members.
type Empty struct{}

// Tag is a tag of a stream.
type Tag struct {
	Key   *string
	Value *string
}

// Unbuilt is a member that is refused, whatever its value.
type Unbuilt struct{}

// EncryptionInput selects the key for encryption.
type EncryptionInput struct {
	KeyARN  *string
	KeyType *string
}

// ThroughputHint is the expected throughput.
type ThroughputHint struct{ ThroughputHintInMBs *int }

// ExtendedInput is an extended S3 destination, with the backup members, which are not
// implemented.
type ExtendedInput struct {
	RoleARN                           *string
	BucketARN                         *string
	Prefix                            *string
	ErrorOutputPrefix                 *string
	BufferingHints                    *deliverystream.BufferingHints
	CompressionFormat                 *string
	EncryptionConfiguration           *deliverystream.BucketEncryption
	CloudWatchLoggingOptions          *deliverystream.Logging
	ProcessingConfiguration           *deliverystream.Processing
	S3BackupMode                      *string
	S3BackupConfiguration             *Unbuilt
	S3BackupUpdate                    *Unbuilt // as UpdateDestination calls it
	DataFormatConversionConfiguration *deliverystream.Switch
	DynamicPartitioningConfiguration  *deliverystream.Partitioning
	FileExtension                     *string
	CustomTimeZone                    *string
}

// destination is the persisted form; nil if e is nil.
func (e *ExtendedInput) destination() *deliverystream.ExtendedS3 {
	if e == nil {
		return nil
	}
	return &deliverystream.ExtendedS3{
		RoleARN: e.RoleARN, BucketARN: e.BucketARN, Prefix: e.Prefix, ErrorOutputPrefix: e.ErrorOutputPrefix, BufferingHints: e.BufferingHints,
		CompressionFormat: e.CompressionFormat, EncryptionConfiguration: e.EncryptionConfiguration, CloudWatchLoggingOptions: e.CloudWatchLoggingOptions,
		ProcessingConfiguration: e.ProcessingConfiguration, S3BackupMode: e.S3BackupMode, DataFormatConversionConfiguration: e.DataFormatConversionConfiguration,
		DynamicPartitioningConfiguration: e.DynamicPartitioningConfiguration, FileExtension: e.FileExtension, CustomTimeZone: e.CustomTimeZone,
	}
}

// CreateDeliveryStreamInput is the input of CreateDeliveryStream.
type CreateDeliveryStreamInput struct {
	DeliveryStreamName                         string `wire:"required"`
	DeliveryStreamType                         *string
	DirectPutSourceConfiguration               *ThroughputHint
	DeliveryStreamEncryptionConfigurationInput *EncryptionInput
	S3DestinationConfiguration                 *deliverystream.S3
	ExtendedS3DestinationConfiguration         *ExtendedInput
	HttpEndpointDestinationConfiguration       *deliverystream.HTTPEndpoint
	Tags                                       []Tag

	KinesisStreamSourceConfiguration                   *Unbuilt
	MSKSourceConfiguration                             *Unbuilt
	DatabaseSourceConfiguration                        *Unbuilt
	RedshiftDestinationConfiguration                   *Unbuilt
	ElasticsearchDestinationConfiguration              *Unbuilt
	AmazonopensearchserviceDestinationConfiguration    *Unbuilt
	AmazonOpenSearchServerlessDestinationConfiguration *Unbuilt
	SplunkDestinationConfiguration                     *Unbuilt
	SnowflakeDestinationConfiguration                  *Unbuilt
	IcebergDestinationConfiguration                    *Unbuilt
}

func (in *CreateDeliveryStreamInput) extended() *deliverystream.ExtendedS3 {
	return in.ExtendedS3DestinationConfiguration.destination()
}

// unbuilt is the name of a member that is refused; empty: there is none.
func (in *CreateDeliveryStreamInput) unbuilt() string {
	return firstOf([]member{
		{"KinesisStreamSourceConfiguration", in.KinesisStreamSourceConfiguration},
		{"MSKSourceConfiguration", in.MSKSourceConfiguration},
		{"DatabaseSourceConfiguration", in.DatabaseSourceConfiguration},
		{"RedshiftDestinationConfiguration", in.RedshiftDestinationConfiguration},
		{"ElasticsearchDestinationConfiguration", in.ElasticsearchDestinationConfiguration},
		{"AmazonopensearchserviceDestinationConfiguration", in.AmazonopensearchserviceDestinationConfiguration},
		{"AmazonOpenSearchServerlessDestinationConfiguration", in.AmazonOpenSearchServerlessDestinationConfiguration},
		{"SplunkDestinationConfiguration", in.SplunkDestinationConfiguration},
		{"SnowflakeDestinationConfiguration", in.SnowflakeDestinationConfiguration},
		{"IcebergDestinationConfiguration", in.IcebergDestinationConfiguration},
	})
}

type member struct {
	name  string
	given *Unbuilt
}

func firstOf(all []member) string {
	for _, one := range all {
		if one.given != nil {
			return one.name
		}
	}
	return ""
}

// CreateDeliveryStreamOutput is the output of CreateDeliveryStream.
type CreateDeliveryStreamOutput struct{ DeliveryStreamARN string }

// StreamInput is a request with only a stream's name.
type StreamInput struct {
	DeliveryStreamName string `wire:"required"`
}

// DeleteDeliveryStreamInput is the input of DeleteDeliveryStream.
type DeleteDeliveryStreamInput struct {
	DeliveryStreamName string `wire:"required"`
	AllowForceDelete   *bool
}

// DescribeDeliveryStreamInput is the input of DescribeDeliveryStream.
type DescribeDeliveryStreamInput struct {
	DeliveryStreamName          string `wire:"required"`
	Limit                       *int
	ExclusiveStartDestinationId *string
}

// EncryptionDescription describes the encryption.
type EncryptionDescription struct {
	KeyARN  string
	KeyType string
	Status  string
}

// EndpointDescription describes an HTTP endpoint, without its key.
type EndpointDescription struct {
	Url  *string
	Name *string
}

// HTTPDescription describes an HTTP destination.
type HTTPDescription struct {
	EndpointConfiguration       *EndpointDescription
	BufferingHints              *deliverystream.BufferingHints
	CloudWatchLoggingOptions    *deliverystream.Logging
	RequestConfiguration        *deliverystream.RequestConfiguration
	ProcessingConfiguration     *deliverystream.Processing
	RoleARN                     *string
	RetryOptions                *deliverystream.RetryOptions
	S3BackupMode                *string
	S3DestinationDescription    *deliverystream.S3
	SecretsManagerConfiguration *deliverystream.Switch
}

// DestinationDescription describes a destination.
type DestinationDescription struct {
	DestinationId                      string
	S3DestinationDescription           *deliverystream.S3
	ExtendedS3DestinationDescription   *deliverystream.ExtendedS3
	HttpEndpointDestinationDescription *HTTPDescription
}

// SourceDescription describes a source.
type SourceDescription struct{ DirectPutSourceDescription *ThroughputHint }

// Description describes a stream.
type Description struct {
	DeliveryStreamName                    string
	DeliveryStreamARN                     string
	DeliveryStreamStatus                  string
	DeliveryStreamEncryptionConfiguration *EncryptionDescription
	DeliveryStreamType                    string
	VersionId                             string
	CreateTimestamp                       api.Time
	LastUpdateTimestamp                   *api.Time
	Source                                *SourceDescription
	Destinations                          []DestinationDescription
	HasMoreDestinations                   bool
}

// DescribeDeliveryStreamOutput is the output of DescribeDeliveryStream.
type DescribeDeliveryStreamOutput struct{ DeliveryStreamDescription Description }

// ListDeliveryStreamsInput is the input of ListDeliveryStreams.
type ListDeliveryStreamsInput struct {
	Limit                            *int
	DeliveryStreamType               *string
	ExclusiveStartDeliveryStreamName *string
}

// ListDeliveryStreamsOutput is the output of ListDeliveryStreams.
type ListDeliveryStreamsOutput struct {
	DeliveryStreamNames    []string
	HasMoreDeliveryStreams bool
}

// HTTPUpdate is a change of an HTTP destination.
type HTTPUpdate struct {
	EndpointConfiguration       *deliverystream.HTTPTarget
	BufferingHints              *deliverystream.BufferingHints
	CloudWatchLoggingOptions    *deliverystream.Logging
	RequestConfiguration        *deliverystream.RequestConfiguration
	ProcessingConfiguration     *deliverystream.Processing
	RoleARN                     *string
	RetryOptions                *deliverystream.RetryOptions
	S3BackupMode                *string
	S3Update                    *deliverystream.S3
	SecretsManagerConfiguration *deliverystream.Switch
}

// UpdateDestinationInput is the input of UpdateDestination.
type UpdateDestinationInput struct {
	DeliveryStreamName             string `wire:"required"`
	CurrentDeliveryStreamVersionId string `wire:"required"`
	DestinationId                  string `wire:"required"`
	S3DestinationUpdate            *deliverystream.S3
	ExtendedS3DestinationUpdate    *ExtendedInput
	HttpEndpointDestinationUpdate  *HTTPUpdate

	RedshiftDestinationUpdate                   *Unbuilt
	ElasticsearchDestinationUpdate              *Unbuilt
	AmazonopensearchserviceDestinationUpdate    *Unbuilt
	AmazonOpenSearchServerlessDestinationUpdate *Unbuilt
	SplunkDestinationUpdate                     *Unbuilt
	SnowflakeDestinationUpdate                  *Unbuilt
	IcebergDestinationUpdate                    *Unbuilt
}

func (in *UpdateDestinationInput) extended() *deliverystream.ExtendedS3 {
	return in.ExtendedS3DestinationUpdate.destination()
}

// endpoint is the persisted form of a changed HTTP destination; nil: there is none.
func (in *UpdateDestinationInput) endpoint() *deliverystream.HTTPEndpoint {
	u := in.HttpEndpointDestinationUpdate
	if u == nil {
		return nil
	}
	return &deliverystream.HTTPEndpoint{
		EndpointConfiguration: u.EndpointConfiguration, BufferingHints: u.BufferingHints, CloudWatchLoggingOptions: u.CloudWatchLoggingOptions,
		RequestConfiguration: u.RequestConfiguration, ProcessingConfiguration: u.ProcessingConfiguration, RoleARN: u.RoleARN, RetryOptions: u.RetryOptions,
		S3BackupMode: u.S3BackupMode, S3Configuration: u.S3Update, SecretsManagerConfiguration: u.SecretsManagerConfiguration,
	}
}

func (in *UpdateDestinationInput) unbuilt() string {
	return firstOf([]member{
		{"RedshiftDestinationUpdate", in.RedshiftDestinationUpdate},
		{"ElasticsearchDestinationUpdate", in.ElasticsearchDestinationUpdate},
		{"AmazonopensearchserviceDestinationUpdate", in.AmazonopensearchserviceDestinationUpdate},
		{"AmazonOpenSearchServerlessDestinationUpdate", in.AmazonOpenSearchServerlessDestinationUpdate},
		{"SplunkDestinationUpdate", in.SplunkDestinationUpdate},
		{"SnowflakeDestinationUpdate", in.SnowflakeDestinationUpdate},
		{"IcebergDestinationUpdate", in.IcebergDestinationUpdate},
	})
}

// TagDeliveryStreamInput is the input of TagDeliveryStream.
type TagDeliveryStreamInput struct {
	DeliveryStreamName string `wire:"required"`
	Tags               []Tag  `wire:"required"`
}

// UntagDeliveryStreamInput is the input of UntagDeliveryStream.
type UntagDeliveryStreamInput struct {
	DeliveryStreamName string   `wire:"required"`
	TagKeys            []string `wire:"required"`
}

// ListTagsForDeliveryStreamInput is the input of ListTagsForDeliveryStream.
type ListTagsForDeliveryStreamInput struct {
	DeliveryStreamName   string `wire:"required"`
	ExclusiveStartTagKey *string
	Limit                *int
}

// ListTagsForDeliveryStreamOutput is the output of ListTagsForDeliveryStream.
type ListTagsForDeliveryStreamOutput struct {
	Tags        []Tag
	HasMoreTags bool
}

// StartDeliveryStreamEncryptionInput is the input of StartDeliveryStreamEncryption.
type StartDeliveryStreamEncryptionInput struct {
	DeliveryStreamName                         string `wire:"required"`
	DeliveryStreamEncryptionConfigurationInput *EncryptionInput
}

// Record is a record to be put.
type Record struct{ Data []byte }

// UnmarshalJSON implements json.Unmarshaler: data must be base64. It must not be a list of
// numbers, which encoding/json would accept.
func (r *Record) UnmarshalJSON(text []byte) error {
	var in struct{ Data json.RawMessage }
	if json.Unmarshal(text, &in) == nil && len(in.Data) > 0 && in.Data[0] == '[' {
		return &json.UnmarshalTypeError{Value: "array", Type: reflect.TypeFor[[]byte]()}
	}
	type plain Record
	return json.Unmarshal(text, (*plain)(r))
}

// PutRecordInput is the input of PutRecord.
type PutRecordInput struct {
	DeliveryStreamName string  `wire:"required"`
	Record             *Record `wire:"required"`
}

// PutRecordOutput is the output of PutRecord.
type PutRecordOutput struct {
	RecordId  string
	Encrypted bool
}

// PutRecordBatchInput is the input of PutRecordBatch.
type PutRecordBatchInput struct {
	DeliveryStreamName string   `wire:"required"`
	Records            []Record `wire:"required"`
}

// PutRecordBatchEntry is the result of a record in a batch.
type PutRecordBatchEntry struct {
	RecordId     string
	ErrorCode    string
	ErrorMessage string
}

// PutRecordBatchOutput is the output of PutRecordBatch.
type PutRecordBatchOutput struct {
	FailedPutCount   int
	Encrypted        bool
	RequestResponses []PutRecordBatchEntry
}
