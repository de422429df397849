package deploying

import (
	"cmp"
	"context"
	"slices"

	"godwit.dev/godwit/internal/api/kms"
	"godwit.dev/godwit/internal/fault"
	keys "godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/server/deploying/step"
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
func keyChange(ctx context.Context, w *step.Work, operation string, in any) error {
	_, err := step.Ask[kms.Empty](ctx, w, "kms", operation, w.Region, in)
	return err
}

func truth(value any, otherwise bool) bool {
	if on, ok := value.(bool); ok {
		return on
	}
	return otherwise
}

func createKey(ctx context.Context, w *step.Work) (step.Made, error) {
	properties := w.Target.Properties
	in := &kms.CreateKeyInput{Policy: step.Optional(properties["KeyPolicy"]), Tags: kmsTags(step.Tags(properties["Tags"]))}
	direct := map[string]any{}
	for _, name := range []string{"BypassPolicyLockoutSafetyCheck", "Description", "KeySpec", "KeyUsage", "MultiRegion", "Origin"} {
		if value, ok := properties[name]; ok {
			direct[name] = value
		}
	}
	if err := step.Fill(direct, in); err != nil {
		return step.Made{}, err
	}
	out, err := step.AskOnce[kms.KeyMetadataOutput](ctx, w, "kms", "CreateKey", in)
	if err != nil {
		return step.Made{}, err
	}
	id := out.KeyMetadata.KeyId
	is := step.Made{Physical: id, Attributes: map[string]any{"Arn": out.KeyMetadata.Arn, "KeyId": id}}
	return is, adjustKey(ctx, w, id, truth(properties["Enabled"], true), out.KeyMetadata.Enabled, func() error { return rotate(ctx, w, id, nil, properties) })
}

// adjustKey calls change while a key is enabled, if it was or is to be that.
func adjustKey(ctx context.Context, w *step.Work, id string, enabled, was bool, change func() error) error {
	named := &kms.KeyInput{KeyId: id}
	if !was && (enabled || w.Action == stack.Create || w.Again) { // an interrupted step may have disabled it
		if err := keyChange(ctx, w, "EnableKey", named); err != nil {
			return err
		}
		was = true
	}
	if err := change(); err != nil || enabled || !was {
		return err
	}
	return keyChange(ctx, w, "DisableKey", named)
}

// rotate has a key rotated as properties say.
func rotate(ctx context.Context, w *step.Work, id string, was, now map[string]any) error {
	on := truth(now["EnableKeyRotation"], false)
	switch {
	case on == truth(was["EnableKeyRotation"], false) && (!on || resource.Same(was["RotationPeriodInDays"], now["RotationPeriodInDays"])):
		return nil
	case !on:
		return keyChange(ctx, w, "DisableKeyRotation", &kms.KeyInput{KeyId: id})
	}
	in := &kms.EnableKeyRotationInput{KeyId: id}
	if days, ok := now["RotationPeriodInDays"]; ok {
		if err := step.Fill(map[string]any{"RotationPeriodInDays": days}, in); err != nil {
			return err
		}
	}
	return keyChange(ctx, w, "EnableKeyRotation", in)
}

// keptOfKey refuses what would make another key, and so lose what is encrypted under this one. What
// a key is counts, and not what a template said of it: a rollback of such a change finds it as it was.
// enabled reports whether the key is.
func keptOfKey(ctx context.Context, w *step.Work, id string, now map[string]any) (enabled bool, err error) {
	found, err := step.Ask[kms.KeyMetadataOutput](ctx, w, "kms", "DescribeKey", w.Region, &kms.KeyInput{KeyId: id})
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
		if cmp.Or(step.Text(now[of.property]), of.otherwise) != of.is {
			return false, &step.Error{Text: "You cannot modify the " + of.property + " property of a KMS key.", Code: "NotUpdatable"}
		}
	}
	return key.Enabled, nil
}

func updateKey(ctx context.Context, w *step.Work) (step.Made, error) {
	id, was, now := w.Target.Physical, w.Now, w.Target.Properties
	is := step.Made{Physical: id, Attributes: w.Target.Attributes}
	enabled, err := keptOfKey(ctx, w, id, now)
	if err != nil {
		return is, err
	}
	if !resource.Same(was["KeyPolicy"], now["KeyPolicy"]) {
		policy := cmp.Or(step.Text(now["KeyPolicy"]), keys.DefaultPolicy(w.Account))
		bypass := truth(now["BypassPolicyLockoutSafetyCheck"], false)
		if err := keyChange(ctx, w, "PutKeyPolicy", &kms.KeyPolicyInput{KeyId: id, Policy: &policy, BypassPolicyLockoutSafetyCheck: &bypass}); err != nil {
			return is, err
		}
	}
	if !resource.Same(was["Description"], now["Description"]) {
		description := step.Text(now["Description"])
		if err := keyChange(ctx, w, "UpdateKeyDescription", &kms.UpdateKeyDescriptionInput{KeyId: id, Description: &description}); err != nil {
			return is, err
		}
	}
	set, gone := step.Retagged(was["Tags"], now["Tags"])
	if len(gone) > 0 {
		if err := keyChange(ctx, w, "UntagResource", &kms.UntagResourceInput{KeyId: id, TagKeys: gone}); err != nil {
			return is, err
		}
	}
	if len(set) > 0 {
		if err := keyChange(ctx, w, "TagResource", &kms.TagResourceInput{KeyId: id, Tags: kmsTags(set)}); err != nil {
			return is, err
		}
	}
	return is, adjustKey(ctx, w, id, truth(now["Enabled"], true), enabled, func() error { return rotate(ctx, w, id, was, now) })
}

func deleteKey(ctx context.Context, w *step.Work) error {
	in := &kms.ScheduleKeyDeletionInput{KeyId: w.Target.Physical}
	if days, ok := w.Target.Properties["PendingWindowInDays"]; ok {
		if err := step.Fill(map[string]any{"PendingWindowInDays": days}, in); err != nil {
			return err
		}
	}
	_, err := step.Ask[kms.ScheduleKeyDeletionOutput](ctx, w, "kms", "ScheduleKeyDeletion", w.Region, in)
	if fault.KindOf(err) == fault.KMSInvalidState { // it is to be deleted already
		return nil
	}
	return step.UnlessGone(err)
}

func createKeyAlias(ctx context.Context, w *step.Work) (step.Made, error) {
	in := &kms.AliasInput{AliasName: w.Target.Physical, TargetKeyId: step.Text(w.Target.Properties["TargetKeyId"])}
	err := keyChange(ctx, w, "CreateAlias", in)
	if step.Exists(err) {
		found, other := step.Ask[kms.ListAliasesOutput](ctx, w, "kms", "ListAliases", w.Region, &kms.ListAliasesInput{KeyId: &in.TargetKeyId})
		if other != nil {
			return step.Made{}, other
		}
		own := slices.ContainsFunc(found.Aliases, func(a kms.Alias) bool {
			return a.AliasName == in.AliasName && a.CreationDate != nil && w.OwnSince(*a.CreationDate)
		})
		if !own {
			return step.Made{}, w.Taken(in.AliasName)
		}
		err = nil
	}
	if err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: in.AliasName}, nil
}

func updateKeyAlias(ctx context.Context, w *step.Work) (step.Made, error) {
	err := keyChange(ctx, w, "UpdateAlias", &kms.AliasInput{AliasName: w.Target.Physical, TargetKeyId: step.Text(w.Target.Properties["TargetKeyId"])})
	return step.Made{Physical: w.Target.Physical}, err
}

func deleteKeyAlias(ctx context.Context, w *step.Work) error {
	return step.UnlessGone(keyChange(ctx, w, "DeleteAlias", &kms.DeleteAliasInput{AliasName: w.Target.Physical}))
}
