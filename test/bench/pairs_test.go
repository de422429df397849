package main

import (
	"slices"
	"testing"
)

func TestInterval(t *testing.T) {
	for _, test := range []struct {
		n        int
		from, to float64
	}{
		{0, 0, 0},
		{1, 1, 1},
		{5, 1, 5}, // the chance that all lie on one side is 6 %
		{6, 1, 6},
		{9, 2, 8},
		{12, 3, 10},
		{20, 6, 15},
	} {
		var values []float64
		for i := range test.n {
			values = append(values, float64(test.n-i))
		}
		if from, to := interval(values); from != test.from || to != test.to {
			t.Errorf("of %d values: %v to %v, want %v to %v", test.n, from, to, test.from, test.to)
		}
	}
}

func TestPairUp(t *testing.T) {
	cpu := func(us float64) sample { return sample{ServerCPU: us} }
	all := pairUp([]record{
		{"send", "batch 1", "godwit", 0, cpu(30), nil},
		{"send", "batch 1", "before", 0, cpu(20), nil},
		{"send", "batch 1", "before", 1, cpu(40), nil},
		{"send", "batch 1", "godwit", 1, cpu(20), nil},
		{"send", "batch 1", "r", 0, cpu(70), nil},
		{"send", "batch 1", "godwit", 2, cpu(20), nil}, // and no other
		{"fifo", "batch 1", "FIFO", 0, cpu(10), map[string]float64{"take_us": 4, "take_per_s": 1}},
		{"fifo", "batch 1", "FIFO, before", 0, cpu(10), map[string]float64{"take_us": 8, "take_per_s": 1}},
		{"http", "raw", "godwit, 100 subscriptions", 0, cpu(9), nil},
		{"http", "raw", "before, 100 subscriptions", 0, cpu(6), nil},
		{"http", "raw", "bare client", 0, cpu(0), nil},
	})
	for _, want := range []pair{
		{scenario: "send", label: "batch 1", figure: "cpu", quotients: []float64{1.5, 0.5}},
		{scenario: "fifo", label: "batch 1, FIFO", figure: "cpu", quotients: []float64{1}},
		{scenario: "fifo", label: "batch 1, FIFO", figure: "take", quotients: []float64{0.5}},
		{scenario: "http", label: "raw, godwit, 100 subscriptions", figure: "cpu", quotients: []float64{1.5}},
	} {
		if !slices.ContainsFunc(all, func(p pair) bool {
			return p.scenario == want.scenario && p.label == want.label && p.figure == want.figure && slices.Equal(p.quotients, want.quotients)
		}) {
			t.Errorf("no %+v in %+v", want, all)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d pairs: %+v", len(all), all)
	}
}
