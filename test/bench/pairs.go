package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The targets of a message's CPU against another binary of the server.
const (
	pairsMedian = 1.05
	pairsWhole  = 1.03 // that no interval lies wholly above
)

// earlierName is what the other binary is called in the tables.
const earlierName = "before"

// nameOn names a contender on one of several servers.
func nameOn(s *server, what string) string {
	if s.role == earlier {
		return what + ", " + earlierName
	}
	return what
}

// pairs compares what the server and the other binary of it cost in the same rounds: a
// line for each case and each figure of CPU that it has.
func (b *bench) pairs() {
	if len(b.of(earlier)) == 0 {
		return
	}
	t := &table{
		title: "Against the binary before",
		note: "CPU a message by the CPU of the other binary, which were measured in turn, round after round: the median of the rounds' quotients, " +
			"and the order statistics between which the median lies with a confidence of 95 % or a little more.",
		header: []string{"scenario", "case", "figure", "pairs", "µs", "µs before", "median", "from", "to"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, p := range pairUp(b.report.Records) {
		from, to := interval(p.quotients)
		middle := median(p.quotients)
		t.add(p.scenario, p.label, p.figure, fmt.Sprint(len(p.quotients)), figure(median(p.now)), figure(median(p.before)),
			fmt.Sprintf("%.3f", middle), fmt.Sprintf("%.3f", from), fmt.Sprintf("%.3f", to))
		b.judge(middle <= pairsMedian && from <= pairsWhole, fmt.Sprintf("%.3f × (%.3f to %.3f)", middle, from, to),
			"%s, %s, %s: at most %.2f × the CPU before", p.scenario, p.label, p.figure, pairsMedian)
	}
}

// pair is one figure of a case, by round.
type pair struct {
	scenario, label, figure string
	now, before, quotients  []float64
}

// sendFigure is the CPU of a sample; others are those of its further figures that end in
// microseconds.
const (
	sendFigure   = "cpu"
	microFigures = "_us"
)

// pairUp finds the rounds that both binaries have made.
func pairUp(records []record) []pair {
	type place struct {
		scenario, label string
		round           int
	}
	before := map[place]record{}
	for _, r := range records {
		if who, ok := cutEarlier(r.Server); ok {
			before[place{r.Scenario, r.Case + ", " + who, r.Round}] = r
		}
	}
	var all []pair
	add := func(r *record, label, figure string, now, then float64) {
		if now <= 0 || then <= 0 {
			return
		}
		i := slices.IndexFunc(all, func(p pair) bool { return p.scenario == r.Scenario && p.label == label && p.figure == figure })
		if i < 0 {
			i = len(all)
			all = append(all, pair{scenario: r.Scenario, label: label, figure: figure})
		}
		p := &all[i]
		p.now, p.before, p.quotients = append(p.now, now), append(p.before, then), append(p.quotients, now/then)
	}
	for _, r := range records {
		other, ok := before[place{r.Scenario, r.Case + ", " + r.Server, r.Round}]
		if _, is := cutEarlier(r.Server); is || !ok {
			continue
		}
		label := r.Case
		if r.Server != string(subject) {
			label += ", " + r.Server
		}
		add(&r, label, sendFigure, r.Sample.ServerCPU, other.Sample.ServerCPU)
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range r.More {
				if strings.HasSuffix(name, microFigures) && !yield(name) {
					return
				}
			}
		}) {
			add(&r, label, strings.TrimSuffix(name, microFigures), r.More[name], other.More[name])
		}
	}
	return all
}

// cutEarlier takes the other binary's name out of a contender's, which leaves that of the
// server beside it.
func cutEarlier(name string) (string, bool) {
	switch {
	case name == earlierName:
		return string(subject), true
	case strings.HasPrefix(name, earlierName+", "):
		return string(subject) + name[len(earlierName):], true
	}
	return strings.CutSuffix(name, ", "+earlierName)
}

// interval are the values of a sample between which the median of what it is drawn from
// lies with a confidence of at least 95 %, or all of them if they are too few for that:
// each value lies below the median as a coin falls.
func interval(values []float64) (from, to float64) {
	if len(values) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	tail, chance := 0.0, math.Pow(0.5, float64(n)) // that none lies below; chance of exactly k
	k := 0
	for ; k < n/2; k++ {
		if tail+chance > 0.025 {
			break
		}
		tail += chance
		chance = chance * float64(n-k) / float64(k+1)
	}
	k = max(k-1, 0)
	return sorted[k], sorted[n-1-k]
}
