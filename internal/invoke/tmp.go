package invoke

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
)

type Invocation struct {
	Target        function.Target
	RequestID     string
	Payload       []byte
	ClientContext []byte
	Tail          bool
	Trace         string
}

type Outcome struct {
	Payload          []byte
	FunctionError    string
	LogTail          []byte
	Duration, Billed time.Duration
}

func Throttled(err error) bool { return fault.KindOf(err) == fault.Throttled }

var _ context.Context
