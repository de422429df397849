package functions

import (
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/queue/message"
)

// What tests of the package from outside know of it.
const CodeStep = codeStep

// CodePrefix is codePrefix.
func CodePrefix(shard uint16) []byte { return codePrefix(shard) }

// EventMessage is eventMessage.
func EventMessage(ev function.Event) *message.Message { return eventMessage(ev) }

// AcceptEvent is acceptEvent.
func (sh *Shard) AcceptEvent(f *function.Function, now int64, m *message.Message, qualifier string) {
	sh.acceptEvent(f, now, m, qualifier)
}
