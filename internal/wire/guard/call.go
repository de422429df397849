package guard

import "strings"

// call is what the query of a URL asks for in AWS's Query protocol.
type call struct {
	acts         bool   // it names an action, of whatever kind
	action       string // empty if that is not certain
	token        bool
	subscription bool
}

// parseCall reads a query without decoding it: what would have to be decoded to
// name an action does name one, but nobody knows which.
func parseCall(query string) (c call) {
	certain := true
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		switch {
		case strings.IndexByte(key, '%') >= 0:
			c.acts, certain = true, false
		case strings.EqualFold(key, "Action"):
			certain = certain && !c.acts && key == "Action"
			c.acts, c.action = true, value
		case key == "Token":
			c.token = c.token || value != ""
		case key == "SubscriptionArn":
			c.subscription = c.subscription || value != ""
		}
	}
	if !certain {
		c.action = ""
	}
	return c
}

// confirms reports that the call confirms a subscription, which works by a secret
// that only the endpoint was sent: it may be visited from anywhere.
func (c call) confirms() bool { return c.action == "ConfirmSubscription" && c.token }

// unsubscribes reports that the call is a link from a message to a subscriber.
func (c call) unsubscribes() bool { return c.action == "Unsubscribe" && c.subscription }
