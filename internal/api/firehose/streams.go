package firehose

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/deliverystream"
)

// Values of members.
const (
	directPut   = "DirectPut"
	awsOwned    = "AWS_OWNED_CMK"
	customerKey = "CUSTOMER_MANAGED_CMK"
	enabled     = "ENABLED"
	disabled    = "DISABLED"
	active      = "ACTIVE"
)

// createDeliveryStream answers CreateDeliveryStream. The stream accepts records at once.
func (s *Service) createDeliveryStream(_ context.Context, call *api.Call, in *CreateDeliveryStreamInput) (*CreateDeliveryStreamOutput, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	if err := checkEnum("deliveryStreamType", in.DeliveryStreamType, directPut, "KinesisStreamAsSource", "MSKAsSource", "DatabaseAsSource"); err != nil {
		return nil, err
	}
	if kind := api.Deref(in.DeliveryStreamType); kind != "" && kind != directPut {
		return nil, unbuilt("DeliveryStreamType " + kind)
	}
	if name := in.unbuilt(); name != "" {
		return nil, unbuilt(name)
	}
	made := &deliverystream.Stream{Account: call.Account, Region: call.Region, Name: in.DeliveryStreamName}
	if made.Tags, err = readTags(in.Tags); err != nil {
		return nil, err
	}
	if hint := in.DirectPutSourceConfiguration; hint != nil {
		if made.Throughput, err = within("directPutSourceConfiguration.throughputHintInMBs", hint.ThroughputHintInMBs, 1, 100, 0); err != nil {
			return nil, err
		}
	}
	if e := in.DeliveryStreamEncryptionConfigurationInput; e != nil {
		if made.Encryption, err = readEncryption(e); err != nil {
			return nil, err
		}
	}
	given := destination{plain: in.S3DestinationConfiguration, extended: in.extended(), endpoint: in.HttpEndpointDestinationConfiguration, backup: in.ExtendedS3DestinationConfiguration.backup()}
	if given.count() != 1 {
		return nil, invalid("Exactly one destination configuration is supported for a Firehose")
	}
	key, err := s.direct(made, &given)
	if err != nil {
		return nil, err
	}
	return &CreateDeliveryStreamOutput{a.String()}, s.Store.Create(made, api.Deref(key))
}

// direct sets a stream's destination, or updates it. key is the new access key of the
// endpoint, empty for none; nil: unchanged.
func (s *Service) direct(next *deliverystream.Stream, given *destination) (key *string, err error) {
	extended, endpoint, isExtended := next.S3, next.HTTP, next.Extended
	switch {
	case given.endpoint != nil:
		if e := given.endpoint.EndpointConfiguration; e != nil {
			shown := *e
			key, shown.AccessKey = e.AccessKey, nil
			given.endpoint.EndpointConfiguration = &shown
		}
		extended, endpoint, isExtended = nil, given.endpoint.Over(next.HTTP), false
		err = s.checkEndpoint(endpoint, key)
		if err == nil && key == nil && next.HTTP != nil && *endpoint.EndpointConfiguration.Url != *next.HTTP.EndpointConfiguration.Url {
			key = new(string) // the old key was not meant for the new URL
		}
	case given.extended != nil:
		extended, endpoint, isExtended = given.extended.Over(next.S3), nil, true
		err = s.checkExtended("extendedS3DestinationConfiguration", extended, given.backup)
	case given.plain != nil:
		extended, endpoint = given.plain.Extend().Over(next.S3), nil
		err = s.checkExtended("s3DestinationConfiguration", extended, false)
	}
	if err != nil {
		return nil, err
	}
	next.S3, next.HTTP, next.Extended = extended, endpoint, isExtended
	if endpoint == nil && next.Sealed != nil {
		key = new(string)
	}
	for _, role := range next.Roles() {
		if err := s.assumable(next, role); err != nil {
			return nil, err
		}
	}
	return key, nil
}

func (s *Service) assumable(of *deliverystream.Stream, role string) error {
	if s.Assumable == nil {
		return nil
	}
	if s.Assumable(of.ARN(), role) != nil {
		return invalid("Firehose is unable to assume role %s. Please check the role provided.", role)
	}
	return nil
}

// describeDeliveryStream answers DescribeDeliveryStream.
func (s *Service) describeDeliveryStream(_ context.Context, call *api.Call, in *DescribeDeliveryStreamInput) (*DescribeDeliveryStreamOutput, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	if _, err := within("limit", in.Limit, 1, 10_000, 0); err != nil {
		return nil, err
	}
	found, err := s.Store.Find(a)
	if err != nil {
		return nil, err
	}
	s.done(call, Request{Stream: a, Name: "DescribeDeliveryStream"})
	d := describe(found)
	if api.Deref(in.ExclusiveStartDestinationId) >= deliverystream.DestinationID {
		d.Destinations = []DestinationDescription{}
	}
	return &DescribeDeliveryStreamOutput{d}, nil
}

func describe(s *deliverystream.Stream) Description {
	d := Description{
		DeliveryStreamName: s.Name, DeliveryStreamARN: s.ARN().String(), DeliveryStreamStatus: active, DeliveryStreamType: directPut,
		VersionId: strconv.Itoa(s.Version), CreateTimestamp: api.TimeOf(s.Created),
		DeliveryStreamEncryptionConfiguration: &EncryptionDescription{Status: disabled},
	}
	if s.Encryption.Enabled {
		d.DeliveryStreamEncryptionConfiguration = &EncryptionDescription{Status: enabled, KeyType: s.Encryption.KeyType, KeyARN: s.Encryption.KeyARN}
	}
	if !s.Updated.IsZero() {
		at := api.TimeOf(s.Updated)
		d.LastUpdateTimestamp = &at
	}
	if s.Throughput > 0 {
		d.Source = &SourceDescription{&ThroughputHint{&s.Throughput}}
	}
	to := DestinationDescription{DestinationId: deliverystream.DestinationID}
	if h := s.HTTP; h != nil {
		to.HttpEndpointDestinationDescription = &HTTPDescription{
			EndpointConfiguration: &EndpointDescription{h.EndpointConfiguration.Url, h.EndpointConfiguration.Name},
			BufferingHints:        h.BufferingHints, CloudWatchLoggingOptions: h.CloudWatchLoggingOptions, RequestConfiguration: h.RequestConfiguration,
			ProcessingConfiguration: h.ProcessingConfiguration, RoleARN: h.RoleARN, RetryOptions: h.RetryOptions, S3BackupMode: h.S3BackupMode,
			S3DestinationDescription: h.S3Configuration, SecretsManagerConfiguration: h.SecretsManagerConfiguration,
		}
	} else {
		to.S3DestinationDescription = s.S3.Basic()
		if s.Extended {
			to.ExtendedS3DestinationDescription = s.S3
		}
	}
	d.Destinations = []DestinationDescription{to}
	return d
}

// listDeliveryStreams answers ListDeliveryStreams.
func (s *Service) listDeliveryStreams(_ context.Context, call *api.Call, in *ListDeliveryStreamsInput) (*ListDeliveryStreamsOutput, error) {
	const usual, most = 10, 10_000
	limit, err := within("limit", in.Limit, 1, most, usual)
	if err != nil {
		return nil, err
	}
	if err := checkEnum("deliveryStreamType", in.DeliveryStreamType, directPut, "KinesisStreamAsSource", "MSKAsSource", "DatabaseAsSource"); err != nil {
		return nil, err
	}
	after := api.Deref(in.ExclusiveStartDeliveryStreamName)
	if in.ExclusiveStartDeliveryStreamName != nil {
		if err := checkName("exclusiveStartDeliveryStreamName", after); err != nil {
			return nil, err
		}
	}
	out := &ListDeliveryStreamsOutput{DeliveryStreamNames: []string{}}
	if cmp.Or(api.Deref(in.DeliveryStreamType), directPut) == directPut {
		names, more := s.Store.List(call.Account, call.Region, after, limit)
		out.DeliveryStreamNames, out.HasMoreDeliveryStreams = append(out.DeliveryStreamNames, names...), more
	}
	return out, nil
}

// deleteDeliveryStream answers DeleteDeliveryStream. Buffered records are deleted, too.
func (s *Service) deleteDeliveryStream(_ context.Context, call *api.Call, in *DeleteDeliveryStreamInput) (*Empty, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	return nil, s.Store.Delete(a)
}

// updateDestination answers UpdateDestination.
func (s *Service) updateDestination(_ context.Context, call *api.Call, in *UpdateDestinationInput) (*Empty, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	if err := checkText("currentDeliveryStreamVersionId", in.CurrentDeliveryStreamVersionId, 1, 50, digits); err != nil {
		return nil, err
	}
	if err := checkText("destinationId", in.DestinationId, 1, 100, destinationID); err != nil {
		return nil, err
	}
	if name := in.unbuilt(); name != "" {
		return nil, unbuilt(name)
	}
	given := destination{plain: in.S3DestinationUpdate, extended: in.extended(), endpoint: in.endpoint(), backup: in.ExtendedS3DestinationUpdate.backup()}
	if given.count() != 1 {
		return nil, invalid("Exactly one destination update is supported for a Firehose")
	}
	// The key must be known before Change. So the destination is checked before, on a copy.
	seen, err := s.Store.Find(a)
	if err != nil {
		return nil, err
	}
	defer func() { s.done(call, Request{Stream: a, Name: "UpdateDeliveryStream"}) }()
	next := seen.Clone()
	var key *string
	if err := next.Redirect(in.CurrentDeliveryStreamVersionId, in.DestinationId, func(next *deliverystream.Stream) (err error) {
		key, err = s.direct(next, &given)
		return err
	}, call.Time); err != nil {
		return nil, err
	}
	return nil, s.Store.Change(a, key, func(current *deliverystream.Stream, now time.Time) error {
		return current.Redirect(in.CurrentDeliveryStreamVersionId, in.DestinationId, func(current *deliverystream.Stream) error {
			current.S3, current.HTTP, current.Extended = next.S3, next.HTTP, next.Extended
			return nil
		}, now)
	})
}

// tagDeliveryStream answers TagDeliveryStream.
func (s *Service) tagDeliveryStream(_ context.Context, call *api.Call, in *TagDeliveryStreamInput) (*Empty, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	tags, err := readTags(in.Tags)
	if err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		return nil, constraint("tags", "[]", "Member must have length greater than or equal to 1")
	}
	return nil, s.Store.Change(a, nil, func(found *deliverystream.Stream, _ time.Time) error { return found.Tag(tags) })
}

// untagDeliveryStream answers UntagDeliveryStream.
func (s *Service) untagDeliveryStream(_ context.Context, call *api.Call, in *UntagDeliveryStreamInput) (*Empty, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	if n := len(in.TagKeys); n == 0 || n > deliverystream.MaxTags {
		return nil, constraint("tagKeys", "["+strings.Join(in.TagKeys, ", ")+"]", "Member must have length between 1 and 50")
	}
	for _, key := range in.TagKeys {
		if err := checkText("tagKeys", key, 1, maxTagKey, tagKey); err != nil {
			return nil, err
		}
	}
	return nil, s.Store.Change(a, nil, func(found *deliverystream.Stream, _ time.Time) error {
		for _, key := range in.TagKeys {
			delete(found.Tags, key)
		}
		return nil
	})
}

// listTagsForDeliveryStream answers ListTagsForDeliveryStream.
func (s *Service) listTagsForDeliveryStream(_ context.Context, call *api.Call, in *ListTagsForDeliveryStreamInput) (*ListTagsForDeliveryStreamOutput, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	limit, err := within("limit", in.Limit, 1, deliverystream.MaxTags, deliverystream.MaxTags)
	if err != nil {
		return nil, err
	}
	found, err := s.Store.Find(a)
	if err != nil {
		return nil, err
	}
	out := &ListTagsForDeliveryStreamOutput{Tags: []Tag{}}
	for _, key := range slices.Sorted(maps.Keys(found.Tags)) {
		switch {
		case key <= api.Deref(in.ExclusiveStartTagKey):
		case len(out.Tags) == limit:
			out.HasMoreTags = true
			return out, nil
		default:
			value := found.Tags[key]
			out.Tags = append(out.Tags, Tag{&key, &value})
		}
	}
	return out, nil
}

// startDeliveryStreamEncryption answers StartDeliveryStreamEncryption. Buffered records are
// always encrypted.
func (s *Service) startDeliveryStreamEncryption(_ context.Context, call *api.Call, in *StartDeliveryStreamEncryptionInput) (*Empty, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	encryption := deliverystream.Encryption{Enabled: true, KeyType: awsOwned, Changed: true}
	if e := in.DeliveryStreamEncryptionConfigurationInput; e != nil {
		if encryption, err = readEncryption(e); err != nil {
			return nil, err
		}
	}
	return nil, s.Store.Change(a, nil, func(found *deliverystream.Stream, _ time.Time) error {
		found.Encryption = encryption
		return nil
	})
}

// stopDeliveryStreamEncryption answers StopDeliveryStreamEncryption.
func (s *Service) stopDeliveryStreamEncryption(_ context.Context, call *api.Call, in *StreamInput) (*Empty, error) {
	a, err := named(call, in.DeliveryStreamName)
	if err != nil {
		return nil, err
	}
	return nil, s.Store.Change(a, nil, func(found *deliverystream.Stream, _ time.Time) error {
		found.Encryption = deliverystream.Encryption{Changed: true}
		return nil
	})
}

func readEncryption(in *EncryptionInput) (e deliverystream.Encryption, err error) {
	if in.KeyType == nil {
		return e, missing("deliveryStreamEncryptionConfigurationInput.keyType")
	}
	if err := checkEnum("deliveryStreamEncryptionConfigurationInput.keyType", in.KeyType, awsOwned, customerKey); err != nil {
		return e, err
	}
	if *in.KeyType == customerKey {
		return e, invalid("Encryption with a customer managed key is not built: what a stream holds is sealed with the server's own keys.")
	}
	if in.KeyARN != nil {
		return e, invalid("KeyARN should not be specified for KeyType AWS_OWNED_CMK.")
	}
	return deliverystream.Encryption{Enabled: true, KeyType: awsOwned, Changed: true}, nil
}
