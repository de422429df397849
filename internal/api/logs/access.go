package logs

import (
	"context"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
)

// access has the permissions that each operation requires. Source: actions, resources and
// condition keys for CloudWatch Logs, in the service authorization reference.
var access = map[string]api.Access{
	"CreateLogGroup":                api.Needs(creating),
	"DeleteLogGroup":                onGroup("DeleteLogGroup", func(in *GroupInput) string { return in.LogGroupName }),
	"DescribeLogGroups":             everyGroup("DescribeLogGroups"),
	"ListLogGroups":                 everyGroup("ListLogGroups"),
	"PutRetentionPolicy":            onGroup("PutRetentionPolicy", func(in *PutRetentionPolicyInput) string { return in.LogGroupName }),
	"DeleteRetentionPolicy":         onGroup("DeleteRetentionPolicy", func(in *GroupInput) string { return in.LogGroupName }),
	"PutLogGroupDeletionProtection": onIdentified("PutLogGroupDeletionProtection", func(in *PutLogGroupDeletionProtectionInput) (_, _ *string) { return nil, &in.LogGroupIdentifier }),
	"TagLogGroup":                   api.Needs(taggingGroup),
	"UntagLogGroup":                 api.Needs(untaggingGroup),
	"ListTagsLogGroup":              onGroup("ListTagsLogGroup", func(in *GroupInput) string { return in.LogGroupName }),
	"TagResource":                   api.Needs(tagging),
	"UntagResource":                 api.Needs(untagging),
	"ListTagsForResource": api.Needs(func(call *api.Call, in *ListTagsForResourceInput) ([]authorize.Need, error) {
		return onTagged(call, "ListTagsForResource", in.ResourceArn)
	}),
	"CreateLogStream":    onStream("CreateLogStream", func(in *StreamInput) (string, string) { return in.LogGroupName, in.LogStreamName }),
	"DeleteLogStream":    onStream("DeleteLogStream", func(in *StreamInput) (string, string) { return in.LogGroupName, in.LogStreamName }),
	"DescribeLogStreams": onIdentified("DescribeLogStreams", func(in *DescribeLogStreamsInput) (_, _ *string) { return in.LogGroupName, in.LogGroupIdentifier }),
	"PutLogEvents":       onStream("PutLogEvents", func(in *PutLogEventsInput) (string, string) { return in.LogGroupName, in.LogStreamName }),
	"GetLogEvents":       api.Needs(getting),
	"FilterLogEvents":    onIdentified("FilterLogEvents", func(in *FilterLogEventsInput) (_, _ *string) { return in.LogGroupName, in.LogGroupIdentifier }),

	"DescribeDestinations":        api.Anywhere("logs:DescribeDestinations"),
	"DescribeResourcePolicies":    api.Anywhere("logs:DescribeResourcePolicies"),
	"DescribeQueries":             api.Anywhere("logs:DescribeQueries"),
	"DescribeSubscriptionFilters": onGroup("DescribeSubscriptionFilters", func(in *DescribeSubscriptionFiltersInput) string { return in.LogGroupName }),
	"DescribeMetricFilters": api.Needs(func(call *api.Call, in *DescribeMetricFiltersInput) ([]authorize.Need, error) {
		return onFilters(call, "DescribeMetricFilters", in.LogGroupName)
	}),
	"PutSubscriptionFilter":    api.Needs(subscribing),
	"DeleteSubscriptionFilter": onGroup("DeleteSubscriptionFilter", func(in *FilterInput) string { return in.LogGroupName }),
	"PutMetricFilter":          onGroup("PutMetricFilter", func(in *PutMetricFilterInput) string { return in.LogGroupName }),
	"DeleteMetricFilter": api.Needs(func(call *api.Call, in *FilterInput) ([]authorize.Need, error) {
		if err := checkFilter(in); err != nil {
			return nil, err
		}
		g, err := group(call, in.LogGroupName)
		return inGroup("DeleteMetricFilter", g, ""), err
	}),
	"DeleteResourcePolicy":      api.Anywhere("logs:DeleteResourcePolicy"),
	"StartQuery":                api.Needs(querying),
	"CreateExportTask":          onGroup("CreateExportTask", func(in *CreateExportTaskInput) string { return in.LogGroupName }),
	"CancelExportTask":          api.Anywhere("logs:CancelExportTask"),
	"GetDeliveryDestination":    onDelivery("GetDeliveryDestination", "delivery-destination:", func(in *NameInput) string { return in.Name }),
	"DeleteDeliveryDestination": onDelivery("DeleteDeliveryDestination", "delivery-destination:", func(in *NameInput) string { return in.Name }),
	"GetDeliverySource":         onDelivery("GetDeliverySource", "delivery-source:", func(in *NameInput) string { return in.Name }),
	"PutDeliverySource":         onDelivery("PutDeliverySource", "delivery-source:", func(in *PutDeliverySourceInput) string { return in.Name }),
}

// everyGroup requires an action on all groups.
func everyGroup(action string) api.Access {
	return func(_ context.Context, call *api.Call, _ any) ([]authorize.Need, error) {
		return inGroup(action, arn.LogGroup(call.Region, call.Account, ""), ""), nil
	}
}

// onGroup requires an action on a group.
func onGroup[In any](action string, name func(*In) string) api.Access {
	return onStream(action, func(in *In) (string, string) { return name(in), "" })
}

// onStream requires an action on a stream.
func onStream[In any](action string, names func(*In) (group, stream string)) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		name, stream := names(in)
		g, err := group(call, name)
		return inGroup(action, g, stream), err
	})
}

// onIdentified requires an action on a group, which is in one of two members.
func onIdentified[In any](action string, names func(*In) (name, id *string)) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		name, id := names(in)
		g, err := groupBy(call, name, id)
		return inGroup(action, g, ""), err
	})
}

// onDelivery requires an action on a part of a delivery.
func onDelivery[In any](action, kind string, name func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		return api.One("logs:"+action, arn.ARN{Service: "logs", Region: call.Region, Account: call.Account, Resource: kind + name(in)}), nil
	})
}

// inGroup requires an action on a stream. As with AWS, the resource of a group is that of a
// stream with an empty name.
func inGroup(action string, g arn.ARN, stream string) []authorize.Need {
	return []authorize.Need{{Action: "logs:" + action, Resource: authorize.LogStream(g, stream), Account: g.Account}}
}

func getting(call *api.Call, in *GetLogEventsInput) ([]authorize.Need, error) {
	g, err := groupBy(call, in.LogGroupName, in.LogGroupIdentifier)
	return inGroup("GetLogEvents", g, in.LogStreamName), err
}

func onFilters(call *api.Call, action string, of *string) ([]authorize.Need, error) {
	if of == nil {
		return inGroup(action, arn.LogGroup(call.Region, call.Account, ""), ""), nil
	}
	g, err := group(call, *of)
	return inGroup(action, g, ""), err
}

func querying(call *api.Call, in *StartQueryInput) (needs []authorize.Need, err error) {
	names := in.LogGroupNames
	if in.LogGroupName != nil {
		names = append(slices.Clone(names), *in.LogGroupName)
	}
	if len(names) == 0 {
		return api.Any("logs:StartQuery"), nil
	}
	for _, name := range names {
		g, err := group(call, name)
		if err != nil {
			return nil, err
		}
		needs = append(needs, inGroup("StartQuery", g, "")...)
	}
	return needs, nil
}

func creating(call *api.Call, in *CreateLogGroupInput) ([]authorize.Need, error) {
	g, err := group(call, in.LogGroupName)
	if err != nil {
		return nil, err
	}
	needs := inGroup("CreateLogGroup", g, "")
	if len(in.Tags) == 0 {
		return needs, nil
	}
	needs[0].Tags, needs[0].TagKeys = in.Tags, slices.Sorted(maps.Keys(in.Tags))
	tag := needs[0]
	tag.Action = "logs:TagResource"
	return append(needs, tag), nil
}

// onTagged requires an action on a group, given by its ARN.
func onTagged(call *api.Call, action, id string) ([]authorize.Need, error) {
	g, err := resource(call, id)
	if err != nil {
		return nil, err
	}
	return api.One("logs:"+action, g), nil
}

func tagging(call *api.Call, in *TagResourceInput) ([]authorize.Need, error) {
	needs, err := onTagged(call, "TagResource", in.ResourceArn)
	if err == nil {
		needs[0].Tags, needs[0].TagKeys = in.Tags, slices.Sorted(maps.Keys(in.Tags))
	}
	return needs, err
}

func untagging(call *api.Call, in *UntagResourceInput) ([]authorize.Need, error) {
	needs, err := onTagged(call, "UntagResource", in.ResourceArn)
	if err == nil {
		needs[0].TagKeys = in.TagKeys
	}
	return needs, err
}

func taggingGroup(call *api.Call, in *TagLogGroupInput) ([]authorize.Need, error) {
	g, err := group(call, in.LogGroupName)
	needs := inGroup("TagLogGroup", g, "")
	needs[0].Tags, needs[0].TagKeys = in.Tags, slices.Sorted(maps.Keys(in.Tags))
	return needs, err
}

func untaggingGroup(call *api.Call, in *UntagLogGroupInput) ([]authorize.Need, error) {
	g, err := group(call, in.LogGroupName)
	needs := inGroup("UntagLogGroup", g, "")
	needs[0].TagKeys = in.Tags
	return needs, err
}
