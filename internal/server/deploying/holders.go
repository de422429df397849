package deploying

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/server/deploying/holder"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// change calls an operation of IAM that answers nothing.
func (w *work) change(ctx context.Context, operation string, in any) error {
	_, err := ask[iam.Empty](ctx, w, "iam", operation, w.Region, in)
	return err
}

// unlessGone takes it for done that what is to go is gone.
func unlessGone(err error) error {
	if stacks.IsGone(err) {
		return nil
	}
	return err
}

// give has a holder gain or lose a policy.
func (w *work) give(ctx context.Context, c holder.Change) error {
	return w.change(ctx, c.Operation, c.In)
}

// take is give of what may be gone.
func (w *work) take(ctx context.Context, c holder.Change) error { return unlessGone(w.give(ctx, c)) }

// inlines are the documents of a property of policies, by their names.
func inlines(value any) map[string]string {
	items, _ := value.([]any)
	found := map[string]string{}
	for _, item := range items {
		if policy, ok := item.(map[string]any); ok {
			found[text(policy["PolicyName"])] = text(policy["PolicyDocument"])
		}
	}
	return found
}

// equip gives a holder the policies that properties have, those that are not there already,
// and takes away what only the former properties have. With nil for now it takes away all.
func (w *work) equip(ctx context.Context, h holder.Holder, was, now map[string]any) error {
	had, has := list(was["ManagedPolicyArns"]), list(now["ManagedPolicyArns"])
	for _, managed := range has {
		if !slices.Contains(had, managed) {
			if err := w.give(ctx, h.Attach(managed)); err != nil {
				return err
			}
		}
	}
	for _, managed := range had {
		if !slices.Contains(has, managed) {
			if err := w.take(ctx, h.Detach(managed)); err != nil {
				return err
			}
		}
	}
	before, after := inlines(was["Policies"]), inlines(now["Policies"])
	for policy, document := range after {
		if before[policy] != document {
			if err := w.unclaimed(h, policy); err != nil {
				return err
			}
			if err := w.give(ctx, h.Put(policy, document)); err != nil {
				return err
			}
		}
	}
	for policy := range before {
		if _, ok := after[policy]; !ok {
			if err := w.withdraw(ctx, h, policy); err != nil {
				return err
			}
		}
	}
	return nil
}

// reequip is equip with all that an update changes.
func (w *work) reequip(ctx context.Context, h holder.Holder) error {
	// As of a policy of its own: see putPolicy.
	stays, former := inlines(w.Target.Properties["Policies"]), inlines(w.Former["Policies"])
	for policy := range inlines(w.Failed["Policies"]) {
		_, now := stays[policy]
		if _, before := former[policy]; !now && !before {
			if err := w.withdraw(ctx, h, policy); err != nil {
				return err
			}
		}
	}
	for _, was := range w.earlier() {
		if err := w.equip(ctx, h, was, w.Target.Properties); err != nil {
			return err
		}
	}
	return nil
}

// disarm takes all policies away from a holder that is to go.
func (w *work) disarm(ctx context.Context, h holder.Holder) error {
	for _, was := range append(w.earlier(), w.Target.Properties) {
		if err := w.equip(ctx, h, was, nil); err != nil {
			return err
		}
	}
	return nil
}

// earlier are the properties that an update changes, or that a deletion takes away beside those of its
// target: all of those that the resource may have in part.
func (w *work) earlier() (all []map[string]any) {
	if w.Action == stack.Create {
		return nil
	}
	all = append(all, w.Now) // which may be nil: there were no properties
	for _, properties := range []map[string]any{w.Failed, w.Former} {
		if properties != nil {
			all = append(all, properties)
		}
	}
	return all
}

// bound changes the permissions boundary of a role or user.
func (w *work) bound(ctx context.Context, h holder.Holder, was, now any) error {
	switch {
	case resource.Same(was, now):
		return nil
	case now == nil:
		return w.take(ctx, h.Unbound())
	default:
		return w.give(ctx, h.Bound(text(now)))
	}
}

// iamTags are tags as IAM has them.
func iamTags(of map[string]string) (all []iam.Tag) {
	for key, value := range of {
		all = append(all, iam.Tag{Key: &key, Value: &value})
	}
	return all
}

// optional is the text of a property; nil: it has none.
func optional(value any) *string {
	if value == nil {
		return nil
	}
	s := text(value)
	return &s
}

// unclaimed refuses to give an inline policy that another resource of a stack has.
func (w *work) unclaimed(h holder.Holder, policy string) error {
	claims := w.worker.Giving(w.Task, h.Inline(policy))
	if claims.Wait {
		return errUnderWay
	}
	return managed(claims.By)
}

// managed refuses what other resources have.
func managed(others []string) error {
	if len(others) == 0 {
		return nil
	}
	return &handlerError{text: "Policy resource was already managed by another stack or another resource in the current stack. Found stacks: [" + strings.Join(others, ", ") + "]"}
}

func putPolicy(ctx context.Context, w *work) (made, error) {
	is := made{w.Target.Physical, map[string]any{"Id": w.Target.Physical}}
	now, name := holder.In(w.Target.Properties), text(w.Target.Properties["PolicyName"])
	if len(now) == 0 {
		return made{}, &handlerError{"At least one of [Groups,Roles,Users] must be non-empty.", "InvalidRequest"}
	}
	for _, h := range now {
		if err := w.unclaimed(h, name); err != nil {
			if w.Action == stack.Create {
				is = made{}
			}
			return is, err
		}
	}
	// What an update before this one has given and not completed goes first: if this one fails, too,
	// nobody knows of it any more.
	if err := w.withdrawAll(ctx, w.Failed, w.Target.Properties, w.Former); err != nil {
		return is, err
	}
	for _, h := range now {
		if err := w.give(ctx, h.Put(name, text(w.Target.Properties["PolicyDocument"]))); err != nil {
			return is, err
		}
	}
	for _, was := range w.earlier() {
		if err := w.withdrawAll(ctx, was, w.Target.Properties); err != nil {
			return is, err
		}
	}
	return is, nil
}

// withdrawAll takes the inline policy of properties away from all whom other properties do not give it.
func (w *work) withdrawAll(ctx context.Context, was map[string]any, but ...map[string]any) error {
	name := text(was["PolicyName"])
	for _, h := range holder.In(was) {
		same := func(other holder.Holder) bool { return other.Kind == h.Kind && strings.EqualFold(other.Name, h.Name) } // as IAM compares names
		stays := slices.ContainsFunc(but, func(properties map[string]any) bool {
			return text(properties["PolicyName"]) == name && slices.ContainsFunc(holder.In(properties), same)
		})
		if stays {
			continue
		}
		if err := w.withdraw(ctx, h, name); err != nil {
			return err
		}
	}
	return nil
}

// withdraw takes an inline policy away from a holder, unless it is another resource's.
func (w *work) withdraw(ctx context.Context, h holder.Holder, policy string) error {
	switch claims := w.worker.Taking(w.Task, h.Inline(policy)); {
	case claims.Wait:
		return errUnderWay
	case len(claims.By) > 0:
		return nil
	}
	return w.take(ctx, h.Delete(policy))
}

// deletePolicy refuses what another stack has, too, as AWS does: it can be retained.
func deletePolicy(ctx context.Context, w *work) error {
	all := append(w.earlier(), w.Target.Properties)
	for _, properties := range all {
		for _, h := range holder.In(properties) {
			if err := managed(w.worker.Taking(w.Task, h.Inline(text(properties["PolicyName"]))).Shared); err != nil {
				return err
			}
		}
	}
	for _, properties := range all {
		if err := w.withdrawAll(ctx, properties); err != nil {
			return err
		}
	}
	return nil
}
