package refusal

import (
	"errors"
	"fmt"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
	"godwit.dev/godwit/internal/stack/parameter"
	"godwit.dev/godwit/internal/stack/template"
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

	template.ErrSections:             "Invalid template property or properties %s",
	template.ErrVersion:              malformed + "%s is not a supported value for AWSTemplateFormatVersion.",
	template.ErrDescription:          malformed + "'Description' length is greater than %d.",
	template.ErrTransforms:           malformed + "Transform must be a String or a List.",
	template.ErrNoTransform:          "No transform named %s found.",
	template.ErrSection:              malformed + "[/%s] '%s' must be an object.",
	template.ErrTooMany:              malformed + "Number of %s, %d, is greater than maximum allowed, %d",
	template.ErrNoMap:                malformed + "[%s] must be an object.",
	template.ErrParameterName:        malformed + "Parameter name %s is non alphanumeric.",
	template.ErrParameter:            malformed + "Any Parameters member must be a JSON object.",
	template.ErrRepetitions:          malformed + "The AllowedPatterns of the parameters repeat too much.",
	template.ErrMappingName:          malformed + "Mappings name '%s' is non alphanumeric.",
	template.ErrMapping:              malformed + "Every Mappings member %s must be a map",
	template.ErrMappingAttributeName: malformed + "Mappings attribute name '%s' must contain only alphanumeric characters.",
	template.ErrMappingAttribute:     malformed + "Every Mappings attribute must be a String or a List.",
	template.ErrConditions:           malformed + "Conditions can only be boolean operations on parameters and other conditions",
	template.ErrNoResources:          malformed + "At least one Resources member must be defined.",
	template.ErrResourceName:         malformed + "Resource name %s is non alphanumeric.",
	template.ErrResourceNameLength:   malformed + "Resource name %s must be no longer than %d characters.",
	template.ErrResource:             malformed + "[%s] resource definition is malformed",
	template.ErrNoType:               malformed + "[%s] Every Resources object must contain a Type member.",
	template.ErrTypeText:             malformed + "[%s] Every Type member must be a string.",
	template.ErrTypes:                malformed + "Unrecognized resource types: %s",
	template.ErrResourceProperty:     "Invalid template resource property '%s'",
	template.ErrDependsOn:            malformed + "DependsOn must be a string or list of strings.",
	template.ErrDependency:           malformed + "Every DependsOn value must be a string.",
	template.ErrPolicy:               malformed + "Unrecognized %s %s for resource %s",
	template.ErrOutputName:           malformed + "Outputs name '%s' is non alphanumeric.",
	template.ErrOutput:               malformed + "Every Outputs member must contain a Value object",
	template.ErrOutputProperty:       "Invalid template output property '%s'",
	template.ErrOutputText:           malformed + "The Value field of every Outputs member must evaluate to a String.",
	template.ErrExport:               malformed + "Output %s is malformed. The Name field of every Export member must be specified and consist only of alphanumeric characters, colons, or hyphens.",
	template.ErrNoAssertions:         malformed + "Every Rules member must contain Assertions.",
	template.ErrNoAssert:             malformed + "Every Assertions member must contain an Assert object.",
	template.ErrRuleValue:            malformed + "Rules can only be boolean operations on parameters",

	template.ErrNamesTwice:          wrong + "all resources and parameters must have unique names. Common name(s):%s",
	template.ErrUnresolved:          malformed + "Unresolved resource dependencies %s in the %s block of the template",
	template.ErrTooEarly:            malformed + "Unresolved dependencies %s. Cannot reference resources in the %s block of the template",
	template.ErrNotParameter:        wrong + "%s is a resource, and only parameters can be referenced here",
	template.ErrNoResource:          wrong + "instance of Fn::GetAtt references undefined resource %s",
	template.ErrAttribute:           wrong + "resource %s does not support attribute type %s in Fn::GetAtt",
	template.ErrSubAttribute:        wrong + "instance of Fn::Sub references invalid resource attribute %s.%s",
	template.ErrNoCondition:         wrong + "unresolved condition dependency %s in %s",
	template.ErrUnresolvedCondition: malformed + "Unresolved condition dependency %s in the %s block of the template",
	template.ErrCircularConditions:  wrong + "Found circular condition dependency between %s and %s",
	template.ErrCircular:            "Circular dependency between resources: %s",
	template.ErrNoMapping:           wrong + "Mapping named '%s' is not present in the 'Mappings' section of template.",
	template.ErrNoMappingKey:        wrong + "Unable to get mapping for %s::%s::%s",

	template.ErrCapabilities:          "The following resource(s) require capabilities: %s",
	template.ErrTransformCapabilities: "The following transform(s) require capabilities: %s",

	template.ErrNoPrevious:   "Invalid input for parameter key %s. Cannot specify usePreviousValue as true for a parameter key not in the previous template",
	template.ErrNoParameters: "Parameters: %s do not exist in the template",
	template.ErrNoValues:     "Parameters: %s must have values",
	template.ErrNotStored:    "Unable to fetch parameters %s from parameter store for this account.",
	template.ErrDynamic:      "Dynamic references to %s cannot be resolved: %s",
	template.ErrRule:         wrong + "Rule %s is not satisfied by the parameters",
	template.ErrRuleSays:     wrong + "Rule %s is not satisfied by the parameters: %s",
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
