package template

import (
	"slices"

	"godwit.dev/godwit/internal/stack/document"
)

// Rule constrains combinations of parameters' values.
type Rule struct {
	Name       string
	condition  *Node // nil for always
	assertions []*Node
}

func (t *Template) readRules() error {
	n := t.root.Get("Rules")
	if err := section(n, "Rules", "", 0); err != nil || n == nil {
		return err
	}
	for _, m := range n.Members {
		r := &Rule{Name: m.Name, condition: m.Value.Get("RuleCondition")}
		assertions := m.Value.Get("Assertions")
		if assertions == nil || assertions.Kind != document.List || len(assertions.Items) == 0 {
			return m.Value.Refuse(ErrNoAssertions)
		}
		for _, a := range assertions.Items {
			if a.Get("Assert") == nil {
				return a.Refuse(ErrNoAssert)
			}
			r.assertions = append(r.assertions, a)
		}
		t.Rules = append(t.Rules, r)
	}
	return nil
}

func (t *Template) checkRules() error {
	for _, r := range t.Rules {
		nodes := []*Node{r.condition}
		for _, a := range r.assertions {
			nodes = append(nodes, a.Get("Assert"))
		}
		for _, n := range nodes {
			if n == nil {
				continue
			}
			if !boolean(n) {
				return n.Refuse(ErrRuleValue)
			}
			c := t.early(func(r reference) error {
				return r.at.Refuse(ErrTooEarly.With(list([]string{r.id}), "Rules"))
			})
			c.inCondition = true
			if err := c.walk(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRules refuses values of parameters that violate a rule.
func (b *Bound) checkRules() error {
	e := b.early
	for _, r := range b.Template.Rules {
		if r.condition != nil {
			if applies, err := e.holds(r.condition); err != nil || !applies {
				if err != nil {
					return err
				}
				continue
			}
		}
		for _, a := range r.assertions {
			held, err := e.holds(a.Get("Assert"))
			if err != nil {
				return err
			}
			if !held {
				if description := a.Get("AssertDescription"); description != nil {
					return a.Refuse(ErrRuleSays.With(r.Name, description.Text))
				}
				return a.Refuse(ErrRule.With(r.Name))
			}
		}
	}
	return nil
}

// member reports whether a list contains a value, or each value of it.
func (e *evaluator) member(name string, n, arg *Node) (bool, error) {
	v, err := e.value(arg.Items[0])
	if err != nil {
		return false, err
	}
	items, ok := v.([]any)
	if !ok {
		return false, n.Refuse(ErrFirstList.With(name))
	}
	other, err := e.value(arg.Items[1])
	if err != nil {
		return false, err
	}
	among := []string{canonical(other)}
	if all, ok := other.([]any); ok && name == fnEachMemberIn {
		among = nil
		for _, item := range all {
			among = append(among, canonical(item))
		}
	}
	if name == fnContains {
		return slices.ContainsFunc(items, func(item any) bool { return canonical(item) == among[0] }), nil
	}
	slices.Sort(among)
	return !slices.ContainsFunc(items, func(item any) bool {
		_, in := slices.BinarySearch(among, canonical(item))
		return !in
	}), nil
}
