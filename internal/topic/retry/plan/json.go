package plan

import (
	"encoding/json"
	"io"
)

// JSON writes the plan for programs. Times are in seconds since the first attempt, without
// jitter; adjacent retries with the same delay are one step.
func (p Plan) JSON(w io.Writer) error {
	type phase struct {
		Name    string `json:"name"`
		Retries int    `json:"retries"`
	}
	type step struct {
		First        int     `json:"firstRetry"`
		Last         int     `json:"lastRetry"`
		Phase        string  `json:"phase"`
		DelaySeconds float64 `json:"delaySeconds"`
		From         float64 `json:"fromSeconds"`
		Until        float64 `json:"untilSeconds"`
	}
	out := struct {
		Name         string  `json:"name"`
		Retries      int     `json:"retries"`
		TotalSeconds float64 `json:"totalSeconds"`
		MaxPerSecond int     `json:"maxReceivesPerSecond,omitempty"`
		Phases       []phase `json:"phases"`
		Steps        []step  `json:"steps"`
	}{Name: p.Name, Retries: p.Policy.NumRetries, TotalSeconds: p.Policy.Total().Seconds(), MaxPerSecond: p.MaxReceivesPerSecond, Phases: []phase{}, Steps: []step{}}
	for _, ph := range phasesOf(p.Policy) {
		out.Phases = append(out.Phases, phase{ph.phase.String(), ph.retries})
	}
	for _, s := range stepsOf(p.Policy) {
		out.Steps = append(out.Steps, step{s.first, s.last, s.phase.String(), s.delay.Seconds(), s.from.Seconds(), s.until.Seconds()})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
