// Package metrics keeps metrics as CloudWatch does: values by the minute, of a
// metric that is named by its namespace, name, dimensions and unit.
//
// A value is added to the minute's Set in memory, which costs no more than a lock
// and a few additions. Once a minute the sets are written to the server's store,
// so that a crash loses the last minute at most. A set in memory is the whole of
// its minute and counts instead of the one in the store; so reading needs no lock
// over both.
//
// What clients put by the second is kept so for three hours beside its minutes.
// Minutes are kept for 15 days, then as five minutes until 63 days, then as
// hours until 455 days. In the store a point lies under its resolution, its
// bucket of time, its series and its time: what has become too old goes as one
// range, and reading a series takes a seek a bucket.
package metrics
