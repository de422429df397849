package monitor

import (
	"strings"
	"time"

	"godwit.dev/godwit/internal/monitor/metrics"
)

// Texts makes metrics of the text messages of accounts.
type Texts struct{ handles[ofTexts] }

type ofTexts struct {
	metrics.Scope
	direct bool // published to no topic
}

// NewTexts makes a Texts whose metrics go to points; wake requests a call of Tick after the
// current minute.
func NewTexts(points *metrics.Store, wake func()) *Texts {
	own := func(of ofTexts) ofTexts {
		of.Account, of.Region = strings.Clone(of.Account), strings.Clone(of.Region)
		return of
	}
	return &Texts{handles[ofTexts]{wake: wake, own: own, resource: func(of ofTexts) *metrics.Resource {
		dimensions := metrics.Dimensions()
		if of.direct {
			dimensions = metrics.Dimensions(metrics.Dimension{Name: "PhoneNumber", Value: "Direct"})
		}
		return points.Resource(of.Scope, "AWS/SNS", dimensions)
	}}}
}

// Record adds values to metrics of an account's text messages, or with direct to those of
// messages published to no topic. It does not block.
func (t *Texts) Record(account, region string, direct bool, at time.Time, data ...metrics.Datum) {
	if len(data) > 0 {
		t.record(ofTexts{metrics.Scope{Account: account, Region: region}, direct}, at, data...)
	}
}
