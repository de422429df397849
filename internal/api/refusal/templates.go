package refusal

import (
	"errors"
	"fmt"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
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
