package invoke

import (
	"log/slog"
	"time"

	"godwit.dev/godwit/internal/function"
)

// Credentials are what a function signs its requests with: those of a session of its role.
// They do not show themselves where they are formatted or logged.
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

// Roles gives functions the credentials of their roles. It is asked under locks: it must be
// quick, and not call the pool.
type Roles interface {
	// Credentials begins a session of a function's role; nil: the role is not there, where
	// it need not be. Errors: ErrRole.
	Credentials(t *function.Target) (*Credentials, error)
	// Lasts reports whether what Credentials gave before is good for another invocation.
	Lasts(t *function.Target, c *Credentials) bool
}
