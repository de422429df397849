package api

import (
	"encoding/base64"
	"strings"
)

// tokenVersion is the prefix of the plain text of all tokens.
const tokenVersion = "1"

// NextToken is the token of the next page of a list. It is only valid for the same list. Its
// alphabet and padding are those of AWS's tokens, for clients that inspect them.
func NextToken(list, after string) string {
	return base64.StdEncoding.EncodeToString([]byte(tokenVersion + "\n" + list + "\n" + after))
}

// ReadToken returns the position in a token of NextToken; without a token, the beginning. ok
// is false for a token of another list, or an invalid one.
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
