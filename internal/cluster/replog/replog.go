// Package replog is the replicated log that a cell writes its records to, and reads them
// back from: what is behind it keeps them on a majority of the nodes.
//
// The guarantees are few, so that many implementations have them. Every reader sees the same
// records at the same positions, and none disappears unless the log is trimmed. There is no
// guarantee of order between concurrent appends, nor of at-most-once: a record may be in the
// log twice, or appear long after its append seemed to have failed. Readers decide which records
// count (record.Fence), and an append whose outcome is unknown is never repeated.
package replog

import (
	"context"
	"errors"
)

// Failures of a log.
var (
	// ErrRefused reports an append of which nothing is in the log, nor ever will be.
	ErrRefused = errors.New("the replicated log takes nothing now")
	// ErrUnknown reports an append that may be in the log, now or later.
	ErrUnknown = errors.New("the replicated log did not say whether it has taken a record")
	// ErrTrimmed reports a read of what the log has no more.
	ErrTrimmed = errors.New("the replicated log was trimmed beyond what this replica has")
	// ErrLost reports that a log ends before what a replica has had from it.
	ErrLost = errors.New("the replicated log has lost records that this replica has")
	// ErrUnavailable reports that a log cannot be reached, or has no majority.
	ErrUnavailable = errors.New("the replicated log cannot be reached, or has no majority")
)

// Log is the replicated log of one cell. All methods may be called at once from several
// goroutines.
type Log interface {
	// Append appends a record, which the caller must not change any more, and does not wait.
	// done is called once, with the record's position or with ErrRefused or ErrUnknown.
	// Records mostly are in the log in the order of the calls, which nobody may rely on.
	Append(data []byte, done func(position uint64, err error))
	// Read walks the log from a position on, which may lie one behind its end. Errors:
	// ErrTrimmed, ErrLost if it lies further behind the end, ErrUnavailable, the
	// context's.
	Read(ctx context.Context, from uint64) (Reader, error)
	// Extent is what the log has now. Errors: ErrUnavailable, the context's.
	Extent(ctx context.Context) (Extent, error)
	// Trim removes all records below a position, for good.
	Trim(ctx context.Context, below uint64) error
}

// Extent is what a log has.
type Extent struct {
	First, Last uint64 // positions, which begin at 1; Last is First-1 of a log without records
	Bytes       uint64 // on the disk of a node, about
	Leader      string // the node that leads it; empty: none, or the log has no leaders
}

// Elected is a Log that has a leader among the nodes, without which it takes nothing.
type Elected interface {
	// TransferLeadership has another node lead the log if this one does, and returns once one does. What
	// is appended meanwhile may be refused, or lost. Errors: ErrUnavailable, the context's.
	TransferLeadership(ctx context.Context) error
}

// Replicated is a Log of which each node keeps a part of its own.
type Replicated interface {
	// CaughtUp reports that this node's part has all that the log has. Errors:
	// ErrUnavailable.
	CaughtUp(ctx context.Context) (bool, error)
}

// Membership is a Log that keeps who its nodes are, and whose nodes change while it is used.
type Membership interface {
	// Nodes is the text that SetNodes was given last; empty: none yet. Errors:
	// ErrUnavailable.
	Nodes(ctx context.Context) (text string, err error)
	// SetNodes keeps a text, and has that many nodes keep the log. Calls must not overlap, on
	// all nodes. Errors: ErrUnavailable; it may have been done.
	SetNodes(ctx context.Context, text string, nodes int) error
	// Replicas are the names of the nodes that keep the log; caughtUp are those of them that
	// have all of it. Errors: ErrUnavailable.
	Replicas(ctx context.Context) (all, caughtUp []string, err error)
}

// Reader walks a log, by one goroutine.
type Reader interface {
	// Next returns the next record, once there is one; nobody changes data any more. Positions
	// have no gaps. Errors: as of Log.Read; the reader is of no use then.
	Next(ctx context.Context) (position uint64, data []byte, err error)
	// Close ends the walk. Next, called at once, returns an error.
	Close()
}
