package cloudwatch

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The limits of alarms. Source: CloudWatch's API model and reference.
const (
	maxDescription = 1024
	maxActions     = 5
	maxDay         = 86400
)

func alarmID(call *api.Call, name string) alarms.ID {
	return alarms.ID{Account: call.Account, Region: call.Region, Name: name}
}

// putMetricAlarm answers PutMetricAlarm.
func (s *Service) putMetricAlarm(_ context.Context, call *api.Call, in *PutMetricAlarmInput) (*PutMetricAlarmOutput, error) {
	if err := checkAlarmName(*in.AlarmName); err != nil {
		return nil, err
	}
	config, err := readConfig(call, in)
	if err != nil {
		return nil, err
	}
	return nil, s.put(call, *in.AlarmName, config, in.Tags)
}

// put makes or replaces an alarm that was read.
func (s *Service) put(call *api.Call, name string, config alarm.Config, all []Tag) error {
	if err := cmp.Or(
		checkActions(call, "oKActions", config.OKActions), checkActions(call, "alarmActions", config.AlarmActions),
		checkActions(call, "insufficientDataActions", config.InsufficientActions),
	); err != nil {
		return err
	}
	tags, err := readTags(all)
	if err != nil {
		return err
	}
	if len(tags) > alarms.MaxTags {
		return unfit("An alarm can have at most %d tags.", alarms.MaxTags)
	}
	return s.alarms.Put(alarmID(call, name), config, tags)
}

func checkAlarmName(name string) error {
	if err := checkLength("alarmName", &name, 1, maxName); err != nil {
		return err
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return unfit("The parameter AlarmName must not contain control characters.")
	}
	return nil
}

func null(member string) error {
	return unfit("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", member)
}

func readConfig(call *api.Call, in *PutMetricAlarmInput) (c alarm.Config, err error) {
	one := len(in.Metrics) == 0
	switch {
	case in.ThresholdMetricId != nil:
		return c, unfit("Alarms with a ThresholdMetricId, for anomaly detection, are not supported yet.")
	case in.EvaluationCriteria != nil || in.EvaluationInterval != nil:
		return c, unfit("Alarms with EvaluationCriteria are not supported.")
	case one && in.MetricName == nil:
		return c, null("metricName")
	case one && in.Namespace == nil:
		return c, null("namespace")
	case one && in.Period == nil:
		return c, null("period")
	case in.EvaluationPeriods == nil:
		return c, null("evaluationPeriods")
	case in.Threshold == nil:
		return c, null("threshold")
	case in.ComparisonOperator == nil:
		return c, null("comparisonOperator")
	case one && !isASCII(*in.MetricName):
		return c, unfit("MetricName must not contain Non-ASCII characters.")
	case one && !isASCII(*in.Namespace):
		return c, unfit("Namespace must not contain Non-ASCII characters.")
	}
	if err := cmp.Or(
		checkLength("alarmDescription", in.AlarmDescription, 0, maxDescription), checkPositive("evaluationPeriods", in.EvaluationPeriods, math.MaxInt32),
		checkPositive("datapointsToAlarm", in.DatapointsToAlarm, math.MaxInt32),
	); err != nil {
		return c, err
	}
	c = alarm.Config{
		Description: in.AlarmDescription, Disabled: in.ActionsEnabled != nil && !*in.ActionsEnabled,
		OKActions: in.OKActions, AlarmActions: in.AlarmActions, InsufficientActions: in.InsufficientDataActions,
		EvaluationPeriods: *in.EvaluationPeriods, DatapointsToAlarm: api.Deref(in.DatapointsToAlarm),
		Threshold: float64(*in.Threshold), Comparison: alarm.Comparison(*in.ComparisonOperator),
		Missing: alarm.Missing(api.Deref(in.TreatMissingData)), LowSamples: api.Deref(in.EvaluateLowSampleCountPercentile),
	}
	if one {
		err = readMetric(&c, in)
	} else if err = checkAlone(in); err == nil {
		err = readAlarmQueries(call, &c, in.Metrics)
	}
	if err != nil {
		return c, err
	}
	if err := checkEvaluation(&c, in); err != nil {
		return c, err
	}
	if one {
		return c, readStatistic(&c, in)
	}
	return c, alarms.Check(&c)
}

// readMetric validates the metric of an alarm that has no Metrics, and sets it.
func readMetric(c *alarm.Config, in *PutMetricAlarmInput) error {
	for _, err := range []error{
		checkNamespace("Namespace", in.Namespace), checkText("MetricName", in.MetricName, maxName), checkUnit("Unit", in.Unit),
	} {
		if err != nil {
			return unfit("%s", err)
		}
	}
	if _, err := readDimensions("Dimensions", in.Dimensions); err != nil {
		return unfit("%s", err)
	}
	c.Namespace, c.MetricName, c.Unit, c.Period = *in.Namespace, *in.MetricName, api.Deref(in.Unit), *in.Period
	c.Dimensions = keptDimensions(in.Dimensions)
	return nil
}

// checkEvaluation validates how an alarm counts datapoints.
func checkEvaluation(c *alarm.Config, in *PutMetricAlarmInput) error {
	most := maxDay
	if c.Period >= 3600 {
		most = 7 * maxDay
	}
	switch {
	case !short(c.Period) && (c.Period < 60 || c.Period%60 != 0):
		return unfit("Period must be 10, 20, 30 or a multiple of 60")
	case c.EvaluationPeriods > most || c.Period > most || c.Period*c.EvaluationPeriods > most:
		if most == maxDay {
			return unfit("Metrics cannot be checked across more than a day (EvaluationPeriods * Period must be <= %d) for alarms using period < 3600", most)
		}
		return unfit("Metrics cannot be checked across more than a week (EvaluationPeriods * Period must be <= %d) for alarms using period >= 3600", most)
	case c.DatapointsToAlarm > c.EvaluationPeriods:
		return unfit("DatapointsToAlarm must be less than or equal to EvaluationPeriods")
	case !alarm.Finite(c.Threshold):
		return unfit("The value %s for parameter Threshold is invalid.", shown(c.Threshold))
	case !slices.Contains(alarm.Comparisons, c.Comparison):
		if slices.Contains(bands, string(c.Comparison)) {
			return unfit("The comparison operator %s is for anomaly detection, which is not supported yet.", shorten(string(c.Comparison)))
		}
		return notInEnum(string(c.Comparison), "comparisonOperator", texts(alarm.Comparisons))
	case in.TreatMissingData != nil && !slices.Contains(alarm.Treatments, c.Missing):
		return unfit("Unsupported TreatMissingData value: %s. Valid values: %s", shorten(*in.TreatMissingData), strings.Join(texts(alarm.Treatments), ", "))
	}
	return nil
}

// bands are the comparison operators of anomaly detection.
var bands = []string{"LessThanLowerOrGreaterThanUpperThreshold", "LessThanLowerThreshold", "GreaterThanUpperThreshold"}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

func readStatistic(c *alarm.Config, in *PutMetricAlarmInput) error {
	switch {
	case in.Statistic != nil && in.ExtendedStatistic != nil:
		return unfit("The parameters Statistic and ExtendedStatistic are mutually exclusive and you have specified both.")
	case in.Statistic == nil && in.ExtendedStatistic == nil:
		return unfit("At least one of the parameters Statistic and ExtendedStatistic must be specified.")
	case in.Statistic != nil && !slices.Contains(basicStatistics, *in.Statistic):
		return notInEnum(*in.Statistic, "statistic", basicStatistics)
	}
	if p := in.EvaluateLowSampleCountPercentile; p != nil && *p != "evaluate" && *p != alarm.Ignore {
		return unfit("Option %s is not supported. Supported options for parameter EvaluateLowSampleCountPercentile are evaluate and ignore.", shorten(*p))
	}
	c.Statistic, c.Extended = api.Deref(in.Statistic)+api.Deref(in.ExtendedStatistic), in.ExtendedStatistic != nil
	stat, ok := metrics.ParseStatistic(c.Statistic)
	if !ok || c.Extended && !stat.Extended() {
		return invalid("The value %s for parameter ExtendedStatistic is not supported.", shorten(c.Statistic))
	}
	p, isPercentile := stat.Percentile()
	if isPercentile {
		c.Percentile = p
	}
	if in.EvaluateLowSampleCountPercentile != nil && !isPercentile {
		return unfit("The parameter EvaluateLowSampleCountPercentile is for percentiles only.")
	}
	return nil
}

// checkActions refuses actions that are not supported.
func checkActions(call *api.Call, parameter string, actions []string) error {
	if len(actions) > maxActions {
		return unfit("1 validation error detected: Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d", parameter, maxActions)
	}
	for _, action := range actions {
		a, err := arn.Parse(action)
		topic := a.Service == "sns" && !strings.Contains(a.Resource, ":") && !a.FIFO()
		function := a.Service == "lambda" && strings.HasPrefix(a.Resource, "function:")
		switch {
		case err != nil || a.Region == "" || a.Account == "" || a.Resource == "":
			return unfit("Invalid arn syntax: %s", shorten(action))
		case !topic && !function:
			return unfit("The action %s is not supported: actions are standard SNS topics and Lambda functions.", shorten(action))
		case a.Region != call.Region:
			return unfit("Invalid region %s specified. Only %s is supported.", shorten(a.Region), call.Region)
		}
	}
	return nil
}
