package cloudwatch

import "godwit.dev/godwit/internal/api"

// Tag is a tag of an alarm.
type Tag struct {
	Key   *string
	Value *string
}

// AlarmPromQLCriteria are criteria of alarms on PromQL.
type AlarmPromQLCriteria struct {
	Query          *string
	PendingPeriod  *int
	RecoveryPeriod *int
}

// EvaluationCriteria are criteria of alarms that are not on metrics.
type EvaluationCriteria struct{ PromQLCriteria *AlarmPromQLCriteria }

// PutMetricAlarmInput is the input of PutMetricAlarm.
type PutMetricAlarmInput struct {
	AlarmName                        *string `wire:"required"`
	AlarmDescription                 *string
	ActionsEnabled                   *bool
	OKActions                        []string
	AlarmActions                     []string
	InsufficientDataActions          []string
	MetricName                       *string
	Namespace                        *string
	Statistic                        *string
	ExtendedStatistic                *string
	Dimensions                       []Dimension
	Period                           *int
	Unit                             *string
	EvaluationPeriods                *int
	DatapointsToAlarm                *int
	Threshold                        *api.Double
	ComparisonOperator               *string
	TreatMissingData                 *string
	EvaluateLowSampleCountPercentile *string
	Metrics                          []MetricDataQuery
	Tags                             []Tag
	ThresholdMetricId                *string
	EvaluationCriteria               *EvaluationCriteria
	EvaluationInterval               *int
}

// PutMetricAlarmOutput is the output of PutMetricAlarm.
type PutMetricAlarmOutput struct{}

// PutCompositeAlarmInput is the input of PutCompositeAlarm.
type PutCompositeAlarmInput struct {
	AlarmName                        *string `wire:"required"`
	AlarmRule                        *string `wire:"required"`
	AlarmDescription                 *string
	ActionsEnabled                   *bool
	OKActions                        []string
	AlarmActions                     []string
	InsufficientDataActions          []string
	ActionsSuppressor                *string
	ActionsSuppressorWaitPeriod      *int
	ActionsSuppressorExtensionPeriod *int
	Tags                             []Tag
}

// PutCompositeAlarmOutput is the output of PutCompositeAlarm.
type PutCompositeAlarmOutput struct{}

// MetricAlarm is an alarm on a metric, or on Metrics.
type MetricAlarm struct {
	AlarmName                          string
	AlarmArn                           string
	AlarmDescription                   *string
	AlarmConfigurationUpdatedTimestamp *api.Time
	ActionsEnabled                     *bool
	OKActions                          []string
	AlarmActions                       []string
	InsufficientDataActions            []string
	StateValue                         string
	StateReason                        string
	StateReasonData                    string
	StateUpdatedTimestamp              api.Time
	MetricName                         string
	Namespace                          string
	Statistic                          string
	ExtendedStatistic                  string
	Dimensions                         []Dimension
	Period                             *int
	Unit                               string
	EvaluationPeriods                  *int
	DatapointsToAlarm                  *int
	Threshold                          *float64
	ComparisonOperator                 string
	TreatMissingData                   string
	EvaluateLowSampleCountPercentile   string
	Metrics                            []MetricDataQuery
	ThresholdMetricId                  string
	EvaluationState                    string
	StateTransitionedTimestamp         *api.Time
	EvaluationCriteria                 *EvaluationCriteria
	EvaluationInterval                 *int
}

// CompositeAlarm is an alarm on other alarms.
type CompositeAlarm struct {
	ActionsEnabled                     *bool
	AlarmActions                       []string
	AlarmArn                           string
	AlarmConfigurationUpdatedTimestamp *api.Time
	AlarmDescription                   *string
	AlarmName                          string
	AlarmRule                          string
	InsufficientDataActions            []string
	OKActions                          []string
	StateReason                        string
	StateReasonData                    string
	StateUpdatedTimestamp              api.Time
	StateValue                         string
	StateTransitionedTimestamp         *api.Time
	ActionsSuppressedBy                string
	ActionsSuppressedReason            string
	ActionsSuppressor                  string
	ActionsSuppressorWaitPeriod        *int
	ActionsSuppressorExtensionPeriod   *int
}

// LogAlarm is an alarm on logs. There are none. AWS's published model does not have them yet;
// its answers do.
type LogAlarm struct{}

// DescribeAlarmsInput is the input of DescribeAlarms.
type DescribeAlarmsInput struct {
	AlarmNames          []string
	AlarmNamePrefix     *string
	AlarmTypes          []string
	ChildrenOfAlarmName *string
	ParentsOfAlarmName  *string
	StateValue          *string
	ActionPrefix        *string
	MaxRecords          *int
	NextToken           *string
}

// DescribeAlarmsOutput is the output of DescribeAlarms.
type DescribeAlarmsOutput struct {
	CompositeAlarms []CompositeAlarm
	LogAlarms       []LogAlarm
	MetricAlarms    []MetricAlarm
	NextToken       string
}

// DescribeAlarmsForMetricInput is the input of DescribeAlarmsForMetric.
type DescribeAlarmsForMetricInput struct {
	MetricName        *string `wire:"required"`
	Namespace         *string `wire:"required"`
	Statistic         *string
	ExtendedStatistic *string
	Dimensions        []Dimension
	Period            *int
	Unit              *string
}

// DescribeAlarmsForMetricOutput is the output of DescribeAlarmsForMetric.
type DescribeAlarmsForMetricOutput struct{ MetricAlarms []MetricAlarm }

// DescribeAlarmHistoryInput is the input of DescribeAlarmHistory.
type DescribeAlarmHistoryInput struct {
	AlarmName          *string
	AlarmContributorId *string
	AlarmTypes         []string
	HistoryItemType    *string
	StartDate          *api.Time
	EndDate            *api.Time
	MaxRecords         *int
	NextToken          *string
	ScanBy             *string
}

// AlarmHistoryItem is an item of the history.
type AlarmHistoryItem struct {
	AlarmName                  string
	AlarmContributorId         string
	AlarmType                  string
	Timestamp                  api.Time
	HistoryItemType            string
	HistorySummary             string
	HistoryData                string
	AlarmContributorAttributes map[string]string
}

// DescribeAlarmHistoryOutput is the output of DescribeAlarmHistory.
type DescribeAlarmHistoryOutput struct {
	AlarmHistoryItems []AlarmHistoryItem
	NextToken         string
}

// DeleteAlarmsInput is the input of DeleteAlarms.
type DeleteAlarmsInput struct {
	AlarmNames []string `wire:"required"`
}

// DeleteAlarmsOutput is the output of DeleteAlarms.
type DeleteAlarmsOutput struct{}

// EnableAlarmActionsInput is the input of EnableAlarmActions.
type EnableAlarmActionsInput struct {
	AlarmNames []string `wire:"required"`
}

// EnableAlarmActionsOutput is the output of EnableAlarmActions.
type EnableAlarmActionsOutput struct{}

// DisableAlarmActionsInput is the input of DisableAlarmActions.
type DisableAlarmActionsInput struct {
	AlarmNames []string `wire:"required"`
}

// DisableAlarmActionsOutput is the output of DisableAlarmActions.
type DisableAlarmActionsOutput struct{}

// SetAlarmStateInput is the input of SetAlarmState.
type SetAlarmStateInput struct {
	AlarmName       *string `wire:"required"`
	StateValue      *string `wire:"required"`
	StateReason     *string `wire:"required"`
	StateReasonData *string
}

// SetAlarmStateOutput is the output of SetAlarmState.
type SetAlarmStateOutput struct{}

// TagResourceInput is the input of TagResource.
type TagResourceInput struct {
	ResourceARN *string `wire:"required"`
	Tags        []Tag   `wire:"required"`
}

// TagResourceOutput is the output of TagResource.
type TagResourceOutput struct{}

// UntagResourceInput is the input of UntagResource.
type UntagResourceInput struct {
	ResourceARN *string  `wire:"required"`
	TagKeys     []string `wire:"required"`
}

// UntagResourceOutput is the output of UntagResource.
type UntagResourceOutput struct{}

// ListTagsForResourceInput is the input of ListTagsForResource.
type ListTagsForResourceInput struct {
	ResourceARN *string `wire:"required"`
}

// ListTagsForResourceOutput is the output of ListTagsForResource.
type ListTagsForResourceOutput struct{ Tags []Tag }
