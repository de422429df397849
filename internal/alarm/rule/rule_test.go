package rule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/fault"
)

func TestEvaluate(t *testing.T) {
	states := map[string]alarm.State{
		"a": alarm.Alarming, "b": alarm.Alarming, "ok": alarm.OK, "u": alarm.InsufficientData, "in hours (EU), late": alarm.Alarming, `"x"\`: alarm.Alarming,
		"arn:aws:cloudwatch:eu-west-1:000000000000:alarm:a": alarm.Alarming, "ALARM": alarm.OK,
	}
	for text, want := range map[string]bool{
		"ALARM(a)":                           true,
		"OK(a)":                              false,
		"OK(ok)":                             true,
		"INSUFFICIENT_DATA(u)":               true,
		"INSUFFICIENT_DATA(absent)":          false,
		"NOT OK(absent)":                     true,
		"OK(ALARM)":                          true,
		"TRUE":                               true,
		"FALSE":                              false,
		"NOT NOT TRUE":                       true,
		"TRUE OR TRUE AND FALSE":             true,
		"(TRUE OR TRUE) AND FALSE":           false,
		"NOT FALSE AND FALSE":                false,
		"ALARM(a)AND(NOT ALARM(ok)OR FALSE)": true,
		"ALARM ( a )\n AND\tALARM( \"b\" )":  true,
		`ALARM("in hours (EU), late")`:       true,
		`ALARM("\"x\"\\")`:                   true,
		"ALARM(arn:aws:cloudwatch:eu-west-1:000000000000:alarm:a)":   true,
		`ALARM("arn:aws:cloudwatch:eu-west-1:000000000000:alarm:a")`: true,
		"AT_LEAST(2, ALARM, (a, b, ok, u))":                          true,
		"AT_LEAST(3, ALARM, (a, b, ok, u))":                          false,
		"AT_LEAST(50%, ALARM, (a, b, ok, u))":                        true,
		"AT_LEAST(51%, ALARM, (a, b, ok, u))":                        false,
		`AT_LEAST("50%",NOT ALARM,(a,b,ok,u))`:                       true,
		"AT_LEAST(3, NOT INSUFFICIENT_DATA, (a, b, ok, u))":          true,
		"AT_LEAST(1%, OK, (a, b)) OR AT_LEAST(1, OK, (a, ok))":       true,
	} {
		r, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := r.Evaluate(func(child string) alarm.State { return states[child] }) == alarm.Alarming; got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestChildren(t *testing.T) {
	r, err := Parse(`(ALARM(a) OR OK("b c")) AND NOT AT_LEAST(1, OK, (d, a)) AND TRUE`)
	if err != nil || !slices.Equal(r.Children(), []string{"a", "b c", "d"}) {
		t.Error(r, err)
	}
}

// Source of the places and of what has to be there: refusals of AWS that users report.
func TestRefused(t *testing.T) {
	many := func(n, different int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("OK(a%d)", i%different)
		}
		return strings.Join(all, " OR ")
	}
	for text, want := range map[string]string{
		"":                              "rule: unexpected end: " + anOperand,
		"()":                            "rule: unsupported token: ) 1 " + anOperand,
		"ALARM(a b)":                    "rule: unsupported token: b 8 ')'",
		"ALARM(ä) ALARM(b)":             "rule: unsupported token: ALARM 9 'AND' or 'OR'",
		"ALARM a":                       "rule: unsupported token: a 6 '('",
		"ALARM()":                       "rule: unsupported token: ) 6 " + anAlarm,
		`ALARM("")`:                     "rule: unsupported token:  6 " + anAlarm,
		"ALARM(,)":                      "rule: unsupported token: , 6 " + anAlarm,
		"ALARM(a":                       "rule: unexpected end: ')'",
		"ALARM(a) AND":                  "rule: unexpected end: " + anOperand,
		"ALARM(a) and OK(b)":            "rule: unsupported token: and 9 'AND' or 'OR'",
		`"TRUE"`:                        "rule: unsupported token: TRUE 0 " + anOperand,
		`ALARM("a`:                      "rule: open quotes: 6",
		`ALARM("a\"`:                    "rule: open quotes: 6",
		"AT_LEAST(0, ALARM, (a))":       "rule: number of AT_LEAST: 0",
		"AT_LEAST(2, ALARM, (a))":       "rule: number of AT_LEAST: 2",
		"AT_LEAST(101%, ALARM, (a, b))": "rule: number of AT_LEAST: 101%",
		"AT_LEAST(-1, ALARM, (a))":      "rule: unsupported token: -1 9 " + aNumber,
		"AT_LEAST(":                     "rule: unexpected end: " + aNumber,
		"AT_LEAST(1, a, (a))":           "rule: unsupported token: a 12 " + aState,
		"AT_LEAST(1, ALARM, ())":        "rule: unsupported token: ) 20 " + anAlarm,
		"AT_LEAST(1, ALARM, (a,))":      "rule: unsupported token: ) 22 " + anAlarm,
		"AT_LEAST(1, ALARM, a)":         "rule: unsupported token: a 19 '('",
		" TRUE":                         "rule: space around it",
		"TRUE\n":                        "rule: space around it",
		many(101, 101):                  "rule: too many alarms: 100",
		many(501, 100):                  "rule: too many elements: 500",
		many(500, 100) + " OR TRUE":     "rule: too many elements: 500",
		`ALARM("` + strings.Repeat("ä", MaxLength-8) + `")`: "rule: length: 10240",
	} {
		if _, err := Parse(text); err == nil || err.Error() != want || fault.KindOf(err) != fault.ValidationFailed {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for _, text := range []string{many(100, 100), many(500, 100), `ALARM("` + strings.Repeat("ä", MaxLength-9) + `")`, strings.Repeat("NOT ", 2000) + "TRUE", strings.Repeat("(", 5000) + "TRUE" + strings.Repeat(")", 5000)} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// A rule is parsed or refused; what it names is in its text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", `NOT (ALARM("a \" b") OR OK(c)) AND TRUE`, "AT_LEAST(50%, NOT OK, (a, b))", "((", "ALARM(\xff)", `OK("\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if (r == nil) == (err == nil) {
			t.Fatal(r, err)
		}
		if err != nil {
			return
		}
		for _, want := range alarm.States {
			asked := map[string]bool{}
			r.Evaluate(func(child string) alarm.State { asked[child] = true; return want })
			for child := range asked {
				if !slices.Contains(r.Children(), child) {
					t.Fatalf("%q is asked for, and not among %q", child, r.Children())
				}
			}
		}
	})
}
