package deploying

import (
	"context"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// nest is a nested stack, which notes what it is told.
type nest struct {
	stack.Stack
	told []string
}

func (n *nest) Get(string, string, string) (stacks.View, error) {
	return stacks.View{Stack: n.Stack}, nil
}

func (n *nest) BeginCleanup(context.Context, string, string, string) error {
	n.told = append(n.told, "cleanup")
	return nil
}

func (n *nest) Revert(context.Context, string, string, string, *stack.Request) error {
	n.told = append(n.told, "revert")
	return nil
}

func (n *nest) ContinueRollback(context.Context, string, string, string, *stack.Request) error {
	n.told = append(n.told, "continue the rollback")
	return nil
}

// A nested stack whose update is held is brought back with the stack around it, once: what a rollback's
// own step has made of it is cleaned up.
func TestNestedIsBroughtBackOnce(t *testing.T) {
	for token, want := range map[string]string{"another step's": "revert", "token-1": "cleanup"} {
		n := &nest{Stack: stack.Stack{Status: stack.UpdateCleanup, Former: &stack.Input{}, Token: token}}
		w := &Worker{step.Options{Within: new(fake).within, URL: endpoint, Stacks: n}}
		back := task(stack.Update, stack.Type, "arn:aws:cloudformation:eu-west-1:111122223333:stack/s-N/2", nil)
		back.Back = true
		if o, later := w.Do(t.Context(), back); later <= 0 || o.Reason != "" || !slices.Equal(n.told, []string{want}) {
			t.Errorf("of %s token: %+v, later %s; told %v, want %s", token, o, later, n.told, want)
		}
	}
}
