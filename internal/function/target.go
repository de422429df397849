package function

import (
	"crypto/sha256"
	"encoding/base64"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// Latest is the qualifier and the version that can still be changed.
const Latest = "$LATEST"

// Target is the resolved version of an invocation. It is immutable.
type Target struct {
	Function  arn.ARN // without a qualifier
	Qualifier string  // of the request; empty: none
	Name      string
	Version   string // Latest or a number
	// Incarnation identifies this creation of the function in its shard.
	Incarnation uint64
	// Build changes with the version's code or configuration, and with a restart.
	Build       string
	Role        string
	Runtime     string // empty for a remote function
	Handler     string
	MemoryMB    int
	EphemeralMB int // of /tmp
	Timeout     time.Duration
	Environment map[string]string // read only
	// Cipher is the environment, if it is encrypted under a customer's key.
	Cipher     []byte
	Code       Code
	Layers     []Layer // read only
	Reserved   *int    // reserved concurrent executions; nil: none
	DeadLetter arn.ARN // of asynchronous invocations; zero: none
	Logging    Logging
}

// ARN is the function with the qualifier of the request, if any.
func (t *Target) ARN() arn.ARN { return t.Function.Qualify(t.Qualifier) }

// Remote reports whether the code runs elsewhere, at Code.URL.
func (t *Target) Remote() bool { return t.Code.URL != "" }

func qualifierOr(qualifier string) string {
	if qualifier == "" {
		return Latest
	}
	return qualifier
}

// Code is a version's code: an uploaded zip, or a URL.
type Code struct {
	// Upload is the zip's id in the function's shard; 0: there is none.
	Upload uint64
	SHA256 [sha256.Size]byte // of the zip
	Size   int64             // of the zip, in bytes
	// Unzipped is the size of what is in the zip, in bytes; 0: not known.
	Unzipped int64
	URL      string // of a remote function
}

// same reports whether two versions have the same code.
func (c Code) same(other Code) bool {
	return c.SHA256 == other.SHA256 && c.Size == other.Size && c.URL == other.URL
}

// Base64 is the digest of the zip in AWS's form; empty for a remote function.
func (c Code) Base64() string {
	if c.URL != "" {
		return ""
	}
	return base64.StdEncoding.EncodeToString(c.SHA256[:])
}
