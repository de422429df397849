package monitor

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/monitor/metrics"
)

// Texts makes metrics of the text messages of accounts.
type Texts struct {
	points  *metrics.Store
	wake    func()
	handles sync.Map // ofTexts → *atomic.Pointer[metrics.Resource] of points
}

type ofTexts struct {
	metrics.Scope
	direct bool // published to no topic
}

// NewTexts makes a Texts whose metrics go to points; wake requests a call after the current
// minute.
func NewTexts(points *metrics.Store, wake func()) *Texts { return &Texts{points: points, wake: wake} }

// Record adds values to metrics of an account's text messages, or with direct to those of
// messages published to no topic. It does not block.
func (t *Texts) Record(account, region string, direct bool, at time.Time, data ...metrics.Datum) {
	if len(data) == 0 {
		return
	}
	about := ofTexts{metrics.Scope{Account: account, Region: region}, direct}
	found, ok := t.handles.Load(about)
	if !ok {
		about.Account, about.Region = strings.Clone(account), strings.Clone(region)
		found, _ = t.handles.LoadOrStore(about, &atomic.Pointer[metrics.Resource]{})
	}
	t.wake()
	handle := found.(*atomic.Pointer[metrics.Resource])
	for {
		if r := handle.Load(); r != nil && r.Record(metrics.Minute(at), data...) {
			return
		}
		dimensions := metrics.Dimensions()
		if direct {
			dimensions = metrics.Dimensions(metrics.Dimension{Name: "PhoneNumber", Value: "Direct"})
		}
		handle.Store(t.points.Resource(about.Scope, "AWS/SNS", dimensions))
	}
}
