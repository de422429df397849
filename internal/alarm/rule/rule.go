// Package rule has the rules of composite alarms: expressions on the states of other alarms. It is
// pure. Source: "Composite alarms" in the CloudWatch user guide.
package rule

import (
	"slices"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/fault"
)

// The limits of a rule. Source: PutCompositeAlarm in the CloudWatch API reference.
const (
	MaxLength   = 10240 // characters
	MaxChildren = 100   // alarms that it names
	MaxElements = 500   // places of alarms, TRUE and FALSE
)

// The rules by which a rule is refused.
var (
	ErrToken    = fault.NewRule(fault.ValidationFailed, "rule: unsupported token")  // the token, where it is, in characters, what has to be there
	ErrEnd      = fault.NewRule(fault.ValidationFailed, "rule: unexpected end")     // what has to be there
	ErrQuote    = fault.NewRule(fault.ValidationFailed, "rule: open quotes")        // where they begin, in characters
	ErrLength   = fault.NewRule(fault.ValidationFailed, "rule: length")             // the limit
	ErrChildren = fault.NewRule(fault.ValidationFailed, "rule: too many alarms")    // the limit
	ErrElements = fault.NewRule(fault.ValidationFailed, "rule: too many elements")  // the limit
	ErrAtLeast  = fault.NewRule(fault.ValidationFailed, "rule: number of AT_LEAST") // the number
	ErrSpace    = fault.NewRule(fault.ValidationFailed, "rule: space around it")
)

// Rule is a rule that was parsed.
type Rule struct {
	holds    condition
	children []string
}

// condition is a part of a rule. state gives the state of a child.
type condition func(state func(child string) alarm.State) bool

// Children are the alarms that the rule names, each once: names or ARNs, as they are written.
func (r *Rule) Children() []string { return r.children }

// Evaluate is the state of an alarm with the rule, whose children have the given states. One that
// is not there has the state "", which is none.
func (r *Rule) Evaluate(state func(child string) alarm.State) alarm.State {
	if r.holds(state) {
		return alarm.Alarming
	}
	return alarm.OK
}

func constant(value bool) condition { return func(func(string) alarm.State) bool { return value } }

func is(child string, want alarm.State) condition {
	return func(state func(string) alarm.State) bool { return state(child) == want }
}

func not(c condition) condition {
	return func(state func(string) alarm.State) bool { return !c(state) }
}

// some holds if one of the conditions does.
func some(all []condition) condition {
	if len(all) == 1 {
		return all[0]
	}
	return func(state func(string) alarm.State) bool {
		return slices.ContainsFunc(all, func(c condition) bool { return c(state) })
	}
}

// every holds if all conditions do.
func every(all []condition) condition {
	if len(all) == 1 {
		return all[0]
	}
	return func(state func(string) alarm.State) bool {
		return !slices.ContainsFunc(all, func(c condition) bool { return !c(state) })
	}
}

// threshold is how many alarms AT_LEAST asks for: a number, or a share of them.
type threshold struct {
	number  int
	percent bool
}

// atLeast holds if enough of the conditions do.
func atLeast(t threshold, all []condition) condition {
	return func(state func(string) alarm.State) bool {
		n := 0
		for _, c := range all {
			if c(state) {
				n++
			}
		}
		if t.percent {
			return n*100 >= t.number*len(all)
		}
		return n >= t.number
	}
}
