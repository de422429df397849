package function

import (
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// The bounds of an EventInvoke. Source: the Lambda API reference,
// PutFunctionEventInvokeConfig.
const (
	DefaultRetries = 2
	MaxRetries     = 2
	MinEventAge    = time.Minute
	MaxEventAge    = 6 * time.Hour
)

// EventInvoke is the retry configuration of the events of a function, version or alias, with
// their destinations.
type EventInvoke struct {
	Retries   *int      `json:"retries,omitempty"`  // MaximumRetryAttempts: 0–2; nil: the default, 2
	MaxAgeS   *int      `json:"maxAge,omitempty"`   // MaximumEventAgeInSeconds: 60–21,600; nil: the default, 21,600
	OnSuccess arn.ARN   `json:"onSuccess,omitzero"` // zero: none
	OnFailure arn.ARN   `json:"onFailure,omitzero"` // zero: none
	Modified  time.Time `json:"modified"`           // to the millisecond
}

// MaxRetries is the number of retries after failures of the function.
func (c *EventInvoke) MaxRetries() int {
	if c.Retries == nil {
		return DefaultRetries
	}
	return *c.Retries
}

// MaxAge is the greatest age of an event at an attempt.
func (c *EventInvoke) MaxAge() time.Duration {
	if c.MaxAgeS == nil {
		return MaxEventAge
	}
	return time.Duration(*c.MaxAgeS) * time.Second
}

// EventInvokeChange is a change of an EventInvoke. Nil members are not in the request.
type EventInvokeChange struct {
	Retries, MaxAgeS *int
	// OnSuccess and OnFailure are the ARNs in the request; "" means none.
	OnSuccess, OnFailure *string
	// Destinations says that the request has a DestinationConfig, even if empty.
	Destinations bool
}

// check refuses an empty change.
func (c *EventInvokeChange) check() error {
	if c.Retries == nil && c.MaxAgeS == nil && !c.Destinations {
		return ErrEventInvokeEmpty
	}
	return nil
}

// Functions are the destinations that are functions.
func (c *EventInvokeChange) Functions() (all []arn.ARN) {
	for _, given := range []*string{c.OnSuccess, c.OnFailure} {
		if given == nil {
			continue
		}
		if a, err := arn.Parse(*given); err == nil {
			if _, _, ok := a.SplitFunction(); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// apply returns the changed configuration. Errors: InvalidParameter.
func (c *EventInvokeChange) apply(before EventInvoke, of arn.ARN, now time.Time) (EventInvoke, error) {
	next := before
	next.Modified = now.UTC().Truncate(time.Millisecond)
	if c.Retries != nil {
		next.Retries = c.Retries
	}
	if c.MaxAgeS != nil {
		next.MaxAgeS = c.MaxAgeS
	}
	if !c.Destinations {
		return next, nil
	}
	ok := true
	destination := func(given *string) (a arn.ARN) {
		if given == nil || *given == "" {
			return a
		}
		a, err := arn.Parse(*given)
		if err != nil || a.Region == "" || a.Account == "" || a.Resource == "" {
			ok = false
			return a
		}
		switch a.Service {
		case "sqs", "sns":
			ok = ok && !a.FIFO()
		case "lambda":
			_, _, function := a.SplitFunction()
			ok = ok && function
		default:
			ok = false
		}
		return a
	}
	next.OnSuccess, next.OnFailure = destination(c.OnSuccess), destination(c.OnFailure)
	if !ok {
		return EventInvoke{}, ErrEventInvokeTarget.With(
			shown("OnSuccess", c.OnSuccess), shown("OnFailure", c.OnFailure))
	}
	for _, d := range []arn.ARN{next.OnSuccess, next.OnFailure} {
		if f, _, _ := d.SplitFunction(); !d.IsZero() && f == of {
			return EventInvoke{}, ErrEventInvokeToSelf
		}
	}
	return next, nil
}

func shown(name string, given *string) string {
	if given == nil || *given == "" {
		return "null"
	}
	return name + "(destination=" + *given + ")"
}

// SetEventInvoke is the command that changes an EventInvoke.
type SetEventInvoke struct {
	Function  arn.ARN
	Qualifier string // empty: Latest
	Change    EventInvokeChange
	// Missing are the destinations of the change that are functions and do not exist.
	Missing []arn.ARN
	// Merge keeps members that are not in the change; otherwise all are replaced.
	Merge bool
}

// SetEventInvoke sets the EventInvoke of a function, version or alias. Errors:
// ResourceNotFound, also with Merge if there is none; InvalidParameter.
func (s *State) SetEventInvoke(now time.Time, cmd SetEventInvoke, b *mutation.Batch) (EventInvoke, error) {
	if err := cmd.Change.check(); err != nil {
		return EventInvoke{}, err
	}
	f, _, _, err := s.Find(cmd.Function, cmd.Qualifier)
	if err != nil {
		return EventInvoke{}, ErrEventInvokeUnknown
	}
	qualifier := qualifierOr(cmd.Qualifier)
	before, there := f.eventInvokes[qualifier]
	switch {
	case !cmd.Merge:
		before = EventInvoke{}
	case !there:
		return EventInvoke{}, ErrEventInvokeAbsent.With(cmd.Function.Qualify(qualifier))
	}
	next, err := cmd.Change.apply(before, cmd.Function, now)
	if err != nil {
		return EventInvoke{}, err
	}
	if len(cmd.Missing) > 0 {
		return EventInvoke{}, ErrEventInvokeNoTarget.With(cmd.Missing[0])
	}
	if f.eventInvokes == nil {
		f.eventInvokes = map[string]EventInvoke{}
	}
	f.eventInvokes[qualifier] = next
	s.put(b, f)
	return next, nil
}

// EventInvoke is the EventInvoke of a function, version or alias; zero and false if there is
// none.
func (f *Function) EventInvoke(qualifier string) (EventInvoke, bool) {
	c, ok := f.eventInvokes[qualifierOr(qualifier)]
	return c, ok
}

// ShowEventInvoke is EventInvoke, or ResourceNotFound for none.
func (s *State) ShowEventInvoke(name arn.ARN, qualifier string) (EventInvoke, error) {
	if f, ok := s.functions[name]; ok {
		if c, ok := f.EventInvoke(qualifier); ok {
			return c, nil
		}
	}
	return EventInvoke{}, ErrEventInvokeAbsent.With(name.Qualify(qualifierOr(qualifier)))
}

// DeleteEventInvoke resets to the defaults. Errors: ResourceNotFound, also if there is none.
func (s *State) DeleteEventInvoke(name arn.ARN, qualifier string, b *mutation.Batch) error {
	if _, err := s.ShowEventInvoke(name, qualifier); err != nil {
		return err
	}
	f := s.functions[name]
	delete(f.eventInvokes, qualifierOr(qualifier))
	s.put(b, f)
	return nil
}

// QualifiedEventInvoke is an EventInvoke with its qualifier.
type QualifiedEventInvoke struct {
	Qualifier string
	EventInvoke
}

// EventInvokes is a page of a function's EventInvokes, ordered by qualifier: up to limit
// after the qualifier after. more says that there are further ones. Errors: ResourceNotFound.
func (s *State) EventInvokes(name arn.ARN, after string, limit int) (page []QualifiedEventInvoke, more bool, err error) {
	f, ok := s.functions[name]
	if !ok {
		return nil, false, ErrEventInvokeUnknown
	}
	for _, qualifier := range slices.Sorted(maps.Keys(f.eventInvokes)) {
		if qualifier <= after {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, QualifiedEventInvoke{qualifier, f.eventInvokes[qualifier]})
	}
	return page, false, nil
}

// forgetEventInvoke drops the EventInvoke of a deleted version or alias, and reports whether
// there was one.
func (f *Function) forgetEventInvoke(qualifier string) bool {
	_, there := f.eventInvokes[qualifier]
	delete(f.eventInvokes, qualifier)
	return there
}
