package stack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
	"godwit.dev/godwit/internal/stack/template"
)

// nothingShared has no exports.
type nothingShared struct{}

func (nothingShared) Export(string) (value, owner string, ok bool) { return "", "", false }
func (nothingShared) Exporter(string) string                       { return "" }
func (nothingShared) Importer(string) string                       { return "" }

// world is what the steps of a stack have made: type and properties by physical name.
type world struct {
	things map[string]string
	fails  map[string]bool // "create B": such a step fails
	took   []stack.Step
	one    string // the only subscription that there can be
}

func newWorld() *world { return &world{things: map[string]string{}, fails: map[string]bool{}} }

// take takes a step. To take it twice is to take it once.
func (w *world) take(s *stack.Step) stack.Outcome {
	w.took = append(w.took, *s)
	name := s.Target.Physical
	if s.Target.Type == "AWS::SNS::Subscription" && w.one != "" {
		name = w.one
	}
	failing := w.fails[string(s.Action)+" "+s.Logical]
	properties := map[string]any{} // which may not be there after a restart
	maps.Copy(properties, s.Target.Properties)
	if was, ok := w.things[name]; ok && s.Action == stack.Update { // what does not change by the step stays
		properties = map[string]any{}
		if err := json.Unmarshal([]byte(was), &properties); err != nil {
			panic(err)
		}
		for id := range s.Now {
			if s.Target.Properties[id] == nil {
				delete(properties, id)
			}
		}
		for id, value := range s.Target.Properties {
			if !resource.Same(value, s.Now[id]) {
				properties[id] = value
			}
		}
	}
	text, err := json.Marshal(properties)
	if err != nil {
		panic(err)
	}
	switch {
	case failing && s.Action == stack.Create:
		return stack.Outcome{Reason: "no"}
	case failing:
		return stack.Outcome{Physical: name, Reason: "no"}
	case s.Action == stack.Cleanup:
		return stack.Outcome{}
	case s.Action == stack.Delete:
		delete(w.things, name)
		return stack.Outcome{}
	case s.Action == stack.Update:
		if _, ok := w.things[name]; !ok {
			return stack.Outcome{Physical: name, Reason: "it is not there"}
		}
	}
	w.things[name] = string(text)
	return stack.Outcome{Physical: name, Attributes: map[string]any{"Arn": "arn:" + name, "QueueName": name, "QueueUrl": name, "TopicArn": name, "TopicName": name, "Id": name}}
}

// run is a stack with its world.
type run struct {
	*stack.Machine
	*world

	design *stack.Design
	events []stack.Event
	latest int64 // the time of the latest event
	now    int64
	steps  []stack.Step
}

func newRun() *run {
	r := &run{world: newWorld(), Machine: &stack.Machine{Resources: map[string]*stack.Resource{}, Exports: nothingShared{}, Sentence: refusal.Text}}
	r.ID, r.Name, r.Account, r.Region = "arn:aws:cloudformation:us-east-1:000000000000:stack/s/1", "s", "000000000000", "us-east-1"
	return r
}

func (r *run) bind(text string) (*stack.Design, error) {
	t, err := template.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	b, err := stack.Bind(t, &r.Stack, &stack.Input{}, nil, nil)
	if err != nil {
		return nil, err
	}
	return stack.Designed(b), nil
}

func (r *run) taken() {
	c := r.Take()
	for _, e := range c.Events {
		if e.At <= r.latest {
			panic("two events of a stack have the same time")
		}
		r.latest = e.At
	}
	r.events = append(r.events, c.Events...)
	r.steps = append(r.steps, c.Steps...)
}

// runAll takes all steps. Before each, and after it but before it is reported, crash may put a
// process in the place of this one that knows what was kept.
func (r *run) runAll(crash func(r *run) bool) {
	r.taken()
	for len(r.steps) > 0 {
		if crash != nil && crash(r) {
			r.restart()
			continue
		}
		s := r.steps[0]
		r.steps = r.steps[1:]
		o := r.take(&s)
		if crash != nil && crash(r) {
			r.restart()
			continue
		}
		r.now++
		r.Done(r.now, s.Logical, s.Token, o)
		r.taken()
	}
}

// restart forgets all but what is kept.
func (r *run) restart() {
	type record struct {
		Stack     stack.Stack
		Resources map[string]*stack.Resource
	}
	text, err := json.Marshal(record{r.Stack, r.Resources})
	if err != nil {
		panic(err)
	}
	var kept record
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&kept); err != nil {
		panic(err)
	}
	r.Machine = &stack.Machine{Stack: kept.Stack, Resources: kept.Resources, Exports: nothingShared{}, Sentence: refusal.Text, Design: r.design}
	if r.Resources == nil {
		r.Resources = map[string]*stack.Resource{}
	}
	r.steps = nil
	r.Resume(r.now)
	r.taken()
}

func (r *run) request(d *stack.Design, onFailure string) *stack.Request {
	r.design = d
	r.now++
	return &stack.Request{Design: d, OnFailure: onFailure}
}

// shown is what there is of a stack.
func (r *run) shown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(string(r.Status)+" "+r.Reason))
	for _, id := range slices.Sorted(maps.Keys(r.Resources)) {
		one := r.Resources[id]
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(id+" "+string(one.Status)+" "+one.Reason))
	}
	for _, name := range slices.Sorted(maps.Keys(r.things)) {
		fmt.Fprintf(&b, "  there is %s %s\n", name, r.things[name])
	}
	return b.String()
}

func (r *run) told() string {
	var b strings.Builder
	for _, e := range r.events {
		line := e.Logical + " " + string(e.Status)
		if e.Reason != "" {
			line += ": " + e.Reason
		}
		fmt.Fprintln(&b, strings.TrimSpace(line))
	}
	r.events = nil
	return b.String()
}

var errCommand = errors.New("no such command")

// command carries out one of a script.
func (r *run) command(d *datadriven.TestData, crash func(r *run) bool) error {
	if d.Cmd == "fail" || d.Cmd == "mend" {
		for line := range strings.Lines(d.Input) {
			r.fails[strings.TrimSpace(line)] = d.Cmd == "fail"
		}
		return nil
	}
	onFailure := stack.OnFailureRollback
	if d.HasArg("on-failure") {
		for _, a := range d.CmdArgs {
			onFailure = a.Vals[0]
		}
	}
	var design *stack.Design
	if d.Cmd == "create" || d.Cmd == "update" {
		var err error
		if design, err = r.bind(d.Input); err != nil {
			return err
		}
	}
	o := r.request(design, onFailure)
	switch d.Cmd {
	case "create":
		r.Create(r.now, o)
	case "update":
		r.Update(r.now, o)
	case "delete":
		r.Delete(r.now, o)
	case "rollback":
		r.Rollback(r.now, o)
	case "continue":
		r.ContinueRollback(r.now, o)
	default:
		return errCommand
	}
	r.runAll(crash)
	return nil
}

// Scripts of commands, with the events that they lead to and what is there afterwards.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		r := newRun()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := r.command(d, nil); err != nil {
				return refusal.Text(err) + "\n"
			}
			if d.Cmd == "fail" || d.Cmd == "mend" {
				return ""
			}
			return r.told() + "--\n" + r.shown()
		})
	})
}

// Wherever the process ends, the next goes on to the same state, and leaves nothing behind
// that a stack does not know of.
func TestCrashes(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var script []*datadriven.TestData
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			kept := *d
			script = append(script, &kept)
			return d.Expected
		})
		play := func(at int) (states []string, points int) {
			r := newRun()
			for _, d := range script {
				if err := r.command(d, func(*run) bool { points++; return points == at || at < 0 && points%-at == 0 }); err != nil {
					t.Fatal(err)
				}
				states = append(states, r.shown())
			}
			return states, points
		}
		want, points := play(0)
		if points == 0 {
			t.Fatal("no step was taken")
		}
		for at := 1; at <= points; at++ {
			if got, _ := play(at); !slices.Equal(got, want) {
				t.Errorf("%s: after a crash at %d of %d:\n%s", path, at, points, cmp.Diff(want, got))
			}
		}
		for _, often := range []int{-3, -5} { // and again and again: it comes to an end all the same
			if got, _ := play(often); !slices.Equal(got, want) {
				t.Errorf("%s: with a crash at each %dth point:\n%s", path, -often, cmp.Diff(want, got))
			}
		}
	})
}
