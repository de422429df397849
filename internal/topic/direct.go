package topic

import "godwit.dev/godwit/internal/arn"

// Direct makes whom messages wait for that are published to no topic: a subscription that
// no topic has, to nothing that would have to confirm it. Each message names its endpoint.
// attributes are what a topic would have for its delivery status log.
func Direct(name arn.ARN, p Protocol, incarnation uint64, attributes map[string]string) *Subscription {
	return &Subscription{
		ARN: name, Protocol: p, Owner: name.Account, Incarnation: incarnation, topic: &Topic{ARN: name, attributes: attributes},
	}
}
