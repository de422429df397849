package alarm

import (
	"encoding/json"
	"time"
)

// Suppressor keeps a composite alarm from executing actions while another alarm is in ALARM.
type Suppressor struct {
	Alarm string // its name or its ARN, as it was given
	// Wait is how long it is waited, after the state has changed, for the suppressor to go into
	// ALARM, and Extension how long after it has gone out of it, in seconds; 0: not at all.
	Wait, Extension int
}

// SuppressedBy is what keeps actions from being executed.
type SuppressedBy string

// What keeps actions from being executed.
const (
	ByAlarm     SuppressedBy = "Alarm" // the suppressor is in ALARM
	ByWait      SuppressedBy = "WaitPeriod"
	ByExtension SuppressedBy = "ExtensionPeriod"
)

// Suppression is why a composite alarm executes no actions now.
type Suppression struct {
	By    SuppressedBy
	Until time.Time // the end of a period; zero if By is ByAlarm
	Due   bool      `json:",omitempty"` // the state has changed, and its actions are due at the end
}

// Reason is the suppression in words.
func (s *Suppression) Reason() string { return "Actions suppressed by " + string(s.By) }

// Suppress is called when the state of a composite alarm has changed, when its suppressor goes into
// ALARM or out of it, and when a period ends; suppressing says that the suppressor is in ALARM. act
// says that the actions for the alarm's state are due. Source: "Suppressing composite alarm actions"
// in the CloudWatch user guide.
func (a *Alarm) Suppress(changed, suppressing bool, now time.Time) (act bool) {
	before := a.Suppressed
	due := changed || before != nil && before.Due
	a.Suppressed = nil
	switch of := a.Suppressor; {
	case of == nil:
	case suppressing:
		a.Suppressed = &Suppression{By: ByAlarm, Due: due}
	case changed:
		a.suppressFor(ByWait, of.Wait, due, now)
	case before == nil:
	case before.By == ByAlarm:
		a.suppressFor(ByExtension, of.Extension, due, now)
	case now.Before(before.Until):
		a.Suppressed = before
	}
	return due && a.Suppressed == nil
}

// EndPeriod ends a suppression early, as another suppressor does: Suppress decides what follows.
func (a *Alarm) EndPeriod() { a.Suppressed = &Suppression{By: ByWait, Due: a.Suppressed.Due} }

func (a *Alarm) suppressFor(by SuppressedBy, seconds int, due bool, now time.Time) {
	if seconds > 0 {
		a.Suppressed = &Suppression{by, now.Add(time.Duration(seconds) * time.Second), due}
	}
}

// occasion is the format of the time in the reason of a composite alarm.
const occasion = "Monday 02 January, 2006 15:04:05 MST"

// triggering are the data of the reason for a composite alarm's state.
type triggering struct {
	Alarms []triggeringAlarm `json:"triggeringAlarms"`
}

type triggeringAlarm struct {
	ARN   string         `json:"arn"`
	State triggeredState `json:"state"`
}

type triggeredState struct {
	Value     State  `json:"value"`
	Timestamp string `json:"timestamp"`
}

func triggeredBy(all ...*Alarm) string {
	t := triggering{make([]triggeringAlarm, len(all))}
	for i, child := range all {
		t.Alarms[i] = triggeringAlarm{child.ARN(), triggeredState{child.State, written(child.Transitioned)}}
	}
	return marshal(t)
}

// Triggered is the status of a composite alarm after the state of a child has changed.
func Triggered(s State, child *Alarm) Status {
	return Status{s, child.ARN() + " transitioned to " + string(child.State) + " at " + child.Transitioned.UTC().Format(occasion), triggeredBy(child)}
}

// Evaluated is the status of a composite alarm after it was made or reconfigured, with the given
// children.
func (a *Alarm) Evaluated(s State, made bool, children []*Alarm) Status {
	was := " was updated"
	if made {
		was = " was created"
	}
	return Status{s, a.ARN() + was + " and its alarm rule evaluates to " + string(s), triggeredBy(children...)}
}

// triggeringChild is one of the TriggeringChildren in a notification.
type triggeringChild struct {
	ARN   string `json:"Arn"`
	State struct{ Value, Timestamp string }
}

// children are the TriggeringChildren in a notification: those in the data of the reason. There are
// none if the state was set by hand.
func (a *Alarm) children() []triggeringChild {
	var data triggering
	if json.Unmarshal([]byte(a.Data), &data) != nil { // what SetAlarmState takes may be of any form
		data.Alarms = nil
	}
	shown := make([]triggeringChild, len(data.Alarms))
	for i, child := range data.Alarms {
		shown[i].ARN, shown[i].State.Value, shown[i].State.Timestamp = child.ARN, string(child.State.Value), child.State.Timestamp
	}
	return shown
}

// configuredComposite is a composite alarm in the history of its configuration.
func (a *Alarm) configuredComposite() any {
	c := a.eventConfiguration()
	return struct {
		Rule         string   `json:"alarmRule"`
		Suppressor   string   `json:"actionsSuppressor,omitempty"`
		Wait         *int     `json:"actionsSuppressorWaitPeriod,omitempty"`
		Extension    *int     `json:"actionsSuppressorExtensionPeriod,omitempty"`
		StateValue   State    `json:"stateValue"`
		OKActions    []string `json:"okactions"`
		AlarmActions []string `json:"alarmActions"`
		identified
		ActionsEnabled bool `json:"actionsEnabled"`
	}{
		a.Rule, c.Suppressor, c.Wait, c.Extension, a.State, list(a.OKActions), list(a.AlarmActions), a.identified(), !a.Disabled,
	}
}
