package alarm

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Source of the documents: a composite alarm's notification and event that users of AWS report, and
// those in the CloudWatch user guide.
func TestCompositeDocuments(t *testing.T) {
	child := &Alarm{Account: "000000000000", Region: "us-east-1", Name: "a", Status: Status{State: Alarming}, Transitioned: at}
	c := Config{Rule: `ALARM("a")`, AlarmActions: []string{"arn:aws:sns:us-east-1:000000000000:ops"}, Suppressor: &Suppressor{"s", 120, 0}}
	a := New("000000000000", "us-east-1", "p", c, nil, at.Add(-time.Hour))
	if got := a.Evaluated(OK, true, []*Alarm{child}); !strings.HasSuffix(got.Reason, ":alarm:p was created and its alarm rule evaluates to OK") || !strings.Contains(got.Data, ":alarm:a") {
		t.Errorf("%+v", got)
	}
	a.Enter(Status{State: OK, Reason: "fine"}, at.Add(-time.Minute))
	before := a
	a.Enter(Triggered(Alarming, child), at)
	a.Suppress(true, false, at)
	want := `{"AlarmName":"p","AlarmDescription":null,"AWSAccountId":"000000000000","AlarmConfigurationUpdatedTimestamp":"2026-05-26T13:25:00.000+0000","NewStateValue":"ALARM",` +
		`"NewStateReason":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:a transitioned to ALARM at Tuesday 26 May, 2026 14:25:00 UTC","StateChangeTime":"2026-05-26T14:25:00.000+0000",` +
		`"Region":"US East (N. Virginia)","AlarmArn":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:p","OKActions":[],"AlarmActions":["arn:aws:sns:us-east-1:000000000000:ops"],` +
		`"InsufficientDataActions":[],"OldStateValue":"OK","ActionExecutedAfterMuteWindow":false,"AlarmRule":"ALARM(\"a\")",` +
		`"TriggeringChildren":[{"Arn":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:a","State":{"Value":"ALARM","Timestamp":"2026-05-26T14:25:00.000+0000"}}]}`
	if d := cmp.Diff(want, a.Notification(OK)); d != "" {
		t.Error(d)
	}
	suppressed := a
	a.Suppressed, a.Updated = nil, at.Add(2*time.Minute)
	reason := `"reason":"arn:aws:cloudwatch:us-east-1:000000000000:alarm:a transitioned to ALARM at Tuesday 26 May, 2026 14:25:00 UTC",` +
		`"reasonData":"{\"triggeringAlarms\":[{\"arn\":\"arn:aws:cloudwatch:us-east-1:000000000000:alarm:a\",\"state\":{\"value\":\"ALARM\",\"timestamp\":\"2026-05-26T14:25:00.000+0000\"}}]}"`
	want = `"alarmData":{"alarmName":"p","state":{"value":"ALARM",` + reason + `,"timestamp":"2026-05-26T14:27:00.000+0000"},` +
		`"previousState":{"value":"ALARM",` + reason + `,"timestamp":"2026-05-26T14:25:00.000+0000","actionsSuppressedBy":"WaitPeriod","actionsSuppressedReason":"Actions suppressed by WaitPeriod"},` +
		`"configuration":{"alarmRule":"ALARM(\"a\")","actionsSuppressor":"s","actionsSuppressorWaitPeriod":120,"actionsSuppressorExtensionPeriod":0}}}`
	if _, got, _ := strings.Cut(a.Event(&suppressed), `"region":"us-east-1",`); got != want {
		t.Error(cmp.Diff(want, got))
	}
	for _, item := range []Item{before.Created(at), a.Reconfigured(&before, at), a.Deleted(at), a.Changed(before.Status)} {
		if item.Kind() != Composite || !json.Valid([]byte(item.Data)) || strings.Contains(item.Data, "threshold") {
			t.Errorf("%+v", item)
		}
	}
	a.Enter(Status{State: OK, Reason: "by hand", Data: `{"triggeringAlarms":1}`}, at)
	if got := a.Notification(Alarming); !strings.HasSuffix(got, `"TriggeringChildren":[]}`) {
		t.Error(got)
	}
}
