package template

import (
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
)

// reference is a reference in a template.
type reference struct {
	at        *Node
	id        string // of Ref, Fn::GetAtt or Fn::Sub
	attribute string // of Fn::GetAtt; empty for Ref
	function  string
}

// checker checks one part of a template: the form of every function, and the references.
type checker struct {
	t     *Template
	found func(reference) error
	// inCondition is set within conditions and rules, which have truth values.
	inCondition bool
	// taken is the branch of an Fn::If to be checked; nil: both.
	taken func(condition string) bool
	maybe int // nesting in Fn::If
	// look looks up the keys of an Fn::FindInMap that depend on parameters at most; nil: they have
	// no values yet.
	look func(n, arg *Node) error
}

// walk checks a node and its content.
func (c *checker) walk(n *Node) error {
	if n == nil {
		return nil
	}
	name, arg := function(n, c.inCondition)
	if name == "" {
		return c.each(n)
	}
	if err := c.t.shape(name, n, arg); err != nil {
		return err
	}
	switch name {
	case fnRef:
		if arg.Kind == document.Map {
			return c.walk(arg)
		}
		return c.found(reference{at: n, id: arg.Text, function: name})
	case fnGetAtt:
		if arg.Items[1].Kind == document.Map {
			if err := c.walk(arg.Items[1]); err != nil {
				return err
			}
		}
		return c.found(reference{at: n, id: arg.Items[0].Text, attribute: arg.Items[1].Text, function: name})
	case fnCondition:
		if c.t.Conditions[arg.Text] == nil {
			return n.Refuse(ErrNoCondition.With(arg.Text, fnCondition))
		}
		return nil
	case fnSub:
		return c.sub(n, arg)
	case fnIf:
		return c.branches(n, arg)
	case fnFindInMap:
		return c.mapping(n, arg)
	case fnImport:
		if dependsLate(c.t, arg) {
			return n.Refuse(ErrImport)
		}
	case fnEquals, fnAnd, fnOr, fnNot:
		if !c.inCondition {
			return n.Refuse(ErrOutside.With(name))
		}
	case fnContains, fnEachMemberEquals, fnEachMemberIn:
		if !c.inCondition {
			return n.Refuse(ErrFunction.With(name))
		}
	}
	return c.walk(arg)
}

func (c *checker) each(n *Node) error {
	for _, item := range n.Items {
		if err := c.walk(item); err != nil {
			return err
		}
	}
	for _, m := range n.Members {
		if err := c.walk(m.Value); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) sub(n, arg *Node) error {
	text, variables := subText(arg)
	if variables != nil {
		if err := c.each(variables); err != nil {
			return err
		}
	}
	parts, ok := substitutions(text.Text)
	if !ok {
		return n.Refuse(ErrSubVariable)
	}
	for _, p := range parts {
		if !p.variable || variables.Get(p.text) != nil {
			continue
		}
		id, attribute, _ := strings.Cut(p.text, ".")
		if err := c.found(reference{at: n, id: id, attribute: attribute, function: fnSub}); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) branches(n, arg *Node) error {
	condition := arg.Items[0].Text
	if c.t.Conditions[condition] == nil {
		return n.Refuse(ErrNoCondition.With(condition, fnIf))
	}
	c.maybe++
	defer func() { c.maybe-- }()
	if c.taken == nil {
		if err := c.walk(arg.Items[1]); err != nil {
			return err
		}
		return c.walk(arg.Items[2])
	}
	if c.taken(condition) {
		return c.walk(arg.Items[1])
	}
	return c.walk(arg.Items[2])
}

func (c *checker) mapping(n, arg *Node) error {
	if name := arg.Items[0]; name.Kind == document.String && len(arg.Items) == 3 && c.t.Mappings[name.Text] == nil {
		return n.Refuse(ErrNoMapping.With(name.Text))
	}
	if err := c.each(arg); err != nil || c.look == nil || dependsLate(c.t, arg) {
		return err
	}
	return c.look(n, arg)
}

// named are the parts of a resource that may have functions.
func (r *Resource) named() []*Node {
	return []*Node{r.Properties, r.Metadata, r.node.Get("CreationPolicy"), r.node.Get("UpdatePolicy")}
}

// check refuses what is invalid for all values of parameters.
func (t *Template) check() error {
	for _, r := range t.Resources {
		if t.Parameters[r.LogicalID] != nil {
			return r.node.Refuse(ErrNamesTwice.With(list([]string{r.LogicalID})))
		}
	}
	for _, step := range []func() error{t.checkConditions, t.checkRules, t.checkResources, t.checkOutputs} {
		if err := step(); err != nil {
			return err
		}
	}
	_, err := t.order(func(id string) []string { return t.certain(id) })
	return err
}

// checkConditions refuses conditions that depend on resources, or on each other in a circle.
func (t *Template) checkConditions() error {
	n := t.root.Get("Conditions")
	if n == nil {
		return nil
	}
	var resources []reference
	for _, m := range n.Members {
		if !boolean(m.Value) {
			return m.Value.Refuse(ErrConditions)
		}
		c := t.early(func(r reference) error {
			resources = append(resources, r)
			return nil
		})
		c.inCondition = true
		if err := c.walk(m.Value); err != nil {
			return err
		}
	}
	if resources != nil {
		return resources[0].at.Refuse(ErrTooEarly.With(list(distinct(resources)), "Conditions"))
	}
	return t.circular(n)
}

// early makes a checker for places where only parameters may be referenced.
func (t *Template) early(otherwise func(reference) error) *checker {
	return &checker{t: t, found: func(r reference) error {
		if r.attribute == "" && (t.Parameters[r.id] != nil || slices.Contains(pseudo, r.id)) {
			return nil
		}
		return otherwise(r)
	}}
}

// circular finds conditions that depend on each other.
func (t *Template) circular(n *Node) error {
	const under, done = 1, 2
	state := map[string]int{}
	var visit func(name string) error
	var lean func(from string, n *Node) error
	visit = func(name string) error {
		state[name] = under
		err := lean(name, t.Conditions[name])
		state[name] = done
		return err
	}
	lean = func(from string, n *Node) error {
		to := ""
		switch name, arg := function(n, true); name {
		case fnCondition:
			to = arg.Text
		case fnIf:
			to = arg.Items[0].Text
		}
		if to != "" && state[to] == under {
			return n.Refuse(ErrCircularConditions.With(from, to))
		}
		if to != "" && state[to] == 0 {
			if err := visit(to); err != nil {
				return err
			}
		}
		for _, item := range n.Items {
			if err := lean(from, item); err != nil {
				return err
			}
		}
		for _, m := range n.Members {
			if err := lean(from, m.Value); err != nil {
				return err
			}
		}
		return nil
	}
	for _, m := range n.Members {
		if state[m.Name] == 0 {
			if err := visit(m.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// known refuses an unknown name, or collects it in unresolved.
func (t *Template) known(r reference, unresolved *[]reference) error {
	if r.function != fnGetAtt && r.attribute == "" && (t.Parameters[r.id] != nil || slices.Contains(pseudo, r.id)) {
		return nil
	}
	if t.byID[r.id] != nil {
		return nil
	}
	switch {
	case r.function == fnGetAtt:
		return r.at.Refuse(ErrNoResource.With(r.id))
	case r.attribute != "":
		return r.at.Refuse(ErrSubAttribute.With(r.id, r.attribute))
	}
	*unresolved = append(*unresolved, r)
	return nil
}

// distinct are the distinct names of references, in order.
func distinct(refs []reference) []string {
	var ids []string
	seen := map[string]bool{}
	for _, r := range refs {
		if !seen[r.id] {
			seen[r.id] = true
			ids = append(ids, r.id)
		}
	}
	return ids
}

func unresolvedIn(block string, refs []reference) error {
	if len(refs) == 0 {
		return nil
	}
	ids := distinct(refs)
	return refs[0].at.Refuse(ErrUnresolved.With(list(ids), block))
}

func (t *Template) checkResources() error {
	var unresolved []reference
	c := &checker{t: t, found: func(r reference) error { return t.known(r, &unresolved) }}
	for _, r := range t.Resources {
		if r.Condition != "" && t.Conditions[r.Condition] == nil {
			return r.node.Refuse(ErrUnresolvedCondition.With(r.Condition, "Resources"))
		}
		for _, id := range r.DependsOn {
			if t.byID[id] == nil {
				unresolved = append(unresolved, reference{at: r.node.Get("DependsOn"), id: id})
			}
		}
		for _, n := range r.named() {
			if err := c.walk(n); err != nil {
				return err
			}
		}
	}
	return unresolvedIn("Resources", unresolved)
}

func (t *Template) checkOutputs() error {
	var unresolved []reference
	c := &checker{t: t, found: func(r reference) error { return t.known(r, &unresolved) }}
	for _, o := range t.Outputs {
		if o.Condition != "" && t.Conditions[o.Condition] == nil {
			return o.node.Refuse(ErrUnresolvedCondition.With(o.Condition, "Outputs"))
		}
		if o.Value.Kind == document.List {
			return o.Value.Refuse(ErrOutputText)
		}
		if err := c.walk(o.Value); err != nil {
			return err
		}
		if err := c.walk(o.Export); err != nil {
			return err
		}
	}
	return unresolvedIn("Outputs", unresolved)
}

// certain are the dependencies of a resource under all conditions.
func (t *Template) certain(id string) []string {
	r := t.byID[id]
	if r.Condition != "" {
		return nil
	}
	ids := slices.Clone(r.DependsOn)
	c := &checker{t: t}
	c.found = func(ref reference) error {
		if c.maybe == 0 {
			ids = append(ids, ref.id)
		}
		return nil
	}
	for _, n := range r.named() {
		if c.walk(n) != nil {
			return nil // it has been refused before
		}
	}
	return ids
}

// order sorts resources so that each comes after those that it depends on, else as written.
// Dependencies on anything but resources are ignored.
func (t *Template) order(dependencies func(id string) []string) ([]string, error) {
	waits, followers := map[string]int{}, map[string][]string{}
	for _, r := range t.Resources {
		ids := dependencies(r.LogicalID)
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if t.byID[id] != nil {
				waits[r.LogicalID]++
				followers[id] = append(followers[id], r.LogicalID)
			}
		}
	}
	var order []string
	done := map[string]bool{}
	for len(order) < len(t.Resources) {
		before := len(order)
		for _, r := range t.Resources {
			if done[r.LogicalID] || waits[r.LogicalID] > 0 {
				continue
			}
			done[r.LogicalID] = true
			order = append(order, r.LogicalID)
			for _, id := range followers[r.LogicalID] {
				waits[id]--
			}
		}
		if len(order) == before {
			return nil, t.cycle(done, followers)
		}
	}
	return order, nil
}

// cycle names resources that depend on each other in a circle: those that remain when resources
// without remaining dependents are removed, too.
func (t *Template) cycle(done map[string]bool, followers map[string][]string) error {
	for again := true; again; {
		again = false
		for _, r := range t.Resources {
			if !done[r.LogicalID] && !slices.ContainsFunc(followers[r.LogicalID], func(id string) bool { return !done[id] }) {
				done[r.LogicalID], again = true, true
			}
		}
	}
	var ids []string
	var first *Node
	for _, r := range t.Resources {
		if !done[r.LogicalID] {
			ids = append(ids, r.LogicalID)
			if first == nil {
				first = r.node
			}
		}
	}
	return first.Refuse(ErrCircular.With(list(ids)))
}
