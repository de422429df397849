package stack

import (
	"godwit.dev/godwit/internal/stack/template"
)

// Bind binds a template to make a design of a stack with a name, an ARN, an account and a
// region. previous are the values of the parameters that keep theirs. An error is a
// *template.Refusal.
func Bind(t *template.Template, s *Stack, input *Input, previous *Input, kept []string) (*template.Bound, error) {
	in := template.Inputs{
		Pseudo: template.Pseudo{
			AccountID: s.Account, Region: s.Region, StackID: s.ID, StackName: s.Name, NotificationARNs: input.Notifications,
		},
		Parameters: map[string]string{}, Previous: map[string]string{}, UsePrevious: kept,
	}
	stored := map[string]string{}
	for _, p := range input.Parameters {
		in.Parameters[p.Key] = p.Value
		if p.Resolved != "" {
			stored[p.Value] = p.Resolved
		}
	}
	if previous != nil {
		for _, p := range previous.Parameters {
			in.Previous[p.Key] = p.Value
		}
	}
	store := input.Store
	in.SSM = func(name string) (string, bool) {
		value, ok := stored[name]
		if !ok && store != nil {
			value, ok = store(name)
		}
		return value, ok
	}
	return t.Bind(in)
}

// Of is the design of a template that was bound to an input.
func (in *Input) Of(b *template.Bound) *Design {
	d := Designed(b)
	for id, part := range d.Parts {
		if in.RetainExceptOnCreate && part.DeletePolicy == retain {
			part.DeletePolicy = retainButCreate
			d.Parts[id] = part
		}
	}
	return d
}

// Designed is the design of a bound template.
func Designed(b *template.Bound) *Design {
	order := b.Order()
	d := &Design{
		Order: order, Parts: make(map[string]Part, len(order)),
		Properties: func(id string, late Late) (map[string]any, error) { return b.Properties(id, late) },
		Outputs: func(late Late) ([]Output, error) {
			found, err := b.Outputs(late)
			if err != nil {
				return nil, err
			}
			var outputs []Output
			for _, o := range found {
				outputs = append(outputs, Output{Key: o.Key, Value: o.Value, Description: o.Description, Export: o.ExportName})
			}
			return outputs, nil
		},
	}
	for _, r := range b.Resources() {
		part := Part{
			Type: r.Type, DependsOn: b.DependsOn(r.LogicalID), DeletePolicy: r.DeletionPolicy, ReplacePolicy: r.UpdateReplacePolicy,
		}
		if r.Metadata != nil {
			metadata, _ := r.Metadata.Plain().(map[string]any) // nothing else is accepted
			part.Metadata = asJSON(metadata)
		}
		d.Parts[r.LogicalID] = part
	}
	return d
}
