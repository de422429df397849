package drifting

import (
	"context"
	"encoding/json"
	"strconv"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/api/kms"
	"godwit.dev/godwit/internal/api/lambda"
)

func key(ctx context.Context, r *reading) error {
	named := &kms.KeyInput{KeyId: r.Physical}
	out, err := ask[kms.KeyMetadataOutput](ctx, r, "kms", "DescribeKey", r.Region, named)
	if err != nil {
		return err
	}
	is := &out.KeyMetadata
	if is.DeletionDate != nil {
		return errGone
	}
	r.put("Description", api.Deref(is.Description))
	if r.Properties["Enabled"] != nil {
		r.actual["Enabled"] = is.Enabled
	}
	if r.Properties["KeyPolicy"] != nil {
		policy, err := ask[kms.GetKeyPolicyOutput](ctx, r, "kms", "GetKeyPolicy", r.Region, &kms.KeyPolicyInput{KeyId: r.Physical})
		if err != nil {
			return err
		}
		r.document("KeyPolicy", policy.Policy)
	}
	if r.Properties["EnableKeyRotation"] != nil || r.Properties["RotationPeriodInDays"] != nil {
		rotation, err := ask[kms.GetKeyRotationStatusOutput](ctx, r, "kms", "GetKeyRotationStatus", r.Region, named)
		if err != nil {
			return err
		}
		r.actual["EnableKeyRotation"] = rotation.KeyRotationEnabled
		if r.Properties["RotationPeriodInDays"] != nil {
			delete(r.actual, "RotationPeriodInDays")
			if days := rotation.RotationPeriodInDays; days != nil {
				r.actual["RotationPeriodInDays"] = json.Number(strconv.Itoa(*days))
			}
		}
	}
	if r.Properties["Tags"] == nil {
		return nil
	}
	tags := map[string]string{}
	for in := (&kms.KeyPageInput{KeyId: r.Physical}); ; {
		page, err := ask[kms.ListResourceTagsOutput](ctx, r, "kms", "ListResourceTags", r.Region, in)
		if err != nil {
			return err
		}
		for _, t := range page.Tags {
			tags[*t.TagKey] = *t.TagValue
		}
		if in.Marker = &page.NextMarker; !page.Truncated {
			r.tagged(tags)
			return nil
		}
	}
}

// keyAlias compares what an alias leads to: a key by its id or ARN.
func keyAlias(ctx context.Context, r *reading) error {
	is, err := ask[kms.KeyMetadataOutput](ctx, r, "kms", "DescribeKey", r.Region, &kms.KeyInput{KeyId: r.Physical})
	if err != nil {
		return err
	}
	if to := &is.KeyMetadata; r.text("TargetKeyId") != to.Arn {
		r.put("TargetKeyId", to.KeyId)
	}
	return nil
}

// functionVersion reports only whether a version is there: it does not change.
func functionVersion(ctx context.Context, r *reading) error {
	_, err := ask[lambda.FunctionConfiguration](ctx, r, "lambda", "GetFunctionConfiguration", r.Region, &lambda.FunctionInput{FunctionName: r.Physical})
	return err
}

func functionAlias(ctx context.Context, r *reading) error {
	is, err := ask[lambda.AliasConfiguration](ctx, r, "lambda", "GetAlias", r.Region, &lambda.AliasInput{FunctionName: r.text("FunctionName"), Name: r.text("Name")})
	if err != nil {
		return err
	}
	r.put("FunctionVersion", is.FunctionVersion)
	r.put("Description", api.Deref(is.Description))
	delete(r.actual, "RoutingConfig")
	if to := is.RoutingConfig; to != nil && len(to.AdditionalVersionWeights) > 0 {
		var all []any
		for version, weight := range to.AdditionalVersionWeights {
			all = append(all, map[string]any{"FunctionVersion": version, "FunctionWeight": json.Number(strconv.FormatFloat(weight, 'g', -1, 64))})
		}
		r.actual["RoutingConfig"] = map[string]any{"AdditionalVersionWeights": all}
	}
	return nil
}

func accessKey(ctx context.Context, r *reading) error {
	user := r.text("UserName")
	keys, err := ask[iam.ListAccessKeysOutput](ctx, r, "iam", "ListAccessKeys", r.Region, &iam.MaybeUserListInput{UserName: &user})
	if err != nil {
		return err
	}
	for _, k := range keys.AccessKeyMetadata {
		if k.AccessKeyId == r.Physical {
			if r.Properties["Status"] != nil {
				r.put("Status", k.Status)
			}
			return nil
		}
	}
	return errGone
}
