package kms

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/shard/keys"
)

const (
	oneID   = "11111111-1111-4111-8111-111111111111"
	otherID = "22222222-2222-4222-8222-222222222222"
)

// vault is a Store of keys, all of which encrypt by writing their id before the plaintext.
type vault struct {
	Store
	keys      []*kms.Key
	denied    map[string]bool // ids of keys that the caller may not use
	encrypted int
}

func (v *vault) Find(_, _, name string) (*kms.Key, error) {
	for _, k := range v.keys {
		if k.ID == name {
			return k, nil
		}
	}
	return nil, kms.ErrNoKey.With(name)
}

func (v *vault) Allow(k *kms.Key, _ *keys.Access) error {
	if v.denied[k.ID] {
		return fault.New(fault.KMSAccessDenied, "denied")
	}
	return nil
}

func (v *vault) Encrypt(k *kms.Key, plaintext []byte, _ map[string]string) ([]byte, error) {
	v.encrypted++
	return append([]byte(k.ID), plaintext...), nil
}

func (v *vault) KeyOf(region string, blob []byte) (*kms.Key, error) {
	return v.Find("", region, string(blob[:len(oneID)]))
}

func (v *vault) Decrypt(_ *kms.Key, blob []byte, _ map[string]string) (plaintext []byte, material string, err error) {
	return blob[len(oneID):], "m", nil
}

func (v *vault) EncryptRSA(_ *kms.Key, _ string, plaintext []byte) ([]byte, error) {
	return plaintext, nil
}

func (v *vault) DecryptRSA(_ *kms.Key, _ string, blob []byte) ([]byte, error) { return blob, nil }

func key(id string) *kms.Key {
	return &kms.Key{ID: id, Account: "000000000000", Region: "us-east-1", Spec: kms.SymmetricDefault, Usage: kms.EncryptDecrypt, State: kms.Enabled, Materials: []kms.Material{{ID: "m"}}}
}

func called(operation string) *api.Call {
	return &api.Call{Service: "kms", Operation: operation, Region: "us-east-1", Account: "000000000000"}
}

// A data key has the length that is asked for in one of two ways, and is told only where it is
// to be. What is refused draws and encrypts nothing.
func TestDataKey(t *testing.T) {
	spec := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		in    GenerateDataKeyInput
		state kms.State
		size  int
		kind  fault.Kind
	}{
		"AES_256":             {in: GenerateDataKeyInput{KeySpec: spec("AES_256")}, size: 32},
		"AES_128":             {in: GenerateDataKeyInput{KeySpec: spec("AES_128")}, size: 16},
		"bytes":               {in: GenerateDataKeyInput{NumberOfBytes: new(33)}, size: 33},
		"neither":             {in: GenerateDataKeyInput{}, kind: fault.ValidationFailed},
		"both":                {in: GenerateDataKeyInput{KeySpec: spec("AES_256"), NumberOfBytes: new(32)}, kind: fault.ValidationFailed},
		"a dry run":           {in: GenerateDataKeyInput{NumberOfBytes: new(32), DryRun: new(true)}, kind: fault.DryRun},
		"a context too large": {in: GenerateDataKeyInput{NumberOfBytes: new(32), EncryptionContext: map[string]string{"k": strings.Repeat("v", 8192)}}, kind: fault.ValidationFailed},
		"a context unnamed":   {in: GenerateDataKeyInput{NumberOfBytes: new(32), EncryptionContext: map[string]string{"": "v"}}, kind: fault.ValidationFailed},
		"a disabled key":      {in: GenerateDataKeyInput{NumberOfBytes: new(32)}, state: kms.Disabled, kind: fault.KMSDisabled},
		"a key to be deleted": {in: GenerateDataKeyInput{NumberOfBytes: new(32)}, state: kms.PendingDeletion, kind: fault.KMSInvalidState},
	} {
		t.Run(name, func(t *testing.T) {
			k := key(oneID)
			if c.state != "" {
				k.State = c.state
			}
			v := &vault{keys: []*kms.Key{k}}
			c.in.KeyId = oneID
			out, err := New(v, nil).generateDataKey(t.Context(), called("GenerateDataKey"), &c.in)
			if c.size == 0 {
				if fault.KindOf(err) != c.kind || v.encrypted > 0 {
					t.Errorf("%v, want %v; %d are encrypted", err, c.kind, v.encrypted)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Plaintext) != c.size || !bytes.Equal(out.CiphertextBlob[len(oneID):], out.Plaintext) || out.KeyId != k.ARN().String() {
				t.Errorf("%+v", out)
			}
			again, err := New(v, nil).generateDataKeyWithoutPlaintext(t.Context(), called("GenerateDataKeyWithoutPlaintext"), &c.in)
			if err != nil || again.Plaintext != nil || len(again.CiphertextBlob) != len(oneID)+c.size || bytes.Equal(again.CiphertextBlob, out.CiphertextBlob) {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
}

// A ciphertext tells its key. Another one that is named is refused, and what may not be used is
// told from what is not there by nobody.
func TestDecrypt(t *testing.T) {
	ciphertext := append([]byte(oneID), "secret"...)
	for name, c := range map[string]struct {
		named  string
		denied string
		state  kms.State
		want   error
		kind   fault.Kind
	}{
		"unnamed":                       {},
		"its key":                       {named: oneID},
		"another key":                   {named: otherID, kind: fault.IncorrectKey},
		"another key, denied":           {named: otherID, denied: otherID, want: keys.ErrForeign},
		"no key":                        {named: "33333333-3333-4333-8333-333333333333", kind: fault.KMSNotFound},
		"its key, denied":               {denied: oneID, want: keys.ErrForeign},
		"its key, denied and disabled":  {denied: oneID, state: kms.Disabled, want: keys.ErrForeign},
		"its key, disabled":             {state: kms.Disabled, kind: fault.KMSDisabled},
		"its key, named, to be deleted": {named: oneID, state: kms.PendingDeletion, kind: fault.KMSInvalidState},
	} {
		t.Run(name, func(t *testing.T) {
			one := key(oneID)
			if c.state != "" {
				one.State = c.state
			}
			v := &vault{keys: []*kms.Key{one, key(otherID)}, denied: map[string]bool{c.denied: true}}
			in := &DecryptInput{CiphertextBlob: ciphertext}
			if c.named != "" {
				in.KeyId = &c.named
			}
			out, err := New(v, nil).decrypt(t.Context(), called("Decrypt"), in)
			switch {
			case c.want != nil:
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
			case c.kind != fault.Internal:
				if fault.KindOf(err) != c.kind {
					t.Errorf("%v, want %v", err, c.kind)
				}
			case err != nil:
				t.Error(err)
			case string(out.Plaintext) != "secret" || out.KeyId != one.ARN().String():
				t.Errorf("%+v", out)
			}
		})
	}
}

// The algorithms of asymmetric keys take no encryption context, on neither side of a
// re-encryption, and a ciphertext of theirs does not tell its key.
func TestAsymmetricContext(t *testing.T) {
	rsa := key(otherID)
	rsa.Spec = "RSA_2048"
	service := New(&vault{keys: []*kms.Key{key(oneID), rsa}}, nil)
	context := map[string]string{"k": "v"}
	sealed := append([]byte(oneID), "secret"...)
	for name, c := range map[string]struct {
		ask  func() error
		want string
	}{
		"Encrypt": {func() error {
			_, err := service.encrypt(t.Context(), called("Encrypt"), &EncryptInput{KeyId: otherID, Plaintext: []byte("secret"), EncryptionAlgorithm: new("RSAES_OAEP_SHA_256"), EncryptionContext: context})
			return err
		}, "EncryptionContext is not supported when encrypting/decrypting with asymmetric CMKs."},
		"Decrypt": {func() error {
			_, err := service.decrypt(t.Context(), called("Decrypt"), &DecryptInput{KeyId: new(otherID), CiphertextBlob: sealed, EncryptionAlgorithm: new("RSAES_OAEP_SHA_256"), EncryptionContext: context})
			return err
		}, "EncryptionContext is not supported when encrypting/decrypting with asymmetric CMKs."},
		"ReEncrypt": {func() error {
			_, err := service.reEncrypt(t.Context(), called("ReEncrypt"), &ReEncryptInput{
				CiphertextBlob: sealed, DestinationKeyId: otherID, DestinationEncryptionAlgorithm: new("RSAES_OAEP_SHA_1"), DestinationEncryptionContext: context,
			})
			return err
		}, "EncryptionContext is not supported when encrypting/decrypting with asymmetric CMKs."},
		"no key": {func() error {
			_, err := service.decrypt(t.Context(), called("Decrypt"), &DecryptInput{CiphertextBlob: sealed, EncryptionAlgorithm: new("RSAES_OAEP_SHA_256")})
			return err
		}, "KeyId must not be null"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.ask(); fault.KindOf(err) != fault.ValidationFailed || refusal.Text(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// A key has one spec, whichever of its two names a request has.
func TestKeySpecTwice(t *testing.T) {
	_, err := New(&vault{}, nil).createKey(t.Context(), called("CreateKey"), &CreateKeyInput{
		KeySpec: new("RSA_2048"), CustomerMasterKeySpec: new("RSA_2048"), KeyUsage: new(kms.SignVerify),
	})
	const want = "You cannot specify KeySpec and CustomerMasterKeySpec in the same request. CustomerMasterKeySpec is deprecated."
	if fault.KindOf(err) != fault.ValidationFailed || refusal.Text(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}
