package sdk_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

func repeat[T any](n int, f func(n int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = f(i)
	}
	return all
}

// How much a question about metrics may ask for.
func TestMetricQuestionLimits(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	now := serverTime(t, endpoint)
	statistics := func(change func(in *cloudwatch.GetMetricStatisticsInput)) error {
		in := &cloudwatch.GetMetricStatisticsInput{
			Namespace: aws.String("n"), MetricName: aws.String("m"), StartTime: aws.Time(now.Add(-24 * time.Hour)), EndTime: &now, Period: aws.Int32(60),
			Statistics: types.Statistic("").Values(),
		}
		change(in)
		_, err := c.GetMetricStatistics(t.Context(), in)
		return err
	}
	extended := func(n int) func(in *cloudwatch.GetMetricStatisticsInput) {
		return func(in *cloudwatch.GetMetricStatisticsInput) {
			in.Statistics, in.ExtendedStatistics = nil, repeat(n, func(n int) string { return fmt.Sprint("p", n) })
		}
	}
	for _, tc := range []struct {
		change     func(in *cloudwatch.GetMetricStatisticsInput)
		code, want string
	}{
		{func(*cloudwatch.GetMetricStatisticsInput) {}, "", ""},
		{
			func(in *cloudwatch.GetMetricStatisticsInput) {
				in.StartTime = aws.Time(now.Add(-24*time.Hour - time.Minute))
			}, "InvalidParameterCombination",
			"You have requested up to 1441 datapoints, which exceeds the limit of 1440. You may reduce the datapoints requested by increasing Period, or decreasing the time range.",
		},
		{func(in *cloudwatch.GetMetricStatisticsInput) {
			in.Statistics = append(in.Statistics, types.StatisticSum)
		}, "InvalidParameterValue", "The collection Statistics must not have a size greater than 5."},
		{extended(10), "", ""},
		{extended(11), "InvalidParameterValue", "The collection ExtendedStatistics must not have a size greater than 10."},
		{func(in *cloudwatch.GetMetricStatisticsInput) {
			in.Statistics, in.ExtendedStatistics = nil, []string{"Sum"}
		}, "InvalidParameterValue", "The value Sum for parameter ExtendedStatistics.member.1 is not supported."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Period = aws.Int32(365 * 86400) }, "", ""},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Period = aws.Int32(365*86400 + 60) }, "InvalidParameterValue", "The parameter Period must be 1, 5, 10, 20, 30, or a multiple of 60."},
		{func(in *cloudwatch.GetMetricStatisticsInput) { in.Period = aws.Int32(15) }, "InvalidParameterValue", "The parameter Period must be 1, 5, 10, 20, 30, or a multiple of 60."},
		{func(in *cloudwatch.GetMetricStatisticsInput) {
			in.Dimensions = repeat(30, func(n int) types.Dimension {
				return types.Dimension{Name: aws.String(fmt.Sprint(n)), Value: aws.String("v")}
			})
		}, "", ""},
	} {
		if err := statistics(tc.change); tc.code != "" {
			refused(t, err, tc.code, 400, tc.want)
		} else if err != nil {
			t.Error(err)
		}
	}

	query := func(n int) types.MetricDataQuery {
		return types.MetricDataQuery{Id: aws.String(fmt.Sprint("q", n)), AccountId: aws.String(account), MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")}, Period: aws.Int32(60), Stat: aws.String("Sum"),
		}}
	}
	data := func(change func(in *cloudwatch.GetMetricDataInput)) (*cloudwatch.GetMetricDataOutput, error) {
		in := &cloudwatch.GetMetricDataInput{StartTime: aws.Time(now.Add(-time.Hour)), EndTime: aws.Time(now.Add(time.Minute)), MetricDataQueries: repeat(500, query)}
		change(in)
		return c.GetMetricData(t.Context(), in)
	}
	equal(t, "500 results", 500, len(must(data(func(*cloudwatch.GetMetricDataInput) {}))(t).MetricDataResults))
	constraint := func(value, rest string) string {
		return "1 validation error detected: Value '" + value + "' at 'maxDatapoints' failed to satisfy constraint: Member must have value " + rest
	}
	for want, change := range map[string]func(in *cloudwatch.GetMetricDataInput){
		"The collection MetricDataQueries must not have a size greater than 500.": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries = repeat(501, query)
		},
		"At least one of the queries in MetricDataQueries must return data.": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries = in.MetricDataQueries[:1]
			in.MetricDataQueries[0].ReturnData = aws.Bool(false)
		},
		"The value 111111111111 for parameter MetricDataQueries.member.2.AccountId is not an account that is linked to this one.": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries[1].AccountId = aws.String("111111111111")
		},
		"The value " + strings.Repeat("q", 128) + " for parameter MetricDataQueries.member.1.Id is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$.": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries[0].Id = aws.String(strings.Repeat("q", 256))
		},
		"The parameters MetricDataQuery Expression and MetricStat are mutually exclusive and you have specified both.": func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries[0].Expression = aws.String("q1")
		},
		"The parameter MetricDataQueries.member.1.MetricStat is required.\n": func(in *cloudwatch.GetMetricDataInput) { in.MetricDataQueries[0].MetricStat = nil },
		constraint("0", "greater than or equal to 1"):                        func(in *cloudwatch.GetMetricDataInput) { in.MaxDatapoints = aws.Int32(0) },
		constraint("100801", "less than or equal to 100800"):                 func(in *cloudwatch.GetMetricDataInput) { in.MaxDatapoints = aws.Int32(100801) },
	} {
		_, err := data(change)
		refused(t, err, "ValidationError", 400, want)
	}
	for member, stat := range map[string]string{"Period": `"Stat":"Sum"`, "Stat": `"Period":60`} {
		r := callMetricsJSON(t, endpoint, "GetMetricData", fmt.Sprintf(`{"StartTime":0,"EndTime":60,"MetricDataQueries":[{"Id":"q","MetricStat":{"Metric":{"Namespace":"n","MetricName":"m"},%s}}]}`, stat))
		if r.Status != 400 || !strings.Contains(r.Body, `"The parameter MetricDataQueries.member.1.MetricStat.`+member+` is required."`) {
			t.Errorf("without %s: %d %s", member, r.Status, r.Body)
		}
	}

	// 500 times 210 values are more than go into one answer.
	must(c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: repeat(210, func(n int) types.MetricDatum {
		return types.MetricDatum{MetricName: aws.String("long"), Value: aws.Float64(1), Timestamp: aws.Time(now.Add(-time.Duration(n) * time.Minute))}
	})}))(t)
	long := &cloudwatch.GetMetricDataInput{StartTime: aws.Time(now.Add(-4 * time.Hour)), EndTime: aws.Time(now.Add(time.Minute)), MetricDataQueries: repeat(500, func(n int) types.MetricDataQuery {
		q := query(n)
		q.MetricStat.Metric.MetricName = aws.String("long")
		return q
	})}
	var sizes []int
	for p := cloudwatch.NewGetMetricDataPaginator(c, long); p.HasMorePages(); {
		size := 0
		for _, r := range must(p.NextPage(t.Context()))(t).MetricDataResults {
			size += len(r.Values)
		}
		sizes = append(sizes, size)
	}
	equal(t, "the sizes of the pages", []int{100800, 4200}, sizes)

	// A token is good for the question that it was given to.
	for n := range 2 {
		must(c.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
			{MetricName: aws.String("m"), Value: aws.Float64(1), Timestamp: aws.Time(now.Add(-time.Duration(n) * time.Minute))},
		}}))(t)
	}
	page := func(change func(in *cloudwatch.GetMetricDataInput)) (*cloudwatch.GetMetricDataOutput, error) {
		return data(func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries, in.MaxDatapoints = in.MetricDataQueries[:1], aws.Int32(1)
			change(in)
		})
	}
	token := *must(page(func(*cloudwatch.GetMetricDataInput) {}))(t).NextToken
	out := must(page(func(in *cloudwatch.GetMetricDataInput) { in.NextToken = &token }))(t)
	equal(t, "the second page", "1 ", fmt.Sprint(len(out.MetricDataResults[0].Values), " ", aws.ToString(out.NextToken)))
	for _, change := range []func(in *cloudwatch.GetMetricDataInput){
		func(in *cloudwatch.GetMetricDataInput) { in.StartTime = aws.Time(now.Add(-2 * time.Hour)) },
		func(in *cloudwatch.GetMetricDataInput) { in.ScanBy = types.ScanByTimestampAscending },
		func(in *cloudwatch.GetMetricDataInput) {
			in.MetricDataQueries[0].MetricStat.Stat = aws.String("Average")
		},
		func(in *cloudwatch.GetMetricDataInput) {
			plain, err := base64.RawURLEncoding.DecodeString(token)
			if err != nil {
				t.Fatal(err)
			}
			place := strings.LastIndex(string(plain), "\n") + 1
			in.NextToken = aws.String(base64.RawURLEncoding.EncodeToString([]byte(string(plain[:place]) + "1 0"))) // there is no second query
		},
	} {
		_, err := page(func(in *cloudwatch.GetMetricDataInput) {
			in.NextToken = &token
			change(in)
		})
		refused(t, err, "InvalidNextToken", 400, "The next token is not valid.")
	}
}

// Which metrics are listed, and for how long.
func TestListMetricsLimits(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	nextMinute(t, endpoint)
	putValue(t, endpoint, 1)
	list := func(in *cloudwatch.ListMetricsInput) int {
		t.Helper()
		return len(must(c.ListMetrics(t.Context(), in))(t).Metrics)
	}
	equal(t, "of this account", 1, list(&cloudwatch.ListMetricsInput{OwningAccount: aws.String(account)}))
	equal(t, "of another account", 0, list(&cloudwatch.ListMetricsInput{OwningAccount: aws.String("111111111111")}))
	for owner, rule := range map[string]string{"": "greater than or equal to 1", strings.Repeat("1", 256): "less than or equal to 255"} {
		_, err := c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{OwningAccount: &owner})
		refused(t, err, "ValidationError", 400, "1 validation error detected: Value '"+owner[:min(len(owner), 128)]+"' at 'owningAccount' failed to satisfy constraint: Member must have length "+rule)
	}
	equal(t, "of a long account", 0, list(&cloudwatch.ListMetricsInput{OwningAccount: aws.String(strings.Repeat("1", 255))}))
	filters := func(n int) []types.DimensionFilter {
		return repeat(n, func(n int) types.DimensionFilter { return types.DimensionFilter{Name: aws.String(fmt.Sprint(n))} })
	}
	equal(t, "with ten dimensions", 0, list(&cloudwatch.ListMetricsInput{Dimensions: filters(10)}))
	_, err := c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{Dimensions: filters(11)})
	refused(t, err, "InvalidParameterValue", 400, "The collection Dimensions must not have a size greater than 10.")
	_, err = c.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{RecentlyActive: "PT4H"})
	refused(t, err, "ValidationError", 400, "1 validation error detected: Value 'PT4H' at 'recentlyActive' failed to satisfy constraint: Member must satisfy enum value set: [PT3H]")
	recent := &cloudwatch.ListMetricsInput{RecentlyActive: types.RecentlyActivePt3h}
	advance(t, endpoint, "3h")
	equal(t, "recently active", 1, list(recent))
	advance(t, endpoint, "1m")
	equal(t, "not recently active any more", 0, list(recent))
	advance(t, endpoint, "332h59m")
	equal(t, "after two weeks", 1, list(&cloudwatch.ListMetricsInput{}))
	advance(t, endpoint, "1m")
	equal(t, "after more than two weeks", 0, list(&cloudwatch.ListMetricsInput{}))
}

// How much may be said of an alarm, and asked about alarms.
func TestAlarmLimits(t *testing.T) {
	endpoint := start(t)
	c := metricsClient(endpoint)
	created := nextMinute(t, endpoint)
	tags := func(n int) []types.Tag {
		return repeat(n, func(n int) types.Tag { return types.Tag{Key: aws.String(fmt.Sprint("k", n)), Value: aws.String("v")} })
	}
	put := func(change func(in *cloudwatch.PutMetricAlarmInput)) error {
		in := &cloudwatch.PutMetricAlarmInput{
			AlarmName: aws.String("a"), Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: types.StatisticSum, Period: aws.Int32(60),
			EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(10), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		}
		change(in)
		_, err := c.PutMetricAlarm(t.Context(), in)
		return err
	}
	for want, change := range map[string]func(in *cloudwatch.PutMetricAlarmInput){
		"1 validation error detected: Value at 'alarmActions' failed to satisfy constraint: Member must have length less than or equal to 5": func(in *cloudwatch.PutMetricAlarmInput) {
			in.AlarmActions = repeat(6, func(n int) string { return topicARN(fmt.Sprint(n)) })
		},
		"The action " + topicARN("ops.fifo") + " is not supported: actions are standard SNS topics and Lambda functions.": func(in *cloudwatch.PutMetricAlarmInput) {
			in.OKActions = []string{topicARN("ops.fifo")}
		},
		"Invalid arn syntax: arn:aws:sns::000000000000:ops": func(in *cloudwatch.PutMetricAlarmInput) {
			in.InsufficientDataActions = []string{"arn:aws:sns::000000000000:ops"}
		},
		"An alarm can have at most 50 tags.":                                                func(in *cloudwatch.PutMetricAlarmInput) { in.Tags = tags(51) },
		"At least one of the parameters Statistic and ExtendedStatistic must be specified.": func(in *cloudwatch.PutMetricAlarmInput) { in.Statistic = "" },
		"Alarms with EvaluationCriteria are not supported.": func(in *cloudwatch.PutMetricAlarmInput) {
			in.EvaluationCriteria = &types.EvaluationCriteriaMemberPromQLCriteria{Value: types.AlarmPromQLCriteria{Query: aws.String("up")}}
		},
	} {
		refused(t, put(change), "ValidationError", 400, want)
	}
	if err := put(func(in *cloudwatch.PutMetricAlarmInput) {
		in.AlarmActions, in.Tags = repeat(5, func(n int) string { return topicARN(fmt.Sprint(n)) }), tags(50)
	}); err != nil {
		t.Error(err)
	}

	tag := func(arn string, tags ...types.Tag) error {
		_, err := c.TagResource(t.Context(), &cloudwatch.TagResourceInput{ResourceARN: &arn, Tags: tags})
		return err
	}
	key, value := strings.Repeat("k", 128), strings.Repeat("v", 256)
	refused(t, tag(alarmARN("a"), types.Tag{Key: &key, Value: &value}), "InvalidParameterValue", 400, "An alarm can have at most 50 tags.")
	if err := tag(alarmARN("a"), types.Tag{Key: aws.String("k0"), Value: aws.String("new")}); err != nil {
		t.Error(err)
	}
	must(c.UntagResource(t.Context(), &cloudwatch.UntagResourceInput{ResourceARN: aws.String(alarmARN("a")), TagKeys: []string{"k1"}}))(t)
	if err := tag(alarmARN("a"), types.Tag{Key: &key, Value: &value}); err != nil {
		t.Error(err)
	}
	refused(t, tag(alarmARN("a"), types.Tag{Key: aws.String(key + "k"), Value: &value}), "InvalidParameterValue", 400, "The parameter Tags.member.1.Key must have 1 to 128 characters.")
	refused(t, tag(alarmARN("a"), types.Tag{Key: &key, Value: aws.String(value + "v")}), "InvalidParameterValue", 400, "The parameter Tags.member.1.Value must have at most 256 characters.")
	refused(t, tag(alarmARN("a"), types.Tag{Key: aws.String("AWS:k"), Value: &value}), "InvalidParameterValue", 400, "The parameter Tags.member.1.Key must not begin with aws:.")
	refused(t, tag("arn:aws:cloudwatch:eu-west-1:"+account+":alarm:a", tags(1)...), "ResourceNotFoundException", 404, "")
	refused(t, tag("arn:aws:cloudwatch:us-east-1:111111111111:alarm:a", tags(1)...), "ResourceNotFoundException", 404, "")
	refused(t, tag("arn:aws:cloudwatch::"+account+":dashboard/a", tags(1)...), "ResourceNotFoundException", 404, "")
	r := callMetricsJSON(t, endpoint, "TagResource", `{"ResourceARN":"`+alarmARN("a")+`","Tags":[{"Key":"k"}]}`)
	if r.Status != 400 || !strings.Contains(r.Body, `"The parameter Tags.member.1.Value is required."`) {
		t.Errorf("without a value: %d %s", r.Status, r.Body)
	}

	// Alarms for a metric, by all that tells them apart.
	for name, change := range map[string]func(in *cloudwatch.PutMetricAlarmInput){
		"unit":   func(in *cloudwatch.PutMetricAlarmInput) { in.Unit = types.StandardUnitCount },
		"p90":    func(in *cloudwatch.PutMetricAlarmInput) { in.Statistic, in.ExtendedStatistic = "", aws.String("p90") },
		"period": func(in *cloudwatch.PutMetricAlarmInput) { in.Period = aws.Int32(120) },
	} {
		putAlarm(t, endpoint, name, change)
	}
	for want, in := range map[string]*cloudwatch.DescribeAlarmsForMetricInput{
		"[a p90 period unit]": {}, "[unit]": {Unit: types.StandardUnitCount}, "[p90]": {ExtendedStatistic: aws.String("p90")}, "[period]": {Period: aws.Int32(120)},
		"[a period unit]": {Statistic: types.StatisticSum},
	} {
		in.Namespace, in.MetricName = aws.String("n"), aws.String("m")
		var names []string
		for _, a := range must(c.DescribeAlarmsForMetric(t.Context(), in))(t).MetricAlarms {
			names = append(names, *a.AlarmName)
		}
		equal(t, "alarms for a metric", want, fmt.Sprint(names))
	}

	// The history of a time.
	advance(t, endpoint, "10s")
	putAlarm(t, endpoint, "a", nil)
	advance(t, endpoint, "10s")
	putAlarm(t, endpoint, "a", nil)
	history := func(in *cloudwatch.DescribeAlarmHistoryInput) (seconds string) {
		in.AlarmName, in.ScanBy = aws.String("a"), types.ScanByTimestampAscending
		for _, item := range must(c.DescribeAlarmHistory(t.Context(), in))(t).AlarmHistoryItems {
			seconds += fmt.Sprint(item.Timestamp.Sub(created).Seconds(), " ")
		}
		return seconds
	}
	later := aws.Time(created.Add(10 * time.Second))
	equal(t, "the history", "0 10 20 ", history(&cloudwatch.DescribeAlarmHistoryInput{}))
	equal(t, "from a moment", "10 20 ", history(&cloudwatch.DescribeAlarmHistoryInput{StartDate: later}))
	equal(t, "to a moment", "0 10 ", history(&cloudwatch.DescribeAlarmHistoryInput{EndDate: later}))
	equal(t, "of composite alarms", "", history(&cloudwatch.DescribeAlarmHistoryInput{AlarmTypes: []types.AlarmType{types.AlarmTypeCompositeAlarm}}))
	equal(t, "of a contributor", "", history(&cloudwatch.DescribeAlarmHistoryInput{AlarmContributorId: aws.String("x")}))

	for n := range 47 {
		putAlarm(t, endpoint, fmt.Sprint("more", n), nil)
	}
	equal(t, "a page of alarms", 50, len(must(c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}))(t).MetricAlarms))
	_, err := c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{"a"}, AlarmNamePrefix: aws.String("a")})
	refused(t, err, "ValidationError", 400, "The parameters AlarmNames and AlarmNamePrefix are mutually exclusive and you have specified both.")
	equal(t, "children of an alarm on a metric", 0, len(must(c.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{ChildrenOfAlarmName: aws.String("a")}))(t).MetricAlarms))
}
