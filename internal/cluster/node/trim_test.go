package node_test

import (
	"testing"

	"godwit.dev/godwit/internal/cluster/node"
)

func TestTrimmable(t *testing.T) {
	const limit = 1000
	at := func(durable uint64) node.Member { return node.Member{Known: true, Durable: durable} }
	silent := node.Member{Durable: 1 << 40}
	for _, c := range []struct {
		name    string
		members []node.Member
		size    uint64
		want    uint64
	}{
		{"nobody", nil, 0, 0},
		{"one alone", []node.Member{at(7)}, 0, 8},
		{"all of three", []node.Member{at(30), at(10), at(20)}, 0, 11},
		{"one is silent", []node.Member{at(30), silent, at(20)}, limit, 0},
		{"one is silent, and the log is large", []node.Member{at(30), silent, at(20)}, limit + 1, 21},
		{"one is far behind", []node.Member{at(30), at(0), at(20)}, 2 * limit, 1},
		{"one is far behind, and the log is very large", []node.Member{at(30), at(0), at(20)}, 2*limit + 1, 21},
		{"one is silent, another far behind", []node.Member{at(30), at(5), silent}, 3 * limit, 6},
		{"no majority", []node.Member{at(30), silent, silent}, 9 * limit, 0},
		{"three of five", []node.Member{at(50), silent, at(40), silent, at(30)}, 9 * limit, 31},
		{"five", []node.Member{at(50), at(1), at(40), at(2), at(30)}, 9 * limit, 31},
	} {
		if got := node.Trimmable(c.members, c.size, limit); got != c.want {
			t.Errorf("%s: trimmed below %d, want %d", c.name, got, c.want)
		}
	}
}
