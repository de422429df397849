package messaging

import (
	"context"
	"reflect"

	"godwit.dev/godwit/internal/api/firehose"
	"godwit.dev/godwit/internal/server/deploying/step"
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

func streamNow(ctx context.Context, w *step.Work) (*firehose.Description, error) {
	found, err := step.Ask[firehose.DescribeDeliveryStreamOutput](ctx, w, "firehose", "DescribeDeliveryStream", w.Region, &firehose.DescribeDeliveryStreamInput{DeliveryStreamName: w.Target.Physical})
	if err != nil {
		return nil, err
	}
	return &found.DeliveryStreamDescription, nil
}

// streamChange calls an operation on the stream that answers nothing.
func streamChange(ctx context.Context, w *step.Work, operation string, in any) error {
	_, err := step.Ask[firehose.Empty](ctx, w, "firehose", operation, w.Region, in)
	return err
}

func createStream(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	found, err := streamNow(ctx, w)
	switch {
	case err == nil && w.OwnSince(found.CreateTimestamp):
		return step.Made{Physical: name, Attributes: map[string]any{"Arn": found.DeliveryStreamARN}}, nil
	case err == nil:
		return step.Made{}, w.Taken(name)
	case !stacks.IsGone(err):
		return step.Made{}, err
	}
	in := &firehose.CreateDeliveryStreamInput{}
	if err := step.Fill(properties, in); err != nil {
		return step.Made{}, err
	}
	in.DeliveryStreamName, in.Tags = name, streamTags(step.Tags(properties["Tags"]))
	out, err := step.Ask[firehose.CreateDeliveryStreamOutput](ctx, w, "firehose", "CreateDeliveryStream", w.Region, in)
	if err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: name, Attributes: map[string]any{"Arn": out.DeliveryStreamARN}}, nil
}

func updateStream(ctx context.Context, w *step.Work) (step.Made, error) {
	name, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := step.Made{Physical: name, Attributes: w.Target.Attributes}
	if err := hinted(ctx, w, now["DirectPutSourceConfiguration"]); err != nil {
		return is, err
	}
	if err := redirect(ctx, w, was, now); err != nil {
		return is, err
	}
	if before, after := was["DeliveryStreamEncryptionConfigurationInput"], now["DeliveryStreamEncryptionConfigurationInput"]; !resource.Same(before, after) {
		if err := encryptStream(ctx, w, after); err != nil {
			return is, err
		}
	}
	set, gone := step.Retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := streamChange(ctx, w, "UntagDeliveryStream", &firehose.UntagDeliveryStreamInput{DeliveryStreamName: name, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := streamChange(ctx, w, "TagDeliveryStream", &firehose.TagDeliveryStreamInput{DeliveryStreamName: name, Tags: streamTags(set)}); err != nil {
			return is, err
		}
	}
	return is, nil
}

// hinted refuses another hint of how much is to be expected, which does not change.
func hinted(ctx context.Context, w *step.Work, as any) error {
	if as == nil {
		return nil
	}
	in := &firehose.CreateDeliveryStreamInput{}
	if err := step.Fill(map[string]any{"DirectPutSourceConfiguration": as}, in); err != nil {
		return err
	}
	at, err := streamNow(ctx, w)
	if err != nil {
		return err
	}
	if at.Source == nil || !reflect.DeepEqual(at.Source.DirectPutSourceDescription, in.DirectPutSourceConfiguration) {
		return step.NotUpdatable("DirectPutSourceConfiguration")
	}
	return nil
}

// redirect changes where the stream delivers to.
func redirect(ctx context.Context, w *step.Work, was, now map[string]any) error {
	change := map[string]any{}
	for property, update := range destinations {
		if to := now[property]; to != nil && !resource.Same(was[property], to) {
			change[update] = renamed(to, bucketsOf)
		}
	}
	if len(change) == 0 {
		return nil
	}
	at, err := streamNow(ctx, w)
	if err != nil {
		return err
	}
	in := &firehose.UpdateDestinationInput{DeliveryStreamName: at.DeliveryStreamName, CurrentDeliveryStreamVersionId: at.VersionId}
	if len(at.Destinations) > 0 {
		in.DestinationId = at.Destinations[0].DestinationId
	}
	if err := step.Fill(change, in); err != nil {
		return err
	}
	return streamChange(ctx, w, "UpdateDestination", in)
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

func encryptStream(ctx context.Context, w *step.Work, as any) error {
	name := w.Target.Physical
	if as == nil {
		return streamChange(ctx, w, "StopDeliveryStreamEncryption", &firehose.StreamInput{DeliveryStreamName: name})
	}
	in := &firehose.StartDeliveryStreamEncryptionInput{DeliveryStreamName: name}
	if err := step.Fill(map[string]any{"DeliveryStreamEncryptionConfigurationInput": as}, in); err != nil {
		return err
	}
	return streamChange(ctx, w, "StartDeliveryStreamEncryption", in)
}

func deleteStream(ctx context.Context, w *step.Work) error {
	return step.UnlessGone(streamChange(ctx, w, "DeleteDeliveryStream", &firehose.DeleteDeliveryStreamInput{DeliveryStreamName: w.Target.Physical}))
}
