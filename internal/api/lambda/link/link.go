// Package link makes and reads the tokens of links to the code of functions. A token has the
// upload and its expiry time, authenticated by a key.
package link

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// Key authenticates tokens.
type Key [sha256.Size]byte

// Token is a token for an upload of a function, which expires at until, to the second.
func (k Key) Token(fn arn.ARN, upload uint64, until time.Time) string {
	text := fn.String() + "\n" + strconv.FormatUint(upload, 10) + "\n" + strconv.FormatInt(until.Unix(), 10)
	return base64.RawURLEncoding.EncodeToString(append(k.seal(text), text...))
}

func (k Key) seal(text string) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// Read reports the upload of a token; ok is false for an invalid or expired token.
func (k Key) Read(token string, now time.Time) (fn arn.ARN, upload uint64, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(sealed) < sha256.Size {
		return fn, 0, false
	}
	text := string(sealed[sha256.Size:])
	if !hmac.Equal(sealed[:sha256.Size], k.seal(text)) {
		return fn, 0, false
	}
	parts := strings.Split(text, "\n")
	fn, err = arn.Parse(parts[0])
	if err != nil || len(parts) != 3 {
		return fn, 0, false
	}
	upload, _ = strconv.ParseUint(parts[1], 10, 64)
	until, _ := strconv.ParseInt(parts[2], 10, 64)
	return fn, upload, now.Unix() < until
}
