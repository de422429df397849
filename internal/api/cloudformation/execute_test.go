package cloudformation_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/api/refusal"
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
