package alarm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var at = time.Date(2026, 5, 26, 14, 25, 0, 0, time.UTC)

// periods reads a row of AWS's table, whose newest period is on the right: 0 is
// within the threshold of 10, X breaches it, - is missing.
func periods(row string) (points []Point) {
	for i, c := range strings.Fields(row) {
		newest := len(strings.Fields(row)) - 1 - i
		p := Point{At: at.Add(-time.Duration(newest+1) * time.Minute), Real: c != "-", Samples: 1}
		if c == "X" {
			p.Value = 20
		}
		points = append([]Point{p}, points...)
	}
	return points
}

func config(n, m int, missing Missing) Config {
	return Config{
		Namespace: "AWS/SQS", MetricName: "m", Statistic: "Maximum", Period: 60, EvaluationPeriods: n, DatapointsToAlarm: m,
		Threshold: 10, Comparison: Greater, Missing: missing,
	}
}

// judge says which state datapoints lead to, "keep" if they change nothing
// whatever the state is.
func judge(c Config, points []Point) string {
	kept, led := 0, State("")
	for _, from := range States {
		a := New("000000000000", "us-east-1", "a", c, nil, at)
		a.State = from
		if s, change := a.Judge(points, at); change {
			led = s.State
		} else {
			kept++
		}
	}
	if kept == len(States) {
		return "keep"
	}
	return string(led)
}

// Every row of AWS's tables of missing data.
func TestMissingData(t *testing.T) {
	const insufficient = "INSUFFICIENT_DATA"
	for _, tc := range []struct {
		m    int
		rows string
		want [4]string // missing, ignore, breaching, notBreaching
	}{
		{3, "0 - X - X | 0 - - - -", [4]string{"OK", "OK", "OK", "OK"}},
		{3, "- - - - -", [4]string{insufficient, "keep", "ALARM", "OK"}},
		{3, "0 X X - X", [4]string{"ALARM", "ALARM", "ALARM", "ALARM"}},
		{2, "0 - X - X | 0 0 X 0 X", [4]string{"ALARM", "ALARM", "ALARM", "ALARM"}},
		{3, "- - X - -", [4]string{"ALARM", "keep", "ALARM", "OK"}},
		{2, "- - - X -", [4]string{"ALARM", "keep", "ALARM", "OK"}},
		{2, "0 - X - - | - - - - 0", [4]string{"OK", "OK", "ALARM", "OK"}},
		// And beyond them.
		{2, "- - - - -", [4]string{insufficient, "keep", "ALARM", "OK"}},
		{2, "- - - - X", [4]string{"OK", "OK", "ALARM", "OK"}},
		{1, "- - - - X", [4]string{"ALARM", "ALARM", "ALARM", "ALARM"}},
		{3, "X X X 0 0", [4]string{"OK", "OK", "OK", "OK"}},
		{2, "- X X 0 0", [4]string{"OK", "OK", "OK", "OK"}},
		{1, "X X 0 - 0 0", [4]string{"OK", "OK", "OK", "OK"}},
	} {
		for row := range strings.SplitSeq(tc.rows, "|") {
			for i, missing := range []Missing{TreatMissing, TreatIgnore, TreatBreaching, TreatNotBreaching} {
				if got := judge(config(3, tc.m, missing), periods(row)); got != tc.want[i] {
					t.Errorf("%d of 3, %s, missing is %s: %s, want %s", tc.m, row, missing, got, tc.want[i])
				}
			}
		}
	}
}

func TestComparisons(t *testing.T) {
	for comparison, want := range map[Comparison]string{
		Greater: "OK OK ALARM", GreaterOrEqual: "OK ALARM ALARM", Less: "ALARM OK OK", LessOrEqual: "ALARM ALARM OK",
	} {
		var got []string
		for _, value := range []float64{9, 10, 11} {
			c := config(1, 0, "")
			c.Comparison = comparison
			got = append(got, judge(c, []Point{{At: at, Real: true, Samples: 1, Value: value}}))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", comparison, s, want)
		}
	}
}

// A percentile of few samples keeps the state if it is told so.
func TestLowSamples(t *testing.T) {
	for _, tc := range []struct {
		percentile, samples float64
		low                 string
		keeps               bool
	}{
		{0.99, 999, Ignore, true},
		{0.99, 1000, Ignore, false},
		{0.5, 19, Ignore, true},
		{0.5, 20, Ignore, false},
		{0.1, 99, Ignore, true},
		{0.1, 100, Ignore, false},
		{0.9, 99, Ignore, true},
		{0.9, 100, Ignore, false},
		{0.99, 1, "evaluate", false},
		{0.99, 1, "", false},
		{0, 1, Ignore, false},
	} {
		c := config(1, 0, "")
		c.Percentile, c.LowSamples = tc.percentile, tc.low
		if got := judge(c, []Point{{At: at, Real: true, Samples: tc.samples, Value: 20}}) == "keep"; got != tc.keeps {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// Whatever the datapoints, a state is only left for another one; enough breaching
// ones among the newest always alarm, and with enough data missing data have no
// say.
func TestJudgeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		m := rapid.IntRange(1, n).Draw(t, "m")
		row := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"0", "X", "-"}), n+2, n+2).Draw(t, "row"), " ")
		points := periods(row)
		c := config(n, m, "")
		a := New("000000000000", "us-east-1", "a", c, nil, at)
		a.State = rapid.SampledFrom(States).Draw(t, "state")
		var results []string
		for _, missing := range Treatments {
			a.Missing = missing
			s, change := a.Judge(points, at)
			if change == (s.State == a.State) {
				t.Fatalf("change %v to %s", change, s.State)
			}
			if change && (!strings.Contains(s.Reason, "datapoint") || strings.Contains(s.Reason, " 0 ") || strings.Contains(s.Reason, "and .") || len(s.Reason) > 1023 || !json.Valid([]byte(s.Data)) || len(s.Data) > 4000) {
				t.Fatalf("%q %q", s.Reason, s.Data)
			}
			results = append(results, string(s.State))
		}
		real, breaching := 0, 0
		for _, p := range points {
			if p.Real && real < n {
				real++
				if p.Value > 10 {
					breaching++
				}
			}
		}
		for _, got := range results {
			if breaching >= m && got != string(Alarming) {
				t.Fatalf("%d of %d: %s gives %v", m, n, row, results)
			}
			if real == n && got != results[0] {
				t.Fatalf("missing data count: %s gives %v", row, results)
			}
		}
	})
}

func TestReasons(t *testing.T) {
	for _, tc := range []struct {
		n, m    int
		missing Missing
		row     string
		want    string
	}{
		{1, 0, "", "X", "Threshold Crossed: 1 datapoint [20.0 (26/05/26 14:24:00)] was greater than the threshold (10.0)."},
		{1, 0, "", "0", "Threshold Crossed: 1 datapoint [0.0 (26/05/26 14:24:00)] was not greater than the threshold (10.0)."},
		{2, 0, "", "X X", "Threshold Crossed: 2 datapoints [20.0 (26/05/26 14:24:00), 20.0 (26/05/26 14:23:00)] were greater than the threshold (10.0)."},
		{1, 1, "", "X", "Threshold Crossed: 1 out of the last 1 datapoints [20.0 (26/05/26 14:24:00)] was greater than the threshold (10.0) (minimum 1 datapoint for OK -> ALARM transition)."},
		{3, 2, "", "X 0 X", "Threshold Crossed: 2 out of the last 3 datapoints [20.0 (26/05/26 14:24:00), 20.0 (26/05/26 14:22:00)] were greater than the threshold (10.0) (minimum 2 datapoints for OK -> ALARM transition)."},
		{3, 2, "", "0 0 X", "Threshold Crossed: 2 out of the last 3 datapoints [0.0 (26/05/26 14:23:00), 0.0 (26/05/26 14:22:00)] were not greater than the threshold (10.0) (minimum 2 datapoints for ALARM -> OK transition)."},
		{2, 0, TreatBreaching, "- -", "Threshold Crossed: no datapoints were received for 2 periods and 2 missing datapoints were treated as [Breaching]."},
		{2, 0, TreatBreaching, "- - - X -", "Threshold Crossed: 1 datapoint [20.0 (26/05/26 14:23:00)] was greater than the threshold (10.0) and 1 missing datapoint was treated as [Breaching]."},
		{2, 0, TreatNotBreaching, "0 -", "Threshold Crossed: 1 datapoint [0.0 (26/05/26 14:23:00)] was not greater than the threshold (10.0) and 1 missing datapoint was treated as [NonBreaching]."},
		{1, 0, TreatNotBreaching, "-", "Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was treated as [NonBreaching]."},
		{2, 0, TreatBreaching, "X -", "Threshold Crossed: 1 datapoint [20.0 (26/05/26 14:23:00)] was greater than the threshold (10.0) and 1 missing datapoint was treated as [Breaching]."},
		{3, 2, "", "- - X", "Threshold Crossed: 1 out of the last 3 datapoints [20.0 (26/05/26 14:24:00)] was greater than the threshold (10.0) and 2 datapoints were unknown (minimum 2 datapoints for OK -> ALARM transition)."},
		{3, 0, TreatIgnore, "- X X", "Threshold Crossed: 2 datapoints [20.0 (26/05/26 14:24:00), 20.0 (26/05/26 14:23:00)] were greater than the threshold (10.0) and 1 datapoint was unknown."},
		{3, 0, "", "- - -", "Insufficient Data: 3 datapoints were unknown."},
		{1, 0, "", "-", "Insufficient Data: 1 datapoint was unknown."},
	} {
		a := New("000000000000", "us-east-1", "a", config(tc.n, tc.m, tc.missing), nil, at)
		a.State = "NONE"
		if s, _ := a.Judge(periods(tc.row), at); s.Reason != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.row, s.Reason, tc.want)
		}
	}
}

func TestReasonData(t *testing.T) {
	a := New("000000000000", "us-east-1", "a", config(2, 0, TreatBreaching), nil, at)
	a.Unit = "Count"
	s, _ := a.Judge(periods("X -"), at)
	want := `{"version":"1.0","queryDate":"2026-05-26T14:25:00.000+0000","startDate":"2026-05-26T14:23:00.000+0000","unit":"Count","statistic":"Maximum","period":60,` +
		`"recentDatapoints":[20.0],"threshold":10.0,"evaluatedDatapoints":[{"timestamp":"2026-05-26T14:24:00.000+0000"},{"timestamp":"2026-05-26T14:23:00.000+0000","sampleCount":1.0,"value":20.0}]}`
	if s.Data != want {
		t.Errorf("got  %s\nwant %s", s.Data, want)
	}
}

func TestDoubles(t *testing.T) {
	for f, want := range map[float64]string{0: "0.0", 21: "21.0", 21.5: "21.5", -3: "-3.0", 1e6: "1000000.0", 1e7: "1.0E7", 12345678: "1.2345678E7", 0.001: "0.001", 0.00015: "1.5E-4", 1e100: "1.0E100"} {
		if got := double(f); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
}

func example() Alarm {
	c := config(1, 0, "")
	c.Statistic, c.MetricName = "SampleCount", "ApproximateNumberOfMessagesVisible"
	c.Threshold = 30
	c.Dimensions = []Dimension{{"QueueName", "dead"}}
	c.AlarmActions = []string{"arn:aws:sns:us-east-1:000000000000:ops"}
	a := New("000000000000", "us-east-1", "not empty", c, nil, at)
	a.Enter(Status{State: Alarming, Reason: "because", Data: `{"version":"1.0"}`}, at.Add(1500*time.Millisecond))
	return a
}

func TestNotification(t *testing.T) {
	a := example()
	want := `{"AlarmName":"not empty","AlarmDescription":null,"AWSAccountId":"000000000000","AlarmConfigurationUpdatedTimestamp":"2026-05-26T14:25:00.000+0000",` +
		`"NewStateValue":"ALARM","NewStateReason":"because","StateChangeTime":"2026-05-26T14:25:01.500+0000","Region":"US East (N. Virginia)",` +
		`"AlarmArn":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:not empty","OldStateValue":"OK","OKActions":[],"AlarmActions":["arn:aws:sns:us-east-1:000000000000:ops"],` +
		`"InsufficientDataActions":[],"ActionExecutedAfterMuteWindow":false,"Trigger":{"MetricName":"ApproximateNumberOfMessagesVisible","Namespace":"AWS/SQS","StatisticType":"Statistic","Statistic":"SAMPLE_COUNT",` +
		`"Unit":null,"Dimensions":[{"value":"dead","name":"QueueName"}],"Period":60,"EvaluationPeriods":1,"ComparisonOperator":"GreaterThanThreshold","Threshold":30.0,` +
		`"TreatMissingData":"missing","EvaluateLowSampleCountPercentile":""}}`
	if d := cmp.Diff(want, a.Notification(OK)); d != "" {
		t.Error(d)
	}
	if got := a.Subject(); got != `ALARM: "not empty" in US East (N. Virginia)` {
		t.Error(got)
	}
	a.Extended, a.Statistic, a.DatapointsToAlarm, a.Unit = true, "p99", 1, "Count"
	if got := a.Notification(OK); !strings.Contains(got, `"StatisticType":"ExtendedStatistic","ExtendedStatistic":"p99","Unit":"Count"`) || !strings.Contains(got, `"EvaluationPeriods":1,"DatapointsToAlarm":1`) {
		t.Error(got)
	}
	a.Name, a.Region = strings.Repeat("é", 60)+strings.Repeat("x", 60), "mars-north-1"
	if got := a.Subject(); len(got) != 100 || !strings.HasSuffix(got, "...") {
		t.Error(got)
	}
}

func TestEvent(t *testing.T) {
	a := example()
	want := `{"source":"aws.cloudwatch","alarmArn":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:not empty","accountId":"000000000000","time":"2026-05-26T14:25:01.500+0000","region":"us-east-1",` +
		`"alarmData":{"alarmName":"not empty","state":{"value":"ALARM","reason":"because","reasonData":"{\"version\":\"1.0\"}","timestamp":"2026-05-26T14:25:01.500+0000"},` +
		`"previousState":{"value":"OK","reason":"fine","timestamp":"2026-05-26T14:00:00.000+0000"},` +
		`"configuration":{"metrics":[{"id":"m1","metricStat":{"metric":{"namespace":"AWS/SQS","name":"ApproximateNumberOfMessagesVisible","dimensions":{"QueueName":"dead"}},"period":60,"stat":"SampleCount"},"returnData":true}]}}}`
	before := &Alarm{Status: Status{State: OK, Reason: "fine"}, Transitioned: at.Add(-25 * time.Minute)}
	if d := cmp.Diff(want, a.Event(before)); d != "" {
		t.Error(d)
	}
	text := "too much"
	a.Description, a.Unit = &text, "Count"
	if got := a.Event(before); !strings.Contains(got, `"configuration":{"description":"too much","metrics":[`) || !strings.Contains(got, `"stat":"SampleCount","unit":"Count"}`) {
		t.Error(got)
	}
}

// onQueries is the example on an expression.
func onQueries() Alarm {
	a := example()
	a.Metrics = []Query{
		{ID: "e1", Expression: "m1 / m2", Label: "Rate", Watched: true},
		{ID: "m1", Stat: &Stat{Namespace: "n", Name: "errors", Dimensions: []Dimension{{"d", "v"}}, Statistic: "Sum", Period: 60}},
		{ID: "m2", Account: "000000000000", Stat: &Stat{Namespace: "n", Name: "calls", Statistic: "p90", Unit: "Count", Period: 60}, Label: "Calls", Period: 60},
	}
	a.Namespace, a.MetricName, a.Dimensions, a.Statistic = "", "", nil, ""
	return a
}

// The documents of an alarm on Metrics have its queries, and no metric of its own.
func TestQueryDocuments(t *testing.T) {
	a := onQueries()
	a.DatapointsToAlarm, a.Missing = 1, TreatIgnore
	_, got, _ := strings.Cut(a.Notification(OK), `"Trigger":`)
	want := `{"Period":60,"EvaluationPeriods":1,"DatapointsToAlarm":1,"ComparisonOperator":"GreaterThanThreshold","Threshold":30.0,"TreatMissingData":"ignore",` +
		`"EvaluateLowSampleCountPercentile":"","Metrics":[{"Expression":"m1 / m2","Id":"e1","Label":"Rate","ReturnData":true},` +
		`{"Id":"m1","MetricStat":{"Metric":{"Dimensions":[{"value":"v","name":"d"}],"MetricName":"errors","Namespace":"n"},"Period":60,"Stat":"Sum"},"ReturnData":false},` +
		`{"AccountId":"000000000000","Id":"m2","Label":"Calls","MetricStat":{"Metric":{"Dimensions":[],"MetricName":"calls","Namespace":"n"},"Period":60,"Stat":"p90","Unit":"Count"},"Period":60,"ReturnData":false}]}}`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	_, got, _ = strings.Cut(a.Event(&Alarm{}), `"configuration":`)
	queries := `"metrics":[{"id":"e1","expression":"m1 / m2","label":"Rate","returnData":true},` +
		`{"id":"m1","metricStat":{"metric":{"namespace":"n","name":"errors","dimensions":{"d":"v"}},"period":60,"stat":"Sum"},"returnData":false},` +
		`{"id":"m2","metricStat":{"metric":{"namespace":"n","name":"calls","dimensions":{}},"period":60,"stat":"p90","unit":"Count"},"label":"Calls","period":60,"accountId":"000000000000","returnData":false}]`
	if d := cmp.Diff("{"+queries+"}}}", got); d != "" {
		t.Error(d)
	}
	if got := a.Created(at).Data; !strings.Contains(got, `"comparisonOperator":"GreaterThanThreshold",`+queries+`,"alarmName"`) || strings.Contains(got, `"namespace":""`) {
		t.Error(got)
	}
	s, change := a.Judge([]Point{{At: at, Real: true, Value: 2.5}}, at)
	if want := `{"version":"1.0","queryDate":"2026-05-26T14:25:00.000+0000","startDate":"2026-05-26T14:25:00.000+0000","period":60,"recentDatapoints":[2.5],"threshold":30.0,` +
		`"evaluatedDatapoints":[{"timestamp":"2026-05-26T14:25:00.000+0000","value":2.5}]}`; !change || s.State != OK || s.Data != want {
		t.Errorf("%+v, %t, want %s", s, change, want)
	}
}

func TestHistory(t *testing.T) {
	a := example()
	changed := a.Changed(Status{State: OK, Reason: "fine"})
	if want := `{"version":"1.0","oldState":{"stateValue":"OK","stateReason":"fine"},"newState":{"stateValue":"ALARM","stateReason":"because","stateReasonData":{"version":"1.0"}}}`; changed.Data != want || changed.Summary != "Alarm updated from OK to ALARM" || changed.Type != StateUpdate {
		t.Errorf("%+v", changed)
	}
	for _, tc := range []struct {
		item    Item
		summary string
		holds   string
	}{
		{a.Created(at), `Alarm "not empty" created`, `"type":"Create","createdAlarm":{"threshold":30.0,"namespace":"AWS/SQS"`},
		{a.Reconfigured(&a, at), `Alarm "not empty" updated`, `"type":"Update"`},
		{a.Deleted(at), `Alarm "not empty" deleted`, `"type":"Delete"`},
		{a.Acted("arn:x", "", "text", at, at), "Successfully executed action arn:x", `"actionState":"Succeeded"`},
		{a.Acted("arn:x", "gone", strings.Repeat("x", 5000), at, at), "Failed to execute action arn:x. Received error: \"gone\"", `"actionState":"Failed"`},
	} {
		if tc.item.Summary != tc.summary || !strings.Contains(tc.item.Data, tc.holds) || len(tc.item.Data) > maxData || !json.Valid([]byte(tc.item.Data)) {
			t.Errorf("%+v", tc.item)
		}
	}
	a.Reason = strings.Repeat("x", 1000)
	a.Data = fmt.Sprintf(`{"x":%q}`, strings.Repeat("y", 3900))
	if got := a.Changed(Status{State: OK}); len(got.Data) > maxData || !strings.Contains(got.Data, "ALARM") {
		t.Errorf("%d bytes", len(got.Data))
	}
}

// fill makes of an item, by the length of a text within, one whose data has n bytes.
func fill(t *testing.T, n int, item func(text string) Item) Item {
	t.Helper()
	empty := len(item("x").Data) - 1
	return item(strings.Repeat("x", n-empty))
}

// An item's data may have the greatest size; beyond it the longest part is left out.
func TestGreatestData(t *testing.T) {
	before := Status{State: OK, Reason: "fine"}
	for name, tt := range map[string]struct {
		item func(text string) Item
		rest string // what is left of one that is too long
	}{
		"an action": {func(text string) Item {
			a := example()
			return a.Acted("arn:x", "", text, at, at)
		}, `"notificationResource":"arn:x"}`},
		"a change": {func(text string) Item {
			a := example()
			a.Data = fmt.Sprintf(`{"x":%q}`, text)
			return a.Changed(before)
		}, `"newState":{"stateValue":"ALARM","stateReason":"because"}}`},
		"a change with a long reason": {func(text string) Item {
			a := example()
			a.Reason, a.Data = text, ""
			return a.Changed(before)
		}, `{"version":"1.0"}`},
		"a new alarm": {func(text string) Item {
			a := example()
			a.Description = &text
			return a.Created(at)
		}, `{"version":"1.0"}`},
	} {
		if got := fill(t, maxData, tt.item); len(got.Data) != maxData || !strings.Contains(got.Data, "xxx") || !json.Valid([]byte(got.Data)) {
			t.Errorf("%s of %d bytes has %d: %s", name, maxData, len(got.Data), got.Data)
		}
		if got := fill(t, maxData+1, tt.item); !strings.HasSuffix(got.Data, tt.rest) || strings.Contains(got.Data, "xxx") || !json.Valid([]byte(got.Data)) {
			t.Errorf("%s of a byte more has %s", name, got.Data)
		}
	}
}

// A subject has up to a hundred printable characters of ASCII.
func TestSubjects(t *testing.T) {
	const frame = len(`ALARM: "" in x`)
	for name, want := range map[string]string{
		"from ! to ~":                    `ALARM: "from ! to ~" in x`,
		"Größe":                          `ALARM: "Gr??e" in x`,
		strings.Repeat("n", 100-frame):   `ALARM: "` + strings.Repeat("n", 100-frame) + `" in x`,
		strings.Repeat("n", 100-frame+1): `ALARM: "` + strings.Repeat("n", 100-frame+1) + `" ...`,
		strings.Repeat("é", 100-frame):   `ALARM: "` + strings.Repeat("?", 100-frame) + `" in x`,
		strings.Repeat("n", 255):         `ALARM: "` + strings.Repeat("n", 89) + "...",
	} {
		a := example()
		a.Name, a.Region = name, "x"
		if got := a.Subject(); got != want {
			t.Errorf("%s is titled %s, want %s", name, got, want)
		}
	}
}
