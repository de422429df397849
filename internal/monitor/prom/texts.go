package prom

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	textsUnanswered = describe("sms_unanswered_parts_total", "Parts of text messages that were sent and not answered: they may come twice.")
	textReceipts    = describe("sms_receipts_total", "Receipts of text messages that an SMSC had taken.", "state")
)

// receiptStates are the final states of a message in a receipt. Source: SMPP 3.4, appendix B.
// All others are other.
var receiptStates = [...]string{"DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "REJECTD", "other"}

// textCounts are the counts of text messages.
type textCounts struct {
	unanswered atomic.Int64
	receipts   [len(receiptStates)]atomic.Int64
}

// TextsUnanswered counts parts of text messages that may be delivered twice.
func (m *Metrics) TextsUnanswered(parts int) { m.texts.unanswered.Add(int64(parts)) }

// TextReceipt counts a receipt.
func (m *Metrics) TextReceipt(state string) {
	for i, known := range receiptStates {
		if state == known || i == len(receiptStates)-1 {
			m.texts.receipts[i].Add(1)
			return
		}
	}
}

func (t *textCounts) collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(textsUnanswered, prometheus.CounterValue, float64(t.unanswered.Load()))
	for i := range t.receipts {
		out <- prometheus.MustNewConstMetric(textReceipts, prometheus.CounterValue, float64(t.receipts[i].Load()), receiptStates[i])
	}
}
