package stacks

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/stack"
)

// Errors of comparisons.
var (
	ErrNotDetectable = fault.NewRule(fault.ValidationFailed, "stacks: its status forbids a comparison")
	ErrDetecting     = fault.NewRule(fault.ValidationFailed, "stacks: a comparison is under way")
	ErrNoDetection   = fault.NewRule(fault.ValidationFailed, "stacks: there is no such comparison")
)

// Reading is a resource to be compared.
type Reading struct {
	stack.Resource

	Account, Region string // of the stack
	By              *caller.Caller
}

// Reader reads the current state of resources from services.
type Reader interface {
	// Compare compares a resource with its state in its service.
	Compare(ctx context.Context, r *Reading) stack.Drift
}

// SetReader sets the reader. It must be called before Start.
func (m *Module) SetReader(r Reader) { m.reader = r }

// Detect begins a comparison of a stack's resources, all or the named ones, under an id, and
// returns the stack's ARN. Errors: ErrNone, ErrNotDetectable, ErrDetecting.
func (m *Module) Detect(ctx context.Context, account, region, name string, d stack.Detection) (id string, err error) {
	var todo *comparison
	err = m.run(ctx, account, region, name, func(e *entry) error {
		if id = e.ID; !e.Status.Detectable() {
			return ErrNotDetectable.With(e.ID, string(e.Status))
		}
		if e.Detecting() != nil {
			return ErrDetecting.With(e.ID)
		}
		e.Detect(m.shard.Now(), d)
		todo = e.comparison()
		return nil
	})
	if err == nil {
		m.detect(todo)
	}
	return id, err
}

// comparison is a comparison in progress.
type comparison struct {
	stack stackID
	id    string
	of    []*Reading
}

// comparison returns the resources of the stack's comparison in progress.
func (e *entry) comparison() *comparison {
	d := e.Detecting()
	c := &comparison{stack: e.id, id: d.ID}
	for _, id := range sorted(e.Resources) {
		if r := e.Resources[id]; r.Exists() && (len(d.Only) == 0 || slices.Contains(d.Only, id)) {
			c.of = append(c.of, &Reading{Resource: *r, Account: e.Account, Region: e.Region, By: d.By})
		}
	}
	return c
}

// detect compares in the background, one resource after the other: it is not urgent.
func (m *Module) detect(c *comparison) {
	if m.reader == nil {
		return // Start begins it again
	}
	m.kernel.GoBackground(func() {
		found := map[string]stack.Drift{}
		for _, r := range c.of {
			found[r.Logical] = m.reader.Compare(m.kernel.Running, r)
			if m.kernel.Running.Err() != nil {
				return // the next start begins it again
			}
		}
		_ = m.shard.RunDurable(func(*kernel.Tx) error {
			if e := m.byID[c.stack]; e != nil {
				e.Detected(m.shard.Now(), c.id, found)
				m.save(e)
			}
			return nil
		})
	})
}

// DetectOne compares one resource. Errors: ErrNone, ErrNotDetectable, ErrNoResource.
func (m *Module) DetectOne(ctx context.Context, account, region, name, logical string, by *caller.Caller) (r stack.Resource, v stack.Stack, err error) {
	var phase uint64
	err = m.view(account, region, name, func(e *entry) error {
		if v = e.Stack; !e.Status.Detectable() {
			return ErrNotDetectable.With(e.ID, string(e.Status))
		}
		there := e.Resources[logical]
		if there == nil || !there.Exists() {
			return ErrNoResource.With(logical, e.Name)
		}
		r, phase = *there, e.Phase
		return nil
	})
	if err != nil {
		return r, v, err
	}
	drift := stack.Drift{Status: stack.NotChecked}
	if m.reader != nil {
		drift = m.reader.Compare(ctx, &Reading{Resource: r, Account: account, Region: region, By: by})
	}
	err = m.run(ctx, account, region, v.ID, func(e *entry) error {
		if e.Phase != phase {
			return ErrNotDetectable.With(e.ID, string(e.Status))
		}
		e.Observe(m.shard.Now(), logical, drift)
		r, v = *e.Resources[logical], e.Stack
		return nil
	})
	return r, v, err
}

// Detection is a comparison, with its stack's ARN. Errors: ErrNoDetection.
func (m *Module) Detection(account, region, id string) (found stack.Detection, arn string, err error) {
	err = m.shard.RunDurableReads(func(*kernel.Tx) error {
		for _, e := range m.byID {
			if e.Account != account || e.Region != region {
				continue
			}
			if i := slices.IndexFunc(e.Detections, func(d stack.Detection) bool { return d.ID == id }); i >= 0 {
				found, arn = e.Detections[i], e.ID
				return nil
			}
		}
		return ErrNoDetection.With(id)
	})
	return found, arn, err
}
