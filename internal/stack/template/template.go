package template

import (
	"regexp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
	"godwit.dev/godwit/internal/stack/parameter"
)

// Node is a value of a template, with its line.
type Node = document.Node

// Refusal is an error in a template, or in its inputs.
type Refusal = document.Refusal

// Parameter is a parameter declared by a template.
type Parameter = parameter.Parameter

// Late has the values that are known only once a resource is made: a string, [json.Number],
// bool, []any or map[string]any.
type Late interface {
	Ref(id string) (any, error)
	GetAtt(id, attribute string) (any, error)
	// Import is the value of an export of another stack.
	Import(name string) (any, error)
}

// Bounds of templates, which AWS documents.
const (
	MaxResources  = 500
	MaxParameters = 200
	MaxOutputs    = 200
	MaxMappings   = 200

	maxDescription  = 1024 // bytes of the template's description
	maxResourceName = 255
)

// The supported transforms.
const (
	LanguageExtensions = "AWS::LanguageExtensions"
	Serverless         = "AWS::Serverless-2016-10-31"
)

// Template is a parsed template. It is immutable, and may be shared.
type Template struct {
	Description string
	Version     string // 2010-09-09, or empty
	Metadata    *Node  // nil if there is none
	Transforms  []string
	Parameters  map[string]*Parameter
	Mappings    map[string]*Node
	Conditions  map[string]*Node
	Rules       []*Rule
	Resources   []*Resource // as written, before Fn::ForEach and SAM are expanded
	Outputs     []*Declared // as written

	root       *Node
	parameters []string // names, as written
	byID       map[string]*Resource
	extended   bool // by AWS::LanguageExtensions
}

// Resource is a resource declared by a template.
type Resource struct {
	LogicalID           string
	Type                string
	DependsOn           []string
	Condition           string // a condition's name; empty for always
	DeletionPolicy      string // Delete, Retain, RetainExceptOnCreate or Snapshot; empty for the type's own
	UpdateReplacePolicy string // Delete, Retain or Snapshot; empty for Delete
	Properties          *Node  // a map; nil if there are none
	Metadata            *Node  // a map; nil if there is none

	node *Node
}

// Refuse makes an error of a resource.
func (r *Resource) Refuse(err error) *Refusal { return r.node.Refuse(err) }

// Declared is an output declared by a template.
type Declared struct {
	Key, Description, Condition string
	Value                       *Node
	Export                      *Node // its name; nil if it is not exported
	node                        *Node
}

// Parse parses a template and makes all checks that do not depend on parameters. The results of
// transforms are checked when it is bound. An error is a *[Refusal].
func Parse(body []byte) (*Template, error) {
	root, err := document.Read(body)
	if err != nil {
		return nil, err
	}
	return load(root, false)
}

// load splits a template into its sections, and checks it unless a transform comes first.
// extended is set if AWS::LanguageExtensions has been applied.
func load(root *Node, extended bool) (*Template, error) {
	t := &Template{
		root: root, Parameters: map[string]*Parameter{}, Mappings: map[string]*Node{},
		Conditions: map[string]*Node{}, byID: map[string]*Resource{}, extended: extended,
	}
	for _, read := range []func() error{
		t.readHead, t.readTransforms, t.readParameters, t.readMappings, t.readConditions, t.readRules, t.readResources, t.readOutputs,
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if len(t.Transforms) > 0 {
		return t, nil
	}
	return t, t.check()
}

var sections = []string{
	"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Rules", "Mappings", "Conditions", "Transform",
	"Hooks", "Resources", "Outputs",
}

func (t *Template) readHead() error {
	var unknown []string
	for _, m := range t.root.Members {
		if !slices.Contains(sections, m.Name) && (m.Name != "Globals" || t.root.Get("Transform") == nil) {
			unknown = append(unknown, m.Name)
		}
	}
	if unknown != nil {
		return t.root.Get(unknown[0]).Refuse(ErrSections.With(list(unknown)))
	}
	if version := t.root.Get("AWSTemplateFormatVersion"); version != nil {
		if version.Text != "2010-09-09" {
			return version.Refuse(ErrVersion.With(version.Text))
		}
		t.Version = version.Text
	}
	if description := t.root.Get("Description"); description != nil {
		if !description.Scalar() {
			return description.Refuse(document.ErrNoText.With("Description"))
		}
		if len(description.Text) > maxDescription {
			return description.Refuse(ErrDescription.With(maxDescription))
		}
		t.Description = description.Text
	}
	t.Metadata = t.root.Get("Metadata")
	return ofMap(t.Metadata)
}

func (t *Template) readTransforms() error {
	n := t.root.Get("Transform")
	if n == nil {
		return nil
	}
	named := []*Node{n}
	if n.Kind == document.List {
		named = n.Items
	}
	for _, n := range named {
		name := n
		if n.Kind == document.Map {
			name = n.Get("Name")
		}
		if name == nil || name.Kind != document.String {
			return n.Refuse(ErrTransforms)
		}
		if name.Text != LanguageExtensions && name.Text != Serverless {
			return n.Refuse(ErrNoTransform.With(name.Text))
		}
		t.Transforms = append(t.Transforms, name.Text)
	}
	t.extended = t.extended || slices.Contains(t.Transforms, LanguageExtensions)
	return nil
}

// ParameterList lists the parameters as written.
func (t *Template) ParameterList() []*Parameter {
	all := make([]*Parameter, len(t.parameters))
	for i, name := range t.parameters {
		all[i] = t.Parameters[name]
	}
	return all
}

func (t *Template) readParameters() error {
	n := t.root.Get("Parameters")
	if err := section(n, "Parameters", "parameters", MaxParameters); err != nil || n == nil {
		return err
	}
	states := 0
	for _, m := range n.Members {
		if !alphanumeric(m.Name) {
			return m.Value.Refuse(ErrParameterName.With(m.Name))
		}
		if m.Value.Kind != document.Map {
			return m.Value.Refuse(ErrParameter)
		}
		p, err := parameter.Read(m.Name, m.Value)
		if err != nil {
			return err
		}
		if states += p.States; states > parameter.MaxPatterns {
			return m.Value.Refuse(ErrRepetitions)
		}
		t.Parameters[m.Name] = p
		t.parameters = append(t.parameters, m.Name)
	}
	return nil
}

func (t *Template) readMappings() error {
	n := t.root.Get("Mappings")
	if err := section(n, "Mappings", "mappings", MaxMappings); err != nil || n == nil {
		return err
	}
	for _, mapping := range n.Members {
		if !alphanumeric(mapping.Name) {
			return mapping.Value.Refuse(ErrMappingName.With(mapping.Name))
		}
		if mapping.Value.Kind != document.Map {
			return mapping.Value.Refuse(ErrMapping.With(mapping.Name))
		}
		for _, key := range mapping.Value.Members {
			if key.Value.Kind != document.Map {
				return key.Value.Refuse(ErrMapping.With(key.Name))
			}
			for _, attribute := range key.Value.Members {
				if !alphanumeric(attribute.Name) {
					return attribute.Value.Refuse(ErrMappingAttributeName.With(attribute.Name))
				}
				if !scalarOrList(attribute.Value) {
					return attribute.Value.Refuse(ErrMappingAttribute)
				}
			}
		}
		t.Mappings[mapping.Name] = mapping.Value
	}
	return nil
}

func scalarOrList(n *Node) bool {
	return n.Scalar() || n.Kind == document.List && !slices.ContainsFunc(n.Items, func(item *Node) bool { return !item.Scalar() })
}

func (t *Template) readConditions() error {
	n := t.root.Get("Conditions")
	if err := section(n, "Conditions", "", 0); err != nil || n == nil {
		return err
	}
	for _, condition := range n.Members {
		if strings.HasPrefix(condition.Name, forEach) && t.extended {
			continue
		}
		if condition.Value.Kind != document.Map {
			return condition.Value.Refuse(ErrConditions)
		}
		t.Conditions[condition.Name] = condition.Value
	}
	return nil
}

var attributes = []string{
	"Type", "Properties", "DependsOn", "Condition", "DeletionPolicy", "UpdateReplacePolicy", "Metadata", "Description",
	"CreationPolicy", "UpdatePolicy",
}

func (t *Template) readResources() error {
	n := t.root.Get("Resources")
	if n == nil || n.Kind == document.Map && len(n.Members) == 0 {
		return n.Refuse(ErrNoResources)
	}
	if err := section(n, "Resources", "resources", MaxResources); err != nil {
		return err
	}
	for _, m := range n.Members {
		if strings.HasPrefix(m.Name, forEach) && t.extended {
			continue
		}
		r, err := t.readResource(m.Name, m.Value)
		if err != nil {
			return err
		}
		t.Resources = append(t.Resources, r)
		t.byID[r.LogicalID] = r
	}
	return nil
}

func (t *Template) readResource(id string, n *Node) (*Resource, error) {
	if !alphanumeric(id) {
		return nil, n.Refuse(ErrResourceName.With(id))
	}
	if len(id) > maxResourceName {
		return nil, n.Refuse(ErrResourceNameLength.With(id, maxResourceName))
	}
	if n.Kind != document.Map {
		return nil, n.Refuse(ErrResource.With(n.Path()))
	}
	r := &Resource{LogicalID: id, node: n, Properties: n.Get("Properties"), Metadata: n.Get("Metadata")}
	typ := n.Get("Type")
	if typ == nil {
		return nil, n.Refuse(ErrNoType.With(n.Path()))
	}
	if typ.Kind != document.String {
		return nil, typ.Refuse(ErrTypeText.With(typ.Path()))
	}
	r.Type = typ.Text
	serverless := slices.Contains(t.Transforms, Serverless)
	for _, m := range n.Members {
		if !slices.Contains(attributes, m.Name) && (!serverless || m.Name != "Connectors" && m.Name != "IgnoreGlobals") {
			return nil, m.Value.Refuse(ErrResourceProperty.With(m.Name))
		}
	}
	for _, name := range []string{"Properties", "Metadata", "CreationPolicy", "UpdatePolicy"} {
		if err := ofMap(n.Get(name)); err != nil {
			return nil, err
		}
	}
	var err error
	if r.DependsOn, err = dependsOn(n.Get("DependsOn")); err != nil {
		return nil, err
	}
	if r.Condition, err = document.Text(n.Get("Condition"), "Condition"); err != nil {
		return nil, err
	}
	if _, err = document.Text(n.Get("Description"), "Description"); err != nil {
		return nil, err
	}
	if r.DeletionPolicy, err = t.policy(n.Get("DeletionPolicy"), "DeletionPolicy", r); err != nil {
		return nil, err
	}
	r.UpdateReplacePolicy, err = t.policy(n.Get("UpdateReplacePolicy"), "UpdateReplacePolicy", r)
	return r, err
}

func dependsOn(n *Node) ([]string, error) {
	switch {
	case n == nil:
		return nil, nil
	case n.Kind == document.String:
		return []string{n.Text}, nil
	case n.Kind != document.List:
		return nil, n.Refuse(ErrDependsOn)
	}
	var ids []string
	seen := map[string]bool{}
	for _, item := range n.Items {
		if item.Kind != document.String {
			return nil, item.Refuse(ErrDependency)
		}
		if !seen[item.Text] {
			seen[item.Text] = true
			ids = append(ids, item.Text)
		}
	}
	return ids, nil
}

// policy is a deletion policy of a resource. With AWS::LanguageExtensions it may be a function,
// which Bind has resolved.
func (t *Template) policy(n *Node, name string, r *Resource) (string, error) {
	if n == nil || t.extended && n.Kind == document.Map {
		return "", nil
	}
	if n.Kind != document.String {
		return "", n.Refuse(document.ErrNoText.With(name))
	}
	allowed := []string{"Delete", "Retain", "Snapshot"}
	if name == "DeletionPolicy" {
		allowed = append(allowed, "RetainExceptOnCreate")
	}
	if !slices.Contains(allowed, n.Text) {
		return "", n.Refuse(ErrPolicy.With(name, n.Text, r.LogicalID))
	}
	return n.Text, nil
}

func (t *Template) readOutputs() error {
	n := t.root.Get("Outputs")
	if err := section(n, "Outputs", "outputs", MaxOutputs); err != nil || n == nil {
		return err
	}
	for _, m := range n.Members {
		if strings.HasPrefix(m.Name, forEach) && t.extended {
			continue
		}
		if !alphanumeric(m.Name) {
			return m.Value.Refuse(ErrOutputName.With(m.Name))
		}
		if m.Value.Kind != document.Map || m.Value.Get("Value") == nil {
			return m.Value.Refuse(ErrOutput)
		}
		o := &Declared{Key: m.Name, Value: m.Value.Get("Value"), node: m.Value}
		for _, field := range m.Value.Members {
			var err error
			switch field.Name {
			case "Value":
			case "Description":
				o.Description, err = document.Text(field.Value, "Description")
			case "Condition":
				o.Condition, err = document.Text(field.Value, "Condition")
			case "Export":
				if name, value := field.Value.Only(); name == "Name" && (value.Kind == document.String || value.Kind == document.Map) {
					o.Export = value
				} else {
					err = field.Value.Refuse(ErrExport.With(m.Name))
				}
			default:
				err = field.Value.Refuse(ErrOutputProperty.With(field.Name))
			}
			if err != nil {
				return err
			}
		}
		t.Outputs = append(t.Outputs, o)
	}
	return nil
}

// section checks that a section of the template is a map of bounded size.
func section(n *Node, name, what string, limit int) error {
	if n == nil {
		return nil
	}
	if n.Kind != document.Map {
		return n.Refuse(ErrSection.With(name, name))
	}
	if limit > 0 && len(n.Members) > limit {
		return n.Refuse(ErrTooMany.With(what, len(n.Members), limit))
	}
	return nil
}

func ofMap(n *Node) error {
	if n != nil && n.Kind != document.Map {
		return n.Refuse(ErrNoMap.With(n.Path()))
	}
	return nil
}

var alphanumericName = regexp.MustCompile(`^[A-Za-z0-9]+$`)

func alphanumeric(name string) bool { return alphanumericName.MatchString(name) }

// maxNamed bounds the names in an error: a template may get any number of them wrong.
const maxNamed = 100

// list formats names as AWS does.
func list(names []string) string {
	if len(names) > maxNamed {
		names = append(slices.Clone(names[:maxNamed]), "…")
	}
	return "[" + strings.Join(names, ", ") + "]"
}
