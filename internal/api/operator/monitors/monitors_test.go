package monitors

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

const account, region = "000000000000", "us-east-1"

var (
	start = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	scope = metrics.Scope{Account: account, Region: region}
)

func open(t *testing.T) (*Monitors, *metrics.Store) {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(start), Logger: slog.New(slog.DiscardHandler)})
	points := metrics.New(k, metrics.Options{})
	m := New(Options{
		Alarms:  alarms.New(k, alarms.Options{Metrics: points, MaxAlarms: 100, Wake: func() {}, WakeShort: func() {}}),
		Metrics: monitor.NewReader(points, nil), Logs: logs.New(k, logs.Options{}), Account: account, Region: region,
	})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return m, points
}

func put(t *testing.T, points *metrics.Store, name string, at time.Time, values ...float64) {
	t.Helper()
	for _, value := range values {
		err := points.Put(metrics.Datapoint{
			Metric: metrics.Metric{Scope: scope, Namespace: "AWS/SQS", Name: name, Dimensions: metrics.Dimensions(metrics.Dimension{Name: "QueueName", Value: "orders"})},
			Unit:   "Count", Second: at.Unix(), Add: func(s *metrics.Set) { s.Add(value, 1) },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Alarms come page by page, those of a state or a name alone, and of no other account.
func TestAlarms(t *testing.T) {
	m, _ := open(t)
	for i := range 7 {
		c := alarm.Config{Namespace: "AWS/SQS", MetricName: "m", Statistic: "Maximum", Period: 60, EvaluationPeriods: 2, Threshold: 10, Comparison: alarm.Greater}
		id := alarms.ID{Account: account, Region: region, Name: fmt.Sprint("a:", i)}
		if err := m.Alarms.Put(id, c, nil); err != nil {
			t.Fatal(err)
		}
		if i < 3 {
			if err := m.Alarms.SetState(t.Context(), id, alarm.Status{State: alarm.Alarming, Reason: "by hand"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.Alarms.Put(alarms.ID{Account: "111122223333", Region: region, Name: "a:other"}, alarm.Config{
		Namespace: "n", MetricName: "m", Statistic: "Sum", Period: 60, EvaluationPeriods: 1, Comparison: alarm.Greater,
	}, nil); err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		in   ListAlarms
		want string
	}{
		"all":      {ListAlarms{}, "a:0 a:1 a:2 a:3 a:4 a:5 a:6"},
		"a state":  {ListAlarms{State: "ALARM"}, "a:0 a:1 a:2"},
		"a name":   {ListAlarms{Search: "A:4"}, "a:4"},
		"another":  {ListAlarms{Account: "111122223333"}, "a:other"},
		"a region": {ListAlarms{Region: "eu-west-1"}, ""},
	} {
		var names []string
		for tt.in.Limit = 2; ; {
			out, err := m.ListAlarms(t.Context(), nil, &tt.in)
			if err != nil || len(out.Alarms) > 2 {
				t.Fatalf("%s: %+v, %v", what, out, err)
			}
			for i := range out.Alarms {
				names = append(names, out.Alarms[i].Name)
			}
			if out.Next == nil {
				break
			}
			tt.in.Cursor = *out.Next
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", what, got, tt.want)
		}
	}
	one, err := m.GetAlarm(t.Context(), nil, &OneAlarm{ARN: "arn:aws:cloudwatch:us-east-1:000000000000:alarm:a:1"})
	if err != nil || one.State != "ALARM" || one.Reason != "by hand" || one.Datapoints != 2 || one.Missing != "missing" || !one.ActionsEnabled || len(one.History) < 2 {
		t.Errorf("the alarm is %+v, %v", one, err)
	}
	for _, name := range []string{"a:1", "arn:aws:cloudwatch:us-east-1:000000000000:alarm:", "arn:aws:cloudwatch:us-east-1:000000000000:alarm:none", "arn:aws:sqs:us-east-1:000000000000:alarm:a:1"} {
		if out, err := m.GetAlarm(t.Context(), nil, &OneAlarm{ARN: name}); err == nil {
			t.Errorf("%s is %+v", name, out)
		}
	}
}

// A composite alarm is shown with its rule and what suppresses it, and has no metrics.
func TestCompositeAlarm(t *testing.T) {
	m, _ := open(t)
	id := func(name string) alarms.ID { return alarms.ID{Account: account, Region: region, Name: name} }
	for _, c := range []struct {
		name   string
		config alarm.Config
	}{
		{"quiet", alarm.Config{Rule: "TRUE"}},
		{"all", alarm.Config{Rule: "ALARM(quiet)", Suppressor: &alarm.Suppressor{Alarm: "quiet", Wait: 60}}},
	} {
		if err := m.Alarms.Put(id(c.name), c.config, nil); err != nil {
			t.Fatal(err)
		}
	}
	const arn = "arn:aws:cloudwatch:us-east-1:000000000000:alarm:all"
	one, err := m.GetAlarm(t.Context(), nil, &OneAlarm{ARN: arn})
	if err != nil || one.State != "ALARM" || one.Rule != "ALARM(quiet)" || one.Suppressed != "Alarm" || one.Missing != "" || one.Metric != "" {
		t.Errorf("the alarm is %+v, %v", one, err)
	}
	if got, err := m.GetMetrics(t.Context(), nil, &GetMetrics{ARN: arn, Hours: 3}); err != nil || len(got.Series) != 0 {
		t.Errorf("its metrics are %+v, %v", got, err)
	}
}

// An alarm on Metrics is shown with its expression and what that yields, and as one on a metric
// if it is on one.
func TestAlarmsOnQueries(t *testing.T) {
	m, points := open(t)
	put(t, points, "sent", start.Add(-2*time.Minute), 1, 2, 3)
	put(t, points, "visible", start.Add(-2*time.Minute), 7, 9, 8)
	stat := func(name, statistic string) *alarm.Stat {
		return &alarm.Stat{Namespace: "AWS/SQS", Name: name, Dimensions: []alarm.Dimension{{Name: "QueueName", Value: "orders"}}, Statistic: statistic, Period: 60}
	}
	c := alarm.Config{Period: 60, EvaluationPeriods: 2, Threshold: 10, Comparison: alarm.Greater}
	for name, queries := range map[string][]alarm.Query{
		"ratio":  {{ID: "e1", Expression: "m2 / m1", Label: "Ratio", Watched: true}, {ID: "m1", Stat: stat("sent", "Sum")}, {ID: "m2", Stat: stat("visible", "Maximum")}},
		"single": {{ID: "m1", Stat: stat("sent", "Sum"), Watched: true}},
	} {
		c.Metrics = queries
		if err := m.Alarms.Put(alarms.ID{Account: account, Region: region, Name: name}, c, nil); err != nil {
			t.Fatal(err)
		}
	}
	all, err := m.ListAlarms(t.Context(), nil, &ListAlarms{Limit: 10})
	if err != nil || len(all.Alarms) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []string{
		"[] m2 / m1 60 [{e1 Ratio m2 / m1 [] true} {m1 AWS/SQS sent [{QueueName orders}] Sum false} {m2 AWS/SQS visible [{QueueName orders}] Maximum false}]",
		"AWS/SQS sent [{QueueName orders}] Sum 60 [{m1 AWS/SQS sent [{QueueName orders}] Sum true}]",
	} {
		a := &all.Alarms[i]
		text := fmt.Sprintln(a.Namespace, a.Metric, a.Dimensions, a.Statistic, a.Expression, a.PeriodSeconds, a.Queries)
		if got := strings.Join(strings.Fields(text), " "); got != want {
			t.Errorf("%s is %s, want %s", a.Name, got, want)
		}
	}
	at := float64(start.Add(-2 * time.Minute).Truncate(time.Minute).Unix())
	for name, want := range map[string]Series{
		"ratio":  {Name: "Ratio", Statistic: "m2 / m1", Points: [][]float64{{at, 1.5}}},
		"single": {Namespace: "AWS/SQS", Name: "sent", Unit: "Count", Statistic: "Sum", Points: [][]float64{{at, 6}}},
	} {
		out, err := m.GetMetrics(t.Context(), nil, &GetMetrics{ARN: "arn:aws:cloudwatch:us-east-1:000000000000:alarm:" + name, Hours: 1})
		if err != nil || fmt.Sprint(out.Series) != fmt.Sprint([]Series{want}) {
			t.Errorf("%s has %+v, %v, want %+v", name, out, err, want)
		}
	}
}

// The metrics of a queue are those that say its name and no more, in periods that begin at
// whole ones, by the statistic that says most.
func TestMetrics(t *testing.T) {
	m, points := open(t)
	put(t, points, "NumberOfMessagesSent", start.Add(-2*time.Minute), 1, 2, 3)
	put(t, points, "NumberOfMessagesSent", start.Add(-3*time.Hour), 50)
	put(t, points, "ApproximateNumberOfMessagesVisible", start.Add(-time.Minute), 7, 9, 8)
	queue := arn.Queue(region, account, "orders").String()
	out, err := m.GetMetrics(t.Context(), nil, &GetMetrics{ARN: queue, Hours: 1})
	if err != nil || out.PeriodSeconds != 60 || out.From.Second() != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	got := map[string]string{}
	for _, s := range out.Series {
		got[s.Name] = fmt.Sprint(s.Statistic, s.Unit, s.Points)
	}
	minute := func(ago time.Duration) int64 { return start.Add(-ago).Truncate(time.Minute).Unix() }
	for name, want := range map[string]string{
		"NumberOfMessagesSent":               fmt.Sprint("SumCount", [][]float64{{float64(minute(2 * time.Minute)), 6}}),
		"ApproximateNumberOfMessagesVisible": fmt.Sprint("MaximumCount", [][]float64{{float64(minute(time.Minute)), 9}}),
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	if out, err := m.GetMetrics(t.Context(), nil, &GetMetrics{ARN: arn.Queue(region, account, "other").String(), Hours: 1}); err != nil || len(out.Series) != 0 {
		t.Errorf("another queue has %+v, %v", out, err)
	}
	for _, name := range []string{"orders", "arn:aws:s3:::bucket", "arn:aws:sns:us-east-1:000000000000:app/GCM/shop", "arn:aws:cloudwatch:us-east-1:000000000000:alarm:none"} {
		if out, err := m.GetMetrics(t.Context(), nil, &GetMetrics{ARN: name, Hours: 1}); err == nil {
			t.Errorf("%s has %+v", name, out)
		}
	}
}

// However far back, there are no more points than a picture has room for, and periods are
// whole ones of what is kept for that long.
func TestPeriod(t *testing.T) {
	for hours := 1; hours <= 10_920; hours++ {
		p := period(hours)
		step := int64(60)
		if hours > 63*24 {
			step = 3600
		} else if hours > 15*24 {
			step = 300
		}
		if p%step != 0 || int64(hours)*3600/p > maxPoints {
			t.Fatalf("of %d hours the period is %d s", hours, p)
		}
	}
}

func TestStatisticOf(t *testing.T) {
	for name, want := range map[string]string{
		"NumberOfMessagesSent Count": "Sum", "ApproximateAgeOfOldestMessage Seconds": "Maximum", "ConcurrentExecutions Count": "Maximum",
		"AsyncEventAge Milliseconds": "Maximum", "Duration Milliseconds": "Average", "DeliveryToS3.DataFreshness Seconds": "Maximum",
	} {
		metric, unit, _ := strings.Cut(name, " ")
		if got := statisticOf(metric, unit); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Groups, streams and events of logs come page by page, and what is asked for wrongly is
// refused.
func TestLogs(t *testing.T) {
	m, _ := open(t)
	group := func(name string) arn.ARN { return arn.LogGroup(region, account, name) }
	for _, name := range []string{"/aws/lambda/f", "/aws/lambda/g", "other"} {
		if err := m.Logs.CreateGroup(logs.NewGroup{ARN: group(name)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, stream := range []string{"a", "b", "c"} {
		if err := m.Logs.CreateStream(group("other"), stream); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Logs.Put(group("other"), stream, []logs.Event{{Time: start.UnixMilli(), Message: "ERROR of " + stream}, {Time: start.UnixMilli() + 1, Message: "all is well"}}); err != nil {
			t.Fatal(err)
		}
	}
	var groups []string
	for in := (&ListLogGroups{Limit: 1, Search: "LAMBDA"}); ; {
		out, err := m.ListLogGroups(t.Context(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out.Groups {
			groups = append(groups, out.Groups[i].Name)
		}
		if out.Next == nil {
			break
		}
		in.Cursor = *out.Next
	}
	if want := []string{"/aws/lambda/f", "/aws/lambda/g"}; !slices.Equal(groups, want) {
		t.Errorf("groups are %v", groups)
	}
	streams, err := m.ListLogStreams(t.Context(), nil, &ListLogStreams{ARN: group("other").String(), Prefix: "b", Limit: 10})
	if err != nil || len(streams.Streams) != 1 || streams.Streams[0].Name != "b" || !streams.Streams[0].LastEventAt.Equal(start.Add(time.Millisecond)) {
		t.Errorf("streams are %+v, %v", streams, err)
	}
	var found []string
	for in := (&ListLogEvents{ARN: group("other").String(), Pattern: "ERROR", Limit: 2}); ; {
		out, err := m.ListLogEvents(t.Context(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out.Events {
			found = append(found, out.Events[i].Message)
		}
		if out.Next == nil {
			break
		}
		in.Cursor = *out.Next
	}
	slices.Sort(found)
	if want := []string{"ERROR of a", "ERROR of b", "ERROR of c"}; !slices.Equal(found, want) {
		t.Errorf("events are %v", found)
	}
	of := group("other").String()
	for what, in := range map[string]ListLogEvents{
		"no group":   {ARN: "other"},
		"a time":     {ARN: of, From: "yesterday"},
		"before all": {ARN: of, To: "1960-01-01T00:00:00Z"},
		"a pattern":  {ARN: of, Pattern: "{ $.a = "},
		"a cursor":   {ARN: of, Cursor: "%"},
		"none":       {ARN: group("none").String()},
	} {
		in.Limit = 1
		if out, err := m.ListLogEvents(t.Context(), nil, &in); err == nil {
			t.Errorf("%s is answered %+v", what, out)
		}
	}
}
