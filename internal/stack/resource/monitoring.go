package resource

var monitoringTypes = []Type{
	{
		Name: "AWS::CloudWatch::Alarm", NameProperty: "AlarmName", MaxName: 255, Tags: "Tags", Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"ActionsEnabled": prop(Boolean), "AlarmActions": prop(Strings), "AlarmDescription": prop(String), "AlarmName": prop(String, replaces),
			"ComparisonOperator": prop(String), "DatapointsToAlarm": prop(Integer), "Dimensions": prop(List),
			"EvaluateLowSampleCountPercentile": prop(String), "EvaluationPeriods": prop(Integer), "ExtendedStatistic": prop(String),
			"InsufficientDataActions": prop(Strings), "MetricName": prop(String), "Metrics": prop(List), "Namespace": prop(String),
			"OKActions": prop(Strings), "Period": prop(Integer), "Statistic": prop(String), "Tags": prop(List), "Threshold": prop(Number),
			"ThresholdMetricId": prop(String), "TreatMissingData": prop(String), "Unit": prop(String),
		},
	},
	{
		Name: "AWS::CloudWatch::CompositeAlarm", NameProperty: "AlarmName", MaxName: 255, Tags: "Tags", Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"ActionsEnabled": prop(Boolean), "ActionsSuppressor": prop(String), "ActionsSuppressorExtensionPeriod": prop(Integer),
			"ActionsSuppressorWaitPeriod": prop(Integer), "AlarmActions": prop(Strings), "AlarmDescription": prop(String),
			"AlarmName": prop(String, replaces), "AlarmRule": prop(String, required), "InsufficientDataActions": prop(Strings),
			"OKActions": prop(Strings), "Tags": prop(List),
		},
	},
	{
		Name: "AWS::Logs::LogGroup", NameProperty: "LogGroupName", MaxName: 512, Tags: "Tags", Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"DeletionProtectionEnabled": prop(Boolean), "LogGroupClass": prop(String, replaces), "LogGroupName": prop(String, replaces),
			"RetentionInDays": prop(Integer), "Tags": prop(List),
		},
	},
	{
		Name: "AWS::Logs::LogStream", NameProperty: "LogStreamName", MaxName: 512,
		Properties: map[string]Property{"LogGroupName": prop(String, required|replaces), "LogStreamName": prop(String, replaces)},
	},
	{
		Name: "AWS::Logs::MetricFilter", NameProperty: "FilterName", MaxName: 512,
		Properties: map[string]Property{
			"ApplyOnTransformedLogs": prop(Boolean), "FilterName": prop(String, replaces), "FilterPattern": prop(String, required),
			"LogGroupName": prop(String, required|replaces), "MetricTransformations": prop(List, required),
		},
	},
	{
		Name: "AWS::Logs::SubscriptionFilter", NameProperty: "FilterName", MaxName: 512,
		Properties: map[string]Property{
			"ApplyOnTransformedLogs": prop(Boolean), "DestinationArn": prop(String, required), "Distribution": prop(String), "EmitSystemFields": prop(List),
			"FieldSelectionCriteria": prop(String), "FilterName": prop(String, replaces), "FilterPattern": prop(String, required),
			"LogGroupName": prop(String, required|replaces), "RoleArn": prop(String),
		},
	},
	{
		Name: "AWS::CDK::Metadata", Properties: map[string]Property{"Analytics": prop(String)},
	},
}
