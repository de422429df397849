package invoke

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
)

// limits counts invocations, and enforces concurrency limits. It is not safe for concurrent
// use.
type limits struct {
	concurrency int
	reserved    func(region, account string) int
	all         int
	most        int
	functions   map[arn.ARN]*usage
	accounts    map[place]load
	invoked     map[invoked]int
}

// place is an account in a region.
type place struct{ region, account string }

// load counts an account's invocations.
type load struct {
	running int
	shared  int // of these, those without reserved concurrency
}

// usage counts a function's invocations.
type usage struct {
	function arn.ARN
	load
}

// invoked is a function as invoked, and optionally the version that runs.
type invoked struct {
	function           arn.ARN
	qualifier, version string
}

// countedAs are the keys that an invocation is counted by.
func countedAs(t *function.Target) (as, version invoked) {
	as = invoked{function: t.Function, qualifier: t.Qualifier}
	if as.qualifier == "$LATEST" {
		as.qualifier = ""
	}
	version = as
	version.version = t.Version
	return as, version
}

func newLimits(o Options) limits {
	return limits{
		concurrency: o.Concurrency, reserved: o.Reserved, most: o.Environments,
		functions: map[arn.ARN]*usage{}, accounts: map[place]load{}, invoked: map[invoked]int{},
	}
}

// alwaysShared is the part of an account's concurrency that cannot be reserved.
const alwaysShared = 100

// admit counts an invocation, and returns the new counts. The caller must call leave when it
// ends.
func (l *limits) admit(t *function.Target) (*usage, Concurrency, error) {
	u := l.functions[t.Function]
	running := 0
	if u != nil {
		running = u.running
	}
	at := place{t.Function.Region, t.Function.Account}
	account := l.accounts[at]
	if t.Reserved != nil {
		if running >= *t.Reserved {
			return nil, Concurrency{}, ErrReserved
		}
	} else {
		// Below the part that cannot be reserved, the reserved sum is not needed.
		if n := account.shared; n >= min(alwaysShared, l.concurrency) {
			rest := l.concurrency
			if l.reserved != nil {
				rest -= l.reserved(at.region, at.account)
			}
			if n >= rest {
				return nil, Concurrency{}, ErrConcurrency
			}
		}
	}
	if l.all >= l.most {
		return nil, Concurrency{}, ErrConcurrency
	}
	if u == nil {
		u = &usage{function: t.Function}
		l.functions[t.Function] = u
	}
	if t.Reserved == nil {
		u.shared++
		account.shared++
	}
	u.running++
	account.running++
	l.accounts[at] = account
	l.all++
	as, version := countedAs(t)
	l.invoked[as]++
	l.invoked[version]++
	return u, Concurrency{account.running, u.running, l.invoked[as], l.invoked[version]}, nil
}

// leave undoes admit. It does not track which invocations of a function are shared, only
// their number.
func (l *limits) leave(u *usage, t *function.Target) {
	at := place{u.function.Region, u.function.Account}
	account := l.accounts[at]
	l.all--
	u.running--
	account.running--
	if u.shared > u.running {
		u.shared--
		account.shared--
	}
	if u.running == 0 {
		delete(l.functions, u.function)
	}
	if l.accounts[at] = account; account.running == 0 {
		delete(l.accounts, at)
	}
	as, version := countedAs(t)
	for _, key := range [...]invoked{as, version} {
		if l.invoked[key]--; l.invoked[key] == 0 {
			delete(l.invoked, key)
		}
	}
}
