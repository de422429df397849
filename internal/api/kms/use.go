package kms

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/shard/keys"
)

// usable finds the key of a cryptographic operation, and checks its usage and its state.
func (s *Service) usable(call *api.Call, name, operation, usage string, context map[string]string, conditions ...authorize.Key) (*kms.Key, error) {
	if err := checkContext(context); err != nil {
		return nil, err
	}
	k, err := s.key(call, name, operation, context, conditions...)
	if err != nil {
		return nil, err
	}
	return k, k.Usable(operation, usage)
}

// encryption is the condition key for the algorithm in a request.
func encryption(named *string) authorize.Key {
	return condition("kms:encryptionalgorithm", cmp.Or(api.Deref(named), kms.SymmetricDefault))
}

// onSameKey is the condition key for whether ReEncrypt uses the same key.
func onSameKey(same bool) authorize.Key {
	return condition("kms:reencryptonsamekey", strconv.FormatBool(same))
}

// algorithm is the algorithm in a request, or the one of symmetric keys. The algorithms of
// asymmetric keys cannot bind an encryption context, so they are refused with one.
func algorithm(k *kms.Key, named *string, context map[string]string) (string, error) {
	name := kms.SymmetricDefault
	if named != nil {
		name = *named
	}
	if err := k.CheckAlgorithm(name); err != nil {
		return "", err
	}
	if name != kms.SymmetricDefault && len(context) > 0 {
		return "", invalid("EncryptionContext is not supported when encrypting/decrypting with asymmetric CMKs.")
	}
	return name, nil
}

// encrypt answers Encrypt.
func (s *Service) encrypt(_ context.Context, call *api.Call, in *EncryptInput) (*EncryptOutput, error) {
	k, err := s.usable(call, in.KeyId, "Encrypt", kms.EncryptDecrypt, in.EncryptionContext, encryption(in.EncryptionAlgorithm))
	if err != nil {
		return nil, err
	}
	name, err := algorithm(k, in.EncryptionAlgorithm, in.EncryptionContext)
	if err != nil {
		return nil, err
	}
	if err := dryRun(in.DryRun); err != nil {
		return nil, err
	}
	blob, err := s.encryptWith(k, name, in.Plaintext, in.EncryptionContext)
	if err != nil {
		return nil, err
	}
	return &EncryptOutput{blob, k.ARN().String(), name}, nil
}

func (s *Service) encryptWith(k *kms.Key, algorithm string, plaintext []byte, context map[string]string) ([]byte, error) {
	if k.Symmetric() {
		return s.store.Encrypt(k, plaintext, context)
	}
	return s.store.EncryptRSA(k, algorithm, plaintext)
}

// opened is the result of a decryption.
type opened struct {
	key                 *kms.Key
	plaintext           []byte
	algorithm, material string
}

// ciphertext is what a request asks to decrypt.
type ciphertext struct {
	blob      []byte
	key       *string // its name; nil: the blob of a symmetric key tells its key
	algorithm *string
	context   map[string]string
	dryRun    *bool
}

// open decrypts for an operation, and checks the caller's permission.
func (s *Service) open(call *api.Call, operation string, c ciphertext, conditions ...func(k *kms.Key) authorize.Key) (o opened, err error) {
	if err := checkContext(c.context); err != nil {
		return o, err
	}
	if c.algorithm != nil && *c.algorithm != kms.SymmetricDefault {
		return s.openRSA(call, operation, c)
	}
	o.algorithm = kms.SymmetricDefault
	if o.key, err = s.store.KeyOf(call.Region, c.blob); err != nil {
		return o, err
	}
	asked := access(call, operation, encryption(c.algorithm))
	asked.Context = c.context
	if c.key != nil {
		named, err := s.find(call, *c.key, asked)
		switch {
		case err != nil:
			return o, err
		case named.ID == o.key.ID:
		case s.store.Allow(named, asked) != nil:
			return o, keys.ErrForeign
		default:
			return o, fault.New(fault.IncorrectKey, "The key ID in the request does not identify a CMK that can perform this operation.")
		}
	}
	for _, of := range conditions {
		asked.Keys = append(asked.Keys, of(o.key))
	}
	if c.key != nil && isAlias(*c.key) {
		asked.Alias = (*c.key)[strings.Index(*c.key, kms.AliasPrefix):]
	}
	if err := s.store.Allow(o.key, asked); err != nil {
		return o, keys.ErrForeign
	}
	if err := o.key.Usable(operation, kms.EncryptDecrypt); err != nil {
		return o, err
	}
	o.plaintext, o.material, err = s.store.Decrypt(o.key, c.blob, c.context)
	if err != nil {
		return o, err
	}
	return o, dryRun(c.dryRun)
}

// openRSA is open for an algorithm of asymmetric keys.
func (s *Service) openRSA(call *api.Call, operation string, c ciphertext) (o opened, err error) {
	if c.key == nil {
		return o, invalid("KeyId must not be null") // such a ciphertext does not tell its key
	}
	if o.key, err = s.usable(call, *c.key, operation, kms.EncryptDecrypt, c.context, encryption(c.algorithm)); err != nil {
		return o, err
	}
	if o.algorithm, err = algorithm(o.key, c.algorithm, c.context); err != nil {
		return o, err
	}
	if o.plaintext, err = s.store.DecryptRSA(o.key, o.algorithm, c.blob); err != nil {
		return o, err
	}
	return o, dryRun(c.dryRun)
}

// decrypt answers Decrypt.
func (s *Service) decrypt(_ context.Context, call *api.Call, in *DecryptInput) (*DecryptOutput, error) {
	if in.Recipient != nil {
		return nil, unsupported("Answers for enclaves are")
	}
	o, err := s.open(call, "Decrypt", ciphertext{blob: in.CiphertextBlob, key: in.KeyId, algorithm: in.EncryptionAlgorithm, context: in.EncryptionContext, dryRun: in.DryRun})
	if err != nil {
		return nil, err
	}
	return &DecryptOutput{o.key.ARN().String(), o.plaintext, o.algorithm, o.material}, nil
}

// reEncrypt answers ReEncrypt.
func (s *Service) reEncrypt(_ context.Context, call *api.Call, in *ReEncryptInput) (*ReEncryptOutput, error) {
	same := func(from *kms.Key) authorize.Key {
		to, err := s.store.Find(call.Account, call.Region, in.DestinationKeyId)
		return onSameKey(err == nil && to.ID == from.ID)
	}
	o, err := s.open(call, "ReEncryptFrom", ciphertext{
		blob: in.CiphertextBlob, key: in.SourceKeyId, algorithm: in.SourceEncryptionAlgorithm, context: in.SourceEncryptionContext,
	}, same)
	if err != nil {
		return nil, err
	}
	to, err := s.usable(call, in.DestinationKeyId, "ReEncryptTo", kms.EncryptDecrypt, in.DestinationEncryptionContext,
		encryption(in.DestinationEncryptionAlgorithm), same(o.key))
	if err != nil {
		return nil, err
	}
	name, err := algorithm(to, in.DestinationEncryptionAlgorithm, in.DestinationEncryptionContext)
	if err != nil {
		return nil, err
	}
	if err := dryRun(in.DryRun); err != nil {
		return nil, err
	}
	blob, err := s.encryptWith(to, name, o.plaintext, in.DestinationEncryptionContext)
	if err != nil {
		return nil, err
	}
	return &ReEncryptOutput{
		CiphertextBlob: blob, SourceKeyId: o.key.ARN().String(), KeyId: to.ARN().String(), SourceEncryptionAlgorithm: o.algorithm,
		DestinationEncryptionAlgorithm: name, SourceKeyMaterialId: o.material, DestinationKeyMaterialId: current(to),
	}, nil
}

// current is the id of a symmetric key's material; empty for other keys.
func current(k *kms.Key) string {
	if !k.Symmetric() {
		return ""
	}
	return k.Current().ID
}

// generateDataKey answers GenerateDataKey.
func (s *Service) generateDataKey(_ context.Context, call *api.Call, in *GenerateDataKeyInput) (*GenerateDataKeyOutput, error) {
	return s.dataKey(call, in)
}

// generateDataKeyWithoutPlaintext answers GenerateDataKeyWithoutPlaintext.
func (s *Service) generateDataKeyWithoutPlaintext(_ context.Context, call *api.Call, in *GenerateDataKeyInput) (*GenerateDataKeyOutput, error) {
	out, err := s.dataKey(call, in)
	if err == nil {
		out.Plaintext = nil
	}
	return out, err
}

func (s *Service) dataKey(call *api.Call, in *GenerateDataKeyInput) (*GenerateDataKeyOutput, error) {
	if in.Recipient != nil {
		return nil, unsupported("Answers for enclaves are")
	}
	var size int
	switch spec := api.Deref(in.KeySpec); {
	case in.KeySpec != nil && in.NumberOfBytes != nil, in.KeySpec == nil && in.NumberOfBytes == nil:
		return nil, invalid("Please specify either number of bytes or key spec.")
	case spec == "AES_256":
		size = 32
	case spec == "AES_128":
		size = 16
	default:
		size = *in.NumberOfBytes
	}
	k, err := s.symmetric(call, in.KeyId, in.EncryptionContext)
	if err != nil {
		return nil, err
	}
	if err := dryRun(in.DryRun); err != nil {
		return nil, err
	}
	plaintext, err := keys.Random(size)
	if err != nil {
		return nil, err
	}
	blob, err := s.store.Encrypt(k, plaintext, in.EncryptionContext)
	if err != nil {
		return nil, err
	}
	return &GenerateDataKeyOutput{blob, plaintext, k.ARN().String(), k.Current().ID}, nil
}

// symmetric is usable for operations that only symmetric keys support.
func (s *Service) symmetric(call *api.Call, name string, context map[string]string, conditions ...authorize.Key) (*kms.Key, error) {
	k, err := s.usable(call, name, call.Operation, kms.EncryptDecrypt, context, append(conditions, encryption(nil))...)
	if err != nil {
		return nil, err
	}
	if !k.Symmetric() {
		return nil, fault.Newf(fault.KMSInvalidKeyUsage, "%s key spec is %s which is not valid for %s.", k.ARN(), k.Spec, call.Operation)
	}
	return k, nil
}

// generateDataKeyPair answers GenerateDataKeyPair.
func (s *Service) generateDataKeyPair(_ context.Context, call *api.Call, in *GenerateDataKeyPairInput) (*GenerateDataKeyPairOutput, error) {
	return s.dataKeyPair(call, in)
}

// generateDataKeyPairWithoutPlaintext answers GenerateDataKeyPairWithoutPlaintext.
func (s *Service) generateDataKeyPairWithoutPlaintext(_ context.Context, call *api.Call, in *GenerateDataKeyPairInput) (*GenerateDataKeyPairOutput, error) {
	out, err := s.dataKeyPair(call, in)
	if err == nil {
		out.PrivateKeyPlaintext = nil
	}
	return out, err
}

func (s *Service) dataKeyPair(call *api.Call, in *GenerateDataKeyPairInput) (*GenerateDataKeyPairOutput, error) {
	if in.Recipient != nil {
		return nil, unsupported("Answers for enclaves are")
	}
	if _, err := kms.SpecOf(in.KeyPairSpec); err != nil {
		return nil, err
	}
	k, err := s.symmetric(call, in.KeyId, in.EncryptionContext, condition("kms:datakeypairspec", in.KeyPairSpec))
	if err != nil {
		return nil, err
	}
	if err := dryRun(in.DryRun); err != nil {
		return nil, err
	}
	private, public, err := keys.NewPair(in.KeyPairSpec)
	if err != nil {
		return nil, err
	}
	blob, err := s.store.Encrypt(k, private, in.EncryptionContext)
	if err != nil {
		return nil, err
	}
	return &GenerateDataKeyPairOutput{blob, private, public, k.ARN().String(), in.KeyPairSpec, k.Current().ID}, nil
}

// generateRandom answers GenerateRandom.
func (s *Service) generateRandom(_ context.Context, _ *api.Call, in *GenerateRandomInput) (*GenerateRandomOutput, error) {
	if in.CustomKeyStoreId != nil || in.Recipient != nil {
		return nil, unsupported("Custom key stores and enclaves are")
	}
	if in.NumberOfBytes == nil {
		return nil, invalid("NumberOfBytes is required.")
	}
	drawn, err := keys.Random(*in.NumberOfBytes)
	return &GenerateRandomOutput{drawn}, err
}

// getPublicKey answers GetPublicKey.
func (s *Service) getPublicKey(_ context.Context, call *api.Call, in *KeyInput) (*GetPublicKeyOutput, error) {
	k, err := s.key(call, in.KeyId, "GetPublicKey", nil)
	if err != nil {
		return nil, err
	}
	if err := k.Usable("GetPublicKey", k.Usage); err != nil {
		return nil, err
	}
	if k.Symmetric() || k.Usage == kms.GenerateVerifyMAC {
		return nil, fault.Newf(fault.UnsupportedOperation, "%s is a key without a public part.", k.ARN())
	}
	public, err := s.store.PublicKey(k)
	if err != nil {
		return nil, err
	}
	out := &GetPublicKeyOutput{KeyId: k.ARN().String(), PublicKey: public, CustomerMasterKeySpec: k.Spec, KeySpec: k.Spec, KeyUsage: k.Usage}
	out.EncryptionAlgorithms, out.SigningAlgorithms, _ = algorithms(k)
	return out, nil
}

// signing finds the key of Sign and Verify; digested says whether the message is a digest.
func (s *Service) signing(call *api.Call, in *SignInput) (k *kms.Key, digested bool, err error) {
	switch api.Deref(in.MessageType) {
	case "EXTERNAL_MU": // of ML-DSA
		return nil, false, unsupported("Messages of the type EXTERNAL_MU are")
	case "DIGEST":
		digested = true
	}
	if k, err = s.usable(call, in.KeyId, call.Operation, kms.SignVerify, nil,
		condition("kms:signingalgorithm", in.SigningAlgorithm), condition("kms:messagetype", cmp.Or(api.Deref(in.MessageType), "RAW"))); err != nil {
		return nil, false, err
	}
	if err := k.CheckAlgorithm(in.SigningAlgorithm); err != nil {
		return nil, false, err
	}
	return k, digested, dryRun(in.DryRun)
}

// sign answers Sign.
func (s *Service) sign(_ context.Context, call *api.Call, in *SignInput) (*SignOutput, error) {
	k, digested, err := s.signing(call, in)
	if err != nil {
		return nil, err
	}
	signature, err := s.store.Sign(k, in.SigningAlgorithm, in.Message, digested)
	if err != nil {
		return nil, err
	}
	return &SignOutput{k.ARN().String(), signature, in.SigningAlgorithm}, nil
}

// verify answers Verify.
func (s *Service) verify(_ context.Context, call *api.Call, in *SignInput) (*VerifyOutput, error) {
	k, digested, err := s.signing(call, in)
	if err != nil {
		return nil, err
	}
	if err := s.store.Verify(k, in.SigningAlgorithm, in.Message, digested, in.Signature); err != nil {
		return nil, err
	}
	return &VerifyOutput{k.ARN().String(), true, in.SigningAlgorithm}, nil
}

// mac finds the key of GenerateMac and VerifyMac.
func (s *Service) mac(call *api.Call, in *MacInput) (*kms.Key, error) {
	k, err := s.usable(call, in.KeyId, call.Operation, kms.GenerateVerifyMAC, nil, condition("kms:macalgorithm", in.MacAlgorithm))
	if err != nil {
		return nil, err
	}
	if err := k.CheckAlgorithm(in.MacAlgorithm); err != nil {
		return nil, err
	}
	return k, dryRun(in.DryRun)
}

// generateMac answers GenerateMac.
func (s *Service) generateMac(_ context.Context, call *api.Call, in *MacInput) (*GenerateMacOutput, error) {
	k, err := s.mac(call, in)
	if err != nil {
		return nil, err
	}
	code, err := s.store.MAC(k, in.MacAlgorithm, in.Message)
	if err != nil {
		return nil, err
	}
	return &GenerateMacOutput{code, in.MacAlgorithm, k.ARN().String()}, nil
}

// verifyMac answers VerifyMac.
func (s *Service) verifyMac(_ context.Context, call *api.Call, in *MacInput) (*VerifyMacOutput, error) {
	k, err := s.mac(call, in)
	if err != nil {
		return nil, err
	}
	if err := s.store.VerifyMAC(k, in.MacAlgorithm, in.Message, in.Mac); err != nil {
		return nil, err
	}
	return &VerifyMacOutput{k.ARN().String(), true, in.MacAlgorithm}, nil
}
