package cloudformation_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/template"
)

// emptied is an Engine whose parameter store has lost what a change set was made with.
type emptied struct {
	cloudformation.Engine
	input stack.Input
}

func (e *emptied) Parameters(string, string, func(string) bool) func(string) (string, bool) {
	return nil
}

func (e *emptied) ChangeSet(string, string, string, string) (stacks.ChangeSet, error) {
	return stacks.ChangeSet{Input: e.input}, nil
}

func (e *emptied) Execute(_ context.Context, _, _, _, _ string, _ *stack.Request) error {
	t, err := template.Parse([]byte("Parameters: {P: {Type: 'AWS::SSM::Parameter::Value<String>'}, Q: {Type: 'AWS::SSM::Parameter::Value<String>'}}\nResources: {T: {Type: AWS::SNS::Topic}}"))
	if err != nil {
		return err
	}
	_, err = stack.Bind(t, &stack.Stack{}, &e.input, nil, nil)
	return err
}

// A template that was good for its change set, and is not when that is executed, is refused for what
// is wrong with it, without the values that are hidden.
func TestExecuteOfWhatIsRefused(t *testing.T) {
	e := &emptied{input: stack.Input{Parameters: []stack.Parameter{{Key: "P", Value: "/shop/size"}, {Key: "Q", Value: "/canary", NoEcho: true}}}}
	operations := cloudformation.New(cloudformation.Options{Engine: e, NewID: uuid.NewString}).Operations()
	op := operations[slices.IndexFunc(operations, func(o api.Operation) bool { return o.Name == "ExecuteChangeSet" })]
	_, err := op.Invoke(t.Context(), &api.Call{Service: "cloudformation", Account: "111122223333", Region: "us-east-1"},
		&cloudformation.ExecuteChangeSetInput{StackName: new("s"), ChangeSetName: "c"})
	const want = "Unable to fetch parameters [/shop/size, ****] from parameter store for this account."
	if err == nil || fault.KindOf(err) != fault.ValidationFailed || refusal.Text(err) != want {
		t.Errorf("%v: %s\nwant %s", fault.KindOf(err), refusal.Text(err), want)
	}
}

// roled is an Engine with a stack that was made in a role.
type roled struct{ cloudformation.Engine }

func (roled) Get(string, string, string) (stacks.View, error) {
	return stacks.View{Stack: stack.Stack{ID: "arn:aws:cloudformation:us-east-1:111122223333:stack/s/1", Name: "s", Input: stack.Input{Role: "arn:aws:iam::111122223333:role/gone"}}}, nil
}

func (roled) Parameters(string, string, func(string) bool) func(string) (string, bool) { return nil }

func (roled) Template(string, string, string) ([]byte, error) { return nil, stacks.ErrNone }

func (roled) ChangeSet(string, string, string, string) (stacks.ChangeSet, error) {
	return stacks.ChangeSet{Stack: "arn:aws:cloudformation:us-east-1:111122223333:stack/s/1", Input: stack.Input{Role: "arn:aws:iam::111122223333:role/gone"}}, nil
}

func (roled) Execute(context.Context, string, string, string, string, *stack.Request) error {
	return nil
}

func (roled) Create(context.Context, *stacks.Creation) (string, error) { return "created", nil }

// A role in which CloudFormation cannot act is refused before a stack is made, changed or deleted: the
// stack would be left behind, with nothing in it.
func TestRoleThatCannotBeAssumed(t *testing.T) {
	acting := func(_ arn.ARN, role string) (*caller.Caller, error) {
		if role == "arn:aws:iam::111122223333:role/deploys" {
			return &caller.Caller{}, nil
		}
		return nil, fault.New(fault.NoSuchEntity, "")
	}
	operations := cloudformation.New(cloudformation.Options{Engine: roled{}, NewID: uuid.NewString, Acting: acting}).Operations()
	ask := func(name string, in any) error {
		op := operations[slices.IndexFunc(operations, func(o api.Operation) bool { return o.Name == name })]
		_, err := op.Invoke(t.Context(), &api.Call{Service: "cloudformation", Account: "111122223333", Region: "us-east-1", Caller: &caller.Caller{}}, in)
		return err
	}
	body, gone, there := new("Resources: {T: {Type: AWS::SNS::Topic}}"), new("arn:aws:iam::111122223333:role/gone"), new("arn:aws:iam::111122223333:role/deploys")
	const want = "Role arn:aws:iam::111122223333:role/gone is invalid or cannot be assumed"
	for name, in := range map[string]any{
		"CreateStack":            &cloudformation.CreateStackInput{StackName: "s", TemplateBody: body, RoleARN: gone},
		"UpdateStack":            &cloudformation.UpdateStackInput{StackName: "s", TemplateBody: body},
		"CreateChangeSet":        &cloudformation.CreateChangeSetInput{StackName: "s", ChangeSetName: "c", TemplateBody: body, RoleARN: gone},
		"ExecuteChangeSet":       &cloudformation.ExecuteChangeSetInput{StackName: new("s"), ChangeSetName: "c"},
		"DeleteStack":            &cloudformation.DeleteStackInput{StackName: "s"},
		"RollbackStack":          &cloudformation.RollbackStackInput{StackName: "s"},
		"ContinueUpdateRollback": &cloudformation.ContinueUpdateRollbackInput{StackName: "s", RoleARN: gone},
	} {
		if err := ask(name, in); fault.KindOf(err) != fault.ValidationFailed || refusal.Text(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ask("CreateStack", &cloudformation.CreateStackInput{StackName: "s", TemplateBody: body, RoleARN: there}); err != nil {
		t.Error(err)
	}
}
