// Package link makes and reads the tokens of links that the code of functions is
// downloaded from: what is meant and until when, authenticated by a key.
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

// Token is good for an upload of a function until a time, to the second.
func (k Key) Token(fn arn.ARN, upload uint64, until time.Time) string {
	text := fn.String() + "\n" + strconv.FormatUint(upload, 10) + "\n" + strconv.FormatInt(until.Unix(), 10)
	return base64.RawURLEncoding.EncodeToString(append(k.seal(text), text...))
}

func (k Key) seal(text string) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// Read reports what a token is for; ok is false for what is no token of the key, or an
// expired one.
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
