package server

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/queue/message"
)

// newID makes a random UUID (version 4) of a message, a request or the like. It is nothing
// that has to be kept secret, so that the runtime's own generator does, which takes no lock:
// a fan-out needs an id for each queue.
func newID() (id message.ID) {
	binary.NativeEndian.PutUint64(id[:], rand.Uint64())  //nolint:gosec // see above
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()) //nolint:gosec // see above
	const version, variant, low = 0x40, 0x80, 0x0f
	id[6] = id[6]&low | version
	id[8] = id[8]&0x3f | variant
	return id
}

// newUnguessableID makes the id of a topic's message or of a subscription: with a
// subscription's ARN it can be ended by who has no key.
func newUnguessableID() message.ID { return message.ID(uuid.New()) }

// The random numbers for 16 of those come at once.
func init() { uuid.EnableRandPool() }

// newRequestID names a request.
func newRequestID() string { return newID().String() }
