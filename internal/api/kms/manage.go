package kms

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
)

// createKey answers CreateKey.
func (s *Service) createKey(_ context.Context, call *api.Call, in *CreateKeyInput) (*KeyMetadataOutput, error) {
	switch {
	case is(in.MultiRegion):
		return nil, unsupported("Keys of several regions are")
	case in.CustomKeyStoreId != nil || in.XksKeyId != nil:
		return nil, unsupported("Custom key stores are")
	case in.Origin != nil && *in.Origin != "AWS_KMS":
		return nil, unsupported("Key material that is imported or kept elsewhere is")
	}
	if in.KeySpec != nil && in.CustomerMasterKeySpec != nil {
		return nil, invalid("You cannot specify KeySpec and CustomerMasterKeySpec in the same request. CustomerMasterKeySpec is deprecated.")
	}
	name := cmp.Or(api.Deref(in.KeySpec), api.Deref(in.CustomerMasterKeySpec), kms.SymmetricDefault)
	spec, err := kms.SpecOf(name)
	if err != nil {
		return nil, err
	}
	usage, err := spec.Usage(api.Deref(in.KeyUsage))
	if err != nil {
		return nil, err
	}
	tags, err := readTags(in.Tags)
	if err != nil {
		return nil, err
	}
	document := ""
	if in.Policy != nil {
		if document, err = s.readPolicy(call, *in.Policy, is(in.BypassPolicyLockoutSafetyCheck), kms.KeyARN(call.Region, call.Account, "new").String()); err != nil {
			return nil, err
		}
	}
	k, err := s.store.Create(kms.New{
		ID: idOf(call), Account: call.Account, Region: call.Region, Description: api.Deref(in.Description), Spec: name, Usage: usage,
		Policy: document, Tags: tags,
	})
	if err != nil {
		return nil, err
	}
	return &KeyMetadataOutput{metadata(k)}, nil
}

// idOf is a key's id that is derived from Once; empty: random.
func idOf(call *api.Call) string {
	if call.Once == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("kms\x00" + call.Account + "\x00" + call.Region + "\x00" + call.Once))
	id, err := uuid.NewRandomFromReader(bytes.NewReader(sum[:]))
	if err != nil {
		panic(err) // it reads 16 bytes of 32
	}
	return id.String()
}

func unsupported(what string) error {
	return fault.New(fault.UnsupportedOperation, what+" not built yet.")
}

// metadata describes a key.
func metadata(k *kms.Key) KeyMetadata {
	m := KeyMetadata{
		AWSAccountId: k.Account, KeyId: k.ID, Arn: k.ARN().String(), CreationDate: api.TimeOf(k.Created), Enabled: k.State == kms.Enabled,
		Description: &k.Description, KeyUsage: k.Usage, KeyState: string(k.State), Origin: "AWS_KMS", KeyManager: k.Manager,
		CustomerMasterKeySpec: k.Spec, KeySpec: k.Spec,
	}
	m.EncryptionAlgorithms, m.SigningAlgorithms, m.MacAlgorithms = algorithms(k)
	if k.State == kms.PendingDeletion {
		at := api.TimeOf(k.Deletion)
		m.DeletionDate = &at
	}
	if k.Symmetric() {
		m.CurrentKeyMaterialId = k.Current().ID
	}
	return m
}

func algorithms(k *kms.Key) (encryption, signing, mac []string) {
	spec, err := kms.SpecOf(k.Spec)
	if err != nil {
		return nil, nil, nil
	}
	switch all := spec.Algorithms(k.Usage); k.Usage {
	case kms.EncryptDecrypt:
		encryption = all
	case kms.SignVerify:
		signing = all
	default:
		mac = all
	}
	return encryption, signing, mac
}

// describeKey answers DescribeKey.
func (s *Service) describeKey(_ context.Context, call *api.Call, in *KeyInput) (*KeyMetadataOutput, error) {
	k, err := s.key(call, in.KeyId, "DescribeKey", nil)
	if err != nil {
		return nil, err
	}
	return &KeyMetadataOutput{metadata(k)}, nil
}

// listKeys answers ListKeys.
func (s *Service) listKeys(_ context.Context, call *api.Call, in *PageInput) (*ListKeysOutput, error) {
	most, err := limit(in.Limit, listed, maxListed)
	if err != nil {
		return nil, err
	}
	after, err := from("keys", in.Marker)
	if err != nil {
		return nil, err
	}
	found, more := s.store.List(call.Account, call.Region, after, most)
	out := &ListKeysOutput{Keys: []KeyListEntry{}, Truncated: more}
	for _, k := range found {
		out.Keys = append(out.Keys, KeyListEntry{k.ID, k.ARN().String()})
		out.NextMarker = next("keys", k.ID, more)
	}
	return out, nil
}

// enableKey answers EnableKey.
func (s *Service) enableKey(_ context.Context, call *api.Call, in *KeyInput) (*Empty, error) {
	_, err := s.change(call, in.KeyId, func(k *kms.Key, _ time.Time) error { return k.Enable() })
	return nil, err
}

// disableKey answers DisableKey.
func (s *Service) disableKey(_ context.Context, call *api.Call, in *KeyInput) (*Empty, error) {
	_, err := s.change(call, in.KeyId, func(k *kms.Key, _ time.Time) error { return k.Disable() })
	return nil, err
}

// scheduleKeyDeletion answers ScheduleKeyDeletion.
func (s *Service) scheduleKeyDeletion(_ context.Context, call *api.Call, in *ScheduleKeyDeletionInput) (*ScheduleKeyDeletionOutput, error) {
	days := kms.MaxWindow
	if in.PendingWindowInDays != nil {
		days = *in.PendingWindowInDays
	}
	k, err := s.change(call, in.KeyId, func(k *kms.Key, now time.Time) error { return k.ScheduleDeletion(days, now) },
		condition("kms:schedulekeydeletionpendingwindowindays", strconv.Itoa(days)))
	if err != nil {
		return nil, err
	}
	return &ScheduleKeyDeletionOutput{k.ARN().String(), api.TimeOf(k.Deletion), string(k.State), k.Window}, nil
}

// cancelKeyDeletion answers CancelKeyDeletion.
func (s *Service) cancelKeyDeletion(_ context.Context, call *api.Call, in *KeyInput) (*KeyOutput, error) {
	k, err := s.change(call, in.KeyId, func(k *kms.Key, _ time.Time) error { return k.CancelDeletion() })
	if err != nil {
		return nil, err
	}
	return &KeyOutput{k.ARN().String()}, nil
}

// updateKeyDescription answers UpdateKeyDescription.
func (s *Service) updateKeyDescription(_ context.Context, call *api.Call, in *UpdateKeyDescriptionInput) (*Empty, error) {
	_, err := s.change(call, in.KeyId, func(k *kms.Key, _ time.Time) error { return k.Describe(*in.Description) })
	return nil, err
}

func checkPolicyName(name *string) error {
	if name != nil && *name != kms.PolicyName {
		return fault.New(fault.KMSNotFound, "No such policy exists")
	}
	return nil
}

// getKeyPolicy answers GetKeyPolicy.
func (s *Service) getKeyPolicy(_ context.Context, call *api.Call, in *KeyPolicyInput) (*GetKeyPolicyOutput, error) {
	if err := checkPolicyName(in.PolicyName); err != nil {
		return nil, err
	}
	k, err := s.own(call, in.KeyId, "GetKeyPolicy")
	if err != nil {
		return nil, err
	}
	return &GetKeyPolicyOutput{s.principals.ShowPolicy(k.Policy), kms.PolicyName}, nil
}

// putKeyPolicy answers PutKeyPolicy.
func (s *Service) putKeyPolicy(_ context.Context, call *api.Call, in *KeyPolicyInput) (*Empty, error) {
	if err := checkPolicyName(in.PolicyName); err != nil {
		return nil, err
	}
	bypass := is(in.BypassPolicyLockoutSafetyCheck)
	k, err := s.own(call, in.KeyId, "PutKeyPolicy", condition("kms:bypasspolicylockoutsafetycheck", strconv.FormatBool(bypass)))
	if err != nil {
		return nil, err
	}
	document, err := s.readPolicy(call, *in.Policy, bypass, k.ARN().String())
	if err != nil {
		return nil, err
	}
	_, err = s.store.Change(k.ID, func(k *kms.Key, _ time.Time) error { return k.PutPolicy(document) })
	return nil, err
}

// listKeyPolicies answers ListKeyPolicies.
func (s *Service) listKeyPolicies(_ context.Context, call *api.Call, in *KeyPageInput) (*ListKeyPoliciesOutput, error) {
	if _, err := s.own(call, in.KeyId, "ListKeyPolicies"); err != nil {
		return nil, err
	}
	return &ListKeyPoliciesOutput{PolicyNames: []string{kms.PolicyName}}, nil
}

// tagResource answers TagResource.
func (s *Service) tagResource(_ context.Context, call *api.Call, in *TagResourceInput) (*Empty, error) {
	tags, err := readTags(in.Tags)
	if err != nil {
		return nil, err
	}
	asked := access(call, "TagResource")
	asked.Tags, asked.TagKeys = tags, slices.Sorted(maps.Keys(tags))
	k, err := s.owned(call, in.KeyId, asked)
	if err != nil {
		return nil, err
	}
	_, err = s.store.Change(k.ID, func(k *kms.Key, _ time.Time) error { return k.Tag(tags) })
	return nil, err
}

// untagResource answers UntagResource.
func (s *Service) untagResource(_ context.Context, call *api.Call, in *UntagResourceInput) (*Empty, error) {
	asked := access(call, "UntagResource")
	asked.TagKeys = in.TagKeys
	k, err := s.owned(call, in.KeyId, asked)
	if err != nil {
		return nil, err
	}
	_, err = s.store.Change(k.ID, func(k *kms.Key, _ time.Time) error { return k.Untag(in.TagKeys) })
	return nil, err
}

// listResourceTags answers ListResourceTags.
func (s *Service) listResourceTags(_ context.Context, call *api.Call, in *KeyPageInput) (*ListResourceTagsOutput, error) {
	most, err := limit(in.Limit, listedTags, listedTags)
	if err != nil {
		return nil, err
	}
	k, err := s.own(call, in.KeyId, "ListResourceTags")
	if err != nil {
		return nil, err
	}
	list := "tags " + k.ID
	after, err := from(list, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &ListResourceTagsOutput{Tags: []Tag{}}
	for _, key := range slices.Sorted(maps.Keys(k.Tags)) {
		if key <= after {
			continue
		}
		if len(out.Tags) == most {
			out.Truncated, out.NextMarker = true, next(list, *out.Tags[most-1].TagKey, true)
			break
		}
		value := k.Tags[key]
		out.Tags = append(out.Tags, Tag{&key, &value})
	}
	return out, nil
}

// enableKeyRotation answers EnableKeyRotation.
func (s *Service) enableKeyRotation(_ context.Context, call *api.Call, in *EnableKeyRotationInput) (*Empty, error) {
	days := api.Deref(in.RotationPeriodInDays)
	_, err := s.change(call, in.KeyId, func(k *kms.Key, now time.Time) error { return k.EnableRotation(days, now) },
		condition("kms:rotationperiodindays", strconv.Itoa(cmp.Or(days, kms.DefaultRotation))))
	return nil, err
}

// disableKeyRotation answers DisableKeyRotation.
func (s *Service) disableKeyRotation(_ context.Context, call *api.Call, in *KeyInput) (*Empty, error) {
	_, err := s.change(call, in.KeyId, func(k *kms.Key, _ time.Time) error { return k.DisableRotation() })
	return nil, err
}

// getKeyRotationStatus answers GetKeyRotationStatus.
func (s *Service) getKeyRotationStatus(_ context.Context, call *api.Call, in *KeyInput) (*GetKeyRotationStatusOutput, error) {
	k, err := s.own(call, in.KeyId, "GetKeyRotationStatus")
	if err != nil {
		return nil, err
	}
	out := &GetKeyRotationStatusOutput{KeyId: k.ARN().String()}
	if days := k.Rotation.Days; days > 0 && k.State != kms.PendingDeletion {
		at := api.TimeOf(k.Rotation.Next)
		out.KeyRotationEnabled, out.RotationPeriodInDays, out.NextRotationDate = true, &days, &at
	}
	return out, nil
}

// rotateKeyOnDemand answers RotateKeyOnDemand.
func (s *Service) rotateKeyOnDemand(_ context.Context, call *api.Call, in *KeyInput) (*KeyOutput, error) {
	k, err := s.own(call, in.KeyId, "RotateKeyOnDemand")
	if err != nil {
		return nil, err
	}
	if k, err = s.store.RotateOnDemand(k); err != nil {
		return nil, err
	}
	return &KeyOutput{k.ARN().String()}, nil
}

// listKeyRotations answers ListKeyRotations; for all materials it includes the first.
func (s *Service) listKeyRotations(_ context.Context, call *api.Call, in *KeyPageInput) (*ListKeyRotationsOutput, error) {
	most, err := limit(in.Limit, listed, maxListed)
	if err != nil {
		return nil, err
	}
	k, err := s.own(call, in.KeyId, "ListKeyRotations")
	if err != nil {
		return nil, err
	}
	if !k.Symmetric() {
		return nil, kms.ErrAsymmetric
	}
	list := "rotations " + k.ID
	after, err := from(list, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &ListKeyRotationsOutput{Rotations: []Rotation{}}
	behind := after == ""
	for i := range k.Materials {
		m := &k.Materials[i]
		if i == 0 && api.Deref(in.IncludeKeyMaterial) != "ALL_KEY_MATERIAL" {
			continue
		}
		if !behind {
			behind = m.ID == after
			continue
		}
		if len(out.Rotations) == most {
			out.Truncated, out.NextMarker = true, next(list, out.Rotations[most-1].KeyMaterialId, true)
			break
		}
		r := Rotation{KeyId: k.ARN().String(), KeyMaterialId: m.ID, KeyMaterialState: "NON_CURRENT", RotationType: m.How}
		if m.How != "" {
			at := api.TimeOf(m.Created)
			r.RotationDate = &at
		}
		if m == k.Current() {
			r.KeyMaterialState = "CURRENT"
		}
		out.Rotations = append(out.Rotations, r)
	}
	return out, nil
}
