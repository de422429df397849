package policy

import (
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/decimal"
)

// condition is one operator on one key.
type condition struct {
	key      string // in lower case
	written  string // as the document has it
	operands []operand
	// negated conditions hold when no operand matches.
	negated  bool
	ifExists bool // holds without a value
	null     bool // the operands say whether the key is absent
	set      quantifier
	named    bool // the key ends in a name whose case does not count
}

// namedKeys are the prefixes of keys that end in the name of a tag, or of a pair of an
// encryption context. Conditions ignore the case of that name, while a resource may have two
// that differ in case only: then the key has a value for each.
var namedKeys = []string{"aws:principaltag/", "aws:requesttag/", "aws:resourcetag/", "iam:resourcetag/", "kms:encryptioncontext:"}

// quantifier says which of a key's values must match.
type quantifier uint8

const (
	single quantifier = iota
	forAllValues
	forAnyValue
)

// operand is one value of a condition.
type operand interface {
	match(value string, r *Request) bool
}

// operators are the comparisons, by their names in lower case. Each parses one operand.
var operators = map[string]struct {
	read    func(text string, variables bool) (operand, bool)
	negated bool
}{
	"stringequals":              {read: readText},
	"stringnotequals":           {read: readText, negated: true},
	"stringequalsignorecase":    {read: readFolded},
	"stringnotequalsignorecase": {read: readFolded, negated: true},
	"stringlike":                {read: readLike},
	"stringnotlike":             {read: readLike, negated: true},
	"arnequals":                 {read: readARN},
	"arnlike":                   {read: readARN},
	"arnnotequals":              {read: readARN, negated: true},
	"arnnotlike":                {read: readARN, negated: true},
	"bool":                      {read: readBool},
	"binaryequals":              {read: readBinary},
	"ipaddress":                 {read: readPrefix},
	"notipaddress":              {read: readPrefix, negated: true},
	"numericequals":             {read: readNumber(func(c int) bool { return c == 0 })},
	"numericnotequals":          {read: readNumber(func(c int) bool { return c == 0 }), negated: true},
	"numericlessthan":           {read: readNumber(func(c int) bool { return c < 0 })},
	"numericlessthanequals":     {read: readNumber(func(c int) bool { return c <= 0 })},
	"numericgreaterthan":        {read: readNumber(func(c int) bool { return c > 0 })},
	"numericgreaterthanequals":  {read: readNumber(func(c int) bool { return c >= 0 })},
	"dateequals":                {read: readDate(func(c int) bool { return c == 0 })},
	"datenotequals":             {read: readDate(func(c int) bool { return c == 0 }), negated: true},
	"datelessthan":              {read: readDate(func(c int) bool { return c < 0 })},
	"datelessthanequals":        {read: readDate(func(c int) bool { return c <= 0 })},
	"dategreaterthan":           {read: readDate(func(c int) bool { return c > 0 })},
	"dategreaterthanequals":     {read: readDate(func(c int) bool { return c >= 0 })},
}

// parseConditions parses the object of operators, each with an object of keys.
func parseConditions(raw json.RawMessage, variables bool) (all []condition, err error) {
	_, err = members(raw, func(operator string, keys json.RawMessage) error {
		base := condition{}
		name := strings.ToLower(operator)
		if rest, ok := strings.CutPrefix(name, "forallvalues:"); ok {
			name, base.set = rest, forAllValues
		} else if rest, ok := strings.CutPrefix(name, "foranyvalue:"); ok {
			name, base.set = rest, forAnyValue
		}
		read := readBool
		if name == "null" && base.set == single {
			base.null = true
		} else {
			name, base.ifExists = strings.CutSuffix(name, "ifexists")
			o, ok := operators[name]
			if !ok {
				return malformed("unknown condition operator")
			}
			read, base.negated = o.read, o.negated
		}
		_, err := members(keys, func(key string, value json.RawMessage) error {
			c := base
			if c.key, c.written = strings.ToLower(key), key; key == "" {
				return malformed("a condition without a key")
			}
			c.named = slices.ContainsFunc(namedKeys, func(prefix string) bool { return strings.HasPrefix(c.key, prefix) })
			values, err := scalars(value)
			if err != nil {
				return err
			}
			for _, v := range values {
				o, ok := read(v, variables)
				if !ok {
					return malformed("an operand that does not fit its operator")
				}
				c.operands = append(c.operands, o)
			}
			all = append(all, c)
			return nil
		})
		return err
	})
	return all, err
}

// holds evaluates the condition of a statement. Where names that differ in case only have
// different values, that of a Deny holds if it does for one of them, that of an Allow if it
// does for all.
func (c *condition) holds(r *Request, deny bool) bool {
	values := r.values(c.key)
	if !c.named || len(values) < 2 {
		return c.holdsFor(values, r)
	}
	for i := range values {
		if c.holdsFor(values[i:i+1], r) == deny {
			return deny
		}
	}
	return !deny
}

func (c *condition) holdsFor(values []string, r *Request) bool {
	switch {
	case c.null:
		return c.matches(strconv.FormatBool(len(values) == 0), r)
	case len(values) == 0:
		return c.set == forAllValues || c.set == single && (c.ifExists || c.negated)
	case c.set == forAllValues:
		for _, v := range values {
			if c.matches(v, r) == c.negated {
				return false
			}
		}
		return true
	case c.set == forAnyValue:
		for _, v := range values {
			if c.matches(v, r) != c.negated {
				return true
			}
		}
		return false
	default:
		return len(values) == 1 && c.matches(values[0], r) != c.negated
	}
}

// matches reports whether a value matches any operand.
func (c *condition) matches(value string, r *Request) bool {
	for _, o := range c.operands {
		if o.match(value, r) {
			return true
		}
	}
	return false
}

type textOperand struct {
	pattern pattern
	fold    bool
}

func (o *textOperand) match(value string, r *Request) bool { return o.pattern.match(value, o.fold, r) }

func readText(s string, variables bool) (operand, bool) {
	return &textOperand{pattern: compile(s, special{variables: variables})}, true
}

func readFolded(s string, variables bool) (operand, bool) {
	return &textOperand{pattern: compile(s, special{variables: variables}), fold: true}, true
}

func readLike(s string, variables bool) (operand, bool) {
	return &textOperand{pattern: compile(s, special{wildcards: true, variables: variables})}, true
}

// arnOperand matches nothing if it lacks parts.
type arnOperand struct {
	arn arnPattern
	ok  bool
}

func (o *arnOperand) match(value string, r *Request) bool { return o.ok && o.arn.match(value, r) }

func readARN(s string, variables bool) (operand, bool) {
	p, ok := compileARN(s, variables)
	return &arnOperand{arn: p, ok: ok}, true
}

type boolOperand bool

func (o boolOperand) match(value string, _ *Request) bool {
	return strings.EqualFold(value, "true") == bool(o) // any other value reads as false
}

func readBool(s string, _ bool) (operand, bool) {
	switch {
	case strings.EqualFold(s, "true"):
		return boolOperand(true), true
	case strings.EqualFold(s, "false"):
		return boolOperand(false), true
	default:
		return nil, false
	}
}

type binaryOperand string // the bytes

func (o binaryOperand) match(value string, _ *Request) bool {
	b, err := base64.StdEncoding.DecodeString(value)
	return err == nil && string(b) == string(o)
}

func readBinary(s string, _ bool) (operand, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	return binaryOperand(b), err == nil
}

// prefixOperand is a range of addresses; the zero value has none.
type prefixOperand netip.Prefix

func (o prefixOperand) match(value string, _ *Request) bool {
	a, err := netip.ParseAddr(value)
	return err == nil && netip.Prefix(o).Contains(a.Unmap().WithZone(""))
}

// readPrefix parses an address or a range of addresses in CIDR notation. An IPv6 range with
// bits set after its prefix contains no address.
func readPrefix(s string, _ bool) (operand, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return prefixOperand(netip.PrefixFrom(a.Unmap().WithZone(""), a.Unmap().BitLen())), true
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && p.Addr().Is6() && p != p.Masked() {
		return prefixOperand{}, true
	}
	return prefixOperand(p.Masked()), err == nil
}

type numberOperand struct {
	number float64
	holds  func(comparison int) bool
}

func (o *numberOperand) match(value string, _ *Request) bool {
	n, ok := decimal.Parse(value)
	return ok && o.holds(compare(n, o.number))
}

func readNumber(holds func(comparison int) bool) func(string, bool) (operand, bool) {
	return func(s string, _ bool) (operand, bool) {
		n, ok := decimal.Parse(s)
		return &numberOperand{number: n, holds: holds}, ok
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

type dateOperand struct {
	at    time.Time
	holds func(comparison int) bool
}

func (o *dateOperand) match(value string, _ *Request) bool {
	at, ok := date(value)
	return ok && o.holds(at.Compare(o.at))
}

func readDate(holds func(comparison int) bool) func(string, bool) (operand, bool) {
	return func(s string, _ bool) (operand, bool) {
		at, ok := date(s)
		return &dateOperand{at: at, holds: holds}, ok
	}
}

// maxEpoch bounds a date given in seconds: the year 9999.
const maxEpoch = 253402300799

// date parses a time: ISO 8601 in one of W3C's forms, or seconds since 1970.
func date(s string) (time.Time, bool) {
	if seconds, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) != len("2006") {
		return time.Unix(seconds, 0), -maxEpoch <= seconds && seconds <= maxEpoch
	}
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly, "2006-01", "2006"} {
		if at, err := time.Parse(layout, s); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
