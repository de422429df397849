package template

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
)

// maxResolved bounds the result of one evaluation, in bytes: a template of 50 kB can make any
// amount by an Fn::Sub within an Fn::Sub.
const maxResolved = 2 << 20

// nothing is AWS::NoValue: the property counts as missing.
type nothing struct{}

// evaluator evaluates the functions of one part of a template.
type evaluator struct {
	b    *Bound
	late Late
	left int // bytes that it may still make
}

func (b *Bound) evaluator(late Late) *evaluator {
	return &evaluator{b: b, late: late, left: maxResolved}
}

func (e *evaluator) charge(n *Node, bytes int) error {
	if e.left -= bytes; e.left < 0 {
		return n.Refuse(ErrTooMuch.With(maxResolved))
	}
	return nil
}

// value resolves a node: string, [json.Number], bool, []any, map[string]any or nothing.
func (e *evaluator) value(n *Node) (any, error) {
	if err := e.charge(n, len(n.Text)+1); err != nil {
		return nil, err
	}
	switch n.Kind {
	case document.List:
		list := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			v, err := e.value(item)
			if err != nil {
				return nil, err
			}
			if v != (nothing{}) {
				list = append(list, v)
			}
		}
		return list, nil
	case document.Map:
		if name, arg := function(n, false); name != "" {
			v, err := e.call(name, n, arg)
			if err != nil {
				return nil, err
			}
			return v, e.charge(n, size(v))
		}
		m := make(map[string]any, len(n.Members))
		for _, member := range n.Members {
			v, err := e.value(member.Value)
			if err != nil {
				return nil, err
			}
			if v != (nothing{}) {
				m[member.Name] = v
			}
		}
		return m, nil
	case document.Null, document.String, document.Number, document.Bool:
	}
	return n.Plain(), nil
}

// size is the approximate size of a value, in bytes.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case json.Number:
		return len(v)
	case []any:
		n := len(v)
		for _, item := range v {
			n += size(item)
		}
		return n
	case map[string]any:
		n := len(v)
		for name, item := range v {
			n += len(name) + size(item)
		}
		return n
	}
	return 1
}

// asText is a scalar as a text.
func asText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// text resolves a node that must be a scalar; broken says what is wrong if it is none.
func (e *evaluator) text(n *Node, broken error) (string, error) {
	v, err := e.value(n)
	if err != nil {
		return "", err
	}
	s, ok := asText(v)
	if !ok {
		return "", n.Refuse(broken)
	}
	return s, nil
}

func (e *evaluator) call(name string, n, arg *Node) (any, error) {
	if err := e.b.Template.shape(name, n, arg); err != nil {
		return nil, err
	}
	switch name {
	case fnRef:
		return e.ref(n, arg.Text)
	case fnGetAtt:
		attribute, err := e.text(arg.Items[1], ErrGetAtt)
		if err != nil {
			return nil, err
		}
		return e.getAtt(n, arg.Items[0].Text, attribute)
	case fnSub:
		return e.sub(n, arg)
	case fnJoin:
		return e.join(n, arg)
	case fnSplit:
		return e.split(n, arg)
	case fnSelect:
		return e.sel(n, arg)
	case fnIf:
		held, err := e.b.condition(n, arg.Items[0].Text)
		if err != nil {
			return nil, err
		}
		if held {
			return e.value(arg.Items[1])
		}
		return e.value(arg.Items[2])
	case fnFindInMap:
		return e.findInMap(n, arg)
	case fnImport:
		export, err := e.text(arg, ErrImport)
		if err != nil || e.late == nil {
			return nil, err
		}
		return e.late.Import(export)
	case fnBase64:
		s, err := e.text(arg, ErrBase64)
		return base64.StdEncoding.EncodeToString([]byte(s)), err
	case fnGetAZs:
		region, err := e.text(arg, ErrGetAZs)
		if region == "" {
			region = e.b.inputs.Region
		}
		return []any{region + "a", region + "b", region + "c"}, err
	case fnCidr:
		return e.cidr(n, arg)
	case fnToJSON:
		return e.toJSON(n, arg)
	case fnLength:
		v, err := e.value(arg)
		if list, ok := v.([]any); ok {
			return json.Number(strconv.Itoa(len(list))), err
		} else if err != nil {
			return nil, err
		}
		return nil, n.Refuse(ErrLength)
	}
	return nil, n.Refuse(ErrFunction.With(name))
}

// ref is the value of a name: of a parameter, AWS's or the template's, or of a resource.
func (e *evaluator) ref(n *Node, name string) (any, error) {
	in := &e.b.inputs
	switch name {
	case noValueName:
		return nothing{}, nil
	case "AWS::AccountId":
		return in.AccountID, nil
	case "AWS::Region":
		return in.Region, nil
	case "AWS::Partition":
		return in.Partition, nil
	case "AWS::StackId":
		return in.StackID, nil
	case "AWS::StackName":
		return in.StackName, nil
	case "AWS::URLSuffix":
		return in.URLSuffix, nil
	case "AWS::NotificationARNs":
		return texts(in.NotificationARNs), nil
	}
	if v, ok := e.b.Parameters[name]; ok {
		return v.value(), nil
	}
	if err := e.exists(n, name); err != nil {
		return nil, err
	}
	return e.late.Ref(name)
}

// exists refuses a reference to a resource that does not exist, or too early.
func (e *evaluator) exists(n *Node, id string) error {
	if e.b.Resource(id) == nil {
		return unresolvedIn("Resources", []reference{{at: n, id: id}})
	}
	if e.late == nil {
		return n.Refuse(ErrNotParameter.With(id))
	}
	return nil
}

func (e *evaluator) getAtt(n *Node, id, attribute string) (any, error) {
	if err := e.exists(n, id); err != nil {
		return nil, err
	}
	return e.late.GetAtt(id, attribute)
}

func texts(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

func (e *evaluator) sub(n, arg *Node) (any, error) {
	template, variables := subText(arg)
	parts, ok := substitutions(template.Text)
	if !ok {
		return nil, n.Refuse(ErrSubVariable)
	}
	named := map[string]string{}
	if variables != nil {
		for _, m := range variables.Members {
			s, err := e.text(m.Value, ErrSubValue)
			if err != nil {
				return nil, err
			}
			named[m.Name] = s
		}
	}
	var b strings.Builder
	for _, p := range parts {
		s := p.text
		if p.variable {
			if value, ok := named[p.text]; ok {
				s = value
			} else {
				id, attribute, dotted := strings.Cut(p.text, ".")
				var v any
				var err error
				if dotted {
					v, err = e.getAtt(n, id, attribute)
				} else {
					v, err = e.ref(n, id)
				}
				if err != nil {
					return nil, err
				}
				if s, ok = asText(v); !ok {
					return nil, n.Refuse(ErrSubText.With(p.text))
				}
			}
		}
		if err := e.charge(n, len(s)); err != nil {
			return nil, err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (e *evaluator) join(n, arg *Node) (any, error) {
	delimiter, err := e.text(arg.Items[0], ErrJoin)
	if err != nil {
		return nil, err
	}
	v, err := e.value(arg.Items[1])
	if err != nil {
		return nil, err
	}
	items, ok := v.([]any)
	if !ok {
		return nil, n.Refuse(ErrJoin)
	}
	parts, bytes := make([]string, len(items)), 0
	for i, item := range items {
		if parts[i], ok = asText(item); !ok {
			return nil, n.Refuse(ErrJoin)
		}
		bytes += len(parts[i]) + len(delimiter)
	}
	if err := e.charge(n, bytes); err != nil { // before it is made
		return nil, err
	}
	return strings.Join(parts, delimiter), nil
}

func (e *evaluator) split(n, arg *Node) (any, error) {
	delimiter, err := e.text(arg.Items[0], ErrSplit)
	if err != nil {
		return nil, err
	}
	s, err := e.text(arg.Items[1], ErrSplit)
	if err != nil {
		return nil, err
	}
	if delimiter == "" {
		return nil, n.Refuse(ErrSplit)
	}
	return texts(strings.Split(s, delimiter)), nil
}

func (e *evaluator) sel(n, arg *Node) (any, error) {
	s, err := e.text(arg.Items[0], ErrIndex)
	if err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(s)
	if err != nil {
		return nil, n.Refuse(ErrIndex)
	}
	v, err := e.value(arg.Items[1])
	if err != nil {
		return nil, err
	}
	items, ok := v.([]any)
	if !ok {
		return nil, n.Refuse(ErrSelect)
	}
	if index < 0 || index >= len(items) {
		return nil, n.Refuse(ErrNoElement.With(s))
	}
	return items[index], nil
}

func (e *evaluator) findInMap(n, arg *Node) (any, error) {
	var keys [3]string
	for i := range keys {
		var err error
		if keys[i], err = e.text(arg.Items[i], ErrFindInMap); err != nil {
			return nil, err
		}
	}
	mapping := e.b.Template.Mappings[keys[0]]
	found := mapping.Get(keys[1]).Get(keys[2])
	switch {
	case found != nil:
		return e.value(found)
	case len(arg.Items) == 4:
		return e.value(arg.Items[3].Get("DefaultValue"))
	case mapping == nil:
		return nil, n.Refuse(ErrNoMapping.With(keys[0]))
	}
	return nil, n.Refuse(ErrNoMappingKey.With(keys[0], keys[1], keys[2]))
}

// dependsLate reports whether the name of an import depends on a resource, an import or
// availability zones.
func dependsLate(t *Template, n *Node) bool {
	return contains(n, fnImport, fnGetAZs) || t.early(func(reference) error { return ErrImport }).walk(n) != nil
}

// contains reports whether any of the functions is called within n.
func contains(n *Node, functions ...string) bool {
	if name, _ := function(n, false); name != "" && slices.Contains(functions, name) {
		return true
	}
	return slices.ContainsFunc(n.Items, func(item *Node) bool { return contains(item, functions...) }) ||
		slices.ContainsFunc(n.Members, func(m document.Member) bool { return contains(m.Value, functions...) })
}

func (e *evaluator) toJSON(n, arg *Node) (any, error) {
	v, err := e.value(arg)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case map[string]any, []any:
	default:
		return nil, n.Refuse(ErrToJSON)
	}
	return toJSON(v), nil
}

// toJSON encodes a value with its names sorted, and with <, > and & unescaped.
func toJSON(v any) string {
	var b strings.Builder
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	_ = w.Encode(v) // the values are JSON, and the writer is memory
	return strings.TrimSuffix(b.String(), "\n")
}

// condition is whether a condition of the template holds.
func (b *Bound) condition(n *Node, name string) (bool, error) {
	held, ok := b.Conditions[name]
	if !ok {
		return false, n.Refuse(ErrNoCondition.With(name, fnIf))
	}
	return held, nil
}

// holds evaluates a condition.
func (e *evaluator) holds(n *Node) (bool, error) {
	name, arg := function(n, true)
	if name == "" {
		return false, n.Refuse(ErrConditions)
	}
	if err := e.b.Template.shape(name, n, arg); err != nil {
		return false, err
	}
	switch name {
	case fnCondition:
		return e.b.decide(arg.Text)
	case fnEquals:
		return e.equal(arg.Items[0], arg.Items[1])
	case fnNot:
		held, err := e.holds(arg.Items[0])
		return !held, err
	case fnAnd, fnOr:
		all, some := true, false
		for _, item := range arg.Items {
			held, err := e.holds(item)
			if err != nil {
				return false, err
			}
			all, some = all && held, some || held
		}
		return name == fnAnd && all || name == fnOr && some, nil
	case fnContains, fnEachMemberEquals, fnEachMemberIn:
		return e.member(name, n, arg)
	}
	return false, n.Refuse(ErrConditions)
}

func (e *evaluator) equal(a, b *Node) (bool, error) {
	left, err := e.value(a)
	if err != nil {
		return false, err
	}
	right, err := e.value(b)
	return canonical(left) == canonical(right), err
}

// canonical is a common form of values that are equal as texts.
func canonical(v any) string {
	if s, ok := asText(v); ok {
		return strconv.Quote(s)
	}
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = canonical(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for name, item := range v {
			parts = append(parts, strconv.Quote(name)+":"+canonical(item))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return "nothing"
}
