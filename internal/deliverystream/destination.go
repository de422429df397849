package deliverystream

// The shapes of destinations in requests, in the stored form and in descriptions. Optional
// members with a default may be nil in requests.

// BufferingHints are the maximum size and time of buffering before a delivery.
type BufferingHints struct {
	SizeInMBs         *int `json:",omitempty"`
	IntervalInSeconds *int `json:",omitempty"`
}

// Logging is where failed deliveries are logged.
type Logging struct {
	Enabled       *bool   `json:",omitempty"`
	LogGroupName  *string `json:",omitempty"`
	LogStreamName *string `json:",omitempty"`
}

// KMSKey is the key of a bucket's encryption.
type KMSKey struct{ AWSKMSKeyARN *string }

// BucketEncryption is the encryption of a bucket.
type BucketEncryption struct {
	NoEncryptionConfig  *string `json:",omitempty"`
	KMSEncryptionConfig *KMSKey `json:",omitempty"`
}

// S3 is a destination of objects in a bucket.
type S3 struct {
	RoleARN                  *string           `json:",omitempty"`
	BucketARN                *string           `json:",omitempty"`
	Prefix                   *string           `json:",omitempty"`
	ErrorOutputPrefix        *string           `json:",omitempty"`
	BufferingHints           *BufferingHints   `json:",omitempty"`
	CompressionFormat        *string           `json:",omitempty"`
	EncryptionConfiguration  *BucketEncryption `json:",omitempty"`
	CloudWatchLoggingOptions *Logging          `json:",omitempty"`
}

// Switch is an unsupported feature: it may be off.
type Switch struct {
	Enabled *bool `json:",omitempty"`
}

// Partitioning is by the content of records. It may be off.
type Partitioning struct {
	Enabled      *bool         `json:",omitempty"`
	RetryOptions *RetryOptions `json:",omitempty"`
}

// Parameter is a parameter of a processor.
type Parameter struct {
	ParameterName  *string
	ParameterValue *string
}

// Processor is a processing step of records.
type Processor struct {
	Type       *string
	Parameters []Parameter `json:",omitempty"`
}

// Processing are the processing steps of records. Only AppendDelimiterToRecord is supported.
type Processing struct {
	Enabled    *bool       `json:",omitempty"`
	Processors []Processor `json:",omitempty"`
}

// ExtendedS3 is a destination of objects in a bucket, with all members.
type ExtendedS3 struct {
	RoleARN                           *string           `json:",omitempty"`
	BucketARN                         *string           `json:",omitempty"`
	Prefix                            *string           `json:",omitempty"`
	ErrorOutputPrefix                 *string           `json:",omitempty"`
	BufferingHints                    *BufferingHints   `json:",omitempty"`
	CompressionFormat                 *string           `json:",omitempty"`
	EncryptionConfiguration           *BucketEncryption `json:",omitempty"`
	CloudWatchLoggingOptions          *Logging          `json:",omitempty"`
	ProcessingConfiguration           *Processing       `json:",omitempty"`
	S3BackupMode                      *string           `json:",omitempty"`
	DataFormatConversionConfiguration *Switch           `json:",omitempty"`
	DynamicPartitioningConfiguration  *Partitioning     `json:",omitempty"`
	FileExtension                     *string           `json:",omitempty"`
	CustomTimeZone                    *string           `json:",omitempty"`
}

// Basic are the members of an extended destination that an S3 one has.
func (e *ExtendedS3) Basic() *S3 {
	return &S3{
		e.RoleARN, e.BucketARN, e.Prefix, e.ErrorOutputPrefix, e.BufferingHints, e.CompressionFormat,
		e.EncryptionConfiguration, e.CloudWatchLoggingOptions,
	}
}

// Extend is the equivalent extended destination; nil of nil.
func (s *S3) Extend() *ExtendedS3 {
	if s == nil {
		return nil
	}
	return &ExtendedS3{
		RoleARN: s.RoleARN, BucketARN: s.BucketARN, Prefix: s.Prefix, ErrorOutputPrefix: s.ErrorOutputPrefix,
		BufferingHints: s.BufferingHints, CompressionFormat: s.CompressionFormat,
		EncryptionConfiguration: s.EncryptionConfiguration, CloudWatchLoggingOptions: s.CloudWatchLoggingOptions,
	}
}

// Over applies an update: the members that it names override.
func (e *ExtendedS3) Over(old *ExtendedS3) *ExtendedS3 {
	if old == nil {
		return e
	}
	next := *old
	put(&next.RoleARN, e.RoleARN)
	put(&next.BucketARN, e.BucketARN)
	put(&next.Prefix, e.Prefix)
	put(&next.ErrorOutputPrefix, e.ErrorOutputPrefix)
	put(&next.BufferingHints, e.BufferingHints)
	put(&next.CompressionFormat, e.CompressionFormat)
	put(&next.EncryptionConfiguration, e.EncryptionConfiguration)
	put(&next.CloudWatchLoggingOptions, e.CloudWatchLoggingOptions)
	put(&next.ProcessingConfiguration, e.ProcessingConfiguration)
	put(&next.S3BackupMode, e.S3BackupMode)
	put(&next.DataFormatConversionConfiguration, e.DataFormatConversionConfiguration)
	put(&next.DynamicPartitioningConfiguration, e.DynamicPartitioningConfiguration)
	put(&next.FileExtension, e.FileExtension)
	put(&next.CustomTimeZone, e.CustomTimeZone)
	return &next
}

func put[T any](into **T, value *T) {
	if value != nil {
		*into = value
	}
}

// Delimiter is appended to each record; empty for nothing.
func (e *ExtendedS3) Delimiter() string {
	p := e.ProcessingConfiguration
	if p == nil || !on(p.Enabled) {
		return ""
	}
	for i := range p.Processors {
		if t := p.Processors[i].Type; t != nil && *t == AppendDelimiter {
			return p.Processors[i].delimiter()
		}
	}
	return ""
}

// delimiter is the processor's parameter of that name; without one, a line feed.
func (p *Processor) delimiter() string {
	delimiter := "\n"
	for _, parameter := range p.Parameters {
		if *parameter.ParameterName == "Delimiter" {
			delimiter = *parameter.ParameterValue
		}
	}
	if delimiter == `\n` { // a backslash and an n, which AWS documents as the value
		return "\n"
	}
	return delimiter
}

// AppendDelimiter is the type of the only supported processor.
const AppendDelimiter = "AppendDelimiterToRecord"

func on(flag *bool) bool { return flag != nil && *flag }

// HTTPTarget is the address of an HTTP endpoint. The key is never stored here.
type HTTPTarget struct {
	Url       *string `json:",omitempty"`
	Name      *string `json:",omitempty"`
	AccessKey *string `json:",omitempty"`
}

// Attribute is sent with each request to an HTTP endpoint.
type Attribute struct {
	AttributeName  *string
	AttributeValue *string
}

// RequestConfiguration configures requests to an HTTP endpoint.
type RequestConfiguration struct {
	ContentEncoding  *string     `json:",omitempty"`
	CommonAttributes []Attribute `json:",omitempty"`
}

// RetryOptions are how long deliveries are retried.
type RetryOptions struct {
	DurationInSeconds *int `json:",omitempty"`
}

// HTTPEndpoint is a destination of requests.
type HTTPEndpoint struct {
	EndpointConfiguration       *HTTPTarget           `json:",omitempty"`
	BufferingHints              *BufferingHints       `json:",omitempty"`
	CloudWatchLoggingOptions    *Logging              `json:",omitempty"`
	RequestConfiguration        *RequestConfiguration `json:",omitempty"`
	ProcessingConfiguration     *Processing           `json:",omitempty"`
	RoleARN                     *string               `json:",omitempty"`
	RetryOptions                *RetryOptions         `json:",omitempty"`
	S3BackupMode                *string               `json:",omitempty"`
	S3Configuration             *S3                   `json:",omitempty"`
	SecretsManagerConfiguration *Switch               `json:",omitempty"`
}

// Over applies an update: the members that it names override.
func (h *HTTPEndpoint) Over(old *HTTPEndpoint) *HTTPEndpoint {
	if old == nil {
		return h
	}
	next := *old
	put(&next.EndpointConfiguration, h.EndpointConfiguration)
	put(&next.BufferingHints, h.BufferingHints)
	put(&next.CloudWatchLoggingOptions, h.CloudWatchLoggingOptions)
	put(&next.RequestConfiguration, h.RequestConfiguration)
	put(&next.ProcessingConfiguration, h.ProcessingConfiguration)
	put(&next.RoleARN, h.RoleARN)
	put(&next.RetryOptions, h.RetryOptions)
	put(&next.S3BackupMode, h.S3BackupMode)
	put(&next.SecretsManagerConfiguration, h.SecretsManagerConfiguration)
	if h.S3Configuration != nil {
		next.S3Configuration = h.S3Configuration.Extend().Over(old.S3Configuration.Extend()).Basic()
	}
	return &next
}

// Values of members that decide something.
const (
	GZIP    = "GZIP"
	AllData = "AllData"
)
