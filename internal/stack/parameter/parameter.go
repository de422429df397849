// Package parameter has the parameters of templates: their types, and the checks of their
// values.
package parameter

import (
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/stack/document"
)

// maxValue is the maximum size of a parameter's value, in bytes.
const maxValue = 4096

// Parameter is a parameter declared by a template.
type Parameter struct {
	Name, Type, Description string
	Default                 *string // nil if a value must be given
	NoEcho                  bool    // the value is hidden
	AllowedValues           []string
	AllowedPattern          string
	ConstraintDescription   string
	States                  int // of the pattern: what it costs

	pattern              *regexp.Regexp
	minLength, maxLength *int
	minValue, maxValue   *big.Rat
	low, high            string // minValue and maxValue as written
}

// ssmValue is the type of parameters whose value is the name of one in the parameter store.
const ssmValue = "AWS::SSM::Parameter::Value<"

var types = regexp.MustCompile(`^(String|Number|CommaDelimitedList|List<Number>|List<String>|` +
	`AWS::(EC2|Route53)::[A-Za-z:]+|List<AWS::(EC2|Route53)::[A-Za-z:]+>|AWS::SSM::Parameter::Name|` +
	`AWS::SSM::Parameter::Value<(String|CommaDelimitedList|List<String>|AWS::[A-Za-z0-9:]+|List<AWS::[A-Za-z0-9:]+>)>)$`)

// Read parses the declaration of a parameter. An error is a *[document.Refusal].
func Read(name string, n *document.Node) (*Parameter, error) {
	p := &Parameter{Name: name}
	typ := n.Get("Type")
	if typ == nil {
		return nil, n.Refuse(ErrNoType)
	}
	if !types.MatchString(typ.Text) {
		return nil, typ.Refuse(ErrType.With(typ.Text))
	}
	p.Type = typ.Text
	var unknown []string
	for _, m := range n.Members {
		var err error
		switch v := m.Value; m.Name {
		case "Type":
		case "Default":
			if !v.Scalar() {
				return nil, v.Refuse(document.ErrNoText.With(m.Name))
			}
			p.Default = &v.Text
		case "Description":
			p.Description, err = document.Text(v, m.Name)
		case "ConstraintDescription":
			p.ConstraintDescription, err = document.Text(v, m.Name)
		case "NoEcho":
			_, err = document.Text(v, m.Name)
			p.NoEcho = strings.EqualFold(v.Text, "true")
		case "AllowedPattern":
			err = p.readPattern(v)
		case "AllowedValues":
			err = p.readAllowed(v)
		case "MinLength":
			p.minLength, err = p.length(m.Name, v)
		case "MaxLength":
			p.maxLength, err = p.length(m.Name, v)
		case "MinValue":
			p.low = v.Text
			p.minValue, err = p.bound(m.Name, v)
		case "MaxValue":
			p.high = v.Text
			p.maxValue, err = p.bound(m.Name, v)
		default:
			unknown = append(unknown, m.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	if unknown != nil {
		return nil, n.Get(unknown[0]).Refuse(ErrProperty.With(unknown[0]))
	}
	if p.minLength != nil && p.maxLength != nil && *p.minLength > *p.maxLength {
		return nil, n.Refuse(ErrLengths.With(name))
	}
	if p.minValue != nil && p.maxValue != nil && p.minValue.Cmp(p.maxValue) > 0 {
		return nil, n.Refuse(ErrBounds.With(name))
	}
	return p, nil
}

func (p *Parameter) readPattern(n *document.Node) error {
	if !n.Scalar() {
		return n.Refuse(document.ErrNoText.With("AllowedPattern"))
	}
	if len(n.Text) > maxValue {
		return n.Refuse(ErrNoPattern.With(p.Name))
	}
	pattern, states, err := Pattern(`\A(?:` + n.Text + `)\z`)
	switch {
	case errors.Is(err, ErrPattern):
		return n.Refuse(ErrRepetitions.With(p.Name))
	case err != nil:
		return n.Refuse(ErrNoPattern.With(p.Name))
	}
	p.AllowedPattern, p.pattern, p.States = n.Text, pattern, states
	return nil
}

func (p *Parameter) readAllowed(n *document.Node) error {
	if n.Kind != document.List {
		return n.Refuse(ErrAllowedValues)
	}
	for _, item := range n.Items {
		if !item.Scalar() {
			return item.Refuse(ErrAllowedValue)
		}
		p.AllowedValues = append(p.AllowedValues, item.Text)
	}
	return nil
}

func (p *Parameter) length(name string, n *document.Node) (*int, error) {
	if p.Type == "Number" || p.IsList() {
		return nil, n.Refuse(ErrNotString.With(p.Name, name))
	}
	v, err := strconv.Atoi(n.Text)
	if err != nil || v < 0 {
		return nil, n.Refuse(ErrLength.With(name))
	}
	return &v, nil
}

func (p *Parameter) bound(name string, n *document.Node) (*big.Rat, error) {
	if p.Type != "Number" && p.Type != "List<Number>" {
		return nil, n.Refuse(ErrNotNumber.With(p.Name, name))
	}
	v, ok := number(n.Text)
	if !ok {
		return nil, n.Refuse(ErrBound.With(name))
	}
	return v, nil
}

var numeric = regexp.MustCompile(`^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?$`)

// number parses a number of bounded size: the exponent of a big.Rat needs memory.
func number(s string) (*big.Rat, bool) {
	if s = strings.TrimSpace(s); !numeric.MatchString(s) {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// IsList reports whether a value is a list, with commas between its elements.
func (p *Parameter) IsList() bool {
	return strings.HasPrefix(p.Type, "List<") || p.Type == "CommaDelimitedList" ||
		strings.HasPrefix(p.Type, ssmValue+"List<") || p.Type == ssmValue+"CommaDelimitedList>"
}

// InStore reports whether a parameter's value names one in the parameter store.
func (p *Parameter) InStore() bool { return strings.HasPrefix(p.Type, ssmValue) }

// Check refuses an invalid value, with a *[document.Refusal].
func (p *Parameter) Check(value string) error {
	if len(value) > maxValue {
		return &document.Refusal{Err: ErrTooLong.With(p.Name, maxValue)}
	}
	values := []string{value}
	if p.IsList() && !p.InStore() {
		values = Split(value)
	}
	for _, v := range values {
		if broken := p.broken(v); broken != nil {
			if p.ConstraintDescription != "" {
				broken = ErrConstraint.With(p.Name, p.ConstraintDescription)
			}
			return &document.Refusal{Err: broken}
		}
	}
	return nil
}

// broken is the constraint that a value violates.
func (p *Parameter) broken(v string) error {
	n := utf8.RuneCountInString(v)
	switch {
	case len(p.AllowedValues) > 0 && !slices.Contains(p.AllowedValues, v):
		return ErrNotAllowed.With(p.Name)
	case p.minLength != nil && n < *p.minLength:
		return ErrTooShort.With(p.Name, *p.minLength)
	case p.maxLength != nil && n > *p.maxLength:
		return ErrTooLong.With(p.Name, *p.maxLength)
	case p.pattern != nil && !p.pattern.MatchString(v):
		return ErrNoMatch.With(p.Name, p.AllowedPattern)
	case p.Type != "Number" && p.Type != "List<Number>":
		return nil
	}
	f, ok := number(v)
	switch {
	case !ok:
		return ErrNoNumber.With(p.Name)
	case p.minValue != nil && f.Cmp(p.minValue) < 0:
		return ErrTooLow.With(p.Name, p.low)
	case p.maxValue != nil && f.Cmp(p.maxValue) > 0:
		return ErrTooHigh.With(p.Name, p.high)
	}
	return nil
}

// Split are the elements of a list value.
func Split(s string) []string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
