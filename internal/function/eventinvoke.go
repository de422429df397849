package function

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// The bounds of an EventInvoke. Source: the Lambda API reference,
// PutFunctionEventInvokeConfig.
const (
	DefaultRetries = 2
	MaxRetries     = 2
	MinEventAge    = time.Minute
	MaxEventAge    = 6 * time.Hour
)

// EventInvoke says how the events of a function, version or alias are tried, and
// what becomes of them.
type EventInvoke struct {
	Retries   *int      `json:"retries,omitempty"`  // MaximumRetryAttempts: 0–2; nil: the default, 2
	MaxAgeS   *int      `json:"maxAge,omitempty"`   // MaximumEventAgeInSeconds: 60–21,600; nil: the default, 21,600
	OnSuccess arn.ARN   `json:"onSuccess,omitzero"` // zero: none
	OnFailure arn.ARN   `json:"onFailure,omitzero"` // zero: none
	Modified  time.Time `json:"modified"`           // to the millisecond
}

// MaxRetries is how often an event is tried again after the function failed.
func (c *EventInvoke) MaxRetries() int {
	if c.Retries == nil {
		return DefaultRetries
	}
	return *c.Retries
}

// MaxAge is how old an event may be when it is tried.
func (c *EventInvoke) MaxAge() time.Duration {
	if c.MaxAgeS == nil {
		return MaxEventAge
	}
	return time.Duration(*c.MaxAgeS) * time.Second
}

// EventInvokeChange asks for another EventInvoke. What is nil is not named.
type EventInvokeChange struct {
	Retries, MaxAgeS *int
	// OnSuccess and OnFailure are the ARNs as given; "" is none.
	OnSuccess, OnFailure *string
	// Destinations says that the request has a DestinationConfig, be it empty.
	Destinations bool
}

var errNoSetting = invalid("You must specify at least one of error handling or destination setting.")

var errOwnDestination = invalid("You can't specify the function as a destination for itself.")

// apply makes a setting out of the one before it, which is the zero value for a
// Put. Errors: InvalidParameter.
func (c EventInvokeChange) apply(before EventInvoke, of arn.ARN, now time.Time) (EventInvoke, error) {
	if c.Retries == nil && c.MaxAgeS == nil && !c.Destinations {
		return EventInvoke{}, errNoSetting
	}
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
		return EventInvoke{}, invalid("The provided destination config DestinationConfig(onSuccess=%s, onFailure=%s) is invalid.",
			shown("OnSuccess", c.OnSuccess), shown("OnFailure", c.OnFailure))
	}
	for _, d := range []arn.ARN{next.OnSuccess, next.OnFailure} {
		if f, _, _ := d.SplitFunction(); !d.IsZero() && f == of {
			return EventInvoke{}, errOwnDestination
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

var errNoSuchFunction = fault.New(fault.ResourceNotFound, "The function doesn't exist.")

func errNoEventInvoke(name arn.ARN) error {
	return fault.Newf(fault.ResourceNotFound, "The function %s doesn't have an EventInvokeConfig", name)
}
