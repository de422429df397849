package identities

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/server/deploying/holder"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// change calls an operation of IAM that answers nothing.
func change(ctx context.Context, w *step.Work, operation string, in any) error {
	_, err := step.Ask[iam.Empty](ctx, w, "iam", operation, w.Region, in)
	return err
}

// give has a holder gain or lose a policy.
func give(ctx context.Context, w *step.Work, c holder.Change) error {
	return change(ctx, w, c.Operation, c.In)
}

// take is give of what may be gone.
func take(ctx context.Context, w *step.Work, c holder.Change) error {
	return step.UnlessGone(give(ctx, w, c))
}

// inlines are the documents of a property of policies, by their names.
func inlines(value any) map[string]string {
	items, _ := value.([]any)
	found := map[string]string{}
	for _, item := range items {
		if policy, ok := item.(map[string]any); ok {
			found[step.Text(policy["PolicyName"])] = step.Text(policy["PolicyDocument"])
		}
	}
	return found
}

// equip gives a holder the policies that properties have, those that are not there already,
// and takes away what only the former properties have. With nil for now it takes away all.
func equip(ctx context.Context, w *step.Work, h holder.Holder, was, now map[string]any) error {
	had, has := step.List(was["ManagedPolicyArns"]), step.List(now["ManagedPolicyArns"])
	for _, managed := range has {
		if !slices.Contains(had, managed) {
			if err := give(ctx, w, h.Attach(managed)); err != nil {
				return err
			}
		}
	}
	for _, managed := range had {
		if !slices.Contains(has, managed) {
			if err := take(ctx, w, h.Detach(managed)); err != nil {
				return err
			}
		}
	}
	before, after := inlines(was["Policies"]), inlines(now["Policies"])
	for policy, document := range after {
		if before[policy] != document {
			if err := unclaimed(w, h, policy); err != nil {
				return err
			}
			if err := give(ctx, w, h.Put(policy, document)); err != nil {
				return err
			}
		}
	}
	for policy := range before {
		if _, ok := after[policy]; !ok {
			if err := withdraw(ctx, w, h, policy); err != nil {
				return err
			}
		}
	}
	return nil
}

// reequip is equip with all that an update changes.
func reequip(ctx context.Context, w *step.Work, h holder.Holder) error {
	// As of a policy of its own: see putPolicy.
	stays, former := inlines(w.Target.Properties["Policies"]), inlines(w.Former["Policies"])
	for policy := range inlines(w.Failed["Policies"]) {
		_, now := stays[policy]
		if _, before := former[policy]; !now && !before {
			if err := withdraw(ctx, w, h, policy); err != nil {
				return err
			}
		}
	}
	for _, was := range w.Earlier() {
		if err := equip(ctx, w, h, was, w.Target.Properties); err != nil {
			return err
		}
	}
	return nil
}

// disarm takes all policies away from a holder that is to go.
func disarm(ctx context.Context, w *step.Work, h holder.Holder) error {
	for _, was := range append(w.Earlier(), w.Target.Properties) {
		if err := equip(ctx, w, h, was, nil); err != nil {
			return err
		}
	}
	return nil
}

// bound changes the permissions boundary of a role or user.
func bound(ctx context.Context, w *step.Work, h holder.Holder, was, now any) error {
	switch {
	case resource.Same(was, now):
		return nil
	case now == nil:
		return take(ctx, w, h.Unbound())
	default:
		return give(ctx, w, h.Bound(step.Text(now)))
	}
}

// iamTags are tags as IAM has them.
func iamTags(of map[string]string) (all []iam.Tag) {
	for key, value := range of {
		all = append(all, iam.Tag{Key: &key, Value: &value})
	}
	return all
}

// unclaimed refuses to give an inline policy that another resource of a stack has.
func unclaimed(w *step.Work, h holder.Holder, policy string) error {
	claims := w.Options.Giving(w.Task, h.Inline(policy))
	if claims.Wait {
		return step.ErrUnderWay
	}
	return managed(claims.By)
}

// managed refuses what other resources have.
func managed(others []string) error {
	if len(others) == 0 {
		return nil
	}
	return &step.Error{Text: "Policy resource was already managed by another stack or another resource in the current stack. Found stacks: [" + strings.Join(others, ", ") + "]"}
}

func putPolicy(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: map[string]any{"Id": w.Target.Physical}}
	now, name := holder.In(w.Target.Properties), step.Text(w.Target.Properties["PolicyName"])
	if len(now) == 0 {
		return step.Made{}, &step.Error{Text: "At least one of [Groups,Roles,Users] must be non-empty.", Code: "InvalidRequest"}
	}
	for _, h := range now {
		if err := unclaimed(w, h, name); err != nil {
			if w.Action == stack.Create {
				is = step.Made{}
			}
			return is, err
		}
	}
	// What an update before this one has given and not completed goes first: if this one fails, too,
	// nobody knows of it any more.
	if err := withdrawAll(ctx, w, w.Failed, w.Target.Properties, w.Former); err != nil {
		return is, err
	}
	for _, h := range now {
		if err := give(ctx, w, h.Put(name, step.Text(w.Target.Properties["PolicyDocument"]))); err != nil {
			return is, err
		}
	}
	for _, was := range w.Earlier() {
		if err := withdrawAll(ctx, w, was, w.Target.Properties); err != nil {
			return is, err
		}
	}
	return is, nil
}

// withdrawAll takes the inline policy of properties away from all whom other properties do not give it.
func withdrawAll(ctx context.Context, w *step.Work, was map[string]any, but ...map[string]any) error {
	name := step.Text(was["PolicyName"])
	for _, h := range holder.In(was) {
		same := func(other holder.Holder) bool { return other.Kind == h.Kind && strings.EqualFold(other.Name, h.Name) } // as IAM compares names
		stays := slices.ContainsFunc(but, func(properties map[string]any) bool {
			return step.Text(properties["PolicyName"]) == name && slices.ContainsFunc(holder.In(properties), same)
		})
		if stays {
			continue
		}
		if err := withdraw(ctx, w, h, name); err != nil {
			return err
		}
	}
	return nil
}

// withdraw takes an inline policy away from a holder, unless it is another resource's.
func withdraw(ctx context.Context, w *step.Work, h holder.Holder, policy string) error {
	switch claims := w.Options.Taking(w.Task, h.Inline(policy)); {
	case claims.Wait:
		return step.ErrUnderWay
	case len(claims.By) > 0:
		return nil
	}
	return take(ctx, w, h.Delete(policy))
}

// deletePolicy refuses what another stack has, too, as AWS does: it can be retained.
func deletePolicy(ctx context.Context, w *step.Work) error {
	all := append(w.Earlier(), w.Target.Properties)
	for _, properties := range all {
		for _, h := range holder.In(properties) {
			if err := managed(w.Options.Taking(w.Task, h.Inline(step.Text(properties["PolicyName"]))).Shared); err != nil {
				return err
			}
		}
	}
	for _, properties := range all {
		if err := withdrawAll(ctx, w, properties); err != nil {
			return err
		}
	}
	return nil
}
