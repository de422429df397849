package deploying

import (
	"context"
	"regexp"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/stack/parameter"
)

// nothing deletes what there is nothing of.
func nothing(context.Context, *step.Work) error { return nil }

// maxParameter bounds the value of a parameter, in bytes: that of AWS's standard tier.
const maxParameter = 4096

const maxParameterName = 1011

var (
	parameterName = regexp.MustCompile(`^[a-zA-Z0-9_.\-/]+$`)
	ofAWS         = regexp.MustCompile(`^(?i)/?(aws|ssm)`) // AWS's own
)

// putParameter makes or changes a parameter, of which there is nothing but what the stack knows.
func putParameter(ctx context.Context, w *step.Work) (is step.Made, err error) {
	name, properties := w.Target.Physical, w.Target.Properties
	if w.Now != nil {
		is = step.Made{Physical: name, Attributes: w.Target.Attributes}
	}
	if err := mayParameter(ctx, w, "ssm:PutParameter"); err != nil {
		return is, err
	}
	value, kind := step.Text(properties["Value"]), step.Text(properties["Type"])
	refuse := func(why string) (step.Made, error) { return is, &step.Error{Text: why, Code: "InvalidRequest"} }
	switch {
	case kind != "String" && kind != "StringList":
		return refuse("#/Type: " + kind + " is not a valid enum value")
	case len(name) > maxParameterName || !parameterName.MatchString(name) || ofAWS.MatchString(name):
		return refuse("Parameter name: can't be prefixed with \"aws\" or \"ssm\" (case-insensitive), and has letters, digits and the symbols .-_/ only")
	case value == "" || len(value) > maxParameter || !utf8.ValidString(value):
		return refuse("Standard tier parameters support a maximum parameter value of 4096 characters.")
	}
	if pattern := step.Text(properties["AllowedPattern"]); pattern != "" {
		allowed, _, err := parameter.Pattern(pattern)
		if err != nil {
			return refuse("The AllowedPattern is not a regular expression, or repeats too much.")
		}
		if !allowed.MatchString(value) {
			return refuse("Parameter value, cannot be validated against allowedPattern: " + pattern)
		}
	}
	if w.Now == nil && w.Options.Holds != nil && w.Options.Holds(w.Task) {
		return step.Made{}, w.Taken(name)
	}
	return step.Made{Physical: name, Attributes: map[string]any{"Type": kind, "Value": value}}, nil
}

// deleteParameter deletes a parameter, which is gone with the resource.
func deleteParameter(ctx context.Context, w *step.Work) error {
	return mayParameter(ctx, w, "ssm:DeleteParameter")
}

// mayParameter refuses what who acts may not do with a parameter: no operation asks for it.
func mayParameter(ctx context.Context, w *step.Work, action string) error {
	if w.Options.May == nil {
		return nil
	}
	need := authorize.Need{Action: action, Resource: arn.Parameter(w.Region, w.Account, w.Target.Physical).String(), Account: w.Account}
	return w.Options.May(ctx, w.Actor, w.Via(), w.Region, &need)
}
