package faults

import (
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// A fault of a whole service holds for its queues too, but for those that have
// one of their own, and for no other account or region.
func TestServiceFaults(t *testing.T) {
	f := &Faults{}
	q, other := arn.Queue("us-east-1", "000000000000", "q"), arn.Queue("us-east-1", "000000000000", "other")
	all := arn.Queue("us-east-1", "000000000000", AllResources)
	set := func(a arn.ARN, name string) {
		t.Helper()
		if err := f.SetFault(a, name); err != nil {
			t.Fatal(err)
		}
	}
	kind := func(err error) fault.Kind {
		if err == nil {
			return fault.OptInRequired // stands for none
		}
		return fault.KindOf(err)
	}
	const none = fault.OptInRequired
	check := func(ofQ, ofOther, ofCalls fault.Kind) {
		t.Helper()
		if a, b, c := kind(f.Injected(q)), kind(f.Injected(other)), kind(f.ServiceFault("sqs", "us-east-1", "000000000000")); a != ofQ || b != ofOther || c != ofCalls {
			t.Errorf("queues %d and %d, calls %d; want %d, %d, %d", a, b, c, ofQ, ofOther, ofCalls)
		}
		for _, elsewhere := range [][3]string{{"sns", "us-east-1", "000000000000"}, {"sqs", "eu-west-1", "000000000000"}, {"sqs", "us-east-1", "111111111111"}} {
			if err := f.ServiceFault(elsewhere[0], elsewhere[1], elsewhere[2]); err != nil {
				t.Errorf("%v: %v", elsewhere, err)
			}
		}
	}
	check(none, none, none)
	set(all, "unavailable")
	check(fault.Unavailable, fault.Unavailable, fault.Unavailable)
	set(q, "throttled")
	check(fault.Throttled, fault.Unavailable, fault.Unavailable)
	set(all, "internal") // calls fail; deliveries do not make calls
	check(fault.Throttled, none, fault.Internal)
	set(all, "denied")
	check(fault.Throttled, none, fault.AccessDenied)
	set(all, "none")
	check(fault.Throttled, none, none)
	set(q, "none")
	check(none, none, none)
	for _, name := range []string{"internal", "denied", "slow", ""} {
		if err := f.SetFault(q, name); fault.KindOf(err) != fault.InvalidParameter {
			t.Errorf("%q of one queue: %v", name, err)
		}
	}
	check(none, none, none)
}
