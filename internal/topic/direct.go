package topic

import "godwit.dev/godwit/internal/arn"

// Direct makes the recipient of messages that are published to no topic: a subscription without
// a topic that needs no confirmation. Each message names its endpoint. attributes are those
// that a topic would have for its delivery status log.
func Direct(name arn.ARN, p Protocol, incarnation uint64, attributes map[string]string) *Subscription {
	return &Subscription{
		ARN: name, Protocol: p, Owner: name.Account, Incarnation: incarnation, topic: &Topic{ARN: name, attributes: attributes},
	}
}

// BodyName is the name of the subscription's body in a message with several: its protocol, or
// the push platform of its endpoint.
func (sub *Subscription) BodyName() string {
	if sub.Protocol != Application {
		return sub.Protocol.String()
	}
	endpoint, _ := arn.Parse(sub.Endpoint) // checked when it was subscribed
	application, _, _ := endpoint.SplitEndpoint()
	platform, _, _ := application.SplitApplication()
	return platform
}
