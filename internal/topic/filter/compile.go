package filter

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/fault"
)

// AWS's texts for what is no JSON object, and for what exceeds
// MaxCombinations.
var (
	errParse   = refuse("failed to parse JSON.")
	errComplex = refuse("Filter policy is too complex")
)

// Compile reads a FilterPolicy. Refusals are fault.InvalidParameter; their
// texts are AWS's without the position in the document that AWS puts on a
// second line, and begin with "FilterPolicy: ", except for the one that AWS
// gives without (nesting in the scope MessageAttributes).
//
// The empty object is a policy that matches every message.
func Compile(policy string, scope Scope) (*Policy, error) {
	root, err := parse(policy, scope)
	if err != nil {
		return nil, err
	}
	return &Policy{source: strings.Clone(policy), scope: scope, root: root}, nil
}

func parse(policy string, scope Scope) (*object, error) {
	if len(policy) > MaxSize {
		return nil, refuse("Filter policy is too long: %d bytes, at most %d", len(policy), MaxSize)
	}
	if !json.Valid([]byte(policy)) {
		return nil, errParse
	}
	top, ok := members([]byte(policy))
	if !ok {
		return nil, errParse
	}
	if len(top) > MaxKeys {
		return nil, refuse("Filter policy can not have more than %d keys", MaxKeys)
	}
	c := compiler{scope: scope}
	root, combinations, err := c.object(top, 1)
	if err != nil {
		return nil, err
	}
	if combinations > MaxCombinations {
		return nil, errComplex
	}
	return &root, nil
}

// compiler makes objects and counts their combinations: the product, over the
// keys with rules, of the number of rules times the depth of the key (1 at the
// top), and over the $or lists, of the sum of what their objects come to at the
// depth of the list. A count above MaxCombinations means that or more.
type compiler struct {
	scope Scope
}

func (c compiler) object(all []member, depth int) (o object, combinations int, err error) {
	if depth > MaxCombinations { // any rule down here would count for more
		return object{}, 0, errComplex
	}
	if len(all) == 0 && depth > 1 {
		return object{}, 0, refuse("Empty objects are not allowed")
	}
	combinations = 1
	for _, m := range all {
		f, n := field{key: m.name}, 0
		switch kindOf(m.value) {
		case '{':
			f.nested, n, err = c.nested(m.value, depth+1)
		case '[':
			list := elements(m.value)
			if branches, ok := or(m.name, list); ok {
				var branch []object
				if branch, n, err = c.or(branches, depth); err == nil {
					o.ors = append(o.ors, branch)
					combinations = min(combinations*n, MaxCombinations+1)
					continue
				}
				break
			}
			n = len(list) * depth
			f.rules, err = compileRules(list)
		default:
			err = refuse("%q must be an object or an array", m.name)
		}
		if err != nil {
			return object{}, 0, err
		}
		combinations = min(combinations*n, MaxCombinations+1)
		o.fields = append(o.fields, f)
	}
	return o, combinations, nil
}

func (c compiler) nested(value json.RawMessage, depth int) (*object, int, error) {
	if c.scope == MessageAttributes {
		return nil, 0, fault.New(fault.InvalidParameter,
			"Filter policy scope MessageAttributes does not support nested filter policy")
	}
	all, _ := members(value)
	o, combinations, err := c.object(all, depth)
	return &o, combinations, err
}

// or recognises an $or: a list of at least two objects, none with the name of
// an operator among its keys. Any other is a key like the rest.
func or(key string, list []json.RawMessage) (branches [][]member, ok bool) {
	if key != "$or" || len(list) < 2 {
		return nil, false
	}
	for _, e := range list {
		branch, isObject := members(e)
		if !isObject || slices.ContainsFunc(branch, func(m member) bool { return reserved(m.name) }) {
			return nil, false
		}
		branches = append(branches, branch)
	}
	return branches, true
}

func (c compiler) or(branches [][]member, depth int) (all []object, combinations int, err error) {
	for _, branch := range branches {
		if len(branch) == 0 {
			return nil, 0, refuse("Empty objects are not allowed")
		}
		o, n, err := c.object(branch, depth)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, o)
		combinations = min(combinations+n, MaxCombinations+1)
	}
	return all, combinations, nil
}

// member is a key of a JSON object and its value, not parsed yet.
type member struct {
	name  string
	value json.RawMessage
}

// members takes a valid JSON object apart, in the order in which it is
// written. A later value of the same key replaces the earlier one. ok is
// false if document is no object.
func members(document []byte) (all []member, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(document))
	if open, _ := dec.Token(); open != json.Delim('{') {
		return nil, false
	}
	at := map[string]int{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: token.(string)} // a key of valid JSON is a string
		if err := dec.Decode(&m.value); err != nil {
			return nil, false
		}
		if i, again := at[m.name]; again {
			all[i] = m
			continue
		}
		at[m.name] = len(all)
		all = append(all, m)
	}
	return all, true
}

// elements takes a valid JSON array apart.
func elements(document []byte) []json.RawMessage {
	var all []json.RawMessage
	_ = json.Unmarshal(document, &all)
	return all
}

// kindOf is the first byte of a JSON value, which tells its type.
func kindOf(v json.RawMessage) byte {
	if v = bytes.TrimLeft(v, " \t\r\n"); len(v) == 0 {
		return 0
	}
	return v[0]
}

func refuse(format string, args ...any) *fault.Error {
	return fault.Newf(fault.InvalidParameter, "FilterPolicy: "+format, args...)
}
