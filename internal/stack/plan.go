package stack

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/resource"
)

// The actions of changes, in AWS's words.
const (
	Add    = "Add"
	Modify = "Modify"
	Remove = "Remove"
)

// Change is the effect of an update on a resource, in AWS's words.
type Change struct {
	Action      string   `json:"action"`
	Logical     string   `json:"logical"`
	Physical    string   `json:"physical,omitempty"`
	Type        string   `json:"type"`
	Replacement string   `json:"replacement,omitempty"` // True, False or Conditional
	Scope       []string `json:"scope,omitempty"`
	Details     []Detail `json:"details,omitempty"`
}

// Detail is a property that would change, and why.
type Detail struct {
	Attribute  string `json:"attribute"`
	Name       string `json:"name,omitempty"`
	Recreation string `json:"recreation"` // Never, Conditionally or Always
	Evaluation string `json:"evaluation"` // Static or Dynamic
	Source     string `json:"source"`
	Causing    string `json:"causing,omitempty"`
}

// unknown represents a value that is known only once the change is made.
const unknown = "{{changeSet:KNOWN_AFTER_APPLY}}"

// planning has the values that are known before an update is made.
type planning struct {
	*Machine

	moved map[string]bool   // resources that are, or may be, replaced
	asked map[string]string // of those that were asked for: how
}

// Ref implements Late.
func (p *planning) Ref(id string) (any, error) {
	if p.moved[id] {
		p.asked[id] = "ResourceReference"
		return unknown, nil
	}
	return late{p.Machine}.Ref(id)
}

// GetAtt implements Late.
func (p *planning) GetAtt(id, attribute string) (any, error) {
	if p.moved[id] {
		p.asked[id+"."+attribute] = "ResourceAttribute"
		return unknown, nil
	}
	return late{p.Machine}.GetAtt(id, attribute)
}

// Import implements Late.
func (p *planning) Import(name string) (any, error) {
	if value, owner, ok := p.Exports.Export(name); ok && owner != p.Name {
		return value, nil
	}
	return unknown, nil
}

// Plan lists the changes of an update to a design of which no resource is Retyped, with tags; outputs
// says that outputs would change as well. It has no effect.
func (m *Machine) Plan(d *Design, tags []Tag) (changes []Change, outputs bool) {
	p := &planning{Machine: m, moved: map[string]bool{}}
	for _, id := range d.Order {
		part, r := d.Parts[id], m.Resources[id]
		if r == nil || !r.Exists() {
			p.moved[id] = true
			changes = append(changes, Change{Action: Add, Logical: id, Type: part.Type})
			continue
		}
		if c := p.compare(d, id, part, r, tags); c != nil {
			p.moved[id] = c.Replacement != "False"
			changes = append(changes, *c)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.Resources)) {
		if _, ok := d.Parts[id]; !ok && m.Resources[id].Exists() {
			changes = append(changes, Change{Action: Remove, Logical: id, Physical: m.Resources[id].Physical, Type: m.Resources[id].Type})
		}
	}
	p.asked = map[string]string{}
	would, err := d.Outputs(p)
	return changes, err != nil || !slices.Equal(would, m.Outputs) && len(would)+len(m.Outputs) > 0
}

// Retyped lists the resources that a design has by another type than the one they were made of: no
// update changes that.
func (m *Machine) Retyped(d *Design) (ids []string) {
	for _, id := range d.Order {
		if r := m.Resources[id]; r != nil && r.Exists() && r.Type != d.Parts[id].Type {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// compare is the change of an existing resource of the same type; nil: there is none.
func (p *planning) compare(d *Design, id string, part Part, r *Resource, tags []Tag) *Change {
	c := &Change{Action: Modify, Logical: id, Physical: r.Physical, Type: part.Type, Replacement: "False"}
	t := typed(part.Type)
	p.asked = map[string]string{}
	properties, err := d.Properties(id, p)
	if err == nil {
		if normal, bad := t.Normalise(properties); bad == nil {
			properties = normal
		}
		own := make([]resource.Tag, 0, len(tags))
		for _, tag := range tags {
			own = append(own, resource.Tag{Key: tag.Key, Value: tag.Value})
		}
		properties = t.Tagged(properties, own)
	} else {
		c.Replacement, c.Scope = "Conditional", []string{"Properties"}
		return c
	}
	_, names := t.Compare(r.Properties, properties)
	for _, name := range names {
		detail := Detail{Attribute: "Properties", Name: name, Recreation: "Never", Evaluation: "Static", Source: "DirectModification"}
		if name == t.Tags {
			detail.Attribute, detail.Name = "Tags", ""
		}
		after, _ := json.Marshal(properties[name]) //nolint:errchkjson // what cannot be written holds no unknown
		if strings.Contains(string(after), unknown) {
			detail.Evaluation = "Dynamic"
			for cause, how := range p.asked {
				if detail.Causing == "" || cause < detail.Causing {
					detail.Causing, detail.Source = cause, how
				}
			}
		}
		if t.Properties[name].Replaces {
			detail.Recreation = "Always"
			switch {
			case detail.Evaluation == "Static":
				c.Replacement = "True"
			case c.Replacement == "False":
				c.Replacement = "Conditional"
			}
		}
		c.add(detail)
	}
	for attribute, differs := range map[string]bool{
		"DeletionPolicy": part.DeletePolicy != r.DeletePolicy, "UpdateReplacePolicy": part.ReplacePolicy != r.ReplacePolicy,
		"Metadata": r.Metadata != nil && part.Metadata != *r.Metadata,
	} {
		if differs {
			c.add(Detail{Attribute: attribute, Recreation: "Never", Evaluation: "Static", Source: "DirectModification"})
		}
	}
	if len(c.Details) == 0 {
		return nil
	}
	return c
}

func (c *Change) add(d Detail) {
	c.Details = append(c.Details, d)
	if !slices.Contains(c.Scope, d.Attribute) {
		c.Scope = append(c.Scope, d.Attribute)
		slices.Sort(c.Scope)
	}
	slices.SortStableFunc(c.Details, func(a, b Detail) int { return strings.Compare(a.Attribute+a.Name, b.Attribute+b.Name) })
}
