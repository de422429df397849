package template_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/stack/template"
)

func TestSummary(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{"Resources: {A: {Type: T}, C: {Type: S}, B: {Type: T}}", "[S T] [] "},
		{"Resources: {A: {Type: AWS::IAM::Role}, B: {Type: AWS::IAM::Policy}}", "[AWS::IAM::Policy AWS::IAM::Role] [CAPABILITY_IAM] The following resource(s) require capabilities: [AWS::IAM::Role, AWS::IAM::Policy]"},
		{"Resources: {A: {Type: AWS::IAM::User, Properties: {UserName: x}}}", "[AWS::IAM::User] [CAPABILITY_NAMED_IAM] The following resource(s) require capabilities: [AWS::IAM::User]"},
		{"Transform: AWS::LanguageExtensions\nResources: {'Fn::ForEach::L': [X, [a, b], {'Q${X}': {Type: T}}]}", "[T] [CAPABILITY_AUTO_EXPAND] The following transform(s) require capabilities: [AWS::LanguageExtensions]"},
		{"Transform: AWS::Serverless-2016-10-31\nResources: {F: {Type: AWS::Serverless::Function}}", "[AWS::Serverless::Function] [CAPABILITY_IAM CAPABILITY_AUTO_EXPAND] The following resource(s) require capabilities: [AWS::IAM::Role]"},
	} {
		parsed, err := template.Parse([]byte(test.body))
		if err != nil {
			t.Fatalf("%s: %v", test.body, err)
		}
		s := parsed.Summary(types{})
		reason := ""
		if s.CapabilitiesReason != nil {
			reason = refusal.Text(s.CapabilitiesReason)
		}
		if got := fmt.Sprint(s.ResourceTypes, " ", s.Capabilities, " ", reason); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.body, got, test.want)
		}
		if missing := s.Missing([]string{template.CapabilityNamedIAM}); slices.Contains(missing, template.CapabilityIAM) || slices.Contains(missing, template.CapabilityNamedIAM) {
			t.Errorf("%s: still missing %s", test.body, missing)
		} else if slices.Contains(s.Capabilities, template.CapabilityAutoExpand) != slices.Contains(missing, template.CapabilityAutoExpand) {
			t.Errorf("%s: missing %s", test.body, missing)
		}
	}
}

// The template that has been processed is one itself, and says the same.
func TestJSON(t *testing.T) {
	b, err := bind("Transform: AWS::LanguageExtensions\nResources: {'Fn::ForEach::L': [X, [a, b], {'Q${X}': {Type: T, Properties: {N: 1.0, B: yes}}}]}")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Resources":{"Qa":{"Type":"T","Properties":{"N":1.0,"B":true}},"Qb":{"Type":"T","Properties":{"N":1.0,"B":true}}}}`
	if got := string(b.Template.JSON()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// What one of few bytes could make without end is refused before it is made.
func TestExpansionIsBounded(t *testing.T) {
	text, value := strings.Repeat("${a}", 100), `"x"`
	for range 20 {
		value = `{"Fn::Sub": ["` + text + `", {"a": ` + value + `}]}`
	}
	b, err := bind(`{"Resources": {"A": {"Type": "T", "Properties": {"X": ` + value + `}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Properties("A", made{}); err == nil || !strings.Contains(refusal.Text(err), "more than 2097152 bytes") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"Resources: {A: {Type: T, Properties: {X: !Sub '${B.c}${AWS::Region}'}}, B: {Type: T}}",
		"Parameters: {P: {Type: 'List<Number>', Default: '1,2', MinValue: 1}}\nConditions: {C: !And [!Equals [!Ref P, a], !Not [!Condition D]], D: !Equals [a, b]}\nResources: {A: {Type: T, Condition: C, Properties: {X: !If [D, !Ref AWS::NoValue, !Cidr [10.0.0.0/8, 3, 4]]}}}",
		"Transform: AWS::LanguageExtensions\nResources: {'Fn::ForEach::L': [X, [a, b], {'Q${X}': {Type: T, DependsOn: 'Q${X}'}}]}\nOutputs: {O: {Value: {'Fn::ToJsonString': {'Fn::Length': [a]}}, Export: {Name: x}}}",
		"Mappings: {M: {a: {b: [c]}}}\nRules: {R: {Assertions: [{Assert: {'Fn::Contains': [[a], b]}}]}}\nResources: {A: {Type: T, Properties: {X: !Select [0, !FindInMap [M, a, b]], Y: !GetAtt A.B, Z: !ImportValue {'Fn::Sub': x}}}}",
		"Transform: AWS::Serverless-2016-10-31\nGlobals: {Function: {Timeout: 3}}\nResources: {F: {Type: AWS::Serverless::Function, Properties: {CodeUri: s3://b/k, Policies: [SQSPollerPolicy: {QueueName: q}], Events: {E: {Type: SQS, Properties: {Queue: x}}}}}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		parsed, err := template.Parse(body)
		if err != nil {
			if said(err) == "" {
				t.Fatal("refused without a word")
			}
			return
		}
		if !json.Valid(parsed.JSON()) {
			t.Fatal("no JSON")
		}
		in := inputs()
		in.Parameters = map[string]string{}
		for _, p := range parsed.ParameterList() {
			in.Parameters[p.Name] = "a,b"
		}
		b, err := parsed.Bind(in)
		if err != nil {
			return
		}
		ids := b.Order()
		if len(ids) != len(b.Resources()) {
			t.Fatalf("%d of %d resources have an order", len(ids), len(b.Resources()))
		}
		place := map[string]int{}
		for i, id := range ids {
			place[id] = i
			for _, on := range b.DependsOn(id) {
				if before, ok := place[on]; !ok || before >= i {
					t.Fatalf("%s comes before %s, which it depends on", id, on)
				}
			}
			_, _ = b.Properties(id, made{})
		}
		_, _ = b.Outputs(made{})
		_ = b.Check(types{})
		parsed.Summary(types{})
	})
}

// What a caller does with an answer changes nothing of the template.
func TestAnswersAreCopies(t *testing.T) {
	b, err := bind("Resources: {A: {Type: T, Properties: {X: [1]}}, B: {Type: T, DependsOn: A}}")
	if err != nil {
		t.Fatal(err)
	}
	first, err := b.Properties("A", made{})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := first["X"].([]any)
	list[0] = "2"
	ids := b.Order()
	ids[0] = "Z"
	b.DependsOn("B")[0] = "Z"
	again, _ := b.Properties("A", made{})
	ids = b.Order()
	if fmt.Sprint(again, ids, b.DependsOn("B")) != "map[X:[1]] [A B] [A]" {
		t.Error(again, ids, b.DependsOn("B"))
	}
}

// A template has no more of anything than AWS lets it have.
func TestNumbers(t *testing.T) {
	for section, most := range map[string]int{
		"Resources": template.MaxResources, "Parameters": template.MaxParameters, "Outputs": template.MaxOutputs, "Mappings": template.MaxMappings,
	} {
		member := map[string]string{"Resources": "{Type: T}", "Parameters": "{Type: String}", "Outputs": "{Value: x}", "Mappings": "{a: {b: c}}"}[section]
		for n, refused := range map[int]bool{most: false, most + 1: true} {
			var body strings.Builder
			body.WriteString(section + ":\n")
			for i := range n {
				fmt.Fprintf(&body, "  M%d: %s\n", i, member)
			}
			if section != "Resources" {
				body.WriteString("Resources: {A: {Type: T}}\n")
			}
			want := ""
			if refused {
				want = fmt.Sprintf("Template format error: Number of %s, %d, is greater than maximum allowed, %d", strings.ToLower(section), n, most)
			}
			got := ""
			if _, err := template.Parse([]byte(body.String())); err != nil {
				got = refusal.Text(err)
			}
			if got != want {
				t.Errorf("%d %s: %q, want %q", n, section, got, want)
			}
		}
	}
}
