package stacks

import (
	"errors"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/stack"
)

const stackEvents = keyspace.StackEvents

// ChangeSet is what would change, and can be carried out.
type ChangeSet struct {
	ID          string       `json:"id"` // its ARN
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Created     int64        `json:"created"` // epoch milliseconds
	Source      stack.Source `json:"source"`
}

func isNone(err error) bool { return errors.Is(err, ErrNone) }
