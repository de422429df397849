package cloudwatch

import (
	"context"
	"fmt"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The limits of PutMetricData. Source: CloudWatch's API reference.
const (
	maxData   = 1000
	maxValues = 150
)

// putMetricData answers PutMetricData: it stores all data or none. They are durable when it
// answers.
func (s *Service) putMetricData(_ context.Context, call *api.Call, in *PutMetricDataInput) (*PutMetricDataOutput, error) {
	if err := checkNamespace("Namespace", in.Namespace); err != nil {
		return nil, err
	}
	if metrics.Reserved(*in.Namespace) {
		return nil, invalid("The value AWS/ for parameter Namespace is invalid.")
	}
	total := len(in.MetricData)
	for _, e := range in.EntityMetricData {
		total += len(e.MetricData)
	}
	if total == 0 {
		return nil, missing("MetricData")
	}
	if total > maxData {
		return nil, tooMany("MetricData", maxData)
	}
	data := make([]metrics.Datapoint, 0, total)
	read := func(parameter string, all []MetricDatum) error {
		for i := range all {
			d, err := s.readDatum(call, *in.Namespace, fmt.Sprintf("%s.member.%d.", parameter, i+1), &all[i])
			if err != nil {
				return err
			}
			data = append(data, d)
		}
		return nil
	}
	if err := read("MetricData", in.MetricData); err != nil {
		return nil, err
	}
	for i, e := range in.EntityMetricData {
		if err := read(fmt.Sprintf("EntityMetricData.member.%d.MetricData", i+1), e.MetricData); err != nil {
			return nil, err
		}
	}
	return nil, s.metrics.Put(data...)
}

func (s *Service) readDatum(call *api.Call, namespace, at string, in *MetricDatum) (d metrics.Datapoint, err error) {
	if err := checkText(at+"MetricName", in.MetricName, maxName); err != nil {
		return d, err
	}
	dimensions, err := readDimensions(at+"Dimensions", in.Dimensions)
	if err != nil {
		return d, err
	}
	if err := checkUnit(at+"Unit", in.Unit); err != nil {
		return d, err
	}
	if r := in.StorageResolution; r != nil && *r != 1 && *r != 60 {
		return d, invalid("The parameter %sStorageResolution must be a value in the set [ 1, 60 ].", at)
	}
	when := call.Time
	if in.Timestamp != nil {
		when = in.Timestamp.Std()
		if when.Before(call.Time.Add(-metrics.MaxAge)) {
			return d, invalid("The parameter %sTimestamp must specify a time within the past two weeks.", at)
		}
		if when.After(call.Time.Add(metrics.MaxAhead)) {
			return d, invalid("The parameter %sTimestamp must specify a time no more than two hours in the future.", at)
		}
	}
	d = metrics.Datapoint{
		Metric: metrics.Metric{Scope: scope(call), Namespace: namespace, Name: *in.MetricName, Dimensions: dimensions},
		Unit:   noUnit, Second: when.Unix(), Fine: api.Deref(in.StorageResolution) == 1,
	}
	if in.Unit != nil {
		d.Unit = *in.Unit
	}
	d.Add, err = readValues(at, in)
	return d, err
}

// readValues returns the values that a datum adds to a metric.
func readValues(at string, in *MetricDatum) (func(*metrics.Set), error) {
	switch {
	case in.Value != nil && in.StatisticValues != nil:
		return nil, exclusive(at+"Value", at+"StatisticValues")
	case in.Value != nil && len(in.Values) > 0:
		return nil, exclusive(at+"Value", at+"Values")
	case in.Value != nil:
		value := float64(*in.Value)
		return func(s *metrics.Set) { s.Add(value, 1) }, checkValue(at+"Value", value)
	case in.StatisticValues == nil && len(in.Values) == 0:
		return nil, atLeastOne(at+"Value", at+"StatisticValues")
	}
	add, err := readEach(at, in)
	if err == nil && in.StatisticValues != nil {
		// AWS accepts both, and does not document which counts. They describe the same
		// samples, which must not count twice.
		return readStatistics(at+"StatisticValues.", in.StatisticValues)
	}
	return add, err
}

// readEach is readValues for Values and their Counts.
func readEach(at string, in *MetricDatum) (func(*metrics.Set), error) {
	switch {
	case len(in.Values) > maxValues:
		return nil, tooMany(at+"Values", maxValues)
	case len(in.Counts) > 0 && len(in.Counts) != len(in.Values):
		return nil, invalid("The parameters %sValues and %sCounts must be of the same size.", at, at)
	}
	for i, value := range in.Values {
		if err := checkValue(fmt.Sprintf("%sValues.member.%d", at, i+1), float64(value)); err != nil {
			return nil, err
		}
		if len(in.Counts) > 0 {
			if count := float64(in.Counts[i]); !(count > 0 && count <= metrics.Largest) {
				return nil, invalid("The value %s for parameter %sCounts.member.%d is invalid.", shown(count), at, i+1)
			}
		}
	}
	return func(s *metrics.Set) {
		for i, value := range in.Values {
			count := 1.0
			if len(in.Counts) > 0 {
				count = float64(in.Counts[i])
			}
			s.Add(float64(value), count)
		}
	}, nil
}

func readStatistics(at string, in *StatisticSet) (func(*metrics.Set), error) {
	var values [4]float64
	for i, value := range []*api.Double{in.SampleCount, in.Sum, in.Minimum, in.Maximum} {
		name := at + []string{"SampleCount", "Sum", "Minimum", "Maximum"}[i]
		if value == nil {
			return nil, missing(name)
		}
		values[i] = float64(*value)
		if err := checkValue(name, values[i]); err != nil {
			return nil, err
		}
	}
	count, sum, least, most := values[0], values[1], values[2], values[3]
	if count <= 0 {
		return nil, invalid("The value %s for parameter %sSampleCount is invalid.", shown(count), at)
	}
	if least > most {
		return nil, invalid("The parameter %sMaximum must be greater than %sMinimum.", at, at)
	}
	return func(s *metrics.Set) { s.AddStatistics(count, sum, least, most) }, nil
}
