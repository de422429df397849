package invoke

import (
	"log/slog"
	"time"

	"godwit.dev/godwit/internal/function"
)

// Credentials are the credentials of a session of a function's role. Formatting and logging
// hide them.
type Credentials struct {
	AccessKey, Secret, Token string
	Expires                  time.Time
	Role                     string // the role's unique id
}

const hidden = "(credentials)"

// String hides the credentials.
func (Credentials) String() string { return hidden }

// GoString hides the credentials.
func (Credentials) GoString() string { return hidden }

// LogValue hides the credentials.
func (Credentials) LogValue() slog.Value { return slog.StringValue(hidden) }

// Roles returns the credentials of functions' roles. It is called under locks: it must be
// quick, and must not call the pool.
type Roles interface {
	// Credentials begins a session of a function's role; nil: the role does not exist, where
	// it need not. Errors: ErrRole.
	Credentials(t *function.Target) (*Credentials, error)
	// Lasts reports whether credentials are valid for another invocation.
	Lasts(t *function.Target, c *Credentials) bool
}
