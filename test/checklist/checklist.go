// Package checklist holds a server against AWS's service models: every pair of
// an action and an error that the model gives it must have been provoked, and
// every action must have succeeded in every protocol that the service speaks.
//
// A Recorder notes the answers that pass on the wire while tests run. Nothing
// is noted by hand, so that a test which no longer provokes what it did is
// missed. What the models demand stands in testdata, made by package generate;
// what no test can provoke stands beside it, in SERVICE.exempt.json, with the
// reason.
package checklist

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ./generate -models ${MODELS}

//go:embed testdata
var testdata embed.FS

// The protocols of an answer.
const (
	SDK   = "sdk"   // whatever the AWS SDK for Go speaks
	Query = "query" // a form, or parameters of a GET, written by hand
	JSON  = "json"  // AWS JSON written by hand
	CBOR  = "cbor"  // CBOR written by hand
)

// Model is what the service's model says: names, and nothing else.
type Model struct {
	Service string // "sns"
	Version string // of the API, as requests in Query name it
	Target  string // what X-Amz-Target begins with; empty: the service has no JSON
	// Actions are the names of the errors of each action.
	Actions map[string][]string
	// Routes are the methods and paths by which a REST service knows its actions.
	Routes map[string]string `json:",omitempty"`
	// Codes are the codes of errors in answers where the code is not the name.
	Codes map[string]string
}

// Exemption is a part of a model that no test provokes.
type Exemption struct {
	// Actions are those that it is about, all if empty.
	Actions []string
	// Errors are those that it is about; if empty, the actions as a whole.
	Errors []string
	// Protocols, if given, are those in which the actions need not succeed; the
	// exemption is then not about errors.
	Protocols []string
	Reason    string
}

// Load reads the model of a service.
func Load(service string) (Model, error) {
	var m Model
	err := read(service+".json", &m)
	return m, err
}

// Exemptions reads those of a service.
func Exemptions(service string) ([]Exemption, error) {
	var all []Exemption
	err := read(service+".exempt.json", &all)
	return all, err
}

func read(name string, v any) error {
	document, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(document, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Item is one thing that the model asks for: an action that answers an error,
// or one that succeeds in a protocol.
type Item struct {
	Service, Action string
	Error           string // empty: success
	Protocol        string // of a success; empty for an error, which any protocol may show
}

func (i Item) String() string {
	if i.Error != "" {
		return i.Service + "." + i.Action + " answers " + i.Error
	}
	return i.Service + "." + i.Action + " succeeds in " + i.Protocol
}

// items are what the model asks for, when actions must succeed in protocols.
func (m Model) items(protocols []string) []Item {
	var all []Item
	for action, errors := range m.Actions {
		for _, name := range errors {
			all = append(all, Item{Service: m.Service, Action: action, Error: name})
		}
		for _, protocol := range protocols {
			all = append(all, Item{Service: m.Service, Action: action, Protocol: protocol})
		}
	}
	slices.SortFunc(all, func(a, b Item) int { return strings.Compare(a.String(), b.String()) })
	return all
}

func (e Exemption) covers(i Item) bool {
	if len(e.Actions) > 0 && !slices.Contains(e.Actions, i.Action) {
		return false
	}
	switch {
	case len(e.Protocols) > 0:
		return i.Error == "" && slices.Contains(e.Protocols, i.Protocol)
	case len(e.Errors) > 0:
		return i.Error != "" && slices.Contains(e.Errors, i.Error)
	}
	return true
}

// Check compares what was seen with what the model asks for. It returns a line
// for each item that was neither seen nor is exempt, and for each exemption
// that is wrong: it covers what was seen, or nothing at all.
func Check(m Model, exemptions []Exemption, protocols []string, seen func(Item) bool) []string {
	var wrong []string
	useful := make([]bool, len(exemptions))
	for _, item := range m.items(protocols) {
		exempt := false
		for n, e := range exemptions {
			if !e.covers(item) {
				continue
			}
			exempt, useful[n] = true, true
			if seen(item) {
				wrong = append(wrong, fmt.Sprintf("%s is exempt and yet was seen: take it off the exemptions (%s)", item, e.Reason))
			}
		}
		if !exempt && !seen(item) {
			wrong = append(wrong, fmt.Sprintf("no test sees that %s", item))
		}
	}
	for n, e := range exemptions {
		if !useful[n] {
			wrong = append(wrong, fmt.Sprintf("an exemption of %s covers nothing: %v %v (%s)", m.Service, e.Actions, e.Errors, e.Reason))
		}
	}
	return wrong
}
