package deploying

import (
	"cmp"
	"context"

	"godwit.dev/godwit/internal/api/iam"
)

const activeKey = "Active"

func createAccessKey(ctx context.Context, w *work) (made, error) {
	user, status := text(w.Target.Properties["UserName"]), text(w.Target.Properties["Status"])
	out, err := create[iam.CreateAccessKeyOutput](ctx, w, "iam", "CreateAccessKey", &iam.MaybeUserInput{UserName: &user})
	if err != nil {
		return made{}, err
	}
	is := made{out.AccessKey.AccessKeyId, map[string]any{"SecretAccessKey": out.AccessKey.SecretAccessKey}}
	if status = cmp.Or(status, activeKey); status != out.AccessKey.Status {
		err = w.setAccessKey(ctx, is.physical, status)
	}
	return is, err
}

func (w *work) setAccessKey(ctx context.Context, id, status string) error {
	user := text(w.Target.Properties["UserName"])
	return w.change(ctx, "UpdateAccessKey", &iam.UpdateAccessKeyInput{UserName: &user, AccessKeyId: &id, Status: &status})
}

func updateAccessKey(ctx context.Context, w *work) (made, error) {
	is := made{w.Target.Physical, w.Target.Attributes}
	return is, w.setAccessKey(ctx, is.physical, cmp.Or(text(w.Target.Properties["Status"]), activeKey))
}

func deleteAccessKey(ctx context.Context, w *work) error {
	user := text(w.Target.Properties["UserName"])
	return unlessGone(w.change(ctx, "DeleteAccessKey", &iam.AccessKeyInput{UserName: &user, AccessKeyId: &w.Target.Physical}))
}
