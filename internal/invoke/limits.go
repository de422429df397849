package invoke

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
)

// limits counts what runs, and refuses what would be too much. It is not safe
// for concurrent use.
type limits struct {
	concurrency int
	reserved    func(region, account string) int
	all         int
	most        int
	functions   map[arn.ARN]*usage
	accounts    map[place]int // invocations of functions without a share of their own
}

// place is an account in a region.
type place struct{ region, account string }

// usage is how much of a function runs.
type usage struct {
	function arn.ARN
	running  int
	shared   int // of these, those that count against the account's rest
}

func newLimits(o Options) limits {
	return limits{
		concurrency: o.Concurrency, reserved: o.Reserved, most: o.Environments,
		functions: map[arn.ARN]*usage{}, accounts: map[place]int{},
	}
}

// alwaysShared is the part of an account's concurrency that no function can have
// reserved.
const alwaysShared = 100

func throttled(reason string) error {
	return fault.New(fault.Throttled, "Rate Exceeded.").Because(reason)
}

// admit counts an invocation. The caller must call leave when it ends.
func (l *limits) admit(t *function.Target) (*usage, error) {
	u := l.functions[t.Function]
	running := 0
	if u != nil {
		running = u.running
	}
	at := place{t.Function.Region, t.Function.Account}
	if t.Reserved != nil {
		if running >= *t.Reserved {
			return nil, throttled("ReservedFunctionConcurrentInvocationLimitExceeded")
		}
	} else {
		// What is always left to all need not be looked up.
		if n := l.accounts[at]; n >= min(alwaysShared, l.concurrency) {
			rest := l.concurrency
			if l.reserved != nil {
				rest -= l.reserved(at.region, at.account)
			}
			if n >= rest {
				return nil, throttled("ConcurrentInvocationLimitExceeded")
			}
		}
	}
	if l.all >= l.most {
		return nil, throttled("ConcurrentInvocationLimitExceeded")
	}
	if u == nil {
		u = &usage{function: t.Function}
		l.functions[t.Function] = u
	}
	if t.Reserved == nil {
		u.shared++
		l.accounts[at]++
	}
	u.running++
	l.all++
	return u, nil
}

// leave takes back what admit counted. Which invocations of a function counted
// against its account does not matter as long as their number does.
func (l *limits) leave(u *usage) {
	l.all--
	u.running--
	if u.shared > u.running {
		u.shared--
		at := place{u.function.Region, u.function.Account}
		if l.accounts[at]--; l.accounts[at] == 0 {
			delete(l.accounts, at)
		}
	}
	if u.running == 0 {
		delete(l.functions, u.function)
	}
}
