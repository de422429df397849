package cloudformation

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/template"
)

// judged is what the operations say of a template before anything is made.
func judged(body string) string {
	t, err := parse([]byte(body))
	if err == nil {
		s := &stack.Stack{ID: "arn:aws:cloudformation:us-east-1:000000000000:stack/shop/1", Name: "shop", Account: "000000000000", Region: "us-east-1"}
		_, err = design(t, s, &stack.Input{Capabilities: []string{template.CapabilityNamedIAM}}, nil, nil)
	}
	if err != nil {
		return refusal.Text(err)
	}
	return "ok"
}

// The files in testdata/templates are templates that are good and bad, within the types that
// there are, each with what is said of it: the line and the path of what is wrong.
func TestTemplates(t *testing.T) {
	datadriven.Walk(t, "testdata/templates", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			got := judged(d.Input)
			if (got == "ok") != (d.Cmd == "good") {
				t.Errorf("%s: it is to be %s: %s", d.Pos, d.Cmd, got)
			}
			return got + "\n"
		})
	})
}

// Templates of strangers take no more than they are given: each of these would be large, deep
// or many beyond all bounds, and is refused for what it is too much of.
func TestTemplatesAreBounded(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const one = "Resources: {Q: {Type: AWS::SQS::Queue}}\n"
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i)
	}
	loops := ""
	for i := range 5 {
		loops += fmt.Sprintf("{'Fn::ForEach::L%d': [X%d, [%s], ", i, i, strings.TrimSuffix(many(30, "v%d, "), ", "))
	}
	loops += "{'Q${X0}${X1}${X2}${X3}${X4}': {Type: AWS::SQS::Queue}}" + strings.Repeat("]}", 5)
	for name, test := range map[string]struct{ body, want string }{
		"bytes":      {one + strings.Repeat("#", 1_000_000), "Template may not exceed 1000000 bytes in size."},
		"depth":      {"Metadata: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n" + one, "nested deeper than 100 levels. (line 1)"},
		"deep JSON":  {`{"Metadata":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000) + "}", "nested deeper than 100 levels. (line 1)"},
		"values":     {"Metadata: {A: [" + strings.Repeat("1,", 200_000) + "1]}\n" + one, "has more than 100000 values"},
		"aliases":    {laughs + one, "YAML aliases are not allowed in CloudFormation templates"},
		"resources":  {"Resources:\n" + many(501, "  Q%d: {Type: AWS::SQS::Queue}\n"), "Number of resources, 501, is greater than maximum allowed, 500"},
		"parameters": {"Parameters:\n" + many(201, "  P%d: {Type: String}\n") + one, "Number of parameters, 201, is greater than maximum allowed, 200"},
		"outputs":    {one + "Outputs:\n" + many(201, "  O%d: {Value: x}\n"), "Number of outputs, 201, is greater than maximum allowed, 200"},
		"mappings":   {"Mappings:\n" + many(201, "  M%d: {a: {b: c}}\n") + one, "Number of mappings, 201, is greater than maximum allowed, 200"},
		"loops":      {"Transform: AWS::LanguageExtensions\nResources: " + loops + "\n", "The expanded template has more than 100000 values or 4194304 bytes."},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := judged(test.body)
			runtime.ReadMemStats(&after)
			if !strings.Contains(got, test.want) {
				t.Errorf("%.300s\nwant %s", got, test.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > mostAllocated {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

// Whatever the bytes, a template is good or refused with a sentence, and a refusal that is
// about a place of it names that.
func FuzzJudged(f *testing.F) {
	f.Add("Resources: {Q: {Type: AWS::SQS::Queue, Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt D.Arn}}}, D: {Type: AWS::SQS::Queue}}")
	f.Add("Transform: AWS::Serverless-2016-10-31\nResources: {F: {Type: AWS::Serverless::Function, Properties: {Runtime: python3.13, Handler: a.b, CodeUri: s3://b/k}}}")
	f.Add(`{"Resources":{"S":{"Type":"AWS::CloudFormation::Stack","Properties":{"TemplateURL":"x"}}},"Outputs":{"O":{"Value":{"Fn::GetAtt":["S","Outputs.X"]}}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if judged(body) == "" {
			t.Fatal("refused without a word")
		}
		_, err := template.Parse([]byte(body))
		if r, ok := errors.AsType[*template.Refusal](err); ok && r.Line > strings.Count(body, "\n")+strings.Count(body, "\r")+1 {
			t.Fatalf("line %d is behind the end: %s", r.Line, refusal.Text(r))
		}
	})
}

// What a loop makes of a type's text needs the capabilities that it would need if it were written.
func TestCapabilitiesOfWhatLoopsMake(t *testing.T) {
	const body = `{"Transform": "AWS::LanguageExtensions", "Resources": {"Fn::ForEach::All": ["Kind", ["Role"], {"My${Kind}": {
		"Type": "AWS::IAM::${Kind}", "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}}}}]}}`
	for granted, want := range map[string]string{
		template.CapabilityAutoExpand: "Requires capabilities : [CAPABILITY_IAM]", template.CapabilityIAM: "",
	} {
		read, err := parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		s := &stack.Stack{ID: "arn:aws:cloudformation:us-east-1:000000000000:stack/shop/1", Name: "shop", Account: "000000000000", Region: "us-east-1"}
		got := ""
		if _, err := design(read, s, &stack.Input{Capabilities: []string{granted}}, nil, nil); err != nil {
			got = refusal.Text(err)
		}
		if got != want {
			t.Errorf("with %s it says %q", granted, got)
		}
	}
}
