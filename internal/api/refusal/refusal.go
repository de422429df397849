// Package refusal has AWS's messages for the errors of rings 0 to 3. Each service has a table
// with a format for each rule; package wire has the codes and statuses of the kinds.
package refusal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/fault"
)

// sentences are formats, with a verb for each field of a rule, in order. An empty one means
// the message of the kind, if AWS has the same message for several rules.
type sentences map[*fault.Rule]string

var all = merge(everywhere, sqs, sns, platforms, deliveryPolicies, filterPolicies, lambda, iams, ofKMS, invocations, monitor, dataProtection, deliveryStreams, ofStacks, ofTemplates, ofIntrinsics, ofSAM, ofPosts, ofOperations)

func merge(tables ...sentences) sentences {
	merged := sentences{}
	for _, table := range tables {
		maps.Copy(merged, table)
	}
	return merged
}

// Of returns the message of an error. ok is false for an error that is not of package fault,
// whose text is not for callers.
func Of(err error) (said *fault.Error, ok bool) {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e, true
	}
	rule, ok := errors.AsType[*fault.Rule](err)
	if !ok {
		return nil, false
	}
	said = &fault.Error{Kind: rule.FaultKind(), Message: all[rule], Reason: reasons[rule], Untyped: slices.Contains(untyped, rule)}
	if r, ok := errors.AsType[*fault.Refusal](err); ok {
		fields := make([]any, len(r.Fields))
		for i, field := range r.Fields {
			if about, isError := field.(error); isError {
				field = Text(about)
			}
			fields[i] = field
		}
		said.Message = fmt.Sprintf(said.Message, fields...)
	}
	return said, true
}

// Text is the message of an error of package fault, or the text of another error.
func Text(err error) string {
	if said, ok := Of(err); ok {
		return said.Message
	}
	return err.Error()
}
