package identities

import (
	"cmp"
	"context"

	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/server/deploying/step"
)

const activeKey = "Active"

func createAccessKey(ctx context.Context, w *step.Work) (step.Made, error) {
	user, status := step.Text(w.Target.Properties["UserName"]), step.Text(w.Target.Properties["Status"])
	out, err := step.AskOnce[iam.CreateAccessKeyOutput](ctx, w, "iam", "CreateAccessKey", &iam.MaybeUserInput{UserName: &user})
	if err != nil {
		return step.Made{}, err
	}
	is := step.Made{Physical: out.AccessKey.AccessKeyId, Attributes: map[string]any{"SecretAccessKey": out.AccessKey.SecretAccessKey}}
	if status = cmp.Or(status, activeKey); status != out.AccessKey.Status {
		err = setAccessKey(ctx, w, is.Physical, status)
	}
	return is, err
}

func setAccessKey(ctx context.Context, w *step.Work, id, status string) error {
	user := step.Text(w.Target.Properties["UserName"])
	return change(ctx, w, "UpdateAccessKey", &iam.UpdateAccessKeyInput{UserName: &user, AccessKeyId: &id, Status: &status})
}

func updateAccessKey(ctx context.Context, w *step.Work) (step.Made, error) {
	is := step.Made{Physical: w.Target.Physical, Attributes: w.Target.Attributes}
	return is, setAccessKey(ctx, w, is.Physical, cmp.Or(step.Text(w.Target.Properties["Status"]), activeKey))
}

func deleteAccessKey(ctx context.Context, w *step.Work) error {
	user := step.Text(w.Target.Properties["UserName"])
	return step.UnlessGone(change(ctx, w, "DeleteAccessKey", &iam.AccessKeyInput{UserName: &user, AccessKeyId: &w.Target.Physical}))
}
