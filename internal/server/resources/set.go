// Package resources has queues, topics, subscriptions and alarms as a file, with AWS's names:
// it reads them from a server, writes them to one, and says in what the two differ. It is a
// client of AWS's APIs, so that either server may be another one than Godwit. Sources, which
// Godwit alone has, go by the operator API.
package resources

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Set is what a file has. It is about what it names, and about no other resource.
type Set struct {
	// Account and Region are those of the ARNs in the file: another server's own take their
	// place. Empty: ARNs are taken as they are.
	Account string `yaml:"Account,omitempty"`
	Region  string `yaml:"Region,omitempty"`

	Queues        []Queue        `yaml:"Queues,omitempty"`
	Topics        []Topic        `yaml:"Topics,omitempty"`
	Subscriptions []Subscription `yaml:"Subscriptions,omitempty"`
	Alarms        []Alarm        `yaml:"Alarms,omitempty"`
	Sources       []Source       `yaml:"Sources,omitempty"`
}

// Queue is what CreateQueue makes.
type Queue struct {
	QueueName  string     `yaml:"QueueName"`
	Attributes Attributes `yaml:"Attributes,omitempty"`
	Tags       Tags       `yaml:"Tags,omitempty"`
}

// Topic is what CreateTopic makes.
type Topic struct {
	Name       string     `yaml:"Name"`
	Attributes Attributes `yaml:"Attributes,omitempty"`
	Tags       Tags       `yaml:"Tags,omitempty"`
	// DataProtectionPolicy is what PutDataProtectionPolicy takes.
	DataProtectionPolicy Document `yaml:"DataProtectionPolicy,omitempty"`
}

// Subscription is what Subscribe makes.
type Subscription struct {
	TopicArn   string     `yaml:"TopicArn"`
	Protocol   string     `yaml:"Protocol"`
	Endpoint   string     `yaml:"Endpoint"`
	Attributes Attributes `yaml:"Attributes,omitempty"`
}

// Alarm is what PutMetricAlarm takes, member by member, or PutCompositeAlarm if it has an
// AlarmRule.
type Alarm map[string]any

// UnmarshalYAML implements yaml.Unmarshaler: maps in it are maps, and no alarms.
func (a *Alarm) UnmarshalYAML(node *yaml.Node) error { return node.Decode((*map[string]any)(a)) }

func (a Alarm) name() string {
	name, _ := a["AlarmName"].(string)
	return name
}

func (a Alarm) rule() string {
	text, _ := a["AlarmRule"].(string)
	return text
}

// operation is the one that makes it.
func (a Alarm) operation() string {
	if a.rule() != "" {
		return "PutCompositeAlarm"
	}
	return "PutMetricAlarm"
}

// Read reads a file. What it does not know in it is refused, with the line.
func Read(r io.Reader) (*Set, error) {
	decoder := yaml.NewDecoder(r)
	decoder.KnownFields(true)
	s := new(Set)
	for {
		var one Set
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.add(&one)
		}
		if err != nil {
			return nil, inPlainWords(err)
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// add appends another document of the file.
func (s *Set) add(one *Set) error {
	switch {
	case one.empty():
		return nil
	case s.empty():
		s.Account, s.Region = one.Account, one.Region
	case s.Account != one.Account || s.Region != one.Region:
		return errors.New("its documents have to be of one Account and Region")
	}
	s.Queues, s.Topics, s.Subscriptions = append(s.Queues, one.Queues...), append(s.Topics, one.Topics...), append(s.Subscriptions, one.Subscriptions...)
	s.Alarms, s.Sources = append(s.Alarms, one.Alarms...), append(s.Sources, one.Sources...)
	return nil
}

func (s *Set) empty() bool {
	return s.Account == "" && s.Region == "" && len(s.Queues)+len(s.Topics)+len(s.Subscriptions)+len(s.Alarms)+len(s.Sources) == 0
}

func (s *Set) hasTopic(name string) bool {
	return slices.ContainsFunc(s.Topics, func(t Topic) bool { return t.Name == name })
}

// check refuses resources without what names them.
func (s *Set) check() error {
	for i := range s.Queues {
		if s.Queues[i].QueueName == "" {
			return fmt.Errorf("queue %d has no QueueName", i+1)
		}
	}
	for i := range s.Topics {
		if s.Topics[i].Name == "" {
			return fmt.Errorf("topic %d has no Name", i+1)
		}
	}
	for i, sub := range s.Subscriptions {
		if sub.TopicArn == "" || sub.Protocol == "" || sub.Endpoint == "" {
			return fmt.Errorf("subscription %d: want TopicArn, Protocol and Endpoint", i+1)
		}
	}
	for i := range s.Alarms {
		if s.Alarms[i].name() == "" {
			return fmt.Errorf("alarm %d has no AlarmName", i+1)
		}
	}
	for i, source := range s.Sources {
		if err := source.check(); err != nil {
			return fmt.Errorf("source %d: %w", i+1, err)
		}
	}
	return nil
}

// unknownField is how YAML names what a file has and nobody knows.
var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// otherKind is how YAML names a value that is of another kind than what is read.
var otherKind = regexp.MustCompile("cannot unmarshal !!(\\S+) (?:`.*` )?into (\\[\\])?\\S+")

// kinds are the kinds of values, by their tags in YAML.
var kinds = map[string]string{"map": "a mapping", "seq": "a list", "str": "a text", "int": "a number", "float": "a number", "bool": "true or false"}

// inPlainWords says what is wrong with a file without the names that its parts have in here.
func inPlainWords(err error) error {
	if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
		text := unknownField.ReplaceAllString(strings.Join(typed.Errors, "; "), `there is no "$1"`)
		return errors.New(otherKind.ReplaceAllStringFunc(text, func(said string) string {
			of := otherKind.FindStringSubmatch(said)
			have := cmp.Or(kinds[of[1]], of[1])
			if of[2] != "" {
				return "want a list, have " + have
			}
			return have + " does not belong here"
		}))
	}
	return err
}

// Write writes a file that Read reads.
func (s *Set) Write(w io.Writer) error {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(s), encoder.Close()); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// moved is the set with the ARNs of an account and a region in place of its own.
func (s *Set) moved(account, region string) *Set {
	if s.Account == "" || s.Region == "" || s.Account == account && s.Region == region {
		return s
	}
	replace := strings.NewReplacer(":"+s.Region+":"+s.Account+":", ":"+region+":"+account+":", ":"+s.Region+":"+s.Account+`"`, ":"+region+":"+account+`"`,
		"arn:aws:iam::"+s.Account+":", "arn:aws:iam::"+account+":", "arn:aws:sts::"+s.Account+":", "arn:aws:sts::"+account+":", "/"+s.Account+"/", "/"+account+"/")
	text := func(v string) string { return replace.Replace(v) }
	policy := func(v string) string { // which names accounts by their numbers, too
		return strings.ReplaceAll(text(v), `"`+s.Account+`"`, `"`+account+`"`)
	}
	attributes := func(a Attributes) Attributes {
		out := Attributes{}
		for name, value := range a {
			out[name] = text(value)
			if name == "Policy" {
				out[name] = policy(value)
			}
		}
		return out
	}
	to := &Set{Account: account, Region: region}
	for _, q := range s.Queues {
		to.Queues = append(to.Queues, Queue{q.QueueName, attributes(q.Attributes), q.Tags})
	}
	for _, t := range s.Topics {
		to.Topics = append(to.Topics, Topic{t.Name, attributes(t.Attributes), t.Tags, Document(policy(string(t.DataProtectionPolicy)))})
	}
	for _, sub := range s.Subscriptions {
		to.Subscriptions = append(to.Subscriptions, Subscription{text(sub.TopicArn), sub.Protocol, text(sub.Endpoint), attributes(sub.Attributes)})
	}
	for _, a := range s.Alarms {
		to.Alarms = append(to.Alarms, movedValue(map[string]any(a), text).(map[string]any))
	}
	for _, source := range s.Sources {
		to.Sources = append(to.Sources, source.moved(text))
	}
	return to
}

func movedValue(v any, text func(string) string) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = movedValue(v[i], text)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			out[name] = movedValue(value, text)
		}
		return out
	default:
		return v
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
