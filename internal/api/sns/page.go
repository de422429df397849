package sns

import "godwit.dev/godwit/internal/api"

// pageSize is the number of topics or subscriptions in one answer.
const pageSize = 100

// nextToken wraps the place where a list continues.
func nextToken(list, after string) string { return api.NextToken(list, after) }

// readToken gives the place that nextToken wrapped; no token is the beginning.
// It fails with InvalidParameter.
func readToken(list string, token *string) (after string, err error) {
	after, ok := api.ReadToken(list, token)
	if !ok {
		return "", invalid("NextToken")
	}
	return after, nil
}
