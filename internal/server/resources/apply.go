package resources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strings"
)

// Change is one thing in which a server differs from a set.
type Change struct {
	New  bool   // the resource is not there
	What string // "queue orders"
	Name string // of the attribute or tag; empty: of the resource as a whole
	Was  string
	To   string
	// Refused is why it cannot be made; nil: it can.
	Refused error
}

// String writes a change on a line.
func (c Change) String() string {
	switch {
	case c.Refused != nil && c.Name == "":
		return fmt.Sprintf("! %s: %v", c.What, c.Refused)
	case c.Refused != nil:
		return fmt.Sprintf("! %s %s: %v", c.What, c.Name, c.Refused)
	case c.New && c.Name == "":
		return "+ " + c.What
	case c.New:
		return fmt.Sprintf("+ %s %s = %s", c.What, c.Name, c.To)
	case c.Was == "":
		return fmt.Sprintf("~ %s %s = %s", c.What, c.Name, c.To)
	default:
		return fmt.Sprintf("~ %s %s: %s → %s", c.What, c.Name, c.Was, c.To)
	}
}

// Applying makes a server have what a set has.
type Applying struct {
	To *Server
	// Dry only says what would change.
	Dry bool
	Out io.Writer // gets a line for each change
	// Account and Region are the server's own, if it is known; else it is asked.
	Account, Region string
	// LeftOut is, after Run, which tags of the set are left out, as AWS keeps them for itself.
	LeftOut []string

	changes []Change
	urls    map[string]string // of queues, by name
	arns    map[string]string // of topics, by name
}

// Run makes the changes and says which there were. What a server refuses is one with Refused,
// and the rest continues. A second run with the same set changes nothing.
func (a *Applying) Run(ctx context.Context, set *Set) ([]Change, error) {
	if a.Account == "" {
		var err error
		if a.Account, a.Region, err = a.To.Home(ctx); err != nil {
			return nil, err
		}
	}
	if a.Account != "" {
		set = set.moved(a.Account, a.Region)
	}
	set, a.LeftOut = set.own()
	for _, what := range a.LeftOut {
		if _, err := fmt.Fprintln(a.Out, strings.ReplaceAll("- "+what+": left out, as AWS keeps tags that begin with aws: for itself", "\n", `\n`)); err != nil {
			return nil, err
		}
	}
	a.changes, a.urls, a.arns = nil, map[string]string{}, map[string]string{}
	links, err := a.To.queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		a.urls[nameOf(link)] = link
	}
	topics, err := a.To.topics(ctx)
	if err != nil {
		return nil, err
	}
	for _, arn := range topics {
		a.arns[nameOf(arn)] = arn
	}
	for _, step := range []func(context.Context, *Set) error{a.makeQueues, a.makeTopics, a.setQueues, a.setTopics, a.subscribe, a.alarms, a.sources} {
		if err := step(ctx, set); err != nil {
			return a.changes, err
		}
	}
	return a.changes, nil
}

// change notes a change, and makes it unless nothing is to be made. It fails with what is no
// refusal.
func (a *Applying) change(c Change, do func() error) error {
	if !a.Dry && do != nil {
		if err := do(); err != nil {
			if !isRefusal(err) {
				return err
			}
			c.Refused = err
		}
	}
	a.changes = append(a.changes, c)
	_, err := fmt.Fprintln(a.Out, strings.ReplaceAll(c.String(), "\n", `\n`)) // a value has no lines of its own here
	return err
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*Refusal](err)
	return ok
}

// atCreation are the attributes of a queue and a topic that are set when it is made.
var atCreation = []string{"FifoQueue", "FifoTopic"}

func creation(attributes Attributes) map[string]string {
	found := map[string]string{}
	for _, name := range atCreation {
		if value, ok := attributes[name]; ok {
			found[name] = value
		}
	}
	return found
}

// makeQueues makes the queues that are not there, without what may name one that is not.
func (a *Applying) makeQueues(ctx context.Context, set *Set) error {
	for _, q := range set.Queues {
		if a.urls[q.QueueName] != "" {
			continue
		}
		err := a.change(Change{New: true, What: "queue " + q.QueueName}, func() error {
			form := url.Values{"QueueName": {q.QueueName}}
			numbered(form, "Attribute", "Name", "Value", creation(q.Attributes))
			found, err := a.To.query(ctx, "sqs", "CreateQueue", form)
			if err == nil {
				a.urls[q.QueueName] = found.text("QueueUrl")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Applying) makeTopics(ctx context.Context, set *Set) error {
	for _, t := range set.Topics {
		if a.arns[t.Name] != "" {
			continue
		}
		err := a.change(Change{New: true, What: "topic " + t.Name}, func() error {
			form := url.Values{"Name": {t.Name}}
			numbered(form, "Attributes.entry", "key", "value", creation(t.Attributes))
			found, err := a.To.query(ctx, "sns", "CreateTopic", form)
			if err == nil {
				a.arns[t.Name] = found.text("TopicArn")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tag is the kind of what is no attribute.
const tag = "tag"

// differences are those of what is wanted from what there is; what is not wanted is left. One
// attribute may allow another one only once it has been set, so that what is refused is tried
// again as long as others succeed.
func (a *Applying) differences(what, kind string, is, want map[string]string, set func(name, value string) error) error {
	var left []string
	for _, name := range sortedKeys(want) {
		was, there := is[name]
		equal := same(name, was, want[name])
		if kind == tag { // whose value may be empty, and is what it is
			equal = there && was == want[name]
		}
		if !equal {
			left = append(left, name)
		}
	}
	for progress := true; len(left) > 0; {
		last := !progress // nothing more succeeds: what is refused now is reported
		progress = false
		var refused []string
		for _, name := range left {
			var err error
			if !a.Dry {
				err = set(name, want[name])
			}
			if isRefusal(err) && !last {
				refused = append(refused, name)
				continue
			}
			progress = true
			c := Change{What: what, Name: strings.TrimSpace(kind + " " + name), Was: is[name], To: want[name]}
			if err := a.change(c, func() error { return err }); err != nil {
				return err
			}
		}
		left = refused
	}
	return nil
}

// newQueue has what AWS documents that a queue has when nobody has set anything, for a dry run,
// which has no queue to ask.
var newQueue = Attributes{
	"DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "0",
	"VisibilityTimeout": "30", "SqsManagedSseEnabled": "true",
}

var newFifoQueue = Attributes{"ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}

// madeQueue has what a queue of these attributes has before they are set.
func madeQueue(attributes Attributes) Attributes {
	made := maps.Clone(newQueue)
	if same("FifoQueue", attributes["FifoQueue"], "true") {
		maps.Copy(made, newFifoQueue)
	}
	maps.Copy(made, creation(attributes))
	return made
}

func (a *Applying) setQueues(ctx context.Context, set *Set) error {
	for _, q := range set.Queues {
		link, what := a.urls[q.QueueName], "queue "+q.QueueName
		is, tags := madeQueue(q.Attributes), Tags{}
		if link != "" {
			var err error
			if is, err = a.To.queueAttributes(ctx, link); err != nil {
				return err
			}
			if len(q.Tags) > 0 {
				if tags, err = a.To.queueTags(ctx, link); err != nil {
					return err
				}
			}
		} else if !a.Dry { // it was refused
			continue
		}
		err := a.differences(what, "", is, q.Attributes, func(name, value string) error {
			_, err := a.To.query(ctx, "sqs", "SetQueueAttributes", url.Values{"QueueUrl": {link}, "Attribute.1.Name": {name}, "Attribute.1.Value": {value}})
			return err
		})
		if err != nil {
			return err
		}
		err = a.differences(what, tag, tags, q.Tags, func(name, value string) error {
			_, err := a.To.query(ctx, "sqs", "TagQueue", url.Values{"QueueUrl": {link}, "Tag.1.Key": {name}, "Tag.1.Value": {value}})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Applying) setTopics(ctx context.Context, set *Set) error {
	for _, t := range set.Topics {
		arn, what := a.arns[t.Name], "topic "+t.Name
		is, tags, protected := Attributes(creation(t.Attributes)), Tags{}, Document("")
		if arn != "" {
			var err error
			if is, err = a.To.topicAttributes(ctx, arn); err != nil {
				return err
			}
			if t.Attributes["Policy"] == "" && isDefaultPolicy(is["Policy"], arn) { // none is the default
				delete(is, "Policy")
			}
			if len(t.Tags) > 0 {
				if tags, err = a.To.topicTags(ctx, arn); err != nil {
					return err
				}
			}
			if t.DataProtectionPolicy != "" {
				if protected, err = a.To.dataProtection(ctx, arn); err != nil && !isRefusal(err) { // then to put it is refused, too
					return err
				}
			}
		} else if !a.Dry {
			continue
		}
		err := a.differences(what, "", is, t.Attributes, func(name, value string) error {
			_, err := a.To.query(ctx, "sns", "SetTopicAttributes", url.Values{"TopicArn": {arn}, "AttributeName": {name}, "AttributeValue": {value}})
			return err
		})
		if err != nil {
			return err
		}
		err = a.differences(what, tag, tags, t.Tags, func(name, value string) error {
			_, err := a.To.query(ctx, "sns", "TagResource", url.Values{"ResourceArn": {arn}, "Tags.member.1.Key": {name}, "Tags.member.1.Value": {value}})
			return err
		})
		if err != nil {
			return err
		}
		if t.DataProtectionPolicy == "" {
			continue
		}
		const name = "DataProtectionPolicy"
		err = a.differences(what, "", Attributes{name: string(protected)}, Attributes{name: string(t.DataProtectionPolicy)}, func(_, value string) error {
			_, err := a.To.query(ctx, "sns", "PutDataProtectionPolicy", url.Values{"ResourceArn": {arn}, name: {value}})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func sortedValues(m map[string]string) (all []string) {
	for _, name := range sortedKeys(m) {
		all = append(all, m[name])
	}
	return all
}

// plain has numbers as YAML writes them.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // JSON has no others
		if f == float64(int64(f)) {
			return int64(f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	}
	return v
}

// written is a value of an alarm as JSON, with numbers in one form.
func written(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var again any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if decoder.Decode(&again) != nil {
		return string(text)
	}
	text, _ = json.Marshal(plain(again)) // it was read just now
	return string(text)
}
