package prom

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// described are the metrics of describe.
var described []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("godwit_"+name, help, labels, nil)
	described = append(described, d)
	return d
}

func ofQueue(name, help string, more ...string) *prometheus.Desc {
	return describe("sqs_"+name, help, append([]string{"account", "region", "queue"}, more...)...)
}

func ofTopic(name, help string, more ...string) *prometheus.Desc {
	return describe("sns_"+name, help, append([]string{"account", "region", "topic"}, more...)...)
}

var queueCounters = []struct {
	desc *prometheus.Desc
	of   func(*monitor.QueueCounts) *atomic.Int64
}{
	{ofQueue("messages_sent_total", "Messages sent by clients and topics."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.Sent }},
	{ofQueue("sent_bytes_total", "Bytes of messages sent."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.SentBytes }},
	{ofQueue("messages_deduplicated_total", "Messages sent again within five minutes."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.Deduplicated }},
	{ofQueue("messages_received_total", "Messages received."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.Received }},
	{ofQueue("empty_receives_total", "Receives that found nothing."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.EmptyReceives }},
	{ofQueue("messages_deleted_total", "Messages deleted."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.Deleted }},
	{ofQueue("messages_dead_lettered_total", "Messages moved to the dead-letter queue by maxReceiveCount."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.DeadLettered }},
	{ofQueue("messages_expired_total", "Messages dropped at the end of their retention."), func(c *monitor.QueueCounts) *atomic.Int64 { return &c.Expired }},
}

var (
	queueMessages = ofQueue("messages", "Messages in the queue.", "state")
	queueAge      = ofQueue("oldest_message_age_seconds", "Age of the oldest message.")
	noisyGroups   = ofQueue("noisy_groups", "Message groups of a standard queue that are noisy.")
	quietMessages = ofQueue("quiet_messages", "Messages in the queue that are not of noisy groups.", "state")
	quietAge      = ofQueue("oldest_quiet_message_age_seconds", "Age of the oldest message that is not of a noisy group.")

	published      = ofTopic("messages_published_total", "Messages published.")
	publishedBytes = ofTopic("published_bytes_total", "Bytes of messages published.")
	filteredOut    = ofTopic("notifications_filtered_out_total", "Notifications that filter policies kept out.")
	attempts       = ofTopic("delivery_attempts_total", "Attempts at deliveries.", "protocol", "outcome")
	deliveries     = ofTopic("deliveries_total", "Deliveries that ended.", "protocol", "outcome")

	attemptDuration = describe("delivery_attempt_duration_seconds", "Time until an attempt at an endpoint had its outcome.", "protocol")
	syncDuration    = describe("commit_sync_duration_seconds", "Time that the disk took to make a group of commits durable.")
	requestDuration = describe("request_duration_seconds", "Time until a request was answered, long polls included.", "service", "operation")
	requestCount    = describe("requests_total", "Requests answered; code is that of the error, empty on success.", "service", "operation", "code")
	diskLow         = describe("disk_low", "1 while the disk is short of space and sends are refused.")
	logsBytes       = describe("logs_bytes", "About what log groups hold, before compression.")
	logsDropped     = describe("logs_dropped_total", "Log events of this server that were dropped.")

	traceSpans   = describe("trace_spans_total", "Spans of traces, by what became of them.", "outcome")
	limitUsed    = describe("limit_used", "How much of a limit is used.", "limit")
	limitMost    = describe("limit_max", "How much of a limit there is; 0 is any.", "limit")
	limitRefused = describe("limit_refused_total", "Requests or connections refused for want of room.", "limit")
	limitWaited  = describe("limit_waited_total", "Requests that had to wait for room.", "limit")
	limitCut     = describe("limit_cut_total", "Slow requests, and idle connections, cut off to make room.", "limit")
)

var storeValues = []struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(store.Stats) float64
}{
	{describe("store_disk_bytes", "Bytes that the store takes on the disk."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.DiskBytes) }},
	{describe("store_wal_bytes", "Bytes in the write-ahead log."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.WALBytes) }},
	{describe("store_wal_written_bytes_total", "Bytes written to the write-ahead log."), prometheus.CounterValue, func(s store.Stats) float64 { return float64(s.WALWritten) }},
	{describe("store_memtable_bytes", "Bytes of write buffers."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.MemTableBytes) }},
	{describe("store_flushes_total", "Write buffers written to tables."), prometheus.CounterValue, func(s store.Stats) float64 { return float64(s.Flushes) }},
	{describe("store_compactions_total", "Compactions done."), prometheus.CounterValue, func(s store.Stats) float64 { return float64(s.Compactions) }},
	{describe("store_compactions_in_progress", "Compactions under way."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.Compacting) }},
	{describe("store_compaction_debt_bytes", "Bytes that wait to be merged."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.CompactionDebt) }},
	{describe("store_l0_tables", "Tables in the youngest level."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.L0Tables) }},
	{describe("store_l0_sublevels", "Layers of the youngest level: at many, writes wait."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.L0Sublevels) }},
	{describe("store_cache_bytes", "Bytes in the cache of blocks."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.CacheBytes) }},
	{describe("store_cache_hits_total", "Blocks found in the cache."), prometheus.CounterValue, func(s store.Stats) float64 { return float64(s.CacheHits) }},
	{describe("store_damaged_files", "Files of the store in which damage was found since the start."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.DamagedFiles) }},
	{describe("store_unreadable_places", "Places of the store, of one record or several, that could not be read since the start."), prometheus.GaugeValue, func(s store.Stats) float64 { return float64(s.UnreadableRecords) }},
	{describe("store_cache_misses_total", "Blocks read from the disk."), prometheus.CounterValue, func(s store.Stats) float64 { return float64(s.CacheMisses) }},
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range described {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v *atomic.Int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v.Load()), labels...)
	}
	m.collectQueues(gauge, count)
	m.collectTopics(count)
	m.collectFunctions(out, gauge, count)
	m.collectRequests(out)
	m.refusals.collect(out)
	m.texts.collect(out)
	if m.options.Jobs != nil {
		m.jobs.collect(out, m.options.Jobs())
	}
	m.posts.collect(out, m.options.Source)
	var backups Backups
	if status := m.backups.Load(); status != nil {
		backups = (*status)()
	}
	backups.collect(out)
	if health := m.health.Load(); health != nil {
		h := (*health)()
		h.collect(out)
	}
	if m.options.Accounts != nil {
		m.collectAccounts(out, m.options.Accounts)
	}
	if m.options.Network != nil {
		m.options.Network().collect(out)
	}
	for p := range m.attempts {
		took, _ := attemptBuckets.collect(attemptDuration, []string{topic.Protocol(p).String()}, &m.attempts[p])
		out <- took
	}
	took, _ := syncBuckets.collect(syncDuration, nil, &m.syncs)
	out <- took
	if m.options.Store != nil {
		s := m.options.Store()
		for _, v := range storeValues {
			out <- prometheus.MustNewConstMetric(v.desc, v.kind, v.of(s))
		}
	}
	low := 0.0
	if m.options.Low != nil && m.options.Low() {
		low = 1
	}
	gauge(diskLow, low)
	if m.options.Limits != nil {
		limited(m.options.Limits).Collect(out)
	}
	if m.options.Spans != nil {
		exported, dropped, failed := m.options.Spans()
		for outcome, n := range map[string]int64{"exported": exported, "dropped": dropped, "failed": failed} {
			out <- prometheus.MustNewConstMetric(traceSpans, prometheus.CounterValue, float64(n), outcome)
		}
	}
	if m.options.Logs != nil {
		held, dropped := m.options.Logs()
		gauge(logsBytes, float64(held))
		out <- prometheus.MustNewConstMetric(logsDropped, prometheus.CounterValue, float64(dropped))
	}
}

func (m *Metrics) collectQueues(gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, *atomic.Int64, ...string)) {
	for _, name := range m.queues.all() {
		if name != other && m.options.Queue != nil {
			g, err := m.options.Queue(name)
			if fault.KindOf(err) == fault.QueueDoesNotExist {
				m.queues.forget(name)
				continue
			}
			if err == nil {
				gaugeQueue(gauge, name, &g)
			}
		}
		c := m.queues.get(name)
		if c == nil {
			continue
		}
		for _, v := range queueCounters {
			count(v.desc, v.of(c), labels(name)...)
		}
	}
}

func gaugeQueue(gauge func(*prometheus.Desc, float64, ...string), name arn.ARN, g *shard.QueueGauges) {
	states := func(d *prometheus.Desc, c queue.Counts) {
		for state, n := range map[string]int64{"visible": c.Visible, "in-flight": c.InFlight, "delayed": c.Delayed} {
			gauge(d, float64(n), append(labels(name), state)...)
		}
	}
	states(queueMessages, g.Counts)
	gauge(queueAge, g.OldestAge.Seconds(), labels(name)...)
	if !name.FIFO() {
		gauge(noisyGroups, float64(g.NoisyGroups), labels(name)...)
		states(quietMessages, g.Quiet)
		gauge(quietAge, g.QuietOldestAge.Seconds(), labels(name)...)
	}
}

func labels(name arn.ARN) []string { return []string{name.Account, name.Region, name.Resource} }

func (m *Metrics) collectTopics(count func(*prometheus.Desc, *atomic.Int64, ...string)) {
	for _, name := range m.topics.all() {
		if name != other && m.options.Topic != nil && !m.options.Topic(name) {
			m.topics.forget(name)
			continue
		}
		c := m.topics.get(name)
		if c == nil {
			continue
		}
		count(published, &c.published, labels(name)...)
		count(publishedBytes, &c.publishedBytes, labels(name)...)
		count(filteredOut, &c.filteredOut, labels(name)...)
		for p := range topic.Protocol(topic.Protocols) {
			c.collect(p, labels(name), count)
		}
	}
}

// collect reports the results of deliveries over a protocol, as soon as there is any: all
// possible ones, since a rate does not see the first value of a new counter.
func (c *topicCounts) collect(p topic.Protocol, of []string, count func(*prometheus.Desc, *atomic.Int64, ...string)) {
	var used int64
	for o := range c.attempts[p] {
		used += c.attempts[p][o].Load()
	}
	for e := range c.ends[p] {
		used += c.ends[p][e].Load()
	}
	if used == 0 {
		return
	}
	of = append(of, p.String(), "")
	for o := range c.attempts[p] {
		of[len(of)-1] = outcomeNames[o]
		count(attempts, &c.attempts[p][o], of...)
	}
	for e := range c.ends[p] {
		of[len(of)-1] = endNames[e]
		count(deliveries, &c.ends[p][e], of...)
	}
}
