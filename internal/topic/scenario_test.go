package topic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic/filter"
)

// Said is the text of a refusal that a caller sees: AWS's sentence, from a package that depends on
// this one and is therefore set from outside.
var Said = error.Error

// The files in testdata/scenarios are scenarios. Arguments name things; each line of
// input is an attribute, name=value. After each command the records are loaded
// into a second state, which has to equal the first.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		w := newWorld()
		named := map[string]arn.ARN{} // subscriptions, by the name that the scenario gave
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.run(d, named)
			w.checked(t, err)
			if err != nil {
				return kindName(err) + ": " + Said(err) + "\n"
			}
			return out
		})
	})
}

func (w *world) run(d *datadriven.TestData, named map[string]arn.ARN) (string, error) {
	arg := func(key, otherwise string) string {
		if values, ok := d.CmdArgs, d.HasArg(key); ok {
			for _, v := range values {
				if v.Key == key {
					return strings.Join(v.Vals, ",")
				}
			}
		}
		return otherwise
	}
	topic := arn.Topic(arg("region", region), arg("account", account), arg("topic", "Orders"))
	sub := named[arg("sub", "")]
	if id := arg("id", ""); id != "" {
		sub = topic.Subscription(id)
	}
	input := lines(d.Input)

	switch d.Cmd {
	case "create-topic":
		cmd := CreateTopic{ARN: topic, Attributes: input, Tags: map[string]string{}}
		for tag := range strings.FieldsSeq(strings.ReplaceAll(arg("tags", ""), ",", " ")) {
			key, value, _ := strings.Cut(tag, ":")
			cmd.Tags[key] = value
		}
		t, err := w.CreateTopic(w.now, cmd, &w.batch)
		if err != nil {
			return "", err
		}
		return t.ARN.String() + "\n", nil

	case "delete-topic":
		var out strings.Builder
		gone, err := w.DeleteTopic(topic, &w.batch)
		if err != nil {
			return "", err
		}
		if gone != nil && gone.HasBacklogs() {
			fmt.Fprintf(&out, "gone with the backlogs %d\n", gone.Backlogs())
		}
		return out.String() + "ok\n", nil

	case "set-topic":
		for _, name := range slices.Sorted(maps.Keys(input)) {
			if err := w.SetTopicAttribute(w.now, topic, name, input[name], &w.batch); err != nil {
				return "", err
			}
		}
		return "ok\n", nil

	case "tag":
		return "ok\n", w.Tag(topic, input, &w.batch)

	case "untag":
		return "ok\n", w.Untag(topic, slices.Collect(maps.Keys(input)), &w.batch)

	case "tags":
		t, err := w.topic(topic)
		if err != nil {
			return "", err
		}
		return show(t.Tags, ""), nil

	case "expire":
		var out strings.Builder
		for _, gone := range w.RemoveExpired(w.now, 2, &w.batch) {
			fmt.Fprintf(&out, "gone: %s, incarnation %d\n", gone.ShownEndpoint(), gone.Incarnation)
		}
		next := "never"
		if at, ok := w.NextExpiry(); ok {
			next = "in " + at.Sub(w.now).String()
		}
		return out.String() + "next: " + next + "\n", nil

	case "limits": // for the commands that follow
		for name, to := range map[string]*int{"subscriptions": &w.limits.Subscriptions, "filters": &w.limits.FilterPolicies} {
			if _, err := fmt.Sscan(arg(name, "0"), to); err != nil {
				return "", err
			}
		}
		return "", nil

	case "get-topic":
		t, err := w.topic(topic)
		if err != nil {
			return "", err
		}
		return show(t.Attributes(), arg("only", "")), nil

	case "subscribe":
		got, err := w.subscribe(Subscribe{
			Topic: topic, Owner: arg("owner", account), Protocol: arg("protocol", "sqs"),
			Endpoint: arg("endpoint", ""), Token: arg("token", ""), Attributes: input,
		})
		if err != nil {
			return "", err
		}
		if as := arg("as", ""); as != "" {
			named[as] = got.Subscription.ARN
		}
		return fmt.Sprintf("created: %v, pending: %v, confirm: %v, incarnation: %d\n",
			got.Created, got.Subscription.Pending, got.Confirm, got.Subscription.Incarnation), nil

	case "confirm":
		got, err := w.ConfirmSubscription(w.now, Confirm{
			Incarnation: uint64(w.ids + 1000),
			Topic:       topic, Token: arg("token", ""), Authenticated: d.HasArg("signed"), AuthenticateOnUnsubscribe: d.HasArg("authenticate-on-unsubscribe"),
		}, &w.batch)
		if err != nil {
			return "", err
		}
		out := got.Subscription.ShownEndpoint() + "\n"
		if got.Restored {
			out += fmt.Sprintf("restored, without incarnation %d\n", got.Dropped)
		}
		return out, nil

	case "unsubscribe":
		got, err := w.unsubscribe(sub, d.HasArg("signed"), arg("token", ""))
		if err != nil {
			return "", err
		}
		if got.Subscription == nil {
			return "nothing there\n", nil
		}
		out := fmt.Sprintf("gone: %s, incarnation %d\n", got.Subscription.ShownEndpoint(), got.Dropped)
		if got.Confirm {
			out += fmt.Sprintf("told: incarnation %d\n", got.Subscription.Incarnation)
		}
		return out, nil

	case "set-sub":
		for _, name := range slices.Sorted(maps.Keys(input)) {
			if err := w.SetSubscriptionAttribute(w.now, SetSubscriptionAttribute{Subscription: sub, Name: name, Value: input[name], Next: 1}, &w.batch); err != nil {
				return "", err
			}
		}
		return "ok\n", nil

	case "get-sub":
		s, err := w.subscription(sub)
		if err != nil {
			return "", err
		}
		return show(s.Attributes(), arg("only", "")), nil

	case "delivery":
		s, err := w.subscription(sub)
		if err != nil {
			return "", err
		}
		p := s.RetryPolicy()
		perSecond, throttled := s.Throttle()
		return fmt.Sprintf("%d retries, %v to %v, %v\nthrottle: %d %v\ncontent type: %s\ndead letters: %s\n",
			p.NumRetries, p.MinDelayTarget, p.MaxDelayTarget, p.Backoff, perSecond, throttled, s.ContentType(), s.DeadLetters()), nil

	case "publish":
		var attributes []filter.Attribute
		for _, name := range slices.Sorted(maps.Keys(input)) {
			if name != "body" {
				attributes = append(attributes, filter.Attribute{Name: name, Type: "String", Value: input[name]})
			}
		}
		var out []string
		for s := range matchEach(w.State, topic, "", filter.NewMessage(attributes, []byte(input["body"])), func(s *Subscription, v filter.Verdict) {
			out = append(out, fmt.Sprintf("%s: filtered out, %v\n", s.ShownEndpoint(), v))
		}) {
			out = append(out, s.ShownEndpoint()+"\n")
		}
		slices.Sort(out)
		return strings.Join(out, ""), nil

	case "wait":
		wait, err := time.ParseDuration(arg("for", ""))
		w.now = w.now.Add(wait)
		return "", err

	default:
		return "", fmt.Errorf("unknown command %s", d.Cmd)
	}
}

func lines(input string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(input) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			all[name] = value
		}
	}
	return all
}

// show writes the attributes in order, or those that only names.
func show(all map[string]string, only string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if only == "" || slices.Contains(strings.Split(only, ","), name) {
			fmt.Fprintf(&out, "%s=%s\n", name, all[name])
		}
	}
	if out.Len() == 0 {
		return "(none)\n"
	}
	return out.String()
}

func kindName(err error) string {
	switch fault.KindOf(err) {
	case fault.InvalidParameter:
		return "InvalidParameter"
	case fault.NotFound:
		return "NotFound"
	case fault.AccessDenied:
		return "AccessDenied"
	case fault.ResourceNotFound:
		return "ResourceNotFound"
	case fault.TagLimitExceeded:
		return "TagLimitExceeded"
	case fault.SubscriptionLimitExceeded:
		return "SubscriptionLimitExceeded"
	case fault.FilterPolicyLimitExceeded:
		return "FilterPolicyLimitExceeded"
	default:
		return "unclassified"
	}
}
