// Package faults is fault injection: outages that operators switch on to test how their
// applications behave.
package faults

import (
	"maps"
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// Refusals by injected faults.
var (
	ErrUnavailable = fault.NewRule(fault.Unavailable, "queues: injected: unavailable")
	ErrThrottled   = fault.NewRule(fault.Throttled, "queues: injected: throttled")
	ErrDenied      = fault.NewRule(fault.AccessDenied, "queues: injected: denied")
	ErrInternal    = fault.NewRule(fault.Internal, "queues: injected: an internal error")
	ErrName        = fault.NewRule(fault.InvalidParameter, "queues: no such fault to inject") // the name
)

// Faults are the injected faults. The zero value has none. It is safe for concurrent use.
type Faults struct {
	faults  atomic.Pointer[map[arn.ARN]fault.Kind]
	faultMu sync.Mutex // held while they are replaced
}

// AllResources stands, in the place of a resource's name, for the whole service
// of an account and region.
const AllResources = "*"

// SetFault has a resource refuse commands and deliveries with the fault of a name:
// "unavailable", "throttled", or "none" to end it. The resource is a queue or a function, or
// AllResources of a service. For AllResources there are also "internal", an internal error of
// every call, and "denied", as if no policy allowed any. Faults are kept in memory only.
// Errors: ErrName for any other name.
func (f *Faults) SetFault(a arn.ARN, name string) error {
	kind := fault.Internal
	switch {
	case name == "none":
	case name == "unavailable":
		kind = fault.Unavailable
	case name == "throttled":
		kind = fault.Throttled
	case name == "internal" && a.Resource == AllResources:
	case name == "denied" && a.Resource == AllResources:
		kind = fault.AccessDenied
	default:
		return ErrName.With(name)
	}
	f.faultMu.Lock()
	defer f.faultMu.Unlock()
	faults := map[arn.ARN]fault.Kind{}
	if old := f.faults.Load(); old != nil {
		maps.Copy(faults, *old)
	}
	delete(faults, a)
	if name != "none" {
		faults[a] = kind
	}
	if len(faults) == 0 {
		f.faults.Store(nil)
		return nil
	}
	f.faults.Store(&faults)
	return nil
}

// FaultsInForce are the names of the faults that are switched on, by resource.
func (f *Faults) FaultsInForce() map[arn.ARN]string {
	in := map[arn.ARN]string{}
	if faults := f.faults.Load(); faults != nil {
		for resource, kind := range *faults {
			in[resource] = faultName(kind)
		}
	}
	return in
}

func faultName(kind fault.Kind) string {
	switch kind {
	case fault.Unavailable:
		return "unavailable"
	case fault.Throttled:
		return "throttled"
	case fault.AccessDenied:
		return "denied"
	default:
		return "internal"
	}
}

// Injected is the error of the fault of a queue or function, or else of all resources of its
// service: ErrUnavailable or ErrThrottled; nil if there is none.
func (f *Faults) Injected(a arn.ARN) error {
	faults := f.faults.Load()
	if faults == nil {
		return nil
	}
	kind, ok := (*faults)[a]
	if !ok {
		a.Resource = AllResources
		kind = (*faults)[a]
	}
	switch kind {
	case fault.Unavailable, fault.Throttled:
		return refusal(kind)
	default:
		return nil
	}
}

// ServiceFault is the error of the fault of all resources of a service in an account and
// region; nil if there is none.
func (f *Faults) ServiceFault(service, region, account string) error {
	faults := f.faults.Load()
	if faults == nil {
		return nil
	}
	kind, ok := (*faults)[arn.ARN{Service: service, Region: region, Account: account, Resource: AllResources}]
	if !ok {
		return nil
	}
	return refusal(kind)
}

func refusal(kind fault.Kind) error {
	switch kind {
	case fault.Unavailable:
		return ErrUnavailable
	case fault.Throttled:
		return ErrThrottled
	case fault.AccessDenied:
		return ErrDenied
	default:
		return ErrInternal
	}
}
