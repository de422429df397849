package deploying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// below has operations be steps of this stack.
func below(ctx context.Context, w *step.Work) context.Context {
	return cloudformation.WithNesting(ctx, &cloudformation.Nesting{Parent: w.Stack, Root: w.Root, Depth: w.Depth + 1, By: w.By, Role: w.Role, Secrets: w.Secrets})
}

// nestedParameters are those of a property, whose lists are written as one text.
func nestedParameters(value any) (all []cloudformation.Parameter) {
	given, _ := value.(map[string]any)
	for key, value := range given {
		of := step.Text(value)
		if _, ok := value.([]any); ok {
			of = strings.Join(step.List(value), ",")
		}
		all = append(all, cloudformation.Parameter{ParameterKey: &key, ParameterValue: &of})
	}
	return all
}

func nestedTags(value any) []cloudformation.Tag {
	all := []cloudformation.Tag{}
	for key, value := range step.Tags(value) {
		all = append(all, cloudformation.Tag{Key: key, Value: value})
	}
	// In another order they would be a change of the stack, and of what it has.
	slices.SortFunc(all, func(a, b cloudformation.Tag) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// outputs are what a nested stack gives the one around it.
func outputs(v *stacks.View) step.Made {
	is := step.Made{Physical: v.ID, Attributes: map[string]any{}}
	for _, o := range v.Outputs {
		is.Attributes["Outputs."+o.Key] = o.Value
	}
	return is
}

// embedded says what became of a nested stack.
func embedded(v *stacks.View, verb string) error {
	text := fmt.Sprintf("Embedded stack %s was not successfully %s", v.ID, verb)
	if v.Reason != "" {
		return &step.Error{Text: text + ": " + v.Reason}
	}
	return &step.Error{Text: text + ". Currently in " + string(v.Status)}
}

func createNested(ctx context.Context, w *step.Work) (step.Made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	v, err := w.Options.Stacks.Get(w.Account, w.Region, name)
	switch {
	case errors.Is(err, stacks.ErrNone):
		in := &cloudformation.CreateStackInput{
			StackName: name, TemplateURL: step.Optional(properties["TemplateURL"]), Parameters: nestedParameters(properties["Parameters"]),
			Tags: nestedTags(properties["Tags"]), Capabilities: w.Capabilities, NotificationARNs: step.List(properties["NotificationARNs"]),
			ClientRequestToken: &w.Token, OnFailure: new(stack.OnFailureNothing),
		}
		if minutes, ok := properties["TimeoutInMinutes"]; ok {
			n, err := strconv.Atoi(step.Text(minutes))
			if err != nil {
				return step.Made{}, &step.Error{Text: "TimeoutInMinutes is no number", Code: "InvalidRequest"}
			}
			in.TimeoutInMinutes = &n
		}
		if _, err := step.Ask[cloudformation.CreateStackOutput](below(ctx, w), w, "cloudformation", "CreateStack", w.Region, in); err != nil {
			return step.Made{}, err
		}
		return step.Made{}, step.ErrUnderWay
	case err != nil:
		return step.Made{}, err
	case v.Parent != w.Stack || v.Token != w.Token:
		return step.Made{}, w.Taken(name)
	case v.Status.Busy():
		return step.Made{}, step.ErrUnderWay
	case v.Status != stack.CreateComplete:
		return outputs(&v), embedded(&v, "created")
	}
	return outputs(&v), nil
}

func updateNested(ctx context.Context, w *step.Work) (step.Made, error) {
	own, properties := w.Target.Physical, w.Target.Properties
	is := step.Made{Physical: own, Attributes: w.Target.Attributes}
	v, err := w.Options.Stacks.Get(w.Account, w.Region, own)
	switch {
	case errors.Is(err, stacks.ErrNone), err == nil && v.Status == stack.DeleteComplete:
		return is, w.Missing()
	case err != nil:
		return is, err
	case stack.Held(&v.Stack):
		switch {
		case w.Back && v.Token == w.Token: // this very step has brought it back, from an update that no step of its parent holds
			return is, cmp.Or(w.Options.Stacks.BeginCleanup(ctx, w.Account, w.Region, own), error(step.ErrUnderWay))
		case w.Back:
			return is, cmp.Or(w.Options.Stacks.Revert(ctx, w.Account, w.Region, own, rollbackRequest(w)), error(step.ErrUnderWay))
		case v.Token == w.Token:
			return outputs(&v), nil
		}
	case v.Status.Busy():
		return is, step.ErrUnderWay
	case w.Back && v.Status == stack.UpdateRollbackDone: // whether it failed itself, or has just been brought back
		return outputs(&v), nil
	case w.Back && v.Status == stack.UpdateRollbackFailed && v.Token != w.Token:
		return is, cmp.Or(w.Options.Stacks.ContinueRollback(ctx, w.Account, w.Region, own, rollbackRequest(w)), error(step.ErrUnderWay))
	case v.Token == w.Token && v.Status != stack.UpdateComplete:
		return is, embedded(&v, "updated")
	case v.Token == w.Token:
		return outputs(&v), nil
	}
	_, err = step.Ask[cloudformation.UpdateStackOutput](below(ctx, w), w, "cloudformation", "UpdateStack", w.Region, &cloudformation.UpdateStackInput{
		StackName: own, TemplateURL: step.Optional(properties["TemplateURL"]), Parameters: nestedParameters(properties["Parameters"]),
		Tags: nestedTags(properties["Tags"]), Capabilities: w.Capabilities, NotificationARNs: step.List(properties["NotificationARNs"]), ClientRequestToken: &w.Token,
	})
	switch {
	case errors.Is(err, stacks.ErrNothing):
		return outputs(&v), nil
	case err != nil:
		return is, err
	}
	return is, step.ErrUnderWay
}

// rollbackRequest asks a nested stack to go back to what it was before.
func rollbackRequest(w *step.Work) *stack.Request {
	return &stack.Request{By: w.By, Token: w.Token, Input: stack.Input{Role: w.Role}, Keep: w.Skip, Nested: true}
}

// cleanUpNested has a nested stack delete what its update has replaced, and says when to look again; 0: it
// has ended.
func cleanUpNested(ctx context.Context, with *step.Options, t *stacks.Task) (later time.Duration) {
	v, err := with.Stacks.Get(t.Account, t.Region, t.Target.Physical)
	if err == nil && stack.Held(&v.Stack) {
		err = with.Stacks.BeginCleanup(ctx, t.Account, t.Region, v.ID)
	}
	if errors.Is(err, stacks.ErrNone) || err == nil && !v.Status.Busy() {
		return 0
	}
	return min(10*time.Millisecond<<min(t.Try, 8), maxLook)
}

func deleteNested(ctx context.Context, w *step.Work) error {
	own := w.Target.Physical
	v, err := w.Options.Stacks.Get(w.Account, w.Region, own)
	switch {
	case errors.Is(err, stacks.ErrNone), err == nil && v.Status == stack.DeleteComplete:
		return nil
	case err != nil:
		return err
	case v.Status.Busy() && v.Status != stack.CreateInProgress && v.Status != stack.RollbackInProgress && !stack.Held(&v.Stack):
		return step.ErrUnderWay
	case v.Token == w.Token: // it has failed, or was refused as an export is in use
		return embedded(&v, "deleted")
	}
	in := &cloudformation.DeleteStackInput{StackName: own, ClientRequestToken: &w.Token}
	if _, err := step.Ask[cloudformation.DeleteStackOutput](below(ctx, w), w, "cloudformation", "DeleteStack", w.Region, in); err != nil {
		return err
	}
	return step.ErrUnderWay
}
