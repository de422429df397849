package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"godwit.dev/godwit/internal/limit/accounts"
)

var (
	accountQueues  = describe("account_queues", "Queues of an account.", "account")
	accountTopics  = describe("account_topics", "Topics of an account.", "account")
	accountBytes   = describe("account_storage_bytes", "Bytes of messages in an account's queues, and waiting for its subscriptions and functions.", "account")
	accountMost    = describe("account_limit_max", "What each account may do in a second, or hold; 0 is any amount.", "limit")
	accountRefused = describe("account_refused_total", "Requests refused since their account had done or held as much as it may.", "limit")
)

// collectAccounts reports the storage of accounts: of those with their own series, and the sum
// of the others.
func (m *Metrics) collectAccounts(out chan<- prometheus.Metric, all *accounts.Accounts) {
	held := all.Usage()
	if most := m.options.Series; len(held) > most {
		rest := accounts.Usage{Account: other.Resource}
		for _, u := range held[most:] {
			rest.Queues, rest.Topics, rest.Bytes = rest.Queues+u.Queues, rest.Topics+u.Topics, rest.Bytes+u.Bytes
		}
		held = append(held[:most:most], rest)
	}
	for _, u := range held {
		for d, n := range map[*prometheus.Desc]int64{accountQueues: u.Queues, accountTopics: u.Topics, accountBytes: u.Bytes} {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), u.Account)
		}
	}
	for kind, n := range all.Refused() {
		out <- prometheus.MustNewConstMetric(accountRefused, prometheus.CounterValue, float64(n), kind)
	}
	for kind, n := range all.Limits().ByName() {
		out <- prometheus.MustNewConstMetric(accountMost, prometheus.GaugeValue, float64(n), kind)
	}
}
