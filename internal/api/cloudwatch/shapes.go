package cloudwatch

import "godwit.dev/godwit/internal/api"

// Dimension is a name and a value that distinguish metrics of one name.
type Dimension struct {
	Name  *string
	Value *string
}

// Metric names a metric.
type Metric struct {
	Namespace  *string
	MetricName *string
	Dimensions []Dimension
}

// StatisticSet are statistics of values, in place of the values.
type StatisticSet struct {
	SampleCount *api.Double
	Sum         *api.Double
	Minimum     *api.Double
	Maximum     *api.Double
}

// MetricDatum are values for a metric.
type MetricDatum struct {
	MetricName        *string
	Dimensions        []Dimension
	Timestamp         *api.Time
	Value             *api.Double
	StatisticValues   *StatisticSet
	Values            []api.Double
	Counts            []api.Double
	Unit              *string
	StorageResolution *int
}

// Entity describes the source of a metric, as defined by Application Signals.
type Entity struct {
	KeyAttributes map[string]string
	Attributes    map[string]string
}

// EntityMetricData are data about an entity.
type EntityMetricData struct {
	Entity     *Entity
	MetricData []MetricDatum
}

// PutMetricDataInput is the input of PutMetricData.
type PutMetricDataInput struct {
	Namespace              *string
	MetricData             []MetricDatum
	EntityMetricData       []EntityMetricData
	StrictEntityValidation *bool
}

// PutMetricDataOutput is the output of PutMetricData.
type PutMetricDataOutput struct{}

// MetricStat selects a statistic of a metric.
type MetricStat struct {
	Metric *Metric
	Period *int
	Stat   *string
	Unit   *string
}

// MetricDataQuery is a query of GetMetricData.
type MetricDataQuery struct {
	Id         *string
	MetricStat *MetricStat
	Expression *string
	Label      *string
	ReturnData *bool
	Period     *int
	AccountId  *string
}

// LabelOptions set the format of times in labels.
type LabelOptions struct{ Timezone *string }

// GetMetricDataInput is the input of GetMetricData.
type GetMetricDataInput struct {
	MetricDataQueries []MetricDataQuery `wire:"required"`
	StartTime         *api.Time         `wire:"required"`
	EndTime           *api.Time         `wire:"required"`
	NextToken         *string
	ScanBy            *string
	MaxDatapoints     *int
	LabelOptions      *LabelOptions
}

// MessageData is a message in an answer.
type MessageData struct {
	Code  string
	Value string
}

// MetricDataResult is the result of a query.
type MetricDataResult struct {
	Id         string
	Label      string
	Timestamps []api.Time
	Values     []float64
	StatusCode string
	Messages   []MessageData
}

// GetMetricDataOutput is the output of GetMetricData.
type GetMetricDataOutput struct {
	MetricDataResults []MetricDataResult
	NextToken         string
	Messages          []MessageData
}

// GetMetricStatisticsInput is the input of GetMetricStatistics.
type GetMetricStatisticsInput struct {
	Namespace          *string
	MetricName         *string
	Dimensions         []Dimension
	StartTime          *api.Time
	EndTime            *api.Time
	Period             *int
	Statistics         []string
	ExtendedStatistics []string
	Unit               *string
}

// Datapoint has the statistics of a period.
type Datapoint struct {
	Timestamp          api.Time
	SampleCount        *float64
	Average            *float64
	Sum                *float64
	Minimum            *float64
	Maximum            *float64
	Unit               string
	ExtendedStatistics map[string]float64
}

// GetMetricStatisticsOutput is the output of GetMetricStatistics.
type GetMetricStatisticsOutput struct {
	Label      string
	Datapoints []Datapoint
}

// DimensionFilter selects metrics with a dimension; without a value, any value matches.
type DimensionFilter struct {
	Name  *string
	Value *string
}

// ListMetricsInput is the input of ListMetrics.
type ListMetricsInput struct {
	Namespace             *string
	MetricName            *string
	Dimensions            []DimensionFilter
	NextToken             *string
	RecentlyActive        *string
	IncludeLinkedAccounts *bool
	OwningAccount         *string
}

// ListMetricsOutput is the output of ListMetrics.
type ListMetricsOutput struct {
	Metrics        []Metric
	NextToken      string
	OwningAccounts []string
}
