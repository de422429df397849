// Package limit bounds the machine's resources that requests may hold at once: bytes in memory
// (Budget), and fixed numbers of things, such as outgoing connections (Slots). Package conns
// below bounds the connections of clients.
//
// A request that does not fit waits, for a bounded time, and is then refused with ErrFull.
// Times follow the system's clock.
package limit

import "godwit.dev/godwit/internal/fault"

// Stats are the statistics of a limit.
type Stats struct {
	Name    string // as in metrics: request_bytes, connections …
	Used    int64
	Limit   int64
	Refused int64 // requests or connections, since the start
	Waited  int64 // those that had to wait, refused or not
	Cut     int64 // those that were cut off for others
}

// ErrFull refuses a request that did not get its share of a limit in time.
var ErrFull = fault.NewRule(fault.Unavailable, "limit: there was no room in time")
