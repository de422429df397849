package deploying

import (
	"cmp"
	"context"
	"slices"

	"godwit.dev/godwit/internal/api/kms"
	"godwit.dev/godwit/internal/fault"
	keys "godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

func kmsTags(of map[string]string) (tags []kms.Tag) {
	for key, value := range of {
		tags = append(tags, kms.Tag{TagKey: &key, TagValue: &value})
	}
	return tags
}

// keyChange calls an operation on the key that answers nothing.
func (w *work) keyChange(ctx context.Context, operation string, in any) error {
	_, err := ask[kms.Empty](ctx, w, "kms", operation, w.Region, in)
	return err
}

func truth(value any, otherwise bool) bool {
	if on, ok := value.(bool); ok {
		return on
	}
	return otherwise
}

func createKey(ctx context.Context, w *work) (made, error) {
	properties := w.Target.Properties
	in := &kms.CreateKeyInput{Policy: optional(properties["KeyPolicy"]), Tags: kmsTags(tags(properties["Tags"]))}
	direct := map[string]any{}
	for _, name := range []string{"BypassPolicyLockoutSafetyCheck", "Description", "KeySpec", "KeyUsage", "MultiRegion", "Origin"} {
		if value, ok := properties[name]; ok {
			direct[name] = value
		}
	}
	if err := fill(direct, in); err != nil {
		return made{}, err
	}
	out, err := create[kms.KeyMetadataOutput](ctx, w, "kms", "CreateKey", in)
	if err != nil {
		return made{}, err
	}
	id := out.KeyMetadata.KeyId
	is := made{id, map[string]any{"Arn": out.KeyMetadata.Arn, "KeyId": id}}
	return is, w.adjustKey(ctx, id, truth(properties["Enabled"], true), out.KeyMetadata.Enabled, func() error { return w.rotate(ctx, id, nil, properties) })
}

// adjustKey calls change while a key is enabled, if it was or is to be that.
func (w *work) adjustKey(ctx context.Context, id string, enabled, was bool, change func() error) error {
	named := &kms.KeyInput{KeyId: id}
	if !was && (enabled || w.Action == stack.Create || w.Again) { // an interrupted step may have disabled it
		if err := w.keyChange(ctx, "EnableKey", named); err != nil {
			return err
		}
		was = true
	}
	if err := change(); err != nil || enabled || !was {
		return err
	}
	return w.keyChange(ctx, "DisableKey", named)
}

// rotate has a key rotated as properties say.
func (w *work) rotate(ctx context.Context, id string, was, now map[string]any) error {
	on := truth(now["EnableKeyRotation"], false)
	switch {
	case on == truth(was["EnableKeyRotation"], false) && (!on || resource.Same(was["RotationPeriodInDays"], now["RotationPeriodInDays"])):
		return nil
	case !on:
		return w.keyChange(ctx, "DisableKeyRotation", &kms.KeyInput{KeyId: id})
	}
	in := &kms.EnableKeyRotationInput{KeyId: id}
	if days, ok := now["RotationPeriodInDays"]; ok {
		if err := fill(map[string]any{"RotationPeriodInDays": days}, in); err != nil {
			return err
		}
	}
	return w.keyChange(ctx, "EnableKeyRotation", in)
}

// keptOfKey refuses what would make another key, and so lose what is encrypted under this one. What
// a key is counts, and not what a template said of it: a rollback of such a change finds it as it was.
// enabled reports whether the key is.
func (w *work) keptOfKey(ctx context.Context, id string, now map[string]any) (enabled bool, err error) {
	found, err := ask[kms.KeyMetadataOutput](ctx, w, "kms", "DescribeKey", w.Region, &kms.KeyInput{KeyId: id})
	if err != nil {
		return false, err
	}
	key := &found.KeyMetadata
	for _, of := range []struct{ property, is, otherwise string }{
		{"KeySpec", key.KeySpec, keys.SymmetricDefault},
		{"KeyUsage", key.KeyUsage, key.KeyUsage},
		{"MultiRegion", "false", "false"},
		{"Origin", key.Origin, key.Origin},
	} {
		if cmp.Or(text(now[of.property]), of.otherwise) != of.is {
			return false, &handlerError{"You cannot modify the " + of.property + " property of a KMS key.", "NotUpdatable"}
		}
	}
	return key.Enabled, nil
}

func updateKey(ctx context.Context, w *work) (made, error) {
	id, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := made{id, w.Target.Attributes}
	enabled, err := w.keptOfKey(ctx, id, now)
	if err != nil {
		return is, err
	}
	if !resource.Same(was["KeyPolicy"], now["KeyPolicy"]) {
		policy := cmp.Or(text(now["KeyPolicy"]), keys.DefaultPolicy(w.Account))
		bypass := truth(now["BypassPolicyLockoutSafetyCheck"], false)
		if err := w.keyChange(ctx, "PutKeyPolicy", &kms.KeyPolicyInput{KeyId: id, Policy: &policy, BypassPolicyLockoutSafetyCheck: &bypass}); err != nil {
			return is, err
		}
	}
	if !resource.Same(was["Description"], now["Description"]) {
		description := text(now["Description"])
		if err := w.keyChange(ctx, "UpdateKeyDescription", &kms.UpdateKeyDescriptionInput{KeyId: id, Description: &description}); err != nil {
			return is, err
		}
	}
	set, gone := retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := w.keyChange(ctx, "UntagResource", &kms.UntagResourceInput{KeyId: id, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := w.keyChange(ctx, "TagResource", &kms.TagResourceInput{KeyId: id, Tags: kmsTags(set)}); err != nil {
			return is, err
		}
	}
	return is, w.adjustKey(ctx, id, truth(now["Enabled"], true), enabled, func() error { return w.rotate(ctx, id, was, now) })
}

func deleteKey(ctx context.Context, w *work) error {
	in := &kms.ScheduleKeyDeletionInput{KeyId: w.Target.Physical}
	if days, ok := w.Target.Properties["PendingWindowInDays"]; ok {
		if err := fill(map[string]any{"PendingWindowInDays": days}, in); err != nil {
			return err
		}
	}
	_, err := ask[kms.ScheduleKeyDeletionOutput](ctx, w, "kms", "ScheduleKeyDeletion", w.Region, in)
	if fault.KindOf(err) == fault.KMSInvalidState { // it is to be deleted already
		return nil
	}
	return unlessGone(err)
}

func createKeyAlias(ctx context.Context, w *work) (made, error) {
	in := &kms.AliasInput{AliasName: w.Target.Physical, TargetKeyId: text(w.Target.Properties["TargetKeyId"])}
	err := w.keyChange(ctx, "CreateAlias", in)
	if exists(err) {
		found, other := ask[kms.ListAliasesOutput](ctx, w, "kms", "ListAliases", w.Region, &kms.ListAliasesInput{KeyId: &in.TargetKeyId})
		if other != nil {
			return made{}, other
		}
		own := slices.ContainsFunc(found.Aliases, func(a kms.Alias) bool {
			return a.AliasName == in.AliasName && a.CreationDate != nil && w.ownSince(*a.CreationDate)
		})
		if !own {
			return made{}, w.taken(in.AliasName)
		}
		err = nil
	}
	if err != nil {
		return made{}, err
	}
	return made{physical: in.AliasName}, nil
}

func updateKeyAlias(ctx context.Context, w *work) (made, error) {
	err := w.keyChange(ctx, "UpdateAlias", &kms.AliasInput{AliasName: w.Target.Physical, TargetKeyId: text(w.Target.Properties["TargetKeyId"])})
	return made{physical: w.Target.Physical}, err
}

func deleteKeyAlias(ctx context.Context, w *work) error {
	return unlessGone(w.keyChange(ctx, "DeleteAlias", &kms.DeleteAliasInput{AliasName: w.Target.Physical}))
}
