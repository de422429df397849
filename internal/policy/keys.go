package policy

// ContextKeys are the condition keys in the policy's conditions and variables; each once, in
// order of occurrence.
func (p *Policy) ContextKeys() []string {
	var keys []string
	seen := map[string]bool{} // in lower case
	add := func(written, key string) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, written)
		}
	}
	variables := func(p *pattern) {
		for _, t := range p.tokens {
			if t.kind == variable {
				add(t.text, t.text)
			}
		}
	}
	ofOperand := func(o operand) {
		switch o := o.(type) {
		case *textOperand:
			variables(&o.pattern)
		case *arnOperand:
			for i := range o.arn {
				variables(&o.arn[i])
			}
		}
	}
	for _, s := range p.statements {
		for _, r := range s.resources {
			if len(r.forms) > 0 {
				variables(&r.forms[0])
			}
		}
		for _, c := range s.conditions {
			add(c.written, c.key)
			for _, o := range c.operands {
				ofOperand(o)
			}
		}
	}
	return keys
}
