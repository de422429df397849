package alarm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// regions are the names of AWS's regions in notifications.
var regions = map[string]string{
	"us-east-1": "US East (N. Virginia)", "us-east-2": "US East (Ohio)", "us-west-1": "US West (N. California)", "us-west-2": "US West (Oregon)",
	"af-south-1": "Africa (Cape Town)", "ap-east-1": "Asia Pacific (Hong Kong)", "ap-south-1": "Asia Pacific (Mumbai)", "ap-south-2": "Asia Pacific (Hyderabad)",
	"ap-southeast-1": "Asia Pacific (Singapore)", "ap-southeast-2": "Asia Pacific (Sydney)", "ap-southeast-3": "Asia Pacific (Jakarta)", "ap-southeast-4": "Asia Pacific (Melbourne)",
	"ap-northeast-1": "Asia Pacific (Tokyo)", "ap-northeast-2": "Asia Pacific (Seoul)", "ap-northeast-3": "Asia Pacific (Osaka)",
	"ca-central-1": "Canada (Central)", "ca-west-1": "Canada West (Calgary)", "eu-central-1": "EU (Frankfurt)", "eu-central-2": "Europe (Zurich)",
	"eu-west-1": "EU (Ireland)", "eu-west-2": "EU (London)", "eu-west-3": "EU (Paris)", "eu-north-1": "EU (Stockholm)", "eu-south-1": "Europe (Milan)", "eu-south-2": "Europe (Spain)",
	"il-central-1": "Israel (Tel Aviv)", "me-south-1": "Middle East (Bahrain)", "me-central-1": "Middle East (UAE)", "sa-east-1": "South America (Sao Paulo)",
}

func regionName(code string) string { return cmp.Or(regions[code], code) }

// maxSubject bounds a subject, in characters.
const maxSubject = 100

// Subject is the subject of a notification about the alarm's state.
func (a *Alarm) Subject() string {
	s := fmt.Sprintf("%s: %q in %s", a.State, a.Name, regionName(a.Region))
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	if len(s) > maxSubject {
		s = s[:maxSubject-3] + "..."
	}
	return s
}

type dimension struct {
	Value string `json:"value"`
	Name  string `json:"name"`
}

// evaluation is how an alarm is evaluated, in the Trigger of each notification.
type evaluation struct {
	Period             int
	EvaluationPeriods  int
	DatapointsToAlarm  int `json:",omitempty"`
	ComparisonOperator Comparison
	Threshold          number
	TreatMissingData   Missing
	LowSamples         string `json:"EvaluateLowSampleCountPercentile"`
}

func (a *Alarm) evaluation() evaluation {
	return evaluation{a.Period, a.EvaluationPeriods, a.DatapointsToAlarm, a.Comparison, number(a.Threshold), a.missing(), a.LowSamples}
}

type trigger struct {
	MetricName        string
	Namespace         string
	StatisticType     string
	Statistic         string `json:",omitempty"`
	ExtendedStatistic string `json:",omitempty"`
	Unit              *string
	Dimensions        []dimension
	evaluation
}

// statistics are the basic statistics as in notifications.
var statistics = map[string]string{"SampleCount": "SAMPLE_COUNT", "Average": "AVERAGE", "Sum": "SUM", "Minimum": "MINIMUM", "Maximum": "MAXIMUM"}

func dimensions(all []Dimension) []dimension {
	shown := make([]dimension, len(all))
	for i, d := range all {
		shown[i] = dimension{d.Value, d.Name}
	}
	return shown
}

// trigger is the Trigger of a notification.
func (a *Alarm) trigger() any {
	if len(a.Metrics) > 0 {
		return a.queryTrigger()
	}
	t := trigger{
		MetricName: a.MetricName, Namespace: a.Namespace, StatisticType: "Statistic", Statistic: statistics[a.Statistic],
		Dimensions: dimensions(a.Dimensions), evaluation: a.evaluation(),
	}
	if a.Extended {
		t.StatisticType, t.Statistic, t.ExtendedStatistic = "ExtendedStatistic", "", a.Statistic
	}
	if a.Unit != "" {
		t.Unit = &a.Unit
	}
	return t
}

// Notification is the message for a topic when the alarm has left the state from.
func (a *Alarm) Notification(from State) string {
	if a.Kind() == Composite {
		return a.compositeNotification(from)
	}
	return marshal(struct {
		news
		OldStateValue State
		targets
		ActionExecutedAfterMuteWindow bool
		Trigger                       any
	}{a.news(), from, a.targets(), false, a.trigger()})
}

// news are the first members of a notification.
type news struct {
	AlarmName                          string
	AlarmDescription                   *string
	AWSAccountID                       string `json:"AWSAccountId"`
	AlarmConfigurationUpdatedTimestamp string
	NewStateValue                      State
	NewStateReason                     string
	StateChangeTime                    string
	Region                             string
	AlarmARN                           string `json:"AlarmArn"`
}

func (a *Alarm) news() news {
	return news{a.Name, a.Description, a.Account, written(a.Configured), a.State, a.Reason, written(a.Updated), regionName(a.Region), a.ARN()}
}

// targets are an alarm's actions in a notification.
type targets struct {
	OKActions               []string
	AlarmActions            []string
	InsufficientDataActions []string
}

func (a *Alarm) targets() targets {
	return targets{list(a.OKActions), list(a.AlarmActions), list(a.InsufficientActions)}
}

// compositeNotification is the notification of a composite alarm.
func (a *Alarm) compositeNotification(from State) string {
	return marshal(struct {
		news
		targets
		OldStateValue                 State
		ActionExecutedAfterMuteWindow bool
		AlarmRule                     string
		TriggeringChildren            []triggeringChild
	}{a.news(), a.targets(), from, false, a.Rule, a.children()})
}

func list(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

type eventState struct {
	Value            State        `json:"value"`
	Reason           string       `json:"reason"`
	ReasonData       string       `json:"reasonData,omitempty"`
	Timestamp        string       `json:"timestamp"`
	SuppressedBy     SuppressedBy `json:"actionsSuppressedBy,omitempty"`
	SuppressedReason string       `json:"actionsSuppressedReason,omitempty"`
}

// stateSince is the alarm's state in an event, with the time when it began.
func (a *Alarm) stateSince(at time.Time) eventState {
	s := eventState{Value: a.State, Reason: a.Reason, ReasonData: a.Data, Timestamp: written(at)}
	if a.Suppressed != nil {
		s.SuppressedBy, s.SuppressedReason = a.Suppressed.By, a.Suppressed.Reason()
	}
	return s
}

// eventConfiguration is an alarm's configuration in an event: what it is on.
type eventConfiguration struct {
	Description *string      `json:"description,omitempty"`
	Metrics     []eventQuery `json:"metrics,omitempty"`
	Rule        string       `json:"alarmRule,omitempty"`
	Suppressor  string       `json:"actionsSuppressor,omitempty"`
	Wait        *int         `json:"actionsSuppressorWaitPeriod,omitempty"`
	Extension   *int         `json:"actionsSuppressorExtensionPeriod,omitempty"`
}

func (a *Alarm) eventConfiguration() eventConfiguration {
	if a.Kind() == Metric {
		return eventConfiguration{Description: a.Description, Metrics: a.eventQueries()}
	}
	c := eventConfiguration{Description: a.Description, Rule: a.Rule}
	if s := a.Suppressor; s != nil {
		c.Suppressor, c.Wait, c.Extension = s.Alarm, &s.Wait, &s.Extension
	}
	return c
}

// Event is the event for a function when the alarm is not any more what it was before.
func (a *Alarm) Event(before *Alarm) string {
	type data struct {
		Name          string             `json:"alarmName"`
		State         eventState         `json:"state"`
		Previous      eventState         `json:"previousState"`
		Configuration eventConfiguration `json:"configuration"`
	}
	return marshal(struct {
		Source  string `json:"source"`
		ARN     string `json:"alarmArn"`
		Account string `json:"accountId"`
		Time    string `json:"time"`
		Region  string `json:"region"`
		Data    data   `json:"alarmData"`
	}{
		"aws.cloudwatch", a.ARN(), a.Account, written(a.Updated), a.Region,
		data{a.Name, a.stateSince(a.Updated), before.stateSince(before.Transitioned), a.eventConfiguration()},
	})
}

// ItemType is the type of a history item.
type ItemType string

// The types of items.
const (
	ConfigurationUpdate ItemType = "ConfigurationUpdate"
	StateUpdate         ItemType = "StateUpdate"
	Action              ItemType = "Action"
)

// ItemTypes are all types of AWS's model.
var ItemTypes = []ItemType{ConfigurationUpdate, StateUpdate, Action, "AlarmContributorStateUpdate", "AlarmContributorAction"}

// Item is an item of an alarm's history.
type Item struct {
	Name    string
	At      time.Time
	Type    ItemType
	Summary string
	Data    string // a JSON document of at most 4,095 bytes
	Of      Kind   `json:",omitempty"` // the alarm's; empty, of earlier versions: Metric
}

// Kind is the alarm's.
func (i *Item) Kind() Kind { return cmp.Or(i.Of, Metric) }

const maxData = 4095

// maxSummary bounds the summary of an item, in characters. Source: the CloudWatch API reference.
const maxSummary = 255

func (a *Alarm) item(at time.Time, t ItemType, summary string, data any) Item {
	text := marshal(data)
	if len(text) > maxData {
		text = `{"version":"1.0"}`
	}
	return Item{a.Name, at, t, summary, text, a.Kind()}
}

type stateData struct {
	Value  State           `json:"stateValue"`
	Reason string          `json:"stateReason"`
	Data   json.RawMessage `json:"stateReasonData,omitempty"`
}

func dataOf(s Status, withData bool) stateData {
	d := stateData{Value: s.State, Reason: s.Reason}
	if withData && s.Data != "" {
		d.Data = json.RawMessage(s.Data)
	}
	return d
}

// Changed is the item of a state change.
func (a *Alarm) Changed(from Status) Item {
	type data struct {
		Version string    `json:"version"`
		Old     stateData `json:"oldState"`
		New     stateData `json:"newState"`
	}
	d := data{"1.0", dataOf(from, true), dataOf(a.Status, true)}
	if len(marshal(d)) > maxData {
		d = data{"1.0", dataOf(from, false), dataOf(a.Status, false)}
	}
	return a.item(a.Updated, StateUpdate, fmt.Sprintf("Alarm updated from %s to %s", from.State, a.State), d)
}

// configured is an alarm in the history of its configuration.
type configured struct {
	Threshold         number       `json:"threshold"`
	Namespace         string       `json:"namespace,omitempty"`
	StateValue        State        `json:"stateValue"`
	Dimensions        []dimension  `json:"dimensions"`
	OKActions         []string     `json:"okactions"`
	AlarmActions      []string     `json:"alarmActions"`
	EvaluationPeriods int          `json:"evaluationPeriods"`
	DatapointsToAlarm int          `json:"datapointsToAlarm,omitempty"`
	Comparison        Comparison   `json:"comparisonOperator"`
	Metrics           []eventQuery `json:"metrics,omitempty"`
	MetricName        string       `json:"metricName,omitempty"`
	Period            int          `json:"period,omitempty"`
	identified
	Statistic         string  `json:"statistic,omitempty"`
	ExtendedStatistic string  `json:"extendedStatistic,omitempty"`
	Unit              string  `json:"unit,omitempty"`
	Missing           Missing `json:"treatMissingData,omitempty"`
	LowSamples        string  `json:"evaluateLowSampleCountPercentile,omitempty"`
	ActionsEnabled    bool    `json:"actionsEnabled"`
}

// identified are members in the midst of an alarm of either kind in the history of its configuration.
type identified struct {
	AlarmName    string   `json:"alarmName"`
	Description  *string  `json:"alarmDescription,omitempty"`
	Insufficient []string `json:"insufficientDataActions"`
	ARN          string   `json:"alarmArn"`
	Configured   string   `json:"alarmConfigurationUpdatedTimestamp"`
	Updated      string   `json:"stateUpdatedTimestamp"`
}

func (a *Alarm) identified() identified {
	return identified{a.Name, a.Description, list(a.InsufficientActions), a.ARN(), written(a.Configured), written(a.Updated)}
}

func (a *Alarm) configured() any {
	if a.Kind() == Composite {
		return a.configuredComposite()
	}
	c := &configured{
		number(a.Threshold), a.Namespace, a.State,
		dimensions(a.Dimensions),
		list(a.OKActions), list(a.AlarmActions), a.EvaluationPeriods, a.DatapointsToAlarm,
		a.Comparison, nil, a.MetricName, a.Period, a.identified(), a.Statistic, "", a.Unit, a.Missing, a.LowSamples, !a.Disabled,
	}
	if a.Extended {
		c.Statistic, c.ExtendedStatistic = "", a.Statistic
	}
	if len(a.Metrics) > 0 {
		c.Metrics, c.Period = a.eventQueries(), 0
	}
	return c
}

// Created is the item of a new alarm.
func (a *Alarm) Created(at time.Time) Item {
	return a.item(at, ConfigurationUpdate, fmt.Sprintf("Alarm %q created", a.Name), struct {
		Version string `json:"version"`
		Type    string `json:"type"`
		Alarm   any    `json:"createdAlarm"`
	}{"1.0", "Create", a.configured()})
}

// Reconfigured is the item of a changed configuration.
func (a *Alarm) Reconfigured(before *Alarm, at time.Time) Item {
	return a.item(at, ConfigurationUpdate, fmt.Sprintf("Alarm %q updated", a.Name), struct {
		Version string `json:"version"`
		Type    string `json:"type"`
		Before  any    `json:"originalUpdatedFields"`
		After   any    `json:"updatedAlarm"`
	}{"1.0", "Update", before.configured(), a.configured()})
}

// Deleted is the item of a deleted alarm.
func (a *Alarm) Deleted(at time.Time) Item {
	return a.item(at, ConfigurationUpdate, fmt.Sprintf("Alarm %q deleted", a.Name), struct {
		Version string `json:"version"`
		Type    string `json:"type"`
		Alarm   any    `json:"deletedAlarm"`
	}{"1.0", "Delete", a.configured()})
}

// Acted is the item of an executed action for the state that began at since; failure is why
// it failed, empty for success.
func (a *Alarm) Acted(action, failure, published string, since, at time.Time) Item {
	type data struct {
		State     string `json:"actionState"`
		Since     string `json:"stateUpdateTimestamp"`
		Resource  string `json:"notificationResource"`
		Published string `json:"publishedMessage,omitempty"`
		Error     string `json:"error,omitempty"`
	}
	d := data{"Succeeded", written(since), action, published, failure}
	summary := "Successfully executed action " + action
	if failure != "" {
		d.State = "Failed"
		text := []rune("Failed to execute action " + action + `. Received error: "` + failure + `"`)
		summary = string(text[:min(len(text), maxSummary)])
	}
	if len(marshal(d)) > maxData {
		d.Published = ""
	}
	return a.item(at, Action, summary, d)
}
