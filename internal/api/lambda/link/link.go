// Package link makes and reads the tokens of links to the code of functions. A token has the
// upload and its expiry time. It is sealed with a key of the store's, so that it is good at the next
// start, and at the next owner of a cluster's state.
package link

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/seal"
)

// Purpose is the purpose that tokens are sealed for.
const Purpose = "links to functions' code"

// Tokens makes and reads tokens.
type Tokens struct{ sealer *seal.Sealer }

// New returns Tokens by a sealer for Purpose.
func New(sealer *seal.Sealer) Tokens { return Tokens{sealer} }

// Token is a token for an upload of a function, which expires at until, to the second.
func (t Tokens) Token(fn arn.ARN, upload uint64, until time.Time) (string, error) {
	text := fn.String() + "\n" + strconv.FormatUint(upload, 10) + "\n" + strconv.FormatInt(until.Unix(), 10)
	sealed, err := t.sealer.Seal([]byte(text), nil)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// Read reports the upload of a token; ok is false for an invalid or expired token.
func (t Tokens) Read(token string, now time.Time) (fn arn.ARN, upload uint64, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return fn, 0, false
	}
	text, err := t.sealer.Open(sealed, nil)
	if err != nil {
		return fn, 0, false
	}
	parts := strings.Split(string(text), "\n")
	fn, err = arn.Parse(parts[0])
	if err != nil || len(parts) != 3 {
		return fn, 0, false
	}
	upload, _ = strconv.ParseUint(parts[1], 10, 64)
	until, _ := strconv.ParseInt(parts[2], 10, 64)
	return fn, upload, now.Unix() < until
}
