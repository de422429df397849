package deploying

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// Stacks is how steps look at the stacks that are nested in theirs.
type Stacks interface {
	Get(account, region, name string) (stacks.View, error)
}

// errUnderWay has a step be taken again: its stack is not complete yet.
var errUnderWay = fault.New(fault.Unavailable, "The nested stack is under way.")

// below has operations be steps of this stack.
func (w *work) below(ctx context.Context) context.Context {
	return cloudformation.WithNesting(ctx, &cloudformation.Nesting{Parent: w.Stack, Root: w.Root, Depth: w.Depth + 1, By: w.By, Role: w.Role})
}

// nestedParameters are those of a property, whose lists are written as one text.
func nestedParameters(value any) (all []cloudformation.Parameter) {
	given, _ := value.(map[string]any)
	for key, value := range given {
		of := text(value)
		if _, ok := value.([]any); ok {
			of = strings.Join(list(value), ",")
		}
		all = append(all, cloudformation.Parameter{ParameterKey: &key, ParameterValue: &of})
	}
	return all
}

func nestedTags(value any) []cloudformation.Tag {
	all := []cloudformation.Tag{}
	for key, value := range tags(value) {
		all = append(all, cloudformation.Tag{Key: key, Value: value})
	}
	return all
}

// outputs are what a nested stack gives the one around it.
func outputs(v *stacks.View) made {
	is := made{v.ID, map[string]any{}}
	for _, o := range v.Outputs {
		is.attributes["Outputs."+o.Key] = o.Value
	}
	return is
}

// embedded says what became of a nested stack.
func embedded(v *stacks.View, verb string) error {
	text := fmt.Sprintf("Embedded stack %s was not successfully %s", v.ID, verb)
	if v.Reason != "" {
		return &handlerError{text: text + ": " + v.Reason}
	}
	return &handlerError{text: text + ". Currently in " + string(v.Status)}
}

func createNested(ctx context.Context, w *work) (made, error) {
	name, properties := w.Target.Physical, w.Target.Properties
	v, err := w.worker.Stacks.Get(w.Account, w.Region, name)
	switch {
	case errors.Is(err, stacks.ErrNone):
		in := &cloudformation.CreateStackInput{
			StackName: name, TemplateURL: optional(properties["TemplateURL"]), Parameters: nestedParameters(properties["Parameters"]),
			Tags: nestedTags(properties["Tags"]), Capabilities: w.Capabilities, NotificationARNs: list(properties["NotificationARNs"]),
			ClientRequestToken: &w.Token, OnFailure: new(stack.OnFailureNothing),
		}
		if minutes, ok := properties["TimeoutInMinutes"]; ok {
			n, err := strconv.Atoi(text(minutes))
			if err != nil {
				return made{}, &handlerError{"TimeoutInMinutes is no number", "InvalidRequest"}
			}
			in.TimeoutInMinutes = &n
		}
		if _, err := ask[cloudformation.CreateStackOutput](w.below(ctx), w, "cloudformation", "CreateStack", w.Region, in); err != nil {
			return made{}, err
		}
		return made{}, errUnderWay
	case err != nil:
		return made{}, err
	case v.Parent != w.Stack || v.Token != w.Token:
		return made{}, w.taken(name)
	case v.Status.Busy():
		return made{}, errUnderWay
	case v.Status != stack.CreateComplete:
		return outputs(&v), embedded(&v, "created")
	}
	return outputs(&v), nil
}

func updateNested(ctx context.Context, w *work) (made, error) {
	own, properties := w.Target.Physical, w.Target.Properties
	is := made{own, w.Target.Attributes}
	v, err := w.worker.Stacks.Get(w.Account, w.Region, own)
	switch {
	case errors.Is(err, stacks.ErrNone), err == nil && v.Status == stack.DeleteComplete:
		return is, w.missing()
	case err != nil:
		return is, err
	case v.Status.Busy():
		return is, errUnderWay
	case v.Token == w.Token && v.Status != stack.UpdateComplete:
		return is, embedded(&v, "updated")
	case v.Token == w.Token:
		return outputs(&v), nil
	}
	_, err = ask[cloudformation.UpdateStackOutput](w.below(ctx), w, "cloudformation", "UpdateStack", w.Region, &cloudformation.UpdateStackInput{
		StackName: own, TemplateURL: optional(properties["TemplateURL"]), Parameters: nestedParameters(properties["Parameters"]),
		Tags: nestedTags(properties["Tags"]), Capabilities: w.Capabilities, NotificationARNs: list(properties["NotificationARNs"]), ClientRequestToken: &w.Token,
	})
	switch {
	case errors.Is(err, stacks.ErrNothing):
		return outputs(&v), nil
	case err != nil:
		return is, err
	}
	return is, errUnderWay
}

func deleteNested(ctx context.Context, w *work) error {
	own := w.Target.Physical
	v, err := w.worker.Stacks.Get(w.Account, w.Region, own)
	switch {
	case errors.Is(err, stacks.ErrNone), err == nil && v.Status == stack.DeleteComplete:
		return nil
	case err != nil:
		return err
	case v.Status.Busy() && v.Status != stack.CreateInProgress && v.Status != stack.RollbackInProgress:
		return errUnderWay
	case v.Token == w.Token && v.Status == stack.DeleteFailed:
		return embedded(&v, "deleted")
	}
	in := &cloudformation.DeleteStackInput{StackName: own, ClientRequestToken: &w.Token}
	if _, err := ask[cloudformation.DeleteStackOutput](w.below(ctx), w, "cloudformation", "DeleteStack", w.Region, in); err != nil {
		return err
	}
	return errUnderWay
}
