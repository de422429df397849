package kms

import "godwit.dev/godwit/internal/api"

// Empty is an input or an output whose members are ignored.
type Empty struct{}

// Tag is a tag of a key.
type Tag struct {
	TagKey   *string
	TagValue *string
}

// KeyInput is a request with a key only, as far as it is supported.
type KeyInput struct {
	KeyId       string `wire:"required"`
	GrantTokens []string
}

// KeyOutput is an answer that names a key.
type KeyOutput struct{ KeyId string }

// CreateKeyInput is the input of CreateKey.
type CreateKeyInput struct {
	Policy                         *string
	Description                    *string
	KeyUsage                       *string
	CustomerMasterKeySpec          *string
	KeySpec                        *string
	Origin                         *string
	CustomKeyStoreId               *string
	BypassPolicyLockoutSafetyCheck *bool
	Tags                           []Tag
	MultiRegion                    *bool
	XksKeyId                       *string
}

// KeyMetadata describes a key.
type KeyMetadata struct {
	AWSAccountId                string
	KeyId                       string
	Arn                         string
	CreationDate                api.Time
	Enabled                     bool
	Description                 *string
	KeyUsage                    string
	KeyState                    string
	DeletionDate                *api.Time
	Origin                      string
	KeyManager                  string
	CustomerMasterKeySpec       string
	KeySpec                     string
	EncryptionAlgorithms        []string
	SigningAlgorithms           []string
	MacAlgorithms               []string
	MultiRegion                 bool
	PendingDeletionWindowInDays *int
	CurrentKeyMaterialId        string
}

// KeyMetadataOutput is the output of CreateKey and DescribeKey.
type KeyMetadataOutput struct{ KeyMetadata KeyMetadata }

// PageInput is the input of ListKeys.
type PageInput struct {
	Limit  *int
	Marker *string
}

// KeyListEntry is a key of a list.
type KeyListEntry struct {
	KeyId  string
	KeyArn string
}

// ListKeysOutput is the output of ListKeys.
type ListKeysOutput struct {
	Keys       []KeyListEntry
	NextMarker string
	Truncated  bool
}

// ScheduleKeyDeletionInput is the input of ScheduleKeyDeletion.
type ScheduleKeyDeletionInput struct {
	KeyId               string `wire:"required"`
	PendingWindowInDays *int
}

// ScheduleKeyDeletionOutput is the output of ScheduleKeyDeletion.
type ScheduleKeyDeletionOutput struct {
	KeyId               string
	DeletionDate        api.Time
	KeyState            string
	PendingWindowInDays int
}

// UpdateKeyDescriptionInput is the input of UpdateKeyDescription.
type UpdateKeyDescriptionInput struct {
	KeyId       string  `wire:"required"`
	Description *string `wire:"required"`
}

// KeyPolicyInput is the input of GetKeyPolicy and PutKeyPolicy.
type KeyPolicyInput struct {
	KeyId                          string `wire:"required"`
	PolicyName                     *string
	Policy                         *string
	BypassPolicyLockoutSafetyCheck *bool
}

// GetKeyPolicyOutput is the output of GetKeyPolicy.
type GetKeyPolicyOutput struct {
	Policy     string
	PolicyName string
}

// KeyPageInput is a request for a page of a key's resources.
type KeyPageInput struct {
	KeyId              string `wire:"required"`
	Limit              *int
	Marker             *string
	IncludeKeyMaterial *string
}

// ListKeyPoliciesOutput is the output of ListKeyPolicies.
type ListKeyPoliciesOutput struct {
	PolicyNames []string
	NextMarker  string
	Truncated   bool
}

// TagResourceInput is the input of TagResource.
type TagResourceInput struct {
	KeyId string `wire:"required"`
	Tags  []Tag  `wire:"required"`
}

// UntagResourceInput is the input of UntagResource.
type UntagResourceInput struct {
	KeyId   string   `wire:"required"`
	TagKeys []string `wire:"required"`
}

// ListResourceTagsOutput is the output of ListResourceTags.
type ListResourceTagsOutput struct {
	Tags       []Tag
	NextMarker string
	Truncated  bool
}

// EnableKeyRotationInput is the input of EnableKeyRotation.
type EnableKeyRotationInput struct {
	KeyId                string `wire:"required"`
	RotationPeriodInDays *int
}

// GetKeyRotationStatusOutput is the output of GetKeyRotationStatus.
type GetKeyRotationStatusOutput struct {
	KeyRotationEnabled   bool
	KeyId                string
	RotationPeriodInDays *int
	NextRotationDate     *api.Time
}

// Rotation is one of a key's rotations.
type Rotation struct {
	KeyId            string
	KeyMaterialId    string
	KeyMaterialState string
	RotationDate     *api.Time
	RotationType     string
}

// ListKeyRotationsOutput is the output of ListKeyRotations.
type ListKeyRotationsOutput struct {
	Rotations  []Rotation
	NextMarker string
	Truncated  bool
}

// AliasInput is the input of CreateAlias and UpdateAlias.
type AliasInput struct {
	AliasName   string `wire:"required"`
	TargetKeyId string `wire:"required"`
}

// DeleteAliasInput is the input of DeleteAlias.
type DeleteAliasInput struct {
	AliasName string `wire:"required"`
}

// ListAliasesInput is the input of ListAliases.
type ListAliasesInput struct {
	KeyId  *string
	Limit  *int
	Marker *string
}

// Alias is an alias in a list. A predefined one has a key and times after its first use.
type Alias struct {
	AliasName       string
	AliasArn        string
	TargetKeyId     string
	CreationDate    *api.Time
	LastUpdatedDate *api.Time
}

// ListAliasesOutput is the output of ListAliases.
type ListAliasesOutput struct {
	Aliases    []Alias
	NextMarker string
	Truncated  bool
}

// GrantConstraints are constraints on an encryption context.
type GrantConstraints struct {
	EncryptionContextSubset map[string]string
	EncryptionContextEquals map[string]string
}

// CreateGrantInput is the input of CreateGrant.
type CreateGrantInput struct {
	KeyId             string `wire:"required"`
	GranteePrincipal  string `wire:"required"`
	RetiringPrincipal *string
	Operations        []string `wire:"required"`
	Constraints       *GrantConstraints
	GrantTokens       []string
	Name              *string
	DryRun            *bool
}

// CreateGrantOutput is the output of CreateGrant.
type CreateGrantOutput struct {
	GrantToken string
	GrantId    string
}

// ListGrantsInput is the input of ListGrants.
type ListGrantsInput struct {
	KeyId            string `wire:"required"`
	GrantId          *string
	GranteePrincipal *string
	Limit            *int
	Marker           *string
}

// ListRetirableGrantsInput is the input of ListRetirableGrants.
type ListRetirableGrantsInput struct {
	RetiringPrincipal string `wire:"required"`
	Limit             *int
	Marker            *string
}

// Grant is a grant of a list.
type Grant struct {
	KeyId             string
	GrantId           string
	Name              string
	CreationDate      api.Time
	GranteePrincipal  string
	RetiringPrincipal string
	IssuingAccount    string
	Operations        []string
	Constraints       *GrantConstraints
}

// ListGrantsOutput is the output of ListGrants and ListRetirableGrants.
type ListGrantsOutput struct {
	Grants     []Grant
	NextMarker string
	Truncated  bool
}

// EndGrantInput is the input of RetireGrant and RevokeGrant.
type EndGrantInput struct {
	KeyId      *string
	GrantId    *string
	GrantToken *string
	DryRun     *bool
}

// EncryptInput is the input of Encrypt.
type EncryptInput struct {
	KeyId               string `wire:"required"`
	Plaintext           []byte `wire:"required"`
	EncryptionContext   map[string]string
	GrantTokens         []string
	EncryptionAlgorithm *string
	DryRun              *bool
}

// EncryptOutput is the output of Encrypt.
type EncryptOutput struct {
	CiphertextBlob      []byte
	KeyId               string
	EncryptionAlgorithm string
}

// DecryptInput is the input of Decrypt.
type DecryptInput struct {
	CiphertextBlob      []byte
	EncryptionContext   map[string]string
	GrantTokens         []string
	KeyId               *string
	EncryptionAlgorithm *string
	Recipient           *Empty
	DryRun              *bool
}

// DecryptOutput is the output of Decrypt.
type DecryptOutput struct {
	KeyId               string
	Plaintext           []byte
	EncryptionAlgorithm string
	KeyMaterialId       string
}

// ReEncryptInput is the input of ReEncrypt.
type ReEncryptInput struct {
	CiphertextBlob                 []byte
	SourceEncryptionContext        map[string]string
	SourceKeyId                    *string
	DestinationKeyId               string `wire:"required"`
	DestinationEncryptionContext   map[string]string
	SourceEncryptionAlgorithm      *string
	DestinationEncryptionAlgorithm *string
	GrantTokens                    []string
	DryRun                         *bool
}

// ReEncryptOutput is the output of ReEncrypt.
type ReEncryptOutput struct {
	CiphertextBlob                 []byte
	SourceKeyId                    string
	KeyId                          string
	SourceEncryptionAlgorithm      string
	DestinationEncryptionAlgorithm string
	SourceKeyMaterialId            string
	DestinationKeyMaterialId       string
}

// GenerateDataKeyInput is the input of GenerateDataKey and GenerateDataKeyWithoutPlaintext.
type GenerateDataKeyInput struct {
	KeyId             string `wire:"required"`
	EncryptionContext map[string]string
	NumberOfBytes     *int
	KeySpec           *string
	GrantTokens       []string
	Recipient         *Empty
	DryRun            *bool
}

// GenerateDataKeyOutput is the output of GenerateDataKey and GenerateDataKeyWithoutPlaintext.
type GenerateDataKeyOutput struct {
	CiphertextBlob []byte
	Plaintext      []byte
	KeyId          string
	KeyMaterialId  string
}

// GenerateDataKeyPairInput is the input of GenerateDataKeyPair and
// GenerateDataKeyPairWithoutPlaintext.
type GenerateDataKeyPairInput struct {
	KeyId             string `wire:"required"`
	KeyPairSpec       string `wire:"required"`
	EncryptionContext map[string]string
	GrantTokens       []string
	Recipient         *Empty
	DryRun            *bool
}

// GenerateDataKeyPairOutput is the output of GenerateDataKeyPair and
// GenerateDataKeyPairWithoutPlaintext.
type GenerateDataKeyPairOutput struct {
	PrivateKeyCiphertextBlob []byte
	PrivateKeyPlaintext      []byte
	PublicKey                []byte
	KeyId                    string
	KeyPairSpec              string
	KeyMaterialId            string
}

// GenerateRandomInput is the input of GenerateRandom.
type GenerateRandomInput struct {
	NumberOfBytes    *int
	CustomKeyStoreId *string
	Recipient        *Empty
}

// GenerateRandomOutput is the output of GenerateRandom.
type GenerateRandomOutput struct{ Plaintext []byte }

// GetPublicKeyOutput is the output of GetPublicKey.
type GetPublicKeyOutput struct {
	KeyId                 string
	PublicKey             []byte
	CustomerMasterKeySpec string
	KeySpec               string
	KeyUsage              string
	EncryptionAlgorithms  []string
	SigningAlgorithms     []string
}

// SignInput is the input of Sign and Verify.
type SignInput struct {
	KeyId            string `wire:"required"`
	Message          []byte `wire:"required"`
	MessageType      *string
	GrantTokens      []string
	Signature        []byte
	SigningAlgorithm string `wire:"required"`
	DryRun           *bool
}

// SignOutput is the output of Sign.
type SignOutput struct {
	KeyId            string
	Signature        []byte
	SigningAlgorithm string
}

// VerifyOutput is the output of Verify.
type VerifyOutput struct {
	KeyId            string
	SignatureValid   bool
	SigningAlgorithm string
}

// MacInput is the input of GenerateMac and VerifyMac.
type MacInput struct {
	KeyId        string `wire:"required"`
	Message      []byte `wire:"required"`
	MacAlgorithm string `wire:"required"`
	Mac          []byte
	GrantTokens  []string
	DryRun       *bool
}

// GenerateMacOutput is the output of GenerateMac.
type GenerateMacOutput struct {
	Mac          []byte
	MacAlgorithm string
	KeyId        string
}

// VerifyMacOutput is the output of VerifyMac.
type VerifyMacOutput struct {
	KeyId        string
	MacValid     bool
	MacAlgorithm string
}
