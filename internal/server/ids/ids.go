// Package ids makes the ids of messages, requests and the like.
package ids

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/queue/message"
)

// New makes a random UUID (version 4) of what has no secret in its name. So the runtime's own
// generator does, which takes no lock: a fan-out needs an id for each queue.
func New() (id message.ID) {
	binary.NativeEndian.PutUint64(id[:], rand.Uint64())  //nolint:gosec // see above
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()) //nolint:gosec // see above
	const version, variant = 0x40, 0x80
	id[6] = id[6]&0x0f | version
	id[8] = id[8]&0x3f | variant
	return id
}

// Text is New as text.
func Text() string { return New().String() }

// Unguessable makes a random UUID that nobody can guess: a subscription's ARN, which has one, is
// all that it takes to end the subscription.
func Unguessable() message.ID { return message.ID(uuid.New()) }

// Digits makes 32 hexadecimal digits that nobody can guess.
func Digits() string {
	id := Unguessable()
	return hex.EncodeToString(id[:])
}

// The random numbers for 16 of those come at once.
func init() { uuid.EnableRandPool() }
