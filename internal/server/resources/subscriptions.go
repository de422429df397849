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
		arn := ""
		if at >= 0 {
			arn = there[topic][at].arn
		}
		if at >= 0 && sub.shown() != sub.Endpoint && strings.HasPrefix(arn, "arn:") && !a.Dry {
			// Nobody shows which password that one has: to subscribe the same endpoint again makes
			// nothing, and says which one it is.
			found, err := a.To.query(ctx, "sns", "Subscribe", sub.form(topic, false))
			if err != nil && !isRefusal(err) {
				return err
			}
			if err == nil {
				if arn = found.text("SubscriptionArn"); !slices.ContainsFunc(there[topic], func(l listed) bool { return l.arn == arn }) {
					if err := a.change(Change{New: true, What: sub.what()}, nil); err != nil {
						return err
					}
				}
			}
		}
		if at < 0 {
			is := Change{New: true, What: sub.what()}
			switch {
			case topic == "" && (!a.Dry || !set.hasTopic(sub.TopicArn)): // it was not made
				is.Refused = errNoTopic
			case strings.Contains(sub.Endpoint, masked):
				is.Refused = errMasked
			}
			err := a.change(is, func() error {
				if is.Refused != nil {
					return is.Refused
				}
				_, err := a.To.query(ctx, "sns", "Subscribe", sub.form(topic, true))
				return err
			})
			if err != nil {
				return err
			}
			continue
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
