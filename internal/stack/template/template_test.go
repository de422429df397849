package template_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/stack/template"
)

// made says of each resource what it would be once it is made.
type made struct{}

func (made) Ref(id string) (any, error) { return "<" + id + ">", nil }

func (made) GetAtt(id, attribute string) (any, error) { return "<" + id + "." + attribute + ">", nil }

func (made) Import(name string) (any, error) {
	if name == "gone" {
		return nil, errors.New("No export named gone found.")
	}
	return "<import " + name + ">", nil
}

func inputs() template.Inputs {
	return template.Inputs{
		Pseudo: template.Pseudo{
			AccountID: "123456789012", Region: "eu-west-1", StackName: "shop", NotificationARNs: []string{"arn:aws:sns:eu-west-1:123456789012:told"},
			StackID: "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop/1",
		},
		Parameters: map[string]string{}, Previous: map[string]string{"Kept": "before"},
		SSM: func(name string) (string, bool) {
			v, ok := map[string]string{"/shop/size": "7", "/shop/zones": "a, b", "/shop/size:3": "3"}[name]
			return v, ok
		},
	}
}

// said is a refusal with the place that it is about.
func said(err error) string {
	if r, ok := errors.AsType[*template.Refusal](err); ok {
		return refusal.Located(r) + "\n"
	}
	return "error: " + refusal.Text(err) + "\n"
}

// The files in testdata are cases. Input is a template; lines of it that start with > give
// parameters their values. parse prints the refusal or ok; resolve prints the properties of
// each resource in the order of their making, and the outputs.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			in, body := given(d.Input)
			parsed, err := template.Parse([]byte(body))
			if err != nil {
				return said(err)
			}
			if d.Cmd == "parse" {
				return "ok\n"
			}
			b, err := parsed.Bind(in)
			if err != nil {
				return said(err)
			}
			switch d.Cmd {
			case "resolve":
				return resolve(b)
			case "order":
				return order(b)
			case "process":
				var out bytes.Buffer
				if err := json.Indent(&out, b.Template.JSON(), "", " "); err != nil {
					t.Fatal(err)
				}
				return out.String() + "\n"
			}
			t.Fatalf("no command %s", d.Cmd)
			return ""
		})
	})
}

// given takes the parameters off a template.
func given(text string) (in template.Inputs, body string) {
	in = inputs()
	for line := range strings.Lines(text + "\n") {
		given, ok := strings.CutPrefix(line, "> ")
		name, value, _ := strings.Cut(strings.TrimSpace(given), "=")
		switch {
		case !ok:
			body += line
		case value == "(previous)":
			in.UsePrevious = append(in.UsePrevious, name)
		default:
			in.Parameters[name] = value
		}
	}
	return in, body
}

func order(b *template.Bound) string {
	var out strings.Builder
	for _, id := range b.Order() {
		fmt.Fprintln(&out, strings.TrimSpace(id+" "+strings.Join(b.DependsOn(id), " ")))
	}
	return out.String()
}

func resolve(b *template.Bound) string {
	var out strings.Builder
	for _, id := range b.Order() {
		properties, err := b.Properties(id, made{})
		if err != nil {
			return out.String() + said(err)
		}
		fmt.Fprintf(&out, "%s %s\n", id, b.Resource(id).Type)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			fmt.Fprintf(&out, "  %s: %s\n", name, asJSON(properties[name]))
		}
	}
	outputs, err := b.Outputs(made{})
	if err != nil {
		return out.String() + said(err)
	}
	for _, o := range outputs {
		fmt.Fprintf(&out, "-> %s = %s", o.Key, o.Value)
		if o.ExportName != "" {
			fmt.Fprintf(&out, " as %s", o.ExportName)
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

func asJSON(v any) string {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// types are those of the tests.
type types struct{}

func (types) Has(name string) bool {
	return name == "T" || name == "S" || strings.HasPrefix(name, "AWS::IAM::") || name == "AWS::CloudFormation::Stack"
}

func (types) Gives(_, attribute string) bool {
	return attribute == "Arn" || strings.HasPrefix(attribute, "Outputs.")
}

func (types) Grants(name string) (yes bool, named string) {
	kind, yes := strings.CutPrefix(name, "AWS::IAM::")
	return yes, map[string]string{"User": "UserName", "Role": "RoleName"}[kind]
}

// Types that there are none of are refused together, and attributes that a type has not, where
// they are asked for.
func TestCheck(t *testing.T) {
	for body, want := range map[string]string{
		"Resources:\n  A: {Type: T}\n  B: {Type: Y}\n  C: {Type: X}\n  D: {Type: Y}\n":                                                       "Template format error: Unrecognized resource types: [Y, X] (line 3, /Resources/B/Type)",
		"Resources:\n  A: {Type: T}\n  B:\n    Type: T\n    Properties:\n      X: !GetAtt A.Size\n":                                          "Template error: resource A does not support attribute type Size in Fn::GetAtt (line 6, /Resources/B/Properties/X)",
		"Resources:\n  A: {Type: T}\nOutputs:\n  O:\n    Value: !Sub \"${A.Size}\"\n":                                                        "Template error: instance of Fn::Sub references invalid resource attribute A.Size (line 5, /Outputs/O/Value)",
		"Resources:\n  A: {Type: AWS::CloudFormation::Stack, Properties: {X: !GetAtt B.Outputs.Name}}\n  B: {Type: T, Properties: {X: a}}\n": "",
	} {
		b, err := bind(body)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := b.Check(types{}); err != nil {
			got = strings.TrimSuffix(said(err), "\n")
		}
		if got != want {
			t.Errorf("%s\n%s\nwant %s", body, got, want)
		}
	}
}

// bind parses and binds a template that its parameters stand before.
func bind(text string) (*template.Bound, error) {
	in, body := given(text)
	parsed, err := template.Parse([]byte(body))
	if err != nil {
		return nil, err
	}
	return parsed.Bind(in)
}
