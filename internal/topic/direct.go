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

// BodyName is what the subscription's body is called in a message that has several: its
// protocol, or the push platform of its endpoint.
func (sub *Subscription) BodyName() string {
	if sub.Protocol != Application {
		return sub.Protocol.String()
	}
	endpoint, _ := arn.Parse(sub.Endpoint) // checked when it was subscribed
	application, _, _ := endpoint.SplitEndpoint()
	platform, _, _ := application.SplitApplication()
	return platform
}
