package cloudwatch

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
)

// access has the permissions that each operation requires. Source: actions, resources and
// condition keys for CloudWatch, in the service authorization reference.
var access = map[string]api.Access{
	"PutMetricData":       api.Needs(putting),
	"GetMetricData":       api.Anywhere("cloudwatch:GetMetricData"),
	"GetMetricStatistics": api.Anywhere("cloudwatch:GetMetricStatistics"),
	"ListMetrics":         api.Anywhere("cloudwatch:ListMetrics"),

	"PutMetricAlarm": api.Needs(func(call *api.Call, in *PutMetricAlarmInput) ([]authorize.Need, error) {
		return alarming(call, "PutMetricAlarm", in.AlarmName, slices.Concat(in.OKActions, in.AlarmActions, in.InsufficientDataActions), in.Tags), nil
	}),
	"PutCompositeAlarm": api.Needs(func(call *api.Call, in *PutCompositeAlarmInput) ([]authorize.Need, error) {
		return alarming(call, "PutCompositeAlarm", in.AlarmName, slices.Concat(in.OKActions, in.AlarmActions, in.InsufficientDataActions), in.Tags), nil
	}),
	"DescribeAlarms":          everyAlarm("DescribeAlarms"),
	"DescribeAlarmsForMetric": api.Anywhere("cloudwatch:DescribeAlarmsForMetric"),
	"DescribeAlarmHistory": api.Needs(func(call *api.Call, in *DescribeAlarmHistoryInput) ([]authorize.Need, error) {
		name := "*"
		if in.AlarmName != nil {
			name = *in.AlarmName
		}
		return onAlarms(call, "DescribeAlarmHistory", name), nil
	}),
	"DeleteAlarms": api.Needs(func(call *api.Call, in *DeleteAlarmsInput) ([]authorize.Need, error) {
		return onAlarms(call, "DeleteAlarms", in.AlarmNames...), nil
	}),
	"EnableAlarmActions": api.Needs(func(call *api.Call, in *EnableAlarmActionsInput) ([]authorize.Need, error) {
		return onAlarms(call, "EnableAlarmActions", in.AlarmNames...), nil
	}),
	"DisableAlarmActions": api.Needs(func(call *api.Call, in *DisableAlarmActionsInput) ([]authorize.Need, error) {
		return onAlarms(call, "DisableAlarmActions", in.AlarmNames...), nil
	}),
	"SetAlarmState": api.Needs(func(call *api.Call, in *SetAlarmStateInput) ([]authorize.Need, error) {
		return onAlarms(call, "SetAlarmState", api.Deref(in.AlarmName)), nil
	}),

	"TagResource": api.Needs(func(_ *api.Call, in *TagResourceInput) ([]authorize.Need, error) {
		needs := onTagged("TagResource", in.ResourceARN)
		setTags(&needs[0], in.Tags)
		return needs, nil
	}),
	"UntagResource": api.Needs(func(_ *api.Call, in *UntagResourceInput) ([]authorize.Need, error) {
		needs := onTagged("UntagResource", in.ResourceARN)
		needs[0].TagKeys = in.TagKeys
		return needs, nil
	}),
	"ListTagsForResource": api.Needs(func(_ *api.Call, in *ListTagsForResourceInput) ([]authorize.Need, error) {
		return onTagged("ListTagsForResource", in.ResourceARN), nil
	}),

	"ListDashboards": api.Anywhere("cloudwatch:ListDashboards"),
	"PutDashboard": api.Needs(func(call *api.Call, in *PutDashboardInput) ([]authorize.Need, error) {
		return api.One("cloudwatch:PutDashboard", arn.ARN{Service: "cloudwatch", Account: call.Account, Resource: "dashboard/" + api.Deref(in.DashboardName)}), nil
	}),
}

// everyAlarm requires an action on all alarms.
func everyAlarm(action string) api.Access {
	return func(_ context.Context, call *api.Call, _ any) ([]authorize.Need, error) {
		return onAlarms(call, action, "*"), nil
	}
}

// onAlarms requires an action on each of the named alarms; without names, on all.
func onAlarms(call *api.Call, action string, names ...string) []authorize.Need {
	if len(names) == 0 {
		names = []string{"*"}
	}
	needs := make([]authorize.Need, 0, len(names))
	for _, name := range names {
		needs = append(needs, api.One("cloudwatch:"+action, arn.Alarm(call.Region, call.Account, name))...)
	}
	return needs
}

// onTagged requires an action on a tagged resource. The operation itself refuses an invalid
// ARN.
func onTagged(action string, resource *string) []authorize.Need {
	a, _ := arn.Parse(api.Deref(resource))
	return []authorize.Need{{Action: "cloudwatch:" + action, Resource: api.Deref(resource), Account: a.Account, Absent: fault.New(fault.ResourceNotFound, "")}}
}

func setTags(n *authorize.Need, tags []Tag) {
	n.Tags = make(map[string]string, len(tags))
	for _, t := range tags {
		if _, twice := n.Tags[api.Deref(t.Key)]; !twice {
			n.TagKeys = append(n.TagKeys, api.Deref(t.Key))
		}
		n.Tags[api.Deref(t.Key)] = api.Deref(t.Value)
	}
}

func putting(_ *api.Call, in *PutMetricDataInput) ([]authorize.Need, error) {
	needs := api.Any("cloudwatch:PutMetricData")
	if in.Namespace != nil {
		needs[0].Keys = []authorize.Key{{Name: "cloudwatch:namespace", Values: []string{*in.Namespace}}}
	}
	return needs, nil
}

// alarming requires what making an alarm with actions and tags does.
func alarming(call *api.Call, action string, name *string, actions []string, tags []Tag) []authorize.Need {
	needs := onAlarms(call, action, api.Deref(name))
	if len(actions) > 0 {
		needs[0].Keys = []authorize.Key{{Name: "cloudwatch:alarmactions", Values: actions}}
	}
	if len(tags) == 0 {
		return needs
	}
	setTags(&needs[0], tags)
	tag := needs[0]
	tag.Action = "cloudwatch:TagResource"
	return append(needs, tag)
}
