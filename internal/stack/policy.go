package stack

import (
	"encoding/json"
	"slices"
	"strings"
)

// MaxPolicy bounds a stack policy, in bytes.
const MaxPolicy = 16384

// The update actions of stack policies, in AWS's words.
const (
	updateModify  = "Update:Modify"
	updateReplace = "Update:Replace"
	updateDelete  = "Update:Delete"
)

// Policy says which resources an update may change.
type Policy struct{ statements []policyStatement }

type policyStatement struct {
	Effect       string
	Principal    any
	Action       names
	NotAction    names
	Resource     names
	NotResource  names
	Condition    map[string]map[string]names
	Sid          string
	NotPrincipal any
}

// names is one name or several.
type names []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *names) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*n = names{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(n))
}

// ParsePolicy parses a stack policy. It fails with ErrPolicy.
func ParsePolicy(text string) (*Policy, error) {
	var read struct {
		Version, Id string
		Statement   []policyStatement
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&read); err != nil || len(text) > MaxPolicy || d.More() {
		return nil, ErrPolicy
	}
	for i := range read.Statement {
		if !read.Statement[i].valid() {
			return nil, ErrPolicy
		}
	}
	return &Policy{read.Statement}, nil
}

func (s *policyStatement) valid() bool {
	everybody := s.Principal == "*"
	if object, ok := s.Principal.(map[string]any); ok && len(object) == 1 {
		everybody = object["AWS"] == "*"
	}
	if !everybody || s.NotPrincipal != nil || s.Effect != "Allow" && s.Effect != "Deny" {
		return false
	}
	if (s.Action == nil) == (s.NotAction == nil) || (s.Resource == nil) == (s.NotResource == nil) {
		return false
	}
	for _, action := range slices.Concat(s.Action, s.NotAction) {
		if !slices.Contains([]string{"Update:*", updateModify, updateReplace, updateDelete, "*"}, action) {
			return false
		}
	}
	for _, resource := range slices.Concat(s.Resource, s.NotResource) {
		if resource != "*" && !strings.HasPrefix(resource, "LogicalResourceId/") {
			return false
		}
	}
	for operator, keys := range s.Condition {
		if operator != "StringEquals" && operator != "StringLike" {
			return false
		}
		for key := range keys {
			if key != "ResourceType" {
				return false
			}
		}
	}
	return true
}

func (s *policyStatement) about(action, id, typ string) bool {
	some := func(of names, text string) bool {
		return slices.ContainsFunc(of, func(pattern string) bool { return like(pattern, text) })
	}
	if s.Action != nil && !some(s.Action, action) || s.NotAction != nil && some(s.NotAction, action) {
		return false
	}
	resource := "LogicalResourceId/" + id
	if s.Resource != nil && !some(s.Resource, resource) || s.NotResource != nil && some(s.NotResource, resource) {
		return false
	}
	for operator, keys := range s.Condition {
		for _, types := range keys {
			if operator == "StringEquals" && !slices.Contains(types, typ) || operator == "StringLike" && !some(types, typ) {
				return false
			}
		}
	}
	return true
}

// like matches a text with a pattern in which * matches anything.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// denies refuses a change of a resource that a statement denies, or none allows. Errors: ErrDenied,
// ErrNotAllowed.
func (p *Policy) denies(action, id, typ string) error {
	allowed := false
	for i := range p.statements {
		s := &p.statements[i]
		if !s.about(action, id, typ) {
			continue
		}
		if s.Effect == "Deny" {
			return ErrDenied.With(i+1, action, id)
		}
		allowed = true
	}
	if allowed {
		return nil
	}
	return ErrNotAllowed.With(action, id)
}

// denied refuses a change that the stack's policy, or that of this update, denies.
func (m *Machine) denied(action string, r *Resource) error {
	if m.Status != UpdateInProgress || m.PolicyNow == "" {
		return nil
	}
	p, err := ParsePolicy(m.PolicyNow)
	if err != nil { // it was parsed before it was stored
		return err
	}
	return p.denies(action, r.Logical, r.Type)
}

// losses refuses the deletion of resources that are not in the design any more, if the policy
// denies it.
func (m *Machine) losses() error {
	var first error
	said := ""
	for id, r := range m.Resources {
		if _, ok := m.Design.Parts[id]; ok || !r.Exists() {
			continue
		}
		if err := m.denied(updateDelete, r); err != nil {
			if text := m.Sentence(err); first == nil || text < said {
				first, said = err, text
			}
		}
	}
	return first
}
