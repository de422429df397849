package node

import (
	"cmp"
	"slices"
)

// Member is the durable position of a node.
type Member struct {
	Known   bool   // it has answered, and has a store of its own
	Durable uint64 // up to which position it needs no record of the log any more
}

// Trimmable is the position below which a log of a size in bytes may be trimmed; 0: it may not. A
// small log is kept for every node. From the limit on it is not kept for nodes that do not
// answer, and from twice the limit on for a majority only: the others need a snapshot then. A
// record is never trimmed before a majority has it on disk.
func Trimmable(members []Member, size, limit uint64) (below uint64) {
	var durable []uint64
	for _, m := range members {
		if m.Known {
			durable = append(durable, m.Durable)
		}
	}
	majority := len(members)/2 + 1
	if len(durable) < majority {
		return 0
	}
	slices.SortFunc(durable, func(a, b uint64) int { return cmp.Compare(b, a) })
	switch {
	case size > 2*limit:
		return durable[majority-1] + 1
	case size > limit || len(durable) == len(members):
		return durable[len(durable)-1] + 1
	default:
		return 0
	}
}
