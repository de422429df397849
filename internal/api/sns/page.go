package sns

import (
	"encoding/base64"
	"strings"
)

// pageSize is the number of topics or subscriptions in one answer.
const pageSize = 100

// tokenVersion begins the plain text of every NextToken.
const tokenVersion = "1"

// nextToken wraps the place where a list goes on. It is bound to the list, so
// that a token of one is refused by another.
func nextToken(list, after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenVersion + "\n" + list + "\n" + after))
}

// readToken gives the place that nextToken wrapped; no token is the beginning.
// It fails with InvalidParameter.
func readToken(list string, token *string) (after string, err error) {
	if token == nil || *token == "" {
		return "", nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(*token)
	if err == nil {
		if after, ok := strings.CutPrefix(string(plain), tokenVersion+"\n"+list+"\n"); ok && after != "" {
			return after, nil
		}
	}
	return "", invalid("NextToken")
}
