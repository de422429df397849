package template

import "slices"

// Catalogue knows the types of resources.
type Catalogue interface {
	// Has reports that a type exists.
	Has(typ string) bool
	// Gives reports that Fn::GetAtt has an attribute of a type.
	Gives(typ, attribute string) bool
	// Grants reports that a type changes permissions, and which property, if any, is a name
	// chosen by the template.
	Grants(typ string) (yes bool, named string)
}

// Check refuses unknown types of resources, and unknown attributes.
func (b *Bound) Check(cat Catalogue) error { return b.Template.Check(cat) }

// Check refuses unknown types of resources, and unknown attributes. Results of transforms are
// checked when the template is bound.
func (t *Template) Check(cat Catalogue) error {
	if len(t.Transforms) > 0 {
		return nil
	}
	var unknown []string
	var first *Node
	for _, r := range t.Resources {
		if !cat.Has(r.Type) && !slices.Contains(unknown, r.Type) {
			if first == nil {
				first = r.node.Get("Type")
			}
			unknown = append(unknown, r.Type)
		}
	}
	if unknown != nil {
		return first.Refuse(ErrTypes.With(list(unknown)))
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
	if cat.Gives(t.byID[r.id].Type, r.attribute) {
		return nil
	}
	if r.function == fnSub {
		return r.at.Refuse(ErrSubAttribute.With(r.id, r.attribute))
	}
	return r.at.Refuse(ErrAttribute.With(r.id, r.attribute))
}

// checker checks the parts of a template that remain under the conditions.
func (b *Bound) checker(found func(reference)) *checker {
	return &checker{
		t: b.Template, taken: func(name string) bool { return b.Conditions[name] },
		found: func(r reference) error { found(r); return nil },
		look: func(n, arg *Node) error {
			_, err := b.evaluator(nil).findInMap(n, arg)
			return err
		},
	}
}
