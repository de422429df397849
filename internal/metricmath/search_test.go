package metricmath

import (
	"errors"
	"strings"
	"testing"
)

// What a search finds is an array; a search is evaluated once for each result that it is part of.
func TestSearches(t *testing.T) {
	found := map[string][]Series{
		"two": {{Label: "b", Period: 60, Points: points("1 2 - 4"), Of: 7}, {Label: "a", Period: 60, Points: points("10 - 30 40"), Of: 8}},
	}
	evaluate := func(bounds Bounds, expression string) (string, error) {
		p, queries, err := program([]metric{{"m1", "1 1 1 1"}}, expression)
		if err != nil {
			t.Fatal(err)
		}
		o := options([]metric{{"m1", "1 1 1 1"}}, bounds)
		o.Span = func(period int64) (from, to int64) { return begin, begin + 5*period }
		o.Search = func(s *Search, f func(Series) error) error {
			for _, one := range found[s.Statistic] {
				if one.Period = s.Period; f(one) != nil {
					return errors.New("the search was ended")
				}
			}
			return nil
		}
		all, err := p.Evaluate(o).Result(len(queries) - 1)
		var shown []string
		for _, s := range all {
			text := s.Label + ": " + show(s)
			if s.Of > 0 {
				text += " of " + string(rune('0'+s.Of))
			}
			shown = append(shown, text)
		}
		return strings.Join(shown, " | "), err
	}
	for expression, want := range map[string]string{
		"SEARCH('x', 'two', 60)":                     "b: 1 2 - 4 - of 7 | a: 10 - 30 40 - of 8",
		"SORT(SEARCH('x', 'two', 60), SUM, DESC)":    "a: 10 - 30 40 - of 8 | b: 1 2 - 4 - of 7",
		"FIRST(SEARCH('x', 'two', 60))":              "e1: 1 2 - 4 - of 7",
		"SUM(SEARCH('x', 'two', 60))":                "e1: 11 2 30 44 -",
		"-SEARCH('x', 'two', 60) * m1":               "b: -1 -2 0 -4 - of 7 | a: -10 0 -30 -40 - of 8",
		"[m1, FIRST(SEARCH('x', 'two', 60))]":        "<m1>: 1 1 1 1 - of 1 | b: 1 2 - 4 - of 7",
		"SEARCH('x', 'none', 60)":                    "",
		"FILL(SUM(SEARCH('x', 'none', 60)), 5)":      "e1: 5 5 5 5 5",
		"FILL(SUM(SEARCH('x', 'none', 120)), 5)":     "e1: 5 - 5 - 5",
		"m1 + METRIC_COUNT(SEARCH('x', 'two', 60))":  "e1: 3 3 3 3 - of 1",
		"TIME_SERIES(METRIC_COUNT(SEARCH('x','s')))": "e1: 0 - - - -", // by 300 seconds
	} {
		if got, err := evaluate(bounds, expression); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", expression, got, err, want)
		}
	}
	if _, err := evaluate(Bounds{Held: 10, Made: 1000}, "SEARCH('x', 'two', 60)"); err == nil {
		t.Error("a search exceeds the bound")
	}
	p, queries, err := program(nil, "SEARCH('x', 'two', 60)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Evaluate(options(nil, bounds)).Result(len(queries) - 1); !errors.Is(err, ErrUnsupported) {
		t.Errorf("without a search: %v", err)
	}
}
