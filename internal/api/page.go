package api

import (
	"encoding/base64"
	"strings"
)

// tokenVersion begins the plain text of every token of a list.
const tokenVersion = "1"

// NextToken wraps the place where a list continues. It is bound to the list, so
// that a token of one is refused by another. Its alphabet and padding are what AWS's
// tokens have, for callers that look into them.
func NextToken(list, after string) string {
	return base64.StdEncoding.EncodeToString([]byte(tokenVersion + "\n" + list + "\n" + after))
}

// ReadToken gives the place that NextToken wrapped; no token is the beginning. ok
// is false for what is no token of the list.
func ReadToken(list string, token *string) (after string, ok bool) {
	if token == nil || *token == "" {
		return "", true
	}
	plain, err := base64.StdEncoding.DecodeString(*token)
	if err != nil {
		return "", false
	}
	after, ok = strings.CutPrefix(string(plain), tokenVersion+"\n"+list+"\n")
	return after, ok && after != ""
}
