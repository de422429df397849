package clustered

import "testing"

// An empty part of the log begins while all others are there: with nothing either, or with
// all there is.
func TestUnready(t *testing.T) {
	fresh := NodeStatus{Name: "new", State: joining, Fresh: true}
	serves := NodeStatus{Name: "owner", State: Serving, Number: 5000}
	follows := NodeStatus{Name: "other", State: following, Number: 4990}
	for _, c := range []struct {
		name   string
		others []NodeStatus
		may    bool
	}{
		{"the log begins", []NodeStatus{fresh, fresh}, true},
		{"the log begins, with what a single node had", []NodeStatus{fresh, {Name: "founder", State: following, Number: 1, Fresh: true}}, true},
		{"a disk was lost", []NodeStatus{serves, follows}, true},
		{"the owner steps down", []NodeStatus{serves, {Name: "other", State: leaving, Number: 5000}}, true},
		{"a disk was lost, and another node is away", []NodeStatus{serves, {Name: "other", State: unreachable}}, false},
		{"nobody else is there", []NodeStatus{{Name: "a", State: unreachable}, {Name: "b", State: unreachable}}, false},
		{"two disks were lost", []NodeStatus{{Name: "rest", State: joining, Number: 5000}, fresh}, false},
		{"another node copies a store", []NodeStatus{serves, {Name: "other", State: copying}}, false},
		{"another node is far behind", []NodeStatus{serves, {Name: "other", State: following, Number: 10}}, false},
		{"of five, one is away", []NodeStatus{serves, follows, follows, {Name: "e", State: unreachable}}, false},
	} {
		if why := unready(c.others); (why == "") != c.may {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}
