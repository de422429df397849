package firehose

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/outlet"
)

// The limits of the model, in characters.
const (
	maxTagKey   = 128
	maxTagValue = 256
	maxShown    = 300 // of a value in an error message
)

func invalidShape(format string, args ...any) error {
	return fault.Newf(fault.ValidationFailed, format, args...)
}

// constraint is the error of AWS's validation for a member.
func constraint(member, value, rule string) error {
	return invalidShape("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", fault.Excerpt(value, maxShown, "…"), member, rule)
}

func missing(member string) error {
	return invalidShape("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", member)
}

// unbuilt is the error for a feature that is not implemented.
func unbuilt(what string) error {
	return invalid("%s is not built: streams are written to directly, and deliver to S3 and HTTP endpoints.", what)
}

func checkName(member, name string) error {
	const longest = 64
	switch {
	case name == "":
		return constraint(member, name, "Member must have length greater than or equal to 1")
	case len(name) > longest:
		return constraint(member, name, "Member must have length less than or equal to 64")
	case !deliverystream.ValidName(name):
		return constraint(member, name, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	}
	return nil
}

// The patterns of the model.
var (
	digits        = regexp.MustCompile(`^[0-9]+$`)
	destinationID = regexp.MustCompile(`^[a-zA-Z0-9-]+$`)
	roleARN       = regexp.MustCompile(`^arn:.*:iam::\d{12}:role/[a-zA-Z_0-9+=,.@\-_/]+$`)
	bucketARN     = regexp.MustCompile(`^arn:.*:s3:::[\w\.\-]{1,255}$`)
	oneLine       = regexp.MustCompile(`^.*$`)
	logStream     = regexp.MustCompile(`^[^:*]*$`)
	extension     = regexp.MustCompile(`^$|^\.[0-9a-z!\-_.*'()]+$`)
	timeZone      = regexp.MustCompile(`^$|^[a-zA-Z/_]+$`)
	notBlank      = regexp.MustCompile(`\S`)
	tagKey        = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:\/=+\-@%]*$`)
)

func checkText(member, value string, minimum, maximum int, pattern *regexp.Regexp) error {
	switch n := utf8.RuneCountInString(value); {
	case n < minimum:
		return constraint(member, value, fmt.Sprintf("Member must have length greater than or equal to %d", minimum))
	case n > maximum:
		return constraint(member, value, fmt.Sprintf("Member must have length less than or equal to %d", maximum))
	case !pattern.MatchString(value):
		return constraint(member, value, "Member must satisfy regular expression pattern: "+strings.Trim(pattern.String(), "^$"))
	}
	return nil
}

func checkOptional(member string, value *string, minimum, maximum int, pattern *regexp.Regexp) error {
	if value == nil {
		return nil
	}
	return checkText(member, *value, minimum, maximum, pattern)
}

func checkEnum(member string, value *string, all ...string) error {
	if value == nil || slices.Contains(all, *value) {
		return nil
	}
	return constraint(member, *value, check.Enum(all...))
}

// within validates an optional number.
func within(member string, value *int, minimum, maximum, usual int) (int, error) {
	switch {
	case value == nil:
		return usual, nil
	case *value < minimum:
		return 0, constraint(member, fmt.Sprint(*value), fmt.Sprintf("Member must have value greater than or equal to %d", minimum))
	case *value > maximum:
		return 0, constraint(member, fmt.Sprint(*value), fmt.Sprintf("Member must have value less than or equal to %d", maximum))
	}
	return *value, nil
}

func readTags(all []Tag) (map[string]string, error) {
	if len(all) > deliverystream.MaxTags {
		return nil, constraint("tags", fmt.Sprintf("[%d tags]", len(all)), "Member must have length less than or equal to 50")
	}
	tags := make(map[string]string, len(all))
	for _, tag := range all {
		if tag.Key == nil {
			return nil, missing("tags.1.member.key")
		}
		if err := checkText("tags.1.member.key", *tag.Key, 1, maxTagKey, tagKey); err != nil {
			return nil, err
		}
		if strings.HasPrefix(*tag.Key, "aws:") {
			return nil, constraint("tags.1.member.key", *tag.Key, `Member must satisfy regular expression pattern: ^(?!aws:)[\p{L}\p{Z}\p{N}_.:\/=+\-@%]*$`)
		}
		if err := checkText("tags.1.member.value", api.Deref(tag.Value), 0, maxTagValue, tagKey); err != nil {
			return nil, err
		}
		if _, twice := tags[*tag.Key]; twice {
			return nil, invalid("Duplicate tag keys found: %s", *tag.Key)
		}
		tags[*tag.Key] = api.Deref(tag.Value)
	}
	return tags, nil
}

// destination is the destination in a request.
type destination struct {
	plain    *deliverystream.S3
	extended *deliverystream.ExtendedS3
	endpoint *deliverystream.HTTPEndpoint
	backup   bool // with a backup besides the bucket
}

func (d *destination) count() (n int) {
	for _, given := range []bool{d.plain != nil, d.extended != nil, d.endpoint != nil} {
		if given {
			n++
		}
	}
	return n
}

// backup reports whether the destination has a backup.
func (e *ExtendedInput) backup() bool {
	return e != nil && (e.S3BackupConfiguration != nil || e.S3BackupUpdate != nil)
}

// Defaults. Source: Firehose's API reference.
const (
	usualSize     = 5   // MiB
	usualInterval = 300 // seconds
	usualRetry    = 300 // seconds
	noEncryption  = "NoEncryption"
	uncompressed  = "UNCOMPRESSED"
	failedOnly    = "FailedDataOnly"
)

// checkExtended validates a bucket, and sets defaults.
func (s *Service) checkExtended(member string, d *deliverystream.ExtendedS3, backup bool) error {
	if s.NoBuckets {
		return invalid("There is nowhere to put objects: start the server with --firehose-s3-endpoint or --firehose-directory.")
	}
	if d.RoleARN == nil {
		return missing(member + ".roleARN")
	}
	if d.BucketARN == nil {
		return missing(member + ".bucketARN")
	}
	const maxPrefix = 1024
	for _, err := range []error{
		checkText(member+".roleARN", *d.RoleARN, 1, 512, roleARN),
		checkText(member+".bucketARN", *d.BucketARN, 1, 2048, bucketARN),
		checkOptional(member+".prefix", d.Prefix, 0, maxPrefix, oneLine),
		checkOptional(member+".errorOutputPrefix", d.ErrorOutputPrefix, 0, maxPrefix, oneLine),
		checkEnum(member+".compressionFormat", d.CompressionFormat, uncompressed, deliverystream.GZIP, "ZIP", "Snappy", "HADOOP_SNAPPY"),
		checkEnum(member+".s3BackupMode", d.S3BackupMode, "Disabled", "Enabled"),
		checkOptional(member+".fileExtension", d.FileExtension, 0, 128, extension),
		checkOptional(member+".customTimeZone", d.CustomTimeZone, 0, 50, timeZone),
		checkLogging(member, &d.CloudWatchLoggingOptions),
		checkHints(member, &d.BufferingHints, 128),
		checkProcessing(member, d.ProcessingConfiguration),
		checkPartitioning(member, d.DynamicPartitioningConfiguration),
		deliverystream.CheckPrefixes(api.Deref(d.Prefix), api.Deref(d.ErrorOutputPrefix)),
	} {
		if err != nil {
			return err
		}
	}
	switch format := api.Deref(d.CompressionFormat); {
	case format != "" && format != uncompressed && format != deliverystream.GZIP:
		return invalid("Compression with %s is not built: use UNCOMPRESSED or GZIP.", format)
	case d.EncryptionConfiguration != nil && d.EncryptionConfiguration.KMSEncryptionConfig != nil:
		return invalid("Encryption of objects with a key of KMS is not built: use NoEncryption.")
	case backup || api.Deref(d.S3BackupMode) == "Enabled":
		return invalid("A backup beside the destination in S3 is not built: use S3BackupMode Disabled.")
	case isOn(d.DataFormatConversionConfiguration):
		return invalid("The conversion of records to another format is not built.")
	case isPartitioned(d.DynamicPartitioningConfiguration):
		return invalid("Dynamic partitioning is not built.")
	}
	if e := d.EncryptionConfiguration; e != nil {
		if err := checkEnum(member+".encryptionConfiguration.noEncryptionConfig", e.NoEncryptionConfig, noEncryption); err != nil {
			return err
		}
	}
	if _, err := outlet.Zone(d); err != nil || api.Deref(d.CustomTimeZone) == "Local" {
		return invalid("CustomTimeZone %s is not supported.", *d.CustomTimeZone)
	}
	fill(&d.Prefix, "")
	fill(&d.CompressionFormat, uncompressed)
	d.EncryptionConfiguration = &deliverystream.BucketEncryption{NoEncryptionConfig: new(noEncryption)}
	fill(&d.S3BackupMode, "Disabled")
	return nil
}

func isOn(s *deliverystream.Switch) bool { return s != nil && s.Enabled != nil && *s.Enabled }

func isPartitioned(p *deliverystream.Partitioning) bool {
	return p != nil && p.Enabled != nil && *p.Enabled
}

func fill[T any](into **T, value T) {
	if *into == nil {
		*into = &value
	}
}

func checkHints(member string, hints **deliverystream.BufferingHints, limit int) error {
	const longest = 900
	next := deliverystream.BufferingHints{}
	if *hints != nil {
		next = **hints
	}
	size, err := within(member+".bufferingHints.sizeInMBs", next.SizeInMBs, 1, limit, usualSize)
	if err != nil {
		return err
	}
	interval, err := within(member+".bufferingHints.intervalInSeconds", next.IntervalInSeconds, 0, longest, usualInterval)
	if err != nil {
		return err
	}
	*hints = &deliverystream.BufferingHints{SizeInMBs: &size, IntervalInSeconds: &interval}
	return nil
}

func checkLogging(member string, options **deliverystream.Logging) error {
	if *options == nil {
		off := false
		*options = &deliverystream.Logging{Enabled: &off}
		return nil
	}
	const longest = arn.MaxLogGroupName // of streams, too
	if err := checkOptional(member+".cloudWatchLoggingOptions.logGroupName", (*options).LogGroupName, 0, longest, arn.LogGroupPattern); err != nil {
		return err
	}
	if err := checkOptional(member+".cloudWatchLoggingOptions.logStreamName", (*options).LogStreamName, 0, longest, logStream); err != nil {
		return err
	}
	if o := *options; o.Enabled != nil && *o.Enabled && (api.Deref(o.LogGroupName) == "" || api.Deref(o.LogStreamName) == "") {
		return invalid("LogGroupName and LogStreamName must be specified when CloudWatchLoggingOptions is enabled.")
	}
	return nil
}

// checkProcessing refuses all processors but the one that is implemented.
func checkProcessing(member string, p *deliverystream.Processing) error {
	if p == nil {
		return nil
	}
	for _, one := range p.Processors {
		if one.Type == nil {
			return missing(member + ".processingConfiguration.processors.1.member.type")
		}
		if err := checkEnum(member+".processingConfiguration.processors.1.member.type", one.Type,
			"RecordDeAggregation", "Decompression", "CloudWatchLogProcessing", "Lambda", "MetadataExtraction", deliverystream.AppendDelimiter); err != nil {
			return err
		}
		if *one.Type != deliverystream.AppendDelimiter && p.Enabled != nil && *p.Enabled {
			return invalid("Processors of type %s are not built: only %s is.", *one.Type, deliverystream.AppendDelimiter)
		}
		for _, parameter := range one.Parameters {
			if parameter.ParameterName == nil || parameter.ParameterValue == nil {
				return missing(member + ".processingConfiguration.processors.1.member.parameters")
			}
		}
	}
	return nil
}

// checkEndpoint validates an HTTP endpoint, and sets defaults.
func (s *Service) checkEndpoint(h *deliverystream.HTTPEndpoint, key *string) error {
	const member = "httpEndpointDestinationConfiguration"
	e := h.EndpointConfiguration
	if e == nil || e.Url == nil {
		return missing(member + ".endpointConfiguration.url")
	}
	if h.S3Configuration == nil {
		return missing(member + ".s3Configuration")
	}
	const longestURL, longestName, longestKey = 1000, 256, 4096
	for _, err := range []error{
		s.checkURL(member+".endpointConfiguration.url", *e.Url, longestURL),
		checkOptional(member+".endpointConfiguration.name", e.Name, 1, longestName, notBlank),
		checkOptional(member+".roleARN", h.RoleARN, 1, 512, roleARN),
		checkEnum(member+".s3BackupMode", h.S3BackupMode, failedOnly, deliverystream.AllData),
		checkLogging(member, &h.CloudWatchLoggingOptions),
		checkHints(member, &h.BufferingHints, 64),
		checkProcessing(member, h.ProcessingConfiguration),
		checkRequests(member, h),
	} {
		if err != nil {
			return err
		}
	}
	switch at := member + ".endpointConfiguration.accessKey"; { // its value must not be shown
	case key != nil && len(*key) > longestKey:
		return invalidShape("1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", at, longestKey)
	case key != nil && strings.ContainsFunc(*key, unicode.IsControl): // it could not be sent in a header
		return invalidShape("1 validation error detected: Value at '%s' failed to satisfy constraint: Member must satisfy regular expression pattern: .*", at)
	}
	if p := h.ProcessingConfiguration; p != nil && p.Enabled != nil && *p.Enabled && len(p.Processors) > 0 {
		return invalid("Processors before an HTTP endpoint are not built.")
	}
	if isOn(h.SecretsManagerConfiguration) {
		return invalid("Access keys from Secrets Manager are not built: name the AccessKey.")
	}
	extended := h.S3Configuration.Extend()
	err := s.checkExtended(member+".s3Configuration", extended, false)
	if err != nil {
		return err
	}
	h.S3Configuration = extended.Basic()
	if h.RetryOptions, err = checkRetry(member, h.RetryOptions, usualRetry); err != nil {
		return err
	}
	fill(&h.S3BackupMode, failedOnly)
	return nil
}

// checkRetry validates the duration of retries, and sets the default.
func checkRetry(member string, o *deliverystream.RetryOptions, usual int) (*deliverystream.RetryOptions, error) {
	if o == nil {
		o = &deliverystream.RetryOptions{}
	}
	const longest = 7200
	retry, err := within(member+".retryOptions.durationInSeconds", o.DurationInSeconds, 0, longest, usual)
	return &deliverystream.RetryOptions{DurationInSeconds: &retry}, err
}

func checkPartitioning(member string, p *deliverystream.Partitioning) error {
	if p == nil || p.RetryOptions == nil {
		return nil
	}
	_, err := checkRetry(member+".dynamicPartitioningConfiguration", p.RetryOptions, usualRetry)
	return err
}

// checkURL validates the URL of an endpoint. Only development allows one without TLS.
func (s *Service) checkURL(member, text string, longest int) error {
	if len(text) == 0 || len(text) > longest {
		return constraint(member, text, fmt.Sprintf("Member must have length between 1 and %d", longest))
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !s.PlainEndpoints) {
		return constraint(member, text, "Member must satisfy regular expression pattern: https://.*")
	}
	if u.Hostname() == "" || u.User != nil {
		return invalid("The URL of the HTTP endpoint must name a host, and no user.")
	}
	return nil
}

func checkRequests(member string, h *deliverystream.HTTPEndpoint) error {
	c := deliverystream.RequestConfiguration{}
	if h.RequestConfiguration != nil {
		c = *h.RequestConfiguration
	}
	if err := checkEnum(member+".requestConfiguration.contentEncoding", c.ContentEncoding, "NONE", deliverystream.GZIP); err != nil {
		return err
	}
	const most, longestName, longestValue = 50, 256, 1024
	if len(c.CommonAttributes) > most {
		return constraint(member+".requestConfiguration.commonAttributes", fmt.Sprintf("[%d attributes]", len(c.CommonAttributes)), "Member must have length less than or equal to 50")
	}
	seen := map[string]bool{}
	for _, a := range c.CommonAttributes {
		at := member + ".requestConfiguration.commonAttributes.1.member"
		if a.AttributeName == nil || a.AttributeValue == nil {
			return missing(at + ".attributeName")
		}
		if err := checkText(at+".attributeName", *a.AttributeName, 1, longestName, notBlank); err != nil {
			return err
		}
		if err := checkText(at+".attributeValue", *a.AttributeValue, 0, longestValue, oneLine); err != nil {
			return err
		}
		if seen[*a.AttributeName] {
			return invalid("Duplicate common attribute name: %s", *a.AttributeName)
		}
		seen[*a.AttributeName] = true
	}
	fill(&c.ContentEncoding, "NONE")
	h.RequestConfiguration = &c
	return nil
}
