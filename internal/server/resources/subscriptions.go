package resources

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/topic/endpoint"
)

// masked is the form in which SNS shows the user and the password of an endpoint.
const masked = "://****:****@"

var errMasked = &Refusal{Action: "Subscribe", Text: "no server shows the user and the password of an endpoint: write them in the place of the asterisks"}

// errNoTopic refuses a subscription whose topic is named, and is neither on the server nor in the file.
var errNoTopic = &Refusal{Action: "Subscribe", Text: "there is no topic of this name, on the server or in the file"}

// shown is the endpoint as SNS shows it.
func (s Subscription) shown() string {
	if s.Protocol != "http" && s.Protocol != "https" {
		return s.Endpoint
	}
	return endpoint.Shown(endpoint.HTTPS, s.Endpoint)
}

// what names it, without the password of its endpoint.
func (s Subscription) what() string {
	return fmt.Sprintf("subscription of %s %s to %s", s.Protocol, s.shown(), nameOf(s.TopicArn))
}

// subscribe makes subscriptions, whose topics are there.
func (a *Applying) subscribe(ctx context.Context, set *Set) error {
	there := map[string][]listed{} // by topic
	for _, sub := range set.Subscriptions {
		topic := sub.TopicArn
		if !strings.HasPrefix(topic, "arn:") { // a name
			topic = a.arns[sub.TopicArn]
		}
		known := slices.Contains(sortedValues(a.arns), topic)
		if _, asked := there[topic]; !asked && known {
			var err error
			if there[topic], err = a.To.subscriptions(ctx, "ListSubscriptionsByTopic", url.Values{"TopicArn": {topic}}); err != nil {
				return err
			}
		}
		at := slices.IndexFunc(there[topic], func(l listed) bool { return l.protocol == sub.Protocol && l.endpoint == sub.shown() })
		if at < 0 {
			if err := a.makeSubscription(ctx, set, sub, topic); err != nil {
				return err
			}
			continue
		}
		arn := there[topic][at].arn
		if sub.shown() != sub.Endpoint && strings.HasPrefix(arn, "arn:") && !a.Dry {
			var err error
			if arn, err = a.subscribeAgain(ctx, sub, topic, there[topic], arn); err != nil {
				return err
			}
		}
		if !strings.HasPrefix(arn, "arn:") {
			continue // its endpoint has not confirmed it, and its attributes cannot be read
		}
		if err := a.setSubscription(ctx, sub, arn); err != nil {
			return err
		}
	}
	return nil
}

// subscribeAgain finds the subscription that has the password of an endpoint, which nobody shows: to
// subscribe the same endpoint again makes nothing, and says which one it is. shown is the ARN of
// one that looks the same, for a server that refuses this.
func (a *Applying) subscribeAgain(ctx context.Context, sub Subscription, topic string, there []listed, shown string) (arn string, err error) {
	found, err := a.To.query(ctx, "sns", "Subscribe", sub.form(topic, false))
	switch {
	case isRefusal(err):
		return shown, nil
	case err != nil:
		return "", err
	}
	arn = found.text("SubscriptionArn")
	if slices.ContainsFunc(there, func(l listed) bool { return l.arn == arn }) {
		return arn, nil
	}
	return arn, a.change(Change{New: true, What: sub.what()}, nil)
}

// makeSubscription makes a subscription that is not there.
func (a *Applying) makeSubscription(ctx context.Context, set *Set, sub Subscription, topic string) error {
	is := Change{New: true, What: sub.what()}
	switch {
	case topic == "" && (!a.Dry || !set.hasTopic(sub.TopicArn)): // it was not made
		is.Refused = errNoTopic
	case strings.Contains(sub.Endpoint, masked):
		is.Refused = errMasked
	}
	return a.change(is, func() error {
		if is.Refused != nil {
			return is.Refused
		}
		_, err := a.To.query(ctx, "sns", "Subscribe", sub.form(topic, true))
		return err
	})
}

// form is what Subscribe takes.
func (s Subscription) form(topic string, attributes bool) url.Values {
	form := url.Values{"TopicArn": {topic}, "Protocol": {s.Protocol}, "Endpoint": {s.Endpoint}, "ReturnSubscriptionArn": {"true"}}
	if attributes {
		numbered(form, "Attributes.entry", "key", "value", s.Attributes)
	}
	return form
}

func (a *Applying) setSubscription(ctx context.Context, sub Subscription, arn string) error {
	is, err := a.To.subscriptionAttributes(ctx, arn)
	if err != nil {
		return err
	}
	return a.differences(sub.what(), "", is, sub.Attributes, func(name, value string) error {
		_, err := a.To.query(ctx, "sns", "SetSubscriptionAttributes", url.Values{"SubscriptionArn": {arn}, "AttributeName": {name}, "AttributeValue": {value}})
		return err
	})
}
