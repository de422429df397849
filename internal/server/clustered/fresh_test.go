package clustered

import (
	"testing"

	"godwit.dev/godwit/internal/server/clustered/status"
)

// An empty part of the log begins while all others are there: with nothing either, or with
// all there is.
func TestUnready(t *testing.T) {
	fresh := status.Node{Name: "new", State: status.Joining, Fresh: true}
	serves := status.Node{Name: "owner", State: status.Serving, Number: 5000}
	follows := status.Node{Name: "other", State: status.Following, Number: 4990}
	for _, c := range []struct {
		name   string
		others []status.Node
		may    bool
	}{
		{"the log begins", []status.Node{fresh, fresh}, true},
		{"the log begins, with what a single node had", []status.Node{fresh, {Name: "founder", State: status.Following, Number: 1, Fresh: true}}, true},
		{"a disk was lost", []status.Node{serves, follows}, true},
		{"the owner steps down", []status.Node{serves, {Name: "other", State: status.Leaving, Number: 5000}}, true},
		{"a disk was lost, and another node is away", []status.Node{serves, {Name: "other", State: status.Unreachable}}, false},
		{"nobody else is there", []status.Node{{Name: "a", State: status.Unreachable}, {Name: "b", State: status.Unreachable}}, false},
		{"two disks were lost", []status.Node{{Name: "rest", State: status.Joining, Number: 5000}, fresh}, false},
		{"another node copies a store", []status.Node{serves, {Name: "other", State: status.Copying}}, false},
		{"another node is far behind", []status.Node{serves, {Name: "other", State: status.Following, Number: 10}}, false},
		{"another node's disk was lost, and has a replica again", []status.Node{serves, {Name: "other", State: status.Following, Number: 5000, Fresh: true}}, false},
		{"another node copies a store, of few records", []status.Node{{Name: "owner", State: status.Serving, Number: 5}, {Name: "other", State: status.Copying}}, false},
		{"another node's part of the log has stopped", []status.Node{serves, {Name: "other", State: status.Following, Number: 5000, LogStopped: true}}, false},
		{"another node is as far behind as it may be", []status.Node{serves, {Name: "other", State: status.Following, Number: 5000 - status.SuccessorLag}}, true},
		{"of five, one is away", []status.Node{serves, follows, follows, {Name: "e", State: status.Unreachable}}, false},
	} {
		if why := unready(c.others); (why == "") != c.may {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}
