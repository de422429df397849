package refusal

import (
	"errors"
	"fmt"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
	"godwit.dev/godwit/internal/stack/parameter"
)

// malformed begins what is said of a template's form, and wrong of what it means.
const (
	malformed = "Template format error: "
	wrong     = "Template error: "
)

// ofTemplates are CloudFormation's messages about templates.
var ofTemplates = sentences{
	document.ErrTooLong:       "Template may not exceed %d bytes in size.",
	document.ErrStructure:     malformed + "unsupported structure.",
	document.ErrNull:          "[%s] 'null' values are not allowed in templates",
	document.ErrTooManyValues: malformed + "The template has more than %d values.",
	document.ErrTooDeep:       malformed + "The template is nested deeper than %d levels.",
	document.ErrJSON:          malformed + "JSON not well-formed. (line %d, column %d)",
	document.ErrYAML:          malformed + "YAML not well-formed.",
	document.ErrYAMLLine:      malformed + "YAML not well-formed. (line %d)",
	document.ErrYAMLColumn:    malformed + "YAML not well-formed. (line %d, column %d)",
	document.ErrAlias:         wrong + "YAML aliases are not allowed in CloudFormation templates",
	document.ErrNoText:        malformed + "Every %s member must be a string.",

	parameter.ErrNoType:        malformed + "Every Parameters object must contain a Type member.",
	parameter.ErrType:          malformed + "Unrecognized parameter type: %s",
	parameter.ErrProperty:      "Invalid template parameter property '%s'",
	parameter.ErrNoPattern:     wrong + "Parameter '%s' AllowedPattern must be a valid regular expression.",
	parameter.ErrRepetitions:   wrong + "Parameter '%s' AllowedPattern repeats too much.",
	parameter.ErrAllowedValues: malformed + "Every AllowedValues member must be a list.",
	parameter.ErrAllowedValue:  malformed + "Every AllowedValues value must be a string.",
	parameter.ErrLengths:       wrong + "Parameter '%s' MinLength must be less than MaxLength.",
	parameter.ErrBounds:        wrong + "Parameter '%s' MinValue must be less than MaxValue.",
	parameter.ErrNotString:     wrong + "Parameter '%s' %s must be on a parameter of type String",
	parameter.ErrNotNumber:     wrong + "Parameter '%s' %s must be on a parameter of type Number",
	parameter.ErrLength:        malformed + "Every %s member must be a non-negative integer.",
	parameter.ErrBound:         malformed + "Every %s member must be a number.",

	parameter.ErrConstraint: "Parameter %s failed to satisfy constraint: %s",
	parameter.ErrNotAllowed: "Parameter '%s' must be one of AllowedValues",
	parameter.ErrTooShort:   "Parameter '%s' must contain at least %d characters",
	parameter.ErrTooLong:    "Parameter '%s' must contain at most %d characters",
	parameter.ErrNoMatch:    "Parameter '%s' must match pattern %s",
	parameter.ErrNoNumber:   "Parameter '%s' must be a number",
	parameter.ErrTooLow:     "Parameter '%s' must be a number not less than %s",
	parameter.ErrTooHigh:    "Parameter '%s' must be a number not greater than %s",
}

// Located is the message of an error, with its position if it is one of a template that has one.
func Located(err error) string {
	text := Text(err)
	r, ok := errors.AsType[*document.Refusal](err)
	switch {
	case !ok, r.Line == 0, strings.Contains(text, "(line "):
		return text
	case r.Path == "":
		return fmt.Sprintf("%s (line %d)", text, r.Line)
	}
	return fmt.Sprintf("%s (line %d, %s)", text, r.Line, r.Path)
}
