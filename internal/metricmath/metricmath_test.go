package metricmath

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
)

// The range of time of the tests: five minutes on a Thursday, the first of January.
const (
	begin = 1767268800 // 2026-01-01T12:00:00Z
	end   = begin + 300
)

var bounds = Bounds{Held: 1000, Made: 10_000}

// metric is a metric by the minute: "1 2 - 4", with - for none.
type metric struct{ id, values string }

func points(values string) (all []Point) {
	for i, text := range strings.Fields(values) {
		var x float64
		if _, err := fmt.Sscan(text, &x); err == nil {
			all = append(all, Point{begin + int64(i)*60, x})
		}
	}
	return all
}

// show is the reverse of points.
func show(s Series) string {
	var out []string
	for at := int64(begin); at < end; at += 60 {
		text := "-"
		for _, p := range s.Points {
			if p.At == at {
				text = fmt.Sprintf("%.4g", p.Value)
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// program compiles expressions called e1, e2 … after metrics.
func program(metrics []metric, expressions ...string) (*Program, []Query, error) {
	var queries []Query
	for _, m := range metrics {
		queries = append(queries, Query{ID: m.id, Label: "<" + m.id + ">", Period: 60})
	}
	for i, expression := range expressions {
		queries = append(queries, Query{ID: fmt.Sprint("e", i+1), Expression: expression})
	}
	p, err := Compile(queries)
	return p, queries, err
}

func options(metrics []metric, bounds Bounds) Options {
	return Options{
		Read:   func(query int) ([]Point, error) { return points(metrics[query].values), nil },
		Span:   func(int64) (from, to int64) { return begin, end },
		Bounds: bounds,
	}
}

// result is the result of the last of some expressions: its series, separated by a bar.
func result(metrics []metric, expressions ...string) (string, error) {
	p, queries, err := program(metrics, expressions...)
	if err != nil {
		return "", err
	}
	all, err := p.Evaluate(options(metrics, bounds)).Result(len(queries) - 1)
	if err != nil {
		return "", err
	}
	shown := make([]string, len(all))
	for i, s := range all {
		shown[i] = show(s)
	}
	return strings.Join(shown, " | "), nil
}

// What expressions come to. m1 and m2 are those of AWS's example of comparisons, c, t and f
// those of its examples of IF.
func TestExpressions(t *testing.T) {
	metrics := []metric{
		{"m1", "30 20 0 0 -"},
		{"m2", "20 - 20 - -"},
		{"c", "1 1 0 0 -"},
		{"t", "30 - 0 0 30"},
		{"f", "0 0 20 - 20"},
		{"n", "-1.5 2.5 - 9 16"},
		{"none", ""},
	}
	for _, tc := range []struct{ expression, want string }{
		{"m1", "30 20 0 0 -"},
		{"m1+m2", "50 20 20 0 -"},
		{"m1 - m2", "10 20 -20 0 -"},
		{"m1 * 2", "60 40 0 0 -"},
		{"m1 / m2", "1.5 - 0 - -"},
		{"100 / m1", "3.333 5 - - -"},
		{"m1 / 0", "- - - - -"},
		{"m1 * (1/0)", "- - - - -"},
		{"-m1", "-30 -20 -0 -0 -"},
		{"m1^2", "900 400 0 0 -"},
		{"n^0.5", "- 1.581 - 3 4"},
		{"TIME_SERIES(-2^2)", "-4 -4 -4 -4 -4"},
		{"TIME_SERIES(2^3^2)", "512 512 512 512 512"},
		{"TIME_SERIES(2^-1)", "0.5 0.5 0.5 0.5 0.5"},
		{"TIME_SERIES(1+2*3-4/2)", "5 5 5 5 5"},
		{"TIME_SERIES((1+2)*3)", "9 9 9 9 9"},
		{"TIME_SERIES(10-2-3)", "5 5 5 5 5"},
		{"TIME_SERIES(1e2 + .5 + 1.5E-1)", "100.7 100.7 100.7 100.7 100.7"},
		{"TIME_SERIES(1 < 2 AND 3 < 2 OR 1)", "1 1 1 1 1"},
		{"TIME_SERIES(0/0)", "- - - - -"},

		{"m1 < m2", "0 0 1 0 -"},
		{"m1 >= 30", "1 0 0 0 -"},
		{"m1 > 15 AND m2 > 15", "1 0 0 0 -"},
		{"m1 > 15 && m2 > 15", "1 0 0 0 -"},
		{"m1 > 15 OR m2 > 15", "1 1 1 0 -"},
		{"m1 || m2", "1 1 1 0 -"},
		{"m1 == 20", "0 1 0 0 -"},
		{"m1 != 20", "1 0 1 1 -"},
		{"20 <= m1", "1 1 0 0 -"},

		{"IF(c, t, f)", "30 0 20 - -"},
		{"IF(c, 5, f)", "5 5 20 - -"},
		{"IF(c, t, 5)", "30 0 5 5 -"},
		{"IF(c, 5, 6)", "5 5 6 6 -"},
		{"IF(c, t)", "30 0 - - -"},
		{"IF(m1 < 25, m1)", "- 20 0 0 -"},
		{"IF(m1 < 25, 10, 2)", "2 10 10 10 -"},
		{"IF(1, t, f)", "30 - 0 0 30"},
		{"IF(0, t, f)", "0 0 20 - 20"},
		{"IF(0, t)", "- - - - -"},

		{"ABS(n)", "1.5 2.5 - 9 16"},
		{"CEIL(n)", "-1 3 - 9 16"},
		{"FLOOR(n)", "-2 2 - 9 16"},
		{"LOG(n)", "- 0.9163 - 2.197 2.773"},
		{"LOG10(n)", "- 0.3979 - 0.9542 1.204"},
		{"DIFF(n)", "- 4 - 6.5 7"},
		{"DIFF_TIME(n)", "- 60 - 120 60"},
		{"RATE(n)", "- 0.06667 - 0.05417 0.1167"},
		{"RUNNING_SUM(n)", "-1.5 1 - 10 26"},
		{"RUNNING_SUM([m1,m2])", "30 50 50 50 - | 20 - 40 - -"},
		{"FILL(n, 7)", "-1.5 2.5 7 9 16"},
		{"FILL(m2, REPEAT)", "20 20 20 20 20"},
		{"FILL(n, LINEAR)", "-1.5 2.5 5.75 9 16"},
		{"FILL(m2, LINEAR)", "20 20 20 - -"},
		{"FILL(none, 0)", "0 0 0 0 0"},
		{"FILL(none, REPEAT)", "- - - - -"},
		{"FILL([m2, none], n)", "20 2.5 20 9 16 | -1.5 2.5 - 9 16"},
		{"FILL(m2, MIN(m2))", "20 20 20 20 20"},

		{"TIME_SERIES(SUM(m1))", "50 50 50 50 50"},
		{"TIME_SERIES(AVG(m1))", "10 10 10 10 10"}, // of five periods: missing values are 0
		{"TIME_SERIES(MAX(n))", "16 16 16 16 16"},
		{"TIME_SERIES(MIN(n))", "-1.5 -1.5 -1.5 -1.5 -1.5"},
		{"TIME_SERIES(STDDEV(m2))", "0 0 0 0 0"},
		{"TIME_SERIES(DATAPOINT_COUNT(m2))", "2 2 2 2 2"},
		{"TIME_SERIES(MAX(none))", "- - - - -"},
		{"TIME_SERIES(SUM(none))", "0 0 0 0 0"},
		{"SUM([m1,m2])", "50 20 20 0 -"},
		{"AVG([m1,m2])", "25 10 10 0 -"},
		{"MAX([m1,m2])", "30 20 20 0 -"},
		{"MIN([m1,m2])", "20 20 0 0 -"},
		{"STDDEV([m1,m2])", "5 0 10 0 -"},
		{"DATAPOINT_COUNT([m1,m2])", "2 1 2 1 -"},
		{"SUM(100/[m1, m2])", "8.333 5 5 - -"},
		{"AVG([m1,m2]/n)", "-16.67 4 - 0 0"},
		{"SUM(-[m1, m2])", "-50 -20 -20 0 -"},
		{"SUM(METRICS(\"nothing\"))", "- - - - -"},

		{"METRICS('m')", "30 20 0 0 - | 20 - 20 - -"},
		{"METRICS(\"m\") / 10", "3 2 0 0 - | 2 - 2 - -"},
		{"[METRICS(\"m2\"), [c, METRICS(\"m1\")]]", "20 - 20 - - | 1 1 0 0 - | 30 20 0 0 -"},
		{"c / METRIC_COUNT(METRICS())", "0.1429 0.1429 0 0 -"},
		{"FIRST([m2, m1])", "20 - 20 - -"},
		{"LAST([m2, m1])", "30 20 0 0 -"},
		{"FIRST(METRICS(\"nothing\"))", "- - - - -"},
		{"REMOVE_EMPTY([none, c])", "1 1 0 0 -"},
		{"SLICE([m1, m2, c], 1)", "20 - 20 - - | 1 1 0 0 -"},
		{"SLICE([m1, m2, c], 1, 2)", "20 - 20 - -"},
		{"SLICE([m1, m2, c], 2, 1)", ""},
		{"SLICE([m1, m2, c], -1, 99)", "30 20 0 0 - | 20 - 20 - - | 1 1 0 0 -"},
		{"SORT([c, m1, none, m2], SUM, DESC)", "30 20 0 0 - | 20 - 20 - - | 1 1 0 0 - | - - - - -"},
		{"SORT([m1, none, c], MAX, ASC)", "1 1 0 0 - | 30 20 0 0 - | - - - - -"},
		{"SORT([c, m1, m2], AVG, DESC, 1)", "30 20 0 0 -"},
		{"SORT([c, n], MIN, ASC, 0)", ""},

		{"PERIOD(m1) + c", "61 61 60 60 -"},
		{"TIME_SERIES(10)", "10 10 10 10 10"},
		{"MINUTE(none)", "0 1 2 3 4"},
		{"HOUR(m1)", "12 12 12 12 12"},
		{"DAY(m1)", "4 4 4 4 4"},
		{"DATE(m1)", "1 1 1 1 1"},
		{"MONTH(m1)", "1 1 1 1 1"},
		{"YEAR(m1)", "2026 2026 2026 2026 2026"},
		{"EPOCH(m1) - 1767268800", "0 60 120 180 240"},
		{"IF(DAY(m1)<6 AND HOUR(m1)>=9, m1)", "30 20 0 0 0"},
		{" \t\nm1\r", "30 20 0 0 -"},
	} {
		got, err := result(metrics, tc.expression)
		if err != nil || got != tc.want {
			t.Errorf("%s: %s, %v, want %s", tc.expression, got, err, tc.want)
		}
	}
	got, err := result(metrics, "e2 / m1", "e3 * 2", "METRICS('m1') + 1", "SUM([e1, e3])")
	if want := "33.07 23.1 1 1 -"; err != nil || got != want {
		t.Errorf("expressions of expressions: %s, %v, want %s", got, err, want)
	}
}

// What is refused, before anything is evaluated.
func TestRefused(t *testing.T) {
	metrics := []metric{{"m1", "1"}, {"m2", "2"}}
	for rule, expressions := range map[*fault.Rule][]string{
		ErrSyntax: {
			"", " ", "m1 +", "+m1", "m1 m2", "(m1", "m1)", "[m1", "[]", "m1]", "m1 = m2", "m1 & m2", "m1 % 2", "1m", "1.2.3", "1e999", "1..", "\"m1\"", "REPEAT", "m1 + DESC",
			"'m1", "SUM(", "SUM(m1", "SUM(m1,)", "SUM([m1,])", "m1,m2", "m1; m2", "é", "m1^", "m1 AND", "--", "!m1", "“m1”", "SUM + 1",
		},
		ErrFunction:    {"MEAN(m1)", "sum(m1)", "Sum(m1)", "m1(1)", "ANOMALY_DETECTOR(m1)"},
		ErrSearch:      {"SEARCH('', 'Sum', 300)", "SUM(SEARCH('{', 'Sum'))", "SEARCH('" + strings.Repeat("a", 1025) + "', 'Sum', 300)"},
		ErrSearches:    {"[" + strings.Repeat("SEARCH('a','p1'),", 100) + "SEARCH('a','p1')]"},
		ErrUnsupported: {"ANOMALY_DETECTION_BAND(m1, 2)", "m1/SERVICE_QUOTA(m1)", "INSIGHT_RULE_METRIC('r', 'Sum')", "LAMBDA('f')", "DB_PERF_INSIGHTS('RDS', 'db', 'x')"},
		ErrInsights:    {"SELECT AVG(x) FROM y", " select 1"},
		ErrUnknown:     {"m3", "m1 + SUM(m10)", "and"},
		ErrCycle:       {"e1", "m1 + e1", "SUM([e1])"},
		ErrArguments: {
			"ABS()", "ABS(1)", "ABS(m1, m2)", "ABS('x')", "ABS(SUM)", "SUM(1)", "AVG(m1, m2)", "FIRST(m1)", "LAST(5)", "METRIC_COUNT(m1)", "REMOVE_EMPTY(m1)", "SLICE(m1, 1)", "SLICE([m1], m1)",
			"SLICE([m1], 1, 2, 3)", "SORT([m1], SUM)", "SORT([m1], STDDEV, ASC)", "SORT([m1], SUM, UP)", "SORT([m1], 1, 2)", "SORT(m1, SUM, ASC)", "SORT([m1], SUM, ASC, m1)", "FILL(m1)", "FILL(1, 2)",
			"FILL(m1, [m2])", "FILL(m1, CUBIC)", "FILL(REPEAT, m1)", "IF(m1)", "IF([m1], 1, 2)", "IF(m1, [m1])", "IF(1, 2, 3)", "IF(1, m1, 2)", "PERIOD(m1+m2)", "PERIOD(1)", "PERIOD([m1])", "TIME_SERIES(m1)",
			"TIME_SERIES()", "MINUTE(1)", "DAY([m1])", "METRICS(m1)", "METRICS(1)", "METRICS(ALL)", "METRICS('a', 'b')",
			"SEARCH()", "SEARCH('a')", "SEARCH('a', Sum)", "SEARCH('a', m1)", "SEARCH(m1, 'Sum')", "SEARCH('a', 'Sum', 0.5)", "SEARCH('a', 'Sum', '60')", "SEARCH('a', 'Sum', m1)", "SEARCH('a', 'Sum', 60, 1)",
			"SEARCH('a', 'Sum', 1e300)",
		},
		ErrOperands: {"[m1] + [m2]", "METRICS() / METRICS()", "METRICS() > 5", "[m1] AND m2", "m1 == [m2]"},
		ErrElements: {"[1]", "[m1, SUM(m1)]"},
		ErrScalar:   {"1", "SUM(m1)", "-AVG(m1)", "SUM(m1) / 2", "METRIC_COUNT(METRICS())"},
		ErrDepth:    {strings.Repeat("(", 101) + "m1" + strings.Repeat(")", 101), strings.Repeat("-", 101) + "m1", strings.Repeat("[", 500), strings.Repeat("ABS(", 101) + "m1", strings.Repeat("2^", 101) + "2"},
		ErrParts:    {strings.Repeat("m1+", 25_000) + "m1"},
	} {
		for _, expression := range expressions {
			queries := []Query{{ID: "m1", Period: 60}, {ID: "m2", Period: 60}, {ID: "e1", Expression: expression}}
			if expression == "" {
				queries[2].Expression = "\t"
			}
			if _, err := Compile(queries); !errors.Is(err, rule) {
				t.Errorf("%.40s: %v, want %v", expression, err, rule)
			}
		}
	}
	if _, _, err := program(metrics, "e2", "e3", "m1+e1"); !errors.Is(err, ErrCycle) {
		t.Errorf("a cycle of three: %v", err)
	}
	if _, _, err := program(metrics, "PERIOD(e2) * m1", "m1"); !errors.Is(err, ErrArguments) {
		t.Errorf("the period of an expression: %v", err)
	}
	if _, _, err := program(metrics, strings.Repeat("-", 100)+"m1", strings.Repeat("(", 100)+"m1"+strings.Repeat(")", 100)); err != nil {
		t.Errorf("as deep as may be: %v", err)
	}
}

// Points that are dropped because no finite number was computed are not as those without data.
func TestDropped(t *testing.T) {
	metrics := []metric{{"m1", "30 20 0 0 -"}, {"m2", "20 - 20 - -"}, {"big", "1e308 -1e308 1e308 1e308 -"}, {"none", ""}}
	for expression, want := range map[string]bool{
		"m1 / m2": true, "m2 / m1": true, "m1 / 0": true, "100 / m1": true, "m1 * (0/0)": true, "LOG(m1)": true, "LOG10(-m1)": true, "(0-m1)^0.5": true,
		"big + big": true, "SUM([big, big])": true, "DIFF(big)": true, "RATE(big*10)": true, "RUNNING_SUM(big)": true, "TIME_SERIES(MAX(none))": true, "FILL(m2, 1/0)": true,
		"FILL(m1 / m2, 0)": true, "[m1, m1/0]": true, "m1 * MAX(none)": true,

		"m1 + m2": false, "m1": false, "none / 0": false, "DIFF(m1)": false, "RATE(none)": false, "FILL(none, REPEAT)": false, "FILL(m2, LINEAR)": false, "FILL(m1, 1/2)": false,
		"IF(m1, m2)": false, "IF(m1 > 25, m1)": false, "IF(0, m1)": false, "AVG([m2, none])": false, "MAX([none])": false, "FIRST(METRICS('x'))": false, "m1 - AVG(none)": false, "MINUTE(m1)": false,
	} {
		p, queries, err := program(metrics, expression, "m1 + 1")
		if err != nil {
			t.Fatal(err)
		}
		e, first := p.Evaluate(options(metrics, bounds)), len(metrics)
		for i := range queries {
			if _, err := e.Result(i); err != nil {
				t.Fatal(err)
			}
			if got := e.Dropped(i); got != (want && i == first) {
				t.Errorf("%s: of %s, points were dropped: %v", expression, queries[i].ID, got)
			}
		}
	}
}

// The series of an array have labels of their own, behind the expression's.
func TestLabels(t *testing.T) {
	queries := []Query{
		{ID: "m1", Label: "Errors", Period: 60},
		{ID: "m2", Label: "Calls", Period: 60},
		{ID: "e1", Expression: "m1/m2"},
		{ID: "e2", Expression: "m1/m2", Label: "Rate"},
		{ID: "e3", Expression: "METRICS()"},
		{ID: "e4", Expression: "FILL(METRICS(), 0)", Label: "Filled With 0:"},
		{ID: "e5", Expression: "[m1+m2, e2, e1, 100*m1]"},
		{ID: "e6", Expression: "FIRST(METRICS())"},
		{ID: "e7", Expression: "m1/METRICS('2')"},
	}
	p, err := Compile(queries)
	if err != nil {
		t.Fatal(err)
	}
	e := p.Evaluate(options([]metric{{"m1", "1"}, {"m2", "2"}}, bounds))
	for i, want := range []string{"Errors", "Calls", "e1", "Rate", "Errors, Calls", "Filled With 0: Errors, Filled With 0: Calls", "e5, Rate, e1, Errors", "e6", "Calls"} {
		all, err := e.Result(i)
		var labels []string
		for _, s := range all {
			labels = append(labels, s.Label)
		}
		if got := strings.Join(labels, ", "); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", queries[i].ID, got, err, want)
		}
		if p.Array(i) != (queries[i].ID == "e3" || queries[i].ID == "e4" || queries[i].ID == "e5" || queries[i].ID == "e7") {
			t.Errorf("%s: array %v", queries[i].ID, p.Array(i))
		}
	}
}

// Metrics of several periods are put together at the times at which they have points; what is
// made of nothing has the longest period that theirs are multiples of, or its own.
func TestPeriods(t *testing.T) {
	queries := []Query{
		{ID: "a", Period: 120},
		{ID: "b", Period: 180},
		{ID: "sum", Expression: "a+b"},
		{ID: "filled", Expression: "FILL(a+b, 0)"},
		{ID: "flat", Expression: "TIME_SERIES(1)"},
		{ID: "own", Expression: "TIME_SERIES(1)", Period: 180},
		{ID: "of", Expression: "TIME_SERIES(SUM(a))"},
	}
	p, err := Compile(queries)
	if err != nil {
		t.Fatal(err)
	}
	e := p.Evaluate(Options{
		Read: func(query int) ([]Point, error) {
			return []Point{{begin, 1}, {begin + queries[query].Period, 2}}, nil
		},
		Span: func(int64) (from, to int64) { return begin, begin + 300 }, Bounds: bounds,
	})
	for i, want := range []string{"1 - 2 - -", "1 - - 2 -", "2 - 2 2 -", "2 0 2 2 0", "1 1 1 1 1", "1 - - 1 -", "3 - 3 - 3"} {
		all, err := e.Result(i)
		if err != nil || show(all[0]) != want {
			t.Errorf("%s: %v, %v, want %s", queries[i].ID, all, err, want)
		}
	}
	alone, err := Compile([]Query{{ID: "e", Expression: "TIME_SERIES(1)"}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := alone.Evaluate(options(nil, bounds)).Result(0)
	if err != nil || show(all[0]) != "1 1 1 1 1" {
		t.Errorf("without metrics: %v, %v", all, err)
	}
}

// An evaluation ends where it would hold or make too much; each metric is read once, and what
// nobody needs is not read.
func TestBounds(t *testing.T) {
	metrics := []metric{{"m1", "1 2 3 4 5"}, {"m2", "5 4 3 2 1"}, {"m3", "1 1 1 1 1"}}
	for _, tc := range []struct {
		expressions []string
		bounds      Bounds
		err         error
	}{
		{[]string{"m1+m2"}, Bounds{29, 1000}, nil}, // two metrics of five points, and as many as the sum could have; three more for each series
		{[]string{"m1+m2"}, Bounds{28, 1000}, ErrDatapoints},
		{[]string{"m1+1+1+1+1+1+1+1"}, Bounds{24, 1000}, nil}, // what was computed on the way is let go
		{[]string{"m1+1+1+1+1+1+1+1"}, Bounds{23, 1000}, ErrDatapoints},
		{[]string{"m1+1+1+1+1+1+1+1"}, Bounds{1000, 50}, ErrDatapoints},
		{[]string{"[m1,m1,m1]", "[e1,e1,e1]", "[e2,e2,e2]", "[e3,e3,e3]", "[e4,e4,e4]", "[e5,e5,e5]", "SUM(e6)"}, bounds, ErrDatapoints},
		{[]string{"[m1,m1,m1]", "[e1,e1,e1]", "[e2,e2,e2]"}, Bounds{125, 1000}, nil}, // the points are shared, 39 series are not
		{[]string{"[m1,m1,m1]", "[e1,e1,e1]", "[e2,e2,e2]"}, Bounds{124, 1000}, ErrDatapoints},
		{[]string{"TIME_SERIES(1)"}, Bounds{7, 1000}, ErrDatapoints},
		{[]string{"FILL(m1, 0)"}, Bounds{15, 1000}, ErrDatapoints},
		{[]string{"IF(1, m1)"}, Bounds{15, 1000}, ErrDatapoints},
		{[]string{"SORT([m1,m2], SUM, ASC)"}, Bounds{28, 1000}, nil},
	} {
		p, queries, err := program(metrics, tc.expressions...)
		if err != nil {
			t.Fatal(err)
		}
		o, reads := options(metrics, tc.bounds), 0
		read := o.Read
		o.Read = func(query int) ([]Point, error) { reads++; return read(query) }
		e := p.Evaluate(o)
		if _, err = e.Result(len(queries) - 1); !errors.Is(err, tc.err) {
			t.Errorf("%q within %v: %v, want %v", tc.expressions, tc.bounds, err, tc.err)
		}
		if reads > 2 {
			t.Errorf("%q: %d metrics were read", tc.expressions, reads)
		}
	}
	p, _, err := program(metrics, "TIME_SERIES(1)")
	if err != nil {
		t.Fatal(err)
	}
	labelled, err := Compile([]Query{{ID: "m1", Period: 60}, {ID: "e1", Expression: "METRICS()", Label: strings.Repeat("x", 16*1000)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := labelled.Evaluate(options(metrics, bounds)).Result(1); err != nil {
		t.Errorf("a long label of a series without one: %v", err)
	}
	labelled.queries[0].Label = "of"
	if _, err := labelled.Evaluate(options(metrics, bounds)).Result(1); !errors.Is(err, ErrDatapoints) {
		t.Errorf("a label that is too long with that of a series: %v", err)
	}
	o := options(metrics, bounds)
	o.Span = func(int64) (from, to int64) { return math.MinInt64 / 4, math.MaxInt64 / 4 }
	if _, err := p.Evaluate(o).Result(3); !errors.Is(err, ErrDatapoints) {
		t.Errorf("all of time: %v", err)
	}
	failed := errors.New("failed")
	o.Read = func(int) ([]Point, error) { return nil, failed }
	p, _, err = program(metrics, "SUM(METRICS())")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Evaluate(o).Result(3); !errors.Is(err, failed) {
		t.Errorf("a metric that cannot be read: %v", err)
	}
}

// Whatever an expression is, it is refused, or has results that are finite, in order, and within
// bounds.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"m1+m2*3", "IF(m1 > 5 AND NOT, 1)", "SORT(METRICS(), AVG, DESC, 2)", "FILL([m1, m2], LINEAR)", "SLICE(SORT(METRICS('m'), SUM, ASC), 1, 2)", "e2", "TIME_SERIES(1e308*10)",
		"RATE(RUNNING_SUM(METRICS()^m1))", "AVG(FILL(REMOVE_EMPTY(METRICS()), REPEAT))/PERIOD(m1)", "-(-m1)", "LOG10(m1/0)", "IF(MINUTE(m1)<2,m1,EPOCH(m2))", "((((((m1", "[[[[", "SELECT",
	} {
		f.Add(seed, "FILL(e1, 0)")
	}
	metrics := []metric{{"m1", "1 - 0 -4 1e300"}, {"m2", ""}, {"m3", "2 2 2 2 2"}}
	f.Fuzz(func(t *testing.T, one, two string) {
		if len(one) > MaxExpression || len(two) > MaxExpression || one == "" || two == "" {
			return
		}
		p, queries, err := program(metrics, one, two)
		if err != nil {
			if _, ok := errors.AsType[*fault.Rule](err); !ok {
				t.Fatalf("%q, %q: %v", one, two, err)
			}
			return
		}
		e := p.Evaluate(options(metrics, bounds))
		for query := range queries {
			all, err := e.Result(query)
			if err != nil && !errors.Is(err, ErrDatapoints) {
				t.Fatalf("%q, %q: %v", one, two, err)
			}
			if err == nil && !p.Array(query) && len(all) != 1 {
				t.Fatalf("%q, %q: %d series", one, two, len(all))
			}
			if size(all) > bounds.Made {
				t.Fatalf("%q, %q: %d points", one, two, size(all))
			}
			for _, s := range all {
				for i, point := range s.Points {
					if math.IsNaN(point.Value) || math.IsInf(point.Value, 0) || i > 0 && s.Points[i-1].At >= point.At {
						t.Fatalf("%q, %q: %v", one, two, s)
					}
				}
				if s.Period <= 0 {
					t.Fatalf("%q, %q: a period of %d", one, two, s.Period)
				}
			}
		}
	})
}
