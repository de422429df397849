package cloudformation_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// moving is an Engine with a stack that another update completes just behind the first look at it.
type moving struct {
	cloudformation.Engine

	looks int
	v     stacks.View
	took  *stack.Input
}

const movingText = "Parameters: {A: {Type: String, Default: a}, B: {Type: String, Default: b}}\nResources: {Q: {Type: AWS::SQS::Queue}}"

func (m *moving) Get(string, string, string) (stacks.View, error) {
	v := m.v
	if m.looks++; m.looks == 1 {
		m.v.Phase += 2
		m.v.Input.Parameters = []stack.Parameter{{Key: "A", Value: "of another"}, {Key: "B", Value: "b"}}
	}
	return v, nil
}

func (m *moving) Template(string, string, string) ([]byte, error) { return []byte(movingText), nil }

func (m *moving) Parameters(string, string, func(string) bool) func(string) (string, bool) {
	return nil
}

func (m *moving) Update(_ context.Context, _, _, _ string, _ []byte, req *stack.Request) (string, error) {
	if req.Seen != m.v.Phase {
		return "", stacks.ErrChanged.With(m.v.ID)
	}
	m.took = &req.Input
	return m.v.ID, nil
}

func (m *moving) PutChangeSet(_ context.Context, _ *stacks.Creation, set *stacks.ChangeSet) (string, error) {
	if set.Seen != m.v.Phase {
		return "", stacks.ErrChanged.With(m.v.ID)
	}
	m.took = &set.Input
	return m.v.ID, nil
}

// An update, and a change set, keep the values that a stack has when they begin, and not those that it
// had when the request was read.
func TestOperationsKeepWhatIsCurrent(t *testing.T) {
	kept := []cloudformation.Parameter{{ParameterKey: new("A"), UsePreviousValue: new(true)}, {ParameterKey: new("B"), ParameterValue: new("mine")}}
	for operation, in := range map[string]any{
		"UpdateStack":     &cloudformation.UpdateStackInput{StackName: "s", UsePreviousTemplate: new(true), Parameters: kept},
		"CreateChangeSet": &cloudformation.CreateChangeSetInput{StackName: "s", ChangeSetName: "c", UsePreviousTemplate: new(true), Parameters: kept},
	} {
		m := &moving{v: stacks.View{Stack: stack.Stack{ID: "arn:s", Name: "s", Phase: 2, Status: stack.CreateComplete}}}
		m.v.Input = stack.Input{Template: 1, Parameters: []stack.Parameter{{Key: "A", Value: "a"}, {Key: "B", Value: "b"}}}
		operations := cloudformation.New(cloudformation.Options{Engine: m, NewID: uuid.NewString}).Operations()
		op := operations[slices.IndexFunc(operations, func(o api.Operation) bool { return o.Name == operation })]
		if _, err := op.Invoke(t.Context(), &api.Call{Service: "cloudformation", Account: "111122223333", Region: "us-east-1"}, in); err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		want := []stack.Parameter{{Key: "A", Value: "of another"}, {Key: "B", Value: "mine"}}
		if m.took == nil || !slices.Equal(m.took.Parameters, want) {
			t.Errorf("%s takes %v, not %v", operation, m.took, want)
		}
	}
}
