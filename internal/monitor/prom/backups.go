package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	backupInterval = describe("backup_interval_seconds", "How often the store is backed up to a bucket; 0: it is not.")
	backupPoint    = describe("backup_point_timestamp_seconds", "Of when the latest backup in the bucket is; where there is none, when the server began.")
	backupPoints   = describe("backups_total", "Backups put into a bucket, by how that ended.", "outcome")
	backupBytes    = describe("backup_bytes_total", "Bytes put into a bucket for backups.")
)

// Backups is the state of backups to a bucket.
type Backups struct {
	Interval            time.Duration
	Point               time.Time // zero: nothing is backed up
	Made, Failed, Bytes int64
}

func (b *Backups) collect(out chan<- prometheus.Metric) {
	point := 0.0
	if !b.Point.IsZero() {
		point = float64(b.Point.UnixMilli()) / 1000
	}
	out <- prometheus.MustNewConstMetric(backupInterval, prometheus.GaugeValue, b.Interval.Seconds())
	out <- prometheus.MustNewConstMetric(backupPoint, prometheus.GaugeValue, point)
	for outcome, n := range map[string]int64{"success": b.Made, "failure": b.Failed} {
		out <- prometheus.MustNewConstMetric(backupPoints, prometheus.CounterValue, float64(n), outcome)
	}
	out <- prometheus.MustNewConstMetric(backupBytes, prometheus.CounterValue, float64(b.Bytes))
}
