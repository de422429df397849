package filter

import (
	"slices"
	"strings"
)

// Compile compiles a FilterPolicy, in time linear in its length. Errors: those of this package,
// all InvalidParameter. ErrNested comes last.
//
// The empty object is a policy that matches every message.
func Compile(policy string, scope Scope) (*Policy, error) { return Prepare(policy).Policy(scope) }

// CompilePattern compiles an event pattern for bodies: a policy without SNS's bounds on its keys and
// combinations.
func CompilePattern(pattern string) (*Policy, error) {
	return prepare(pattern, false).Policy(MessageBody)
}

// Draft is a policy, or its error, that was compiled before its scope was known.
type Draft struct {
	policy Policy
	err    error
	work   int // see document
}

// Prepare is Compile for a scope that is not known yet, so that the expensive part is done
// before the lock is taken under which the scope is known.
func Prepare(policy string) *Draft { return prepare(policy, true) }

// prepare is Prepare; bounded applies MaxKeys and maxCombinations.
func prepare(policy string, bounded bool) *Draft {
	d := &Draft{policy: Policy{source: strings.Clone(policy)}}
	d.err = d.compile(bounded)
	return d
}

// Of reports whether d was made of this policy. It is false for a nil Draft.
func (d *Draft) Of(policy string) bool { return d != nil && d.policy.source == policy }

// Policy is the policy in a scope, or its error: see Compile.
func (d *Draft) Policy(scope Scope) (*Policy, error) {
	if d.err != nil {
		return nil, d.err
	}
	return d.policy.In(scope)
}

// In is the same policy in another scope. It does not compile anything.
func (p *Policy) In(scope Scope) (*Policy, error) {
	if scope == MessageAttributes && p.nested {
		return nil, ErrNested
	}
	in := *p
	in.scope = scope
	return &in, nil
}

func (d *Draft) compile(bounded bool) error {
	p := &d.policy
	if len(p.source) > MaxSize {
		return ErrTooLong.With(len(p.source), MaxSize)
	}
	doc, ok := takeApart(p.source)
	if !ok || doc.kind(0) != '{' {
		return ErrDocument.With(JSONFault(p.source))
	}
	defer func() { d.work = doc.work }()
	top := doc.members(0)
	if bounded && len(top) > MaxKeys {
		return ErrTooManyKeys.With(MaxKeys)
	}
	c := compiler{document: doc, bounded: bounded}
	root, combinations, err := c.object(0, top, 1)
	if err != nil {
		return err
	}
	if bounded && combinations > maxCombinations {
		return ErrTooComplex
	}
	p.written, p.bodies, p.nested = root, inBodies(&root), c.nests
	return nil
}

// compiler makes objects and counts their combinations: the product, over the keys with rules,
// of the number of rules times the depth of the key (1 at the top), and over the $or lists, of
// the sum of the counts of their objects at the depth of the list. A count above
// maxCombinations means that or more.
type compiler struct {
	*document
	bounded bool // it is refused beyond maxCombinations
	nests   bool // a key has an object
}

func (c *compiler) object(at at, all []member, depth int) (o object, combinations int, err error) {
	if depth > maxCombinations { // any rule at this depth would count for more
		return object{}, 0, ErrTooComplex
	}
	if len(all) == 0 && depth > 1 {
		return object{}, 0, c.refuse(c.behind(at), ErrEmptyObject)
	}
	combinations = 1
	for _, m := range all {
		f, n := field{key: m.name}, 0
		switch c.kind(m.value) {
		case '{':
			f.nested, n, err = c.nested(m.value, depth+1)
		case '[':
			list := c.elements(m.value)
			if branches, ok := c.branches(m.name, list); ok {
				var branch []object
				if branch, n, err = c.or(list, branches, depth); err == nil {
					o.ors = append(o.ors, branch)
					combinations = min(combinations*n, maxCombinations+1)
					continue
				}
				break
			}
			n = len(list) * depth
			if f.rules, err = c.rules(m.value, list); len(list) > fewRules && (!c.bounded || n <= maxCombinations) {
				f.choice = choose(f.rules)
			}
		default:
			err = c.refuse(c.reached(m.value), ErrScalar.With(m.name))
		}
		if err != nil {
			return object{}, 0, err
		}
		combinations = min(combinations*n, maxCombinations+1)
		o.fields = append(o.fields, f)
	}
	return o, combinations, nil
}

func (c *compiler) nested(value at, depth int) (*object, int, error) {
	c.nests = true
	o, combinations, err := c.object(value, c.members(value), depth)
	return &o, combinations, err
}

// branches recognises an $or: a list of at least two objects, none of which has the name of an
// operator as a key. Any other $or is an ordinary key.
func (c *compiler) branches(key string, list []at) (branches [][]member, ok bool) {
	if key != "$or" || len(list) < 2 {
		return nil, false
	}
	for _, e := range list {
		if c.kind(e) != '{' {
			return nil, false
		}
		branch := c.members(e)
		if slices.ContainsFunc(branch, func(m member) bool { return reserved(m.name) }) {
			return nil, false
		}
		branches = append(branches, branch)
	}
	return branches, true
}

func (c *compiler) or(list []at, branches [][]member, depth int) (all []object, combinations int, err error) {
	for i, branch := range branches {
		if len(branch) == 0 {
			return nil, 0, c.refuse(c.behind(list[i]), ErrEmptyObject)
		}
		o, n, err := c.object(list[i], branch, depth)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, o)
		combinations = min(combinations+n, maxCombinations+1)
	}
	return all, combinations, nil
}
