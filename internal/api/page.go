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

// Page cuts the page of a token from a list in the order of its items' positions: at most limit
// items. It goes on behind the last item of the page before also if that is gone. next is the
// token of the next page; empty: this is the last one. ok is as for ReadToken.
func Page[T any](list string, items []T, position func(i int) string, token *string, limit int) (cut []T, next string, ok bool) {
	after, ok := ReadToken(list, token)
	if !ok {
		return nil, "", false
	}
	cut = []T{}
	last := ""
	for i, item := range items {
		at := position(i)
		if after != "" && at <= after {
			continue
		}
		if len(cut) == limit {
			return cut, NextToken(list, last), true
		}
		cut, last = append(cut, item), at
	}
	return cut, "", true
}
