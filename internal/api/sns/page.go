package sns

import "godwit.dev/godwit/internal/api"

// pageSize is the page size of lists of topics and subscriptions.
const pageSize = 100

// nextToken is the token of the next page of a list.
func nextToken(list, after string) string { return api.NextToken(list, after) }

// readToken returns the position in a token of nextToken; without a token, the beginning. It
// fails with InvalidParameter.
func readToken(list string, token *string) (after string, err error) {
	after, ok := api.ReadToken(list, token)
	if !ok {
		return "", invalid("NextToken")
	}
	return after, nil
}
