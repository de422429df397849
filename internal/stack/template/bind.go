package template

import (
	"regexp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
	"godwit.dev/godwit/internal/stack/parameter"
)

// Pseudo are the parameters that every template has.
type Pseudo struct {
	AccountID, Region, Partition, StackID, StackName, URLSuffix string
	NotificationARNs                                            []string
}

// Inputs are the inputs of binding a template.
type Inputs struct {
	Pseudo
	// Parameters are the given values, by name.
	Parameters map[string]string
	// Previous are the stack's current values, for the parameters in UsePrevious.
	Previous    map[string]string
	UsePrevious []string
	// SSM looks a parameter up in the parameter store, by its name or name:version. Nil is an empty
	// store.
	SSM func(name string) (string, bool)
}

// Value is the value of a parameter.
type Value struct {
	Text     string // as given, or the default
	Resolved string // from the parameter store, if the value is a name there
	NoEcho   bool   // hidden
	InStore  bool   // Resolved is the value, and Text its name
	list     bool
}

// value is the result of Ref.
func (v Value) value() any {
	s := v.Text
	if v.InStore {
		s = v.Resolved
	}
	if v.list {
		return texts(parameter.Split(s))
	}
	return s
}

// Bound is a template with the values of its parameters. It is immutable.
type Bound struct {
	// Template is the one that was bound, after its transforms.
	Template   *Template
	Parameters map[string]Value
	Conditions map[string]bool

	inputs Inputs
	early  *evaluator // of all conditions and rules, which share one bound
	live   []*Resource
	depend map[string][]string
	order  []string
}

// Bind checks the values of the parameters, expands transforms, and decides the conditions.
// An error is a *[Refusal].
func (t *Template) Bind(in Inputs) (*Bound, error) {
	if in.Partition == "" {
		in.Partition = "aws"
	}
	if in.URLSuffix == "" {
		in.URLSuffix = "amazonaws.com"
	}
	b := &Bound{Template: t, inputs: in, Parameters: map[string]Value{}, Conditions: map[string]bool{}, depend: map[string][]string{}}
	b.early = b.evaluator(nil)
	if err := b.bindParameters(); err != nil {
		return nil, err
	}
	if len(t.Transforms) > 0 {
		if err := b.transform(); err != nil {
			return nil, err
		}
	}
	if err := b.decideAll(); err != nil {
		return nil, err
	}
	if err := b.policies(); err != nil {
		return nil, err
	}
	if err := b.checkRules(); err != nil {
		return nil, err
	}
	for _, r := range b.Template.Resources {
		if r.Condition == "" || b.Conditions[r.Condition] {
			b.live = append(b.live, r)
		}
	}
	if err := b.connect(); err != nil {
		return nil, err
	}
	var err error
	b.order, err = b.Template.order(b.DependsOn)
	b.order = slices.DeleteFunc(b.order, func(id string) bool { return b.Resource(id) == nil })
	return b, err
}

func (b *Bound) bindParameters() error {
	var unknown, missing, notInStore []string
	for name := range b.inputs.Parameters {
		if b.Template.Parameters[name] == nil {
			unknown = append(unknown, name)
		}
	}
	for _, name := range b.inputs.UsePrevious {
		_, before := b.inputs.Previous[name]
		switch {
		case b.Template.Parameters[name] == nil:
			unknown = append(unknown, name)
		case !before:
			return &Refusal{Err: ErrNoPrevious.With(name)}
		}
	}
	if unknown != nil {
		slices.Sort(unknown)
		return &Refusal{Err: ErrNoParameters.With(list(slices.Compact(unknown)))}
	}
	for _, p := range b.Template.ParameterList() {
		v := Value{NoEcho: p.NoEcho, InStore: p.InStore(), list: p.IsList()}
		given, ok := b.inputs.Parameters[p.Name]
		switch {
		case ok:
			v.Text = given
		case slices.Contains(b.inputs.UsePrevious, p.Name):
			v.Text = b.inputs.Previous[p.Name]
		case p.Default != nil:
			v.Text = *p.Default
		default:
			missing = append(missing, p.Name)
			continue
		}
		if err := p.Check(v.Text); err != nil {
			return err
		}
		if v.InStore {
			if v.Resolved, ok = b.inputs.stored(v.Text); !ok {
				notInStore = append(notInStore, v.Text)
			}
		}
		b.Parameters[p.Name] = v
	}
	if missing != nil {
		return &Refusal{Err: ErrNoValues.With(list(missing))}
	}
	if notInStore != nil {
		return &Refusal{Err: ErrNotStored.With(list(notInStore))}
	}
	return nil
}

func (in *Inputs) stored(name string) (string, bool) {
	if in.SSM == nil {
		return "", false
	}
	return in.SSM(name)
}

// decideAll evaluates all conditions.
func (b *Bound) decideAll() error {
	for _, m := range members(b.Template.root.Get("Conditions")) {
		if _, err := b.decide(m.Name); err != nil {
			return err
		}
	}
	return nil
}

func members(n *Node) []document.Member {
	if n == nil {
		return nil
	}
	return n.Members
}

// decide evaluates a condition, and those that it depends on.
func (b *Bound) decide(name string) (bool, error) {
	if held, ok := b.Conditions[name]; ok {
		return held, nil
	}
	n := b.Template.Conditions[name]
	if n == nil {
		return false, &Refusal{Err: ErrNoCondition.With(name, fnCondition)}
	}
	held, err := b.early.holds(n)
	if err == nil {
		b.Conditions[name] = held
	}
	return held, err
}

// Resources lists the resources whose conditions hold, as written.
func (b *Bound) Resources() []*Resource { return b.live }

// Resource finds one of these, or nil.
func (b *Bound) Resource(id string) *Resource {
	r := b.Template.byID[id]
	if r == nil || r.Condition != "" && !b.Conditions[r.Condition] {
		return nil
	}
	return r
}

// connect finds the dependencies of resources, and refuses those on resources whose conditions
// do not hold.
func (b *Bound) connect() error {
	var missing []reference
	var ids []string
	c := b.checker(func(r reference) {
		switch {
		case b.Template.byID[r.id] == nil: // a parameter
		case b.Resource(r.id) == nil:
			missing = append(missing, r)
		default:
			ids = append(ids, r.id)
		}
	})
	for _, r := range b.live {
		ids = nil
		for _, id := range r.DependsOn {
			if b.Resource(id) != nil {
				ids = append(ids, id)
			}
		}
		for _, n := range r.named() {
			if err := c.walk(n); err != nil {
				return err
			}
		}
		slices.Sort(ids)
		b.depend[r.LogicalID] = slices.Compact(ids)
	}
	if err := unresolvedIn("Resources", missing); err != nil {
		return err
	}
	for _, o := range b.outputs() {
		for _, n := range []*Node{o.Value, o.Export} {
			if err := c.walk(n); err != nil {
				return err
			}
		}
	}
	return unresolvedIn("Outputs", missing)
}

// Order lists the resources so that each comes after those that it depends on.
func (b *Bound) Order() []string { return slices.Clone(b.order) }

// DependsOn lists the resources that one depends on by Ref, Fn::GetAtt, Fn::Sub or DependsOn.
func (b *Bound) DependsOn(id string) []string { return slices.Clone(b.depend[id]) }

// Properties resolves the properties of a resource: to string, [json.Number], bool, []any and
// map[string]any. An error is a *[Refusal], or late's.
func (b *Bound) Properties(id string, late Late) (map[string]any, error) {
	r := b.Resource(id)
	if r == nil || r.Properties == nil {
		return map[string]any{}, nil
	}
	e := b.evaluator(late)
	v, err := e.value(r.Properties)
	if err != nil {
		return nil, err
	}
	if v, err = e.dynamic(r.Properties, v); err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok { // an Fn::If that returns AWS::NoValue, or no map
		if v == (nothing{}) {
			return map[string]any{}, nil
		}
		return nil, r.Properties.Refuse(ErrNoMap.With(r.Properties.Path()))
	}
	return m, nil
}

var (
	dynamicReference = regexp.MustCompile(`\{\{resolve:([a-z-]+):([^{}]*)\}\}`)
	storedName       = regexp.MustCompile(`^[A-Za-z0-9_./-]+(:[0-9]+)?$`)
)

// dynamic replaces references to the parameter store by the values.
func (e *evaluator) dynamic(n *Node, v any) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		if !strings.Contains(v, "{{resolve:") {
			return v, nil
		}
		s := dynamicReference.ReplaceAllStringFunc(v, func(found string) string {
			m := dynamicReference.FindStringSubmatch(found)
			value, ok := "", false
			if m[1] == "ssm" && storedName.MatchString(m[2]) {
				value, ok = e.b.inputs.stored(m[2])
			}
			switch {
			case err != nil:
			case m[1] != "ssm":
				err = n.Refuse(ErrDynamic.With(m[1], found))
			case !ok:
				err = n.Refuse(ErrNotStored.With(list([]string{m[2]})))
			default:
				err = e.charge(n, len(value))
			}
			return value
		})
		return s, err
	case []any:
		for i := range v {
			if v[i], err = e.dynamic(n, v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = e.dynamic(n, v[name]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// Output is an output of a stack.
type Output struct {
	Key, Value, Description string
	ExportName              string // empty if it is not exported
}

func (b *Bound) outputs() []*Declared {
	var outputs []*Declared
	for _, o := range b.Template.Outputs {
		if o.Condition == "" || b.Conditions[o.Condition] {
			outputs = append(outputs, o)
		}
	}
	return outputs
}

var exportName = regexp.MustCompile(`^[A-Za-z0-9:-]+$`)

// Outputs resolves the outputs whose conditions hold, as written.
func (b *Bound) Outputs(late Late) ([]Output, error) {
	var outputs []Output
	e := b.evaluator(late)
	for _, declared := range b.outputs() {
		o := Output{Key: declared.Key, Description: declared.Description}
		var err error
		if o.Value, err = e.text(declared.Value, ErrOutputText); err != nil {
			return nil, err
		}
		if declared.Export != nil {
			if o.ExportName, err = e.text(declared.Export, ErrExport.With(o.Key)); err != nil {
				return nil, err
			}
			if !exportName.MatchString(o.ExportName) {
				return nil, declared.Export.Refuse(ErrExport.With(o.Key))
			}
		}
		outputs = append(outputs, o)
	}
	return outputs, nil
}
