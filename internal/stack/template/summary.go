package template

import (
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
)

// Capabilities that a template may need.
const (
	CapabilityIAM        = "CAPABILITY_IAM"
	CapabilityNamedIAM   = "CAPABILITY_NAMED_IAM"
	CapabilityAutoExpand = "CAPABILITY_AUTO_EXPAND"
)

// Summary has the properties of a template that do not depend on the values of its parameters.
type Summary struct {
	ResourceTypes []string // sorted
	ByType        map[string][]string
	Capabilities  []string
	// CapabilitiesReason is ErrCapabilities or ErrTransformCapabilities; nil if it needs none.
	CapabilitiesReason error
}

// Summary summarises a template, and the capabilities that it needs. With transforms it is the
// source; of a bound template it is the result of the transforms.
func (t *Template) Summary(cat Catalogue) Summary {
	s := Summary{ByType: map[string][]string{}}
	var needing []string
	iam, own := false, false
	for _, r := range t.resources() {
		s.ByType[r.typ] = append(s.ByType[r.typ], r.id)
		if !slices.Contains(s.ResourceTypes, r.typ) {
			s.ResourceTypes = append(s.ResourceTypes, r.typ)
		}
		typ := r.typ
		if typ == "AWS::Serverless::Function" && r.properties.Get("Role") == nil {
			typ = "AWS::IAM::Role" // another type that it becomes
		}
		yes, name := cat.Grants(typ)
		if !yes {
			continue
		}
		iam = true
		own = own || name != "" && r.properties.Get(name) != nil
		if !slices.Contains(needing, typ) {
			needing = append(needing, typ)
		}
	}
	slices.Sort(s.ResourceTypes)
	switch {
	case own:
		s.Capabilities = append(s.Capabilities, CapabilityNamedIAM)
	case iam:
		s.Capabilities = append(s.Capabilities, CapabilityIAM)
	}
	if needing != nil {
		s.CapabilitiesReason = ErrCapabilities.With(list(needing))
	}
	if len(t.Transforms) > 0 {
		s.Capabilities = append(s.Capabilities, CapabilityAutoExpand)
		if s.CapabilitiesReason == nil {
			s.CapabilitiesReason = ErrTransformCapabilities.With(list(t.Transforms))
		}
	}
	return s
}

// Missing lists the needed capabilities that are not granted. CAPABILITY_NAMED_IAM includes
// CAPABILITY_IAM.
func (s Summary) Missing(granted []string) []string {
	return slices.DeleteFunc(slices.Clone(s.Capabilities), func(c string) bool {
		return slices.Contains(granted, c) || c == CapabilityIAM && slices.Contains(granted, CapabilityNamedIAM)
	})
}

type listed struct {
	id, typ    string
	properties *Node
}

// resources lists the resources of the section, those within loops once.
func (t *Template) resources() []listed {
	var all []listed
	var visit func(n *Node)
	visit = func(n *Node) {
		for _, m := range members(n) {
			if strings.HasPrefix(m.Name, forEach) {
				if m.Value.Kind == document.List && len(m.Value.Items) == 3 {
					visit(m.Value.Items[2])
				}
			} else if typ := m.Value.Get("Type"); typ != nil {
				all = append(all, listed{m.Name, typ.Text, m.Value.Get("Properties")})
			}
		}
	}
	visit(t.root.Get("Resources"))
	return all
}

// JSON is the template, as parsed or as the result of its transforms.
func (t *Template) JSON() []byte {
	text, _ := t.root.MarshalJSON() // it never fails
	return text
}
