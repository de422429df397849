package firehose

import (
	"maps"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/deliverystream"
)

// access has the permissions that each operation requires. Source: actions, resources and
// condition keys for Firehose, in the service authorization reference.
var access = map[string]api.Access{
	"CreateDeliveryStream":      api.Needs(creating),
	"DescribeDeliveryStream":    on("DescribeDeliveryStream", func(in *DescribeDeliveryStreamInput) string { return in.DeliveryStreamName }),
	"ListDeliveryStreams":       api.Anywhere("firehose:ListDeliveryStreams"),
	"DeleteDeliveryStream":      on("DeleteDeliveryStream", func(in *DeleteDeliveryStreamInput) string { return in.DeliveryStreamName }),
	"UpdateDestination":         api.Needs(updating),
	"TagDeliveryStream":         api.Needs(tagging),
	"UntagDeliveryStream":       api.Needs(untagging),
	"ListTagsForDeliveryStream": on("ListTagsForDeliveryStream", func(in *ListTagsForDeliveryStreamInput) string { return in.DeliveryStreamName }),
	"PutRecord":                 on("PutRecord", func(in *PutRecordInput) string { return in.DeliveryStreamName }),
	"PutRecordBatch":            on("PutRecordBatch", func(in *PutRecordBatchInput) string { return in.DeliveryStreamName }),

	"StartDeliveryStreamEncryption": on("StartDeliveryStreamEncryption", func(in *StartDeliveryStreamEncryptionInput) string { return in.DeliveryStreamName }),
	"StopDeliveryStreamEncryption":  on("StopDeliveryStreamEncryption", func(in *StreamInput) string { return in.DeliveryStreamName }),
}

// on requires an action on a delivery stream, also if its name is invalid.
func on[In any](action string, name func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) { return of(call, action, name(in)), nil })
}

func of(call *api.Call, action, name string) []authorize.Need {
	return api.One("firehose:"+action, deliverystream.Name(call.Region, call.Account, name))
}

// passing requires iam:PassRole for the roles.
func passing(needs []authorize.Need, roles ...*string) []authorize.Need {
	seen := map[string]bool{}
	for _, role := range roles {
		if role == nil || seen[*role] {
			continue
		}
		seen[*role] = true
		needs = append(needs, api.Passing(*role, "firehose.amazonaws.com"))
	}
	return needs
}

func creating(call *api.Call, in *CreateDeliveryStreamInput) ([]authorize.Need, error) {
	needs := of(call, "CreateDeliveryStream", in.DeliveryStreamName)
	if len(in.Tags) > 0 {
		needs[0].Tags = map[string]string{}
		for _, t := range in.Tags {
			needs[0].Tags[api.Deref(t.Key)] = api.Deref(t.Value)
		}
		needs[0].TagKeys = slices.Sorted(maps.Keys(needs[0].Tags))
		tag := needs[0]
		tag.Action = "firehose:TagDeliveryStream"
		needs = append(needs, tag)
	}
	return passing(needs, rolesOf(in.S3DestinationConfiguration, in.extended(), in.HttpEndpointDestinationConfiguration)...), nil
}

func updating(call *api.Call, in *UpdateDestinationInput) ([]authorize.Need, error) {
	return passing(of(call, "UpdateDestination", in.DeliveryStreamName), rolesOf(in.S3DestinationUpdate, in.extended(), in.endpoint())...), nil
}

// rolesOf are the roles of destinations.
func rolesOf(plain *deliverystream.S3, extended *deliverystream.ExtendedS3, endpoint *deliverystream.HTTPEndpoint) (roles []*string) {
	if plain != nil {
		roles = append(roles, plain.RoleARN)
	}
	if extended != nil {
		roles = append(roles, extended.RoleARN)
	}
	if endpoint != nil {
		roles = append(roles, endpoint.RoleARN)
		if endpoint.S3Configuration != nil {
			roles = append(roles, endpoint.S3Configuration.RoleARN)
		}
	}
	return roles
}

func tagging(call *api.Call, in *TagDeliveryStreamInput) ([]authorize.Need, error) {
	needs := of(call, "TagDeliveryStream", in.DeliveryStreamName)
	needs[0].Tags = map[string]string{}
	for _, t := range in.Tags {
		needs[0].Tags[api.Deref(t.Key)] = api.Deref(t.Value)
	}
	needs[0].TagKeys = slices.Sorted(maps.Keys(needs[0].Tags))
	return needs, nil
}

func untagging(call *api.Call, in *UntagDeliveryStreamInput) ([]authorize.Need, error) {
	needs := of(call, "UntagDeliveryStream", in.DeliveryStreamName)
	needs[0].TagKeys = in.TagKeys
	return needs, nil
}
