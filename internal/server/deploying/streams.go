package deploying

import (
	"context"
	"reflect"

	"godwit.dev/godwit/internal/api/firehose"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack/resource"
)

// destinations are the properties of where a stream delivers to, and what an update calls them.
var destinations = map[string]string{
	"ExtendedS3DestinationConfiguration": "ExtendedS3DestinationUpdate", "HttpEndpointDestinationConfiguration": "HttpEndpointDestinationUpdate",
	"S3DestinationConfiguration": "S3DestinationUpdate",
}

func streamTags(of map[string]string) (tags []firehose.Tag) {
	for key, value := range of {
		tags = append(tags, firehose.Tag{Key: &key, Value: &value})
	}
	return tags
}

func (w *work) streamNow(ctx context.Context) (*firehose.Description, error) {
	found, err := ask[firehose.DescribeDeliveryStreamOutput](ctx, w, "firehose", "DescribeDeliveryStream", w.Region, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: w.Target.Physical})
	if err != nil {
		return nil, err
	}
	return &found.DeliveryStreamDescription, nil
}

// streamChange calls an operation on the stream that answers nothing.
func (w *work) streamChange(ctx context.Context, operation string, in any) error {
	_, err := ask[firehose.Empty](ctx, w, "firehose", operation, w.Region, in)
	return err
}

func createStream(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	found, err := w.streamNow(ctx)
	switch {
	case err == nil && w.ownSince(found.CreateTimestamp):
		return made{name, map[string]any{"Arn": found.DeliveryStreamARN}}, nil
	case err == nil:
		return made{}, w.taken(name)
	case !stacks.IsGone(err):
		return made{}, err
	}
	in := &firehose.CreateDeliveryStreamInput{}
	if err := fill(properties, in); err != nil {
		return made{}, err
	}
	in.DeliveryStreamName, in.Tags = name, streamTags(tags(properties["Tags"]))
	out, err := ask[firehose.CreateDeliveryStreamOutput](ctx, w, "firehose", "CreateDeliveryStream", w.Region, in)
	if err != nil {
		return made{}, err
	}
	return made{name, map[string]any{"Arn": out.DeliveryStreamARN}}, nil
}

func updateStream(ctx context.Context, w *work) (made, error) {
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := made{name, w.Target.Attributes}
	if err := w.hinted(ctx, now["DirectPutSourceConfiguration"]); err != nil {
		return is, err
	}
	if err := w.redirect(ctx, was, now); err != nil {
		return is, err
	}
	if before, after := was["DeliveryStreamEncryptionConfigurationInput"], now["DeliveryStreamEncryptionConfigurationInput"]; !resource.Same(before, after) {
		if err := w.encryptStream(ctx, after); err != nil {
			return is, err
		}
	}
	set, gone := retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := w.streamChange(ctx, "UntagDeliveryStream", &firehose.UntagDeliveryStreamInput{DeliveryStreamName: name, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := w.streamChange(ctx, "TagDeliveryStream", &firehose.TagDeliveryStreamInput{DeliveryStreamName: name, Tags: streamTags(set)}); err != nil {
			return is, err
		}
	}
	return is, nil
}

// hinted refuses another hint of how much is to be expected, which does not change.
func (w *work) hinted(ctx context.Context, as any) error {
	if as == nil {
		return nil
	}
	in := &firehose.CreateDeliveryStreamInput{}
	if err := fill(map[string]any{"DirectPutSourceConfiguration": as}, in); err != nil {
		return err
	}
	at, err := w.streamNow(ctx)
	if err != nil {
		return err
	}
	if at.Source == nil || !reflect.DeepEqual(at.Source.DirectPutSourceDescription, in.DirectPutSourceConfiguration) {
		return notUpdatable("DirectPutSourceConfiguration")
	}
	return nil
}

// redirect changes where the stream delivers to.
func (w *work) redirect(ctx context.Context, was, now map[string]any) error {
	change := map[string]any{}
	for property, update := range destinations {
		if to := now[property]; to != nil && !resource.Same(was[property], to) {
			change[update] = renamed(to, bucketsOf)
		}
	}
	if len(change) == 0 {
		return nil
	}
	at, err := w.streamNow(ctx)
	if err != nil {
		return err
	}
	in := &firehose.UpdateDestinationInput{DeliveryStreamName: at.DeliveryStreamName, CurrentDeliveryStreamVersionId: at.VersionId}
	if len(at.Destinations) > 0 {
		in.DestinationId = at.Destinations[0].DestinationId
	}
	if err := fill(change, in); err != nil {
		return err
	}
	return w.streamChange(ctx, "UpdateDestination", in)
}

// bucketsOf is what updates call the buckets of destinations.
var bucketsOf = map[string]string{"S3Configuration": "S3Update", "S3BackupConfiguration": "S3BackupUpdate"}

// renamed is an object of whose members some are called otherwise.
func renamed(object any, names map[string]string) any {
	from, ok := object.(map[string]any)
	if !ok {
		return object
	}
	to := make(map[string]any, len(from))
	for name, value := range from {
		if other, ok := names[name]; ok {
			name = other
		}
		to[name] = value
	}
	return to
}

func (w *work) encryptStream(ctx context.Context, as any) error {
	name := w.Target.Physical
	if as == nil {
		return w.streamChange(ctx, "StopDeliveryStreamEncryption", &firehose.StreamInput{DeliveryStreamName: name})
	}
	in := &firehose.StartDeliveryStreamEncryptionInput{DeliveryStreamName: name}
	if err := fill(map[string]any{"DeliveryStreamEncryptionConfigurationInput": as}, in); err != nil {
		return err
	}
	return w.streamChange(ctx, "StartDeliveryStreamEncryption", in)
}

func deleteStream(ctx context.Context, w *work) error {
	return unlessGone(w.streamChange(ctx, "DeleteDeliveryStream", &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: w.Target.Physical}))
}
