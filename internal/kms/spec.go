package kms

import (
	"slices"
	"time"

	"godwit.dev/godwit/internal/fault"
)

// SymmetricDefault is the spec of symmetric encryption keys.
const SymmetricDefault = "SYMMETRIC_DEFAULT"

// The usages of keys.
const (
	EncryptDecrypt    = "ENCRYPT_DECRYPT"
	SignVerify        = "SIGN_VERIFY"
	GenerateVerifyMAC = "GENERATE_VERIFY_MAC"
)

// Spec describes the keys of a key spec.
type Spec struct {
	Name       string
	Usages     []string // that a key of the spec may have
	Encryption []string // algorithms
	Signing    []string
	MAC        []string
	// DefaultUsage is the default; empty: the request must have a usage.
	DefaultUsage string
}

var (
	rsaSigning = []string{
		"RSASSA_PKCS1_V1_5_SHA_256", "RSASSA_PKCS1_V1_5_SHA_384", "RSASSA_PKCS1_V1_5_SHA_512",
		"RSASSA_PSS_SHA_256", "RSASSA_PSS_SHA_384", "RSASSA_PSS_SHA_512",
	}
	rsaEncryption = []string{"RSAES_OAEP_SHA_1", "RSAES_OAEP_SHA_256"}
	rsaUsages     = []string{EncryptDecrypt, SignVerify}
)

func ofRSA(name string) Spec {
	return Spec{Name: name, Usages: rsaUsages, Encryption: rsaEncryption, Signing: rsaSigning}
}

func ofECC(name, signing string) Spec {
	return Spec{Name: name, Usages: []string{SignVerify}, Signing: []string{signing}}
}

func ofHMAC(name, mac string) Spec {
	return Spec{Name: name, Usages: []string{GenerateVerifyMAC}, MAC: []string{mac}}
}

var specs = []Spec{
	{Name: SymmetricDefault, Usages: []string{EncryptDecrypt}, Encryption: []string{SymmetricDefault}, DefaultUsage: EncryptDecrypt},
	ofRSA("RSA_2048"), ofRSA("RSA_3072"), ofRSA("RSA_4096"),
	ofECC("ECC_NIST_P256", "ECDSA_SHA_256"), ofECC("ECC_NIST_P384", "ECDSA_SHA_384"), ofECC("ECC_NIST_P521", "ECDSA_SHA_512"),
	ofHMAC("HMAC_224", "HMAC_SHA_224"), ofHMAC("HMAC_256", "HMAC_SHA_256"), ofHMAC("HMAC_384", "HMAC_SHA_384"), ofHMAC("HMAC_512", "HMAC_SHA_512"),
}

// unbuilt are the specs of AWS that are not implemented.
var unbuilt = []string{"ECC_SECG_P256K1", "SM2", "ML_DSA_44", "ML_DSA_65", "ML_DSA_87", "ECC_NIST_EDWARDS25519"}

// Errors of creating a key.
var (
	ErrSpec      = fault.NewRule(fault.ValidationFailed, "kms: an unknown key spec")                 // spec
	ErrUnbuilt   = fault.NewRule(fault.UnsupportedOperation, "kms: a kind of key that is not built") // what
	ErrSpecUsage = fault.NewRule(fault.ValidationFailed, "kms: a key of the spec has no such use")   // usage, spec
	ErrNoUsage   = fault.NewRule(fault.ValidationFailed, "kms: a key of the spec needs a use")
	ErrAlgorithm = fault.NewRule(fault.KMSInvalidKeyUsage, "kms: the key does not know such algorithms") // algorithm, spec
)

// SpecOf finds a spec by name. Errors: ErrSpec, ErrUnbuilt.
func SpecOf(name string) (*Spec, error) {
	for i := range specs {
		if specs[i].Name == name {
			return &specs[i], nil
		}
	}
	if slices.Contains(unbuilt, name) {
		return nil, ErrUnbuilt.With("the key spec " + name)
	}
	return nil, ErrSpec.With(name)
}

// Usage is the usage of a new key, by the optional one in a request.
func (s *Spec) Usage(named string) (string, error) {
	switch {
	case named == "" && s.DefaultUsage != "":
		return s.DefaultUsage, nil
	case named == "":
		return "", ErrNoUsage
	case !slices.Contains(s.Usages, named):
		return "", ErrSpecUsage.With(named, s.Name)
	}
	return named, nil
}

// Algorithms are the algorithms of a key of the spec with a usage.
func (s *Spec) Algorithms(usage string) []string {
	switch usage {
	case EncryptDecrypt:
		return s.Encryption
	case SignVerify:
		return s.Signing
	default:
		return s.MAC
	}
}

// CheckAlgorithm refuses an algorithm that a key does not support.
func (k *Key) CheckAlgorithm(algorithm string) error {
	s, err := SpecOf(k.Spec)
	if err != nil {
		return err
	}
	if !slices.Contains(s.Algorithms(k.Usage), algorithm) {
		return ErrAlgorithm.With(algorithm, k.Spec)
	}
	return nil
}

// New has the settings of a new key.
type New struct {
	Account, Region, ID string
	Description         string
	Spec, Usage         string // validated by SpecOf and Usage
	Policy              string // empty: DefaultPolicy
	Tags                map[string]string
	Material            Material
	Now                 time.Time
}

// NewKey makes a customer managed key, which is enabled.
func NewKey(n New) (*Key, error) {
	if len(n.Tags) > MaxTags {
		return nil, ErrTooManyTags
	}
	if n.Policy == "" {
		n.Policy = DefaultPolicy(n.Account)
	}
	return &Key{
		Account: n.Account, Region: n.Region, ID: n.ID, Created: n.Now, Description: n.Description, Spec: n.Spec, Usage: n.Usage,
		Manager: ManagerCustomer, State: Enabled, Policy: n.Policy, Tags: n.Tags, Materials: []Material{n.Material},
	}, nil
}

// NewManaged makes the AWS managed key of a service, for example "sqs", which rotates each
// year.
func NewManaged(n New, service string) *Key {
	return &Key{
		Account: n.Account, Region: n.Region, ID: n.ID, Created: n.Now, Description: managed[service].description,
		Spec: SymmetricDefault, Usage: EncryptDecrypt, Manager: ManagerAWS, State: Enabled,
		Policy: managedPolicy(n.Account, n.Region, service), Materials: []Material{n.Material},
		Rotation: Rotation{Days: managedRotation, Next: n.Now.Add(managedRotation * hoursInDay * time.Hour)},
	}
}
