// Package metrics stores metrics as CloudWatch does: values by the minute, of a metric
// identified by its namespace, name, dimensions and unit.
//
// A value is added to the minute's Set in memory, at the cost of a lock and a few additions.
// Once a minute the sets are written to the server's store, so that a crash loses the last
// minute at most. A set in memory has all values of its minute and replaces the one in the
// store, so that reading needs no lock over both.
//
// Values that clients put by the second are stored so for three hours, in addition to their
// minutes. Minutes are kept for 15 days, then as five minutes until 63 days, then as hours
// until 455 days. The key of a point is its resolution, its bucket of time, its series and its
// time: expired points are removed as one range, and reading a series takes one seek per
// bucket.
package metrics
