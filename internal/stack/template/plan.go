package template

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Update is what a change of a property does to its resource.
type Update uint8

// What changes of properties do.
const (
	InPlace       Update = iota
	Conditionally        // it replaces the resource in some cases
	Replaces
)

// Property is one of a type of resources.
type Property struct {
	Required bool
	Update   Update
}

// Type is a type of resources.
type Type struct {
	Properties map[string]Property
	Attributes []string // that Fn::GetAtt gives; one that ends in .* stands for all that begin so
}

// Catalogue knows the types of resources.
type Catalogue interface {
	Type(name string) (Type, bool)
}

// nested is the type of resources that are stacks themselves.
const nested = "AWS::CloudFormation::Stack"

// Action is what is to become of a resource.
type Action string

// What may become of resources.
const (
	Add    Action = "Add"
	Modify Action = "Modify"
	Remove Action = "Remove"
)

// Change is what is to become of one resource, in the words of AWS's change sets.
type Change struct {
	Action      Action
	LogicalID   string
	Type        string
	Replacement string   // of one that is modified: True, False, or Conditional
	Policy      string   // what becomes of the resource that goes: Delete, Retain, Snapshot, ReplaceAnd…; empty if none goes for sure
	Scope       []string // the attributes of Details
	Details     []Detail
}

// Detail is one reason of a change.
type Detail struct {
	Attribute          string // Properties, Tags, Metadata, CreationPolicy, UpdatePolicy, DeletionPolicy or UpdateReplacePolicy
	Name               string // of the property
	RequiresRecreation string // Never, Conditionally or Always
	Evaluation         string // Static: it changes; Dynamic: whether it does is known once something else has changed
	ChangeSource       string // DirectModification, ParameterReference, ResourceReference, ResourceAttribute or Automatic
	CausingEntity      string // what the source names; empty for DirectModification and Automatic
}

// Check refuses types of resources that there are none of, and attributes that they have not.
func (b *Bound) Check(cat Catalogue) error { return b.Template.Check(cat) }

// Check refuses types of resources that there are none of, and attributes that they have not.
// What transforms make is checked once the template is bound.
func (t *Template) Check(cat Catalogue) error {
	if len(t.Transforms) > 0 {
		return nil
	}
	var unknown []string
	var first *Node
	for _, r := range t.Resources {
		if _, ok := cat.Type(r.Type); !ok && !slices.Contains(unknown, r.Type) {
			if first == nil {
				first = r.node.Get("Type")
			}
			unknown = append(unknown, r.Type)
		}
	}
	if unknown != nil {
		return first.Refuse("Template format error: Unrecognized resource types: " + list(unknown))
	}
	c := &checker{t: t, found: func(r reference) error { return t.gives(cat, r) }}
	for _, r := range t.Resources {
		for _, n := range r.named() {
			if err := c.walk(n); err != nil {
				return err
			}
		}
	}
	for _, o := range t.Outputs {
		if err := c.walk(o.Value); err != nil {
			return err
		}
	}
	return nil
}

// gives refuses an attribute that a resource does not have.
func (t *Template) gives(cat Catalogue, r reference) error {
	if r.attribute == "" || t.byID[r.id] == nil {
		return nil
	}
	typ, _ := cat.Type(t.byID[r.id].Type)
	for _, a := range typ.Attributes {
		if prefix, open := strings.CutSuffix(a, "*"); a == r.attribute || open && strings.HasPrefix(r.attribute, prefix) {
			return nil
		}
	}
	if r.function == fnSub {
		return r.at.Refuse("Template error: instance of Fn::Sub references invalid resource attribute " + r.id + "." + r.attribute)
	}
	return r.at.Refuse("Template error: resource " + r.id + " does not support attribute type " + r.attribute + " in Fn::GetAtt")
}

// symbols stands for what is known only once resources are made: equal texts for equal things.
type symbols struct{}

const mark = "\x00" // which no text of a template has around it

func (symbols) Ref(id string) (any, error) { return mark + id + mark, nil }

func (symbols) GetAtt(id, attribute string) (any, error) {
	return mark + id + "." + attribute + mark, nil
}

func (symbols) Import(name string) (any, error) { return mark + fnImport + " " + name + mark, nil }

// symbol is what a function of such texts gives: such a text again. ok is false if it has none.
func (e *evaluator) symbol(name string, arg *Node) (value any, ok bool, err error) {
	if _, symbolic := e.late.(symbols); !symbolic || !e.b.leansLate(arg) {
		return nil, false, nil
	}
	v, err := e.value(arg)
	return mark + name + canonical(v) + mark, true, err
}

// leansLate reports whether a node names a resource or an import.
func (b *Bound) leansLate(n *Node) bool {
	late := contains(n, fnImport)
	c := b.checker(func(r reference) { late = late || b.Template.byID[r.id] != nil })
	return c.walk(n) != nil || late
}

// checker goes through what the conditions leave of a template.
func (b *Bound) checker(found func(reference)) *checker {
	return &checker{
		t: b.Template, taken: func(name string) bool { return b.Conditions[name] },
		found: func(r reference) error { found(r); return nil },
	}
}

// Plan says what an update of a stack changes, by logical id. old is nil for a stack that is new.
// An error is a *[Refusal].
func Plan(old, updated *Bound, cat Catalogue) ([]Change, error) {
	p := &planner{old: old, updated: updated, cat: cat, changes: map[string]*Change{}}
	if err := p.sameTypes(); err != nil {
		return nil, err
	}
	for _, id := range updated.order { // what others depend on first
		if err := p.resource(id); err != nil {
			return nil, err
		}
	}
	if old != nil {
		for _, r := range old.live {
			if updated.Resource(r.LogicalID) == nil {
				p.changes[r.LogicalID] = &Change{Action: Remove, LogicalID: r.LogicalID, Type: r.Type, Policy: r.leaving("Delete")}
			}
		}
	}
	var changes []Change
	for _, id := range slices.Sorted(maps.Keys(p.changes)) {
		changes = append(changes, *p.changes[id])
	}
	return changes, nil
}

// leaving is what becomes of a resource that a template does not have any more.
func (r *Resource) leaving(otherwise string) string {
	switch r.DeletionPolicy {
	case "":
		return otherwise
	case "RetainExceptOnCreate":
		return "Retain"
	}
	return r.DeletionPolicy
}

type planner struct {
	old, updated *Bound
	cat          Catalogue
	changes      map[string]*Change
	seen         map[Detail]bool // of the resource that is being planned
}

func (p *planner) sameTypes() error {
	var ids []string
	var first *Node
	for _, r := range p.updated.live {
		if was := p.before(r.LogicalID); was != nil && was.Type != r.Type {
			ids = append(ids, r.LogicalID)
			if first == nil {
				first = r.node
			}
		}
	}
	if ids != nil {
		return first.Refuse("Update of resource type is not permitted. The new template modifies resource type of the following resources: " + list(ids))
	}
	return nil
}

func (p *planner) before(id string) *Resource {
	if p.old == nil {
		return nil
	}
	return p.old.Resource(id)
}

// resource plans one of the updated template.
func (p *planner) resource(id string) error {
	is, was := p.updated.Resource(id), p.before(id)
	if was == nil {
		p.changes[id] = &Change{Action: Add, LogicalID: id, Type: is.Type}
		return nil
	}
	before, err := p.old.Properties(id, symbols{})
	if err != nil {
		return err
	}
	after, err := p.updated.Properties(id, symbols{})
	if err != nil {
		return err
	}
	c := &Change{Action: Modify, LogicalID: id, Type: is.Type, Replacement: "False"}
	p.seen = map[Detail]bool{}
	typ, _ := p.cat.Type(is.Type)
	names := maps.Clone(after)
	maps.Copy(names, before)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := Detail{Attribute: "Properties", Name: name, RequiresRecreation: "Never"}
		switch typ.Properties[name].Update {
		case Conditionally:
			d.RequiresRecreation = "Conditionally"
		case Replaces:
			d.RequiresRecreation = "Always"
		case InPlace:
		}
		if name == "Tags" {
			d.Attribute, d.Name = "Tags", ""
		}
		p.property(c, d, was.Properties.Get(name), is.Properties.Get(name), canonical(before[name]) != canonical(after[name]))
	}
	if is.Type == nested { // what its own template changes is not known here
		c.Details = append(c.Details, Detail{Attribute: "Properties", RequiresRecreation: "Never", Evaluation: "Dynamic", ChangeSource: "Automatic"})
	}
	for _, attribute := range []string{"Metadata", "CreationPolicy", "UpdatePolicy", "DeletionPolicy", "UpdateReplacePolicy"} {
		if !same(was.node.Get(attribute), is.node.Get(attribute)) {
			c.Details = append(c.Details, Detail{Attribute: attribute, RequiresRecreation: "Never", Evaluation: "Static", ChangeSource: "DirectModification"})
		}
	}
	if len(c.Details) == 0 {
		return nil
	}
	c.judge(is)
	p.changes[id] = c
	return nil
}

// property adds why a property changes, if it does or may.
func (p *planner) property(c *Change, d Detail, was, is *Node, differs bool) {
	add := func(source, cause, evaluation string) {
		d.ChangeSource, d.CausingEntity, d.Evaluation = source, cause, evaluation
		if !p.seen[d] {
			p.seen[d] = true
			c.Details = append(c.Details, d)
		}
	}
	direct := differs
	if is != nil {
		_ = p.updated.checker(func(r reference) { // it has been walked before
			cause := p.changes[r.id]
			switch {
			case r.attribute == "" && p.updated.Template.Parameters[r.id] != nil:
				before, given := p.old.Parameters[r.id]
				if differs && given && canonical(before.value()) != canonical(p.updated.Parameters[r.id].value()) {
					add("ParameterReference", r.id, "Static")
					if direct = !same(was, is); !direct {
						add("DirectModification", "", "Dynamic")
					}
				}
			case cause == nil || cause.Action != Modify:
			case r.attribute != "":
				add("ResourceAttribute", r.id+"."+r.attribute, "Dynamic")
			case cause.Replacement != "False":
				add("ResourceReference", r.id, "Dynamic")
			}
		}).walk(is)
	}
	if direct {
		add("DirectModification", "", "Static")
	}
}

// same reports whether two nodes say the same.
func same(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	left, _ := a.MarshalJSON() // which never fails
	right, _ := b.MarshalJSON()
	return bytes.Equal(left, right)
}

// judge says what the details come to.
func (c *Change) judge(r *Resource) {
	for _, d := range c.Details {
		if !slices.Contains(c.Scope, d.Attribute) {
			c.Scope = append(c.Scope, d.Attribute)
		}
		switch {
		case d.RequiresRecreation == "Always" && d.Evaluation == "Static":
			c.Replacement = "True"
		case d.RequiresRecreation != "Never" && c.Replacement == "False":
			c.Replacement = "Conditional"
		}
	}
	if c.Replacement == "True" {
		c.Policy = "ReplaceAndDelete"
		if r.UpdateReplacePolicy != "" {
			c.Policy = "ReplaceAnd" + r.UpdateReplacePolicy
		}
	}
}
