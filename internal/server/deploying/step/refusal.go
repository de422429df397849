package step

import (
	"fmt"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/server/deploying/fit"
	"godwit.dev/godwit/internal/shard/stacks"
)

// ErrUnderWay has a step be taken again: what it waits for is not complete yet.
var ErrUnderWay = fault.New(fault.Unavailable, "The nested stack is under way.")

// Error is a refusal of a handler itself, with AWS's code for it; no code: it is of no service.
type Error struct{ Text, Code string }

func (e *Error) Error() string { return e.Text }

// Passes reports that what is refused now may be taken later.
func Passes(err error) bool {
	switch fault.KindOf(err) {
	case fault.Throttled, fault.Unavailable, fault.QueueDeletedRecently, fault.Conflict, fault.ResourceInUse:
		return true
	default:
		return false
	}
}

// Exists reports that what is to be made is there.
func Exists(err error) bool {
	switch fault.KindOf(err) {
	case fault.ResourceAlreadyExists, fault.EntityAlreadyExists, fault.QueueNameExists, fault.ResourceConflict:
		return true
	default:
		return false
	}
}

// UnlessGone takes it for done that what is to go is gone.
func UnlessGone(err error) error {
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

// Fill is [fit.Into], with the error that AWS's handlers have.
func Fill(properties map[string]any, in any) error {
	if err := fit.Into(properties, in); err != nil {
		return &Error{"Model validation failed (" + err.Error() + ")", "InvalidRequest"}
	}
	return nil
}

// Taken refuses a name that something else has.
func (w *Work) Taken(name string) error {
	return &Error{fmt.Sprintf("Resource of type '%s' with identifier '%s' already exists.", w.Target.Type, name), "AlreadyExists"}
}

// Missing refuses what can't be found any more.
func (w *Work) Missing() error {
	return &Error{fmt.Sprintf("Resource of type '%s' with identifier '%s' was not found.", w.Target.Type, w.Target.Physical), "NotFound"}
}

// NotUpdatable refuses a change of a property that no operation changes.
func NotUpdatable(property string) error {
	return &Error{"The property " + property + " does not support updates.", "NotUpdatable"}
}

// services are the names that AWS's handlers know services by.
var services = map[string]string{
	"sqs": "Sqs", "sns": "Sns", "lambda": "Lambda", "iam": "Iam", "kms": "Kms", "monitoring": "CloudWatch", "logs": "CloudWatchLogs", "firehose": "Firehose",
	"cloudformation": "AmazonCloudFormation",
}

// Reason is what AWS's events say of a failure.
func (w *Work) Reason(err error) string {
	var text string
	code := "InvalidRequest"
	if own, ok := err.(*Error); ok { //nolint:errorlint // it is not wrapped
		if own.Code == "" { // of no service
			return own.Text
		}
		text, code = own.Text, own.Code
	} else {
		kind := fault.KindOf(err)
		status := 400
		switch {
		case stacks.IsGone(err):
			code, status = "NotFound", 404
		case kind == fault.AccessDenied || kind == fault.KMSAccessDenied:
			code, status = "AccessDenied", 403
		case kind == fault.Throttled:
			code = "Throttling"
		case Exists(err):
			code, status = "AlreadyExists", 409
		case kind == fault.LimitExceeded || kind == fault.TopicLimitExceeded || kind == fault.SubscriptionLimitExceeded || kind == fault.FilterPolicyLimitExceeded:
			code = "ServiceLimitExceeded"
		case kind == fault.Internal:
			code, status = "GeneralServiceException", 500
		}
		if kind == fault.Internal {
			text = "Internal error"
		} else {
			text = refusal.Text(err)
		}
		if w.failed != nil {
			if _, described, _ := w.failed.Describe(err); described != "" {
				text = described
			}
			text += fmt.Sprintf(" (Service: %s, Status Code: %d, Request ID: %s)", services[w.failed.Service], status, w.failed.RequestID)
		}
	}
	return fmt.Sprintf("Resource handler returned message: %q (RequestToken: %s, HandlerErrorCode: %s)", text, w.Token, code)
}
