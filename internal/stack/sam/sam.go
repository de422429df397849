package sam

import (
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
)

type node = document.Node

const (
	prefix       = "AWS::Serverless::"
	functionType = prefix + "Function"
)

// Expand expands the resources of a template. An error is a *[document.Refusal].
func Expand(root *node) (*node, error) {
	globals, err := functionGlobals(root.Get("Globals"))
	if err != nil {
		return nil, err
	}
	x := &expansion{globals: globals, renamed: map[string]string{}, taken: map[string]bool{}}
	resources := root.Get("Resources")
	for _, m := range members(resources) {
		x.taken[m.Name] = true
	}
	for _, m := range members(resources) {
		typ := m.Value.Get("Type")
		switch {
		case typ == nil || !strings.HasPrefix(typ.Text, prefix):
			x.made = append(x.made, document.Member{Name: m.Name, Value: m.Value.Clone()})
		case typ.Text != functionType:
			return nil, invalid(m.Value, m.Name, ErrType.With(typ.Text))
		default:
			if err := x.function(m.Name, m.Value); err != nil {
				return nil, err
			}
		}
	}
	var all []document.Member
	for _, m := range root.Members {
		switch m.Name {
		case "Globals":
		case "Resources":
			all = append(all, document.Member{Name: m.Name, Value: document.NewMap(m.Value.Line, x.made...)})
		default:
			all = append(all, document.Member{Name: m.Name, Value: m.Value.Clone()})
		}
	}
	return x.rename(document.NewMap(root.Line, all...)), nil
}

// expansion collects the expanded resources.
type expansion struct {
	globals *node // of functions; nil if there are none
	nodes   int   // in functions: globals count for each
	made    []document.Member
	taken   map[string]bool
	renamed map[string]string // Function.Version, Function.Alias → logical id
}

// add adds a made resource, if its name is free.
func (x *expansion) add(at *node, function, id string, resource *node) error {
	if x.taken[id] {
		return invalid(at, function, ErrTaken.With(id))
	}
	x.taken[id] = true
	x.made = append(x.made, document.Member{Name: id, Value: resource})
	return nil
}

// rename replaces references to Function.Version and Function.Alias by their logical ids.
func (x *expansion) rename(n *node) *node {
	if len(x.renamed) == 0 {
		return n
	}
	if name, arg := n.Only(); name == "Ref" && x.renamed[arg.Text] != "" {
		return document.NewMap(n.Line, document.Member{Name: name, Value: document.NewString(x.renamed[arg.Text], n.Line)})
	}
	switch n.Kind {
	case document.List:
		items := make([]*node, len(n.Items))
		for i, item := range n.Items {
			items[i] = x.rename(item)
		}
		return document.NewList(n.Line, items...)
	case document.Map:
		all := make([]document.Member, len(n.Members))
		for i, m := range n.Members {
			all[i] = document.Member{Name: m.Name, Value: x.rename(m.Value)}
		}
		return document.NewMap(n.Line, all...)
	case document.Null, document.String, document.Number, document.Bool:
	}
	return n
}

// invalid refuses a resource, by one of the rules for them.
func invalid(n *node, id string, err error) error { return n.Refuse(ErrResource.With(id, err)) }

// functionGlobals are the common properties of all functions of the template.
func functionGlobals(n *node) (*node, error) {
	if n == nil {
		return nil, nil
	}
	var found *node
	for _, m := range n.Members {
		switch m.Name {
		case "Function":
			found = m.Value
		case "Api", "HttpApi", "SimpleTable", "StateMachine", "LayerVersion", "CapacityProvider", "WebSocketApi": // of types that are not supported
		default:
			return nil, m.Value.Refuse(ErrGlobalsSection.With(m.Name))
		}
	}
	if n.Kind != document.Map || found != nil && found.Kind != document.Map {
		return nil, n.Refuse(ErrGlobals)
	}
	for _, m := range members(found) {
		if !slices.Contains(common, m.Name) {
			return nil, m.Value.Refuse(ErrGlobal.With(m.Name))
		}
	}
	return found, nil
}

// common are the properties that Globals may have for functions.
var common = []string{
	"Architectures", "AutoPublishAlias", "AutoPublishCodeSha256", "CodeUri", "DeadLetterQueue", "Description", "Environment",
	"EphemeralStorage", "EventInvokeConfig", "FileSystemConfigs", "FunctionUrlConfig", "Handler", "KmsKeyArn", "Layers",
	"LoggingConfig", "MemorySize", "PermissionsBoundary", "RecursiveLoop", "ReservedConcurrentExecutions", "Role", "RolePath",
	"Runtime", "RuntimeManagementConfig", "SnapStart", "Tags", "Timeout", "Tracing", "VpcConfig", "PropagateTags",
	"ProvisionedConcurrencyConfig", "AutoPublishAliasAllProperties",
}

// merged merges a function's properties with the common ones: maps are merged, lists joined,
// and other values of the function override.
func merged(global, own *node) *node {
	switch {
	case global == nil:
		return own.Clone()
	case own == nil:
		return global.Clone()
	case global.Kind == document.List && own.Kind == document.List:
		return document.NewList(own.Line, append(global.Clone().Items, own.Clone().Items...)...)
	case global.Kind != document.Map || own.Kind != document.Map || call(global) || call(own):
		return own.Clone()
	}
	var all []document.Member
	for _, m := range global.Members {
		all = append(all, document.Member{Name: m.Name, Value: merged(m.Value, own.Get(m.Name))})
	}
	for _, m := range own.Members {
		if global.Get(m.Name) == nil {
			all = append(all, document.Member{Name: m.Name, Value: m.Value.Clone()})
		}
	}
	return document.NewMap(own.Line, all...)
}

// call reports whether a map is a function of the template's language.
func call(n *node) bool {
	name, _ := n.Only()
	return name == "Ref" || strings.HasPrefix(name, "Fn::")
}

func members(n *node) []document.Member {
	if n == nil {
		return nil
	}
	return n.Members
}

// maker makes nodes with the position of their source.
type maker struct{ line int }

func (m maker) text(s string) *node { return document.NewString(s, m.line) }

func (m maker) list(items ...*node) *node { return document.NewList(m.line, items...) }

func (m maker) texts(list ...string) *node {
	items := make([]*node, len(list))
	for i, s := range list {
		items[i] = m.text(s)
	}
	return m.list(items...)
}

// object makes a map of names and values, without those that are nil.
func (m maker) object(pairs ...any) *node {
	var all []document.Member
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case string:
			all = append(all, document.Member{Name: name, Value: m.text(v)})
		case *node:
			if v != nil {
				all = append(all, document.Member{Name: name, Value: v.Clone()})
			}
		}
	}
	return document.NewMap(m.line, all...)
}

func (m maker) ref(id string) *node { return m.object("Ref", id) }

func (m maker) getAtt(id, attribute string) *node {
	return m.object("Fn::GetAtt", m.texts(id, attribute))
}

// resource makes a resource with the condition of its source.
func (m maker) resource(from *node, typ string, properties *node) *node {
	return m.object("Type", typ, "Condition", from.Get("Condition"), "Properties", properties)
}
