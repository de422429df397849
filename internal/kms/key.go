// Package kms has the rules of KMS keys, their aliases and grants: which operations a key's
// state allows, and which requests are valid. It is pure: the time, new ids and new, already
// encrypted key material are inputs of each command.
package kms

import (
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// State is a key's state, as in DescribeKey.
type State string

// The states.
const (
	Enabled         State = "Enabled"
	Disabled        State = "Disabled"
	PendingDeletion State = "PendingDeletion"
)

// The managers of keys.
const (
	ManagerAWS      = "AWS" // created for a service at its first use; policy and state are fixed
	ManagerCustomer = "CUSTOMER"
)

// Bounds. Source: KMS's documentation.
const (
	MaxAliases      = 50     // of a key
	maxGrants       = 50_000 // of a key
	MaxTags         = 50     // of a key
	MaxPolicy       = 32_768 // bytes
	minWindow       = 7      // days until a deletion
	MaxWindow       = 30
	minRotation     = 90 // days of a rotation's period
	maxRotation     = 2560
	DefaultRotation = 365
	maxOnDemand     = 25  // rotations on demand of a key
	managedRotation = 365 // days, of keys of ManagerAWS
	hoursInDay      = 24
)

// Material is a secret of a key; the last one is current, and the others still decrypt.
type Material struct {
	ID      string    `json:"id"` // 64 hexadecimal digits
	Created time.Time `json:"created"`
	// How is AUTOMATIC or ON_DEMAND for a rotation; empty for the first material.
	How    string `json:"how,omitempty"`
	Sealed []byte `json:"sealed"` // the encrypted secret
}

// Rotation is the automatic rotation of a key.
type Rotation struct {
	Days int       `json:"days,omitempty"` // the period; 0: no rotation
	Next time.Time `json:"next,omitzero"`
}

// Key is a KMS key. Shared values are immutable: commands work on a Clone.
type Key struct {
	Account     string            `json:"account"`
	Region      string            `json:"region"`
	ID          string            `json:"id"` // a UUID
	Created     time.Time         `json:"created"`
	Description string            `json:"description,omitempty"`
	Spec        string            `json:"spec"`
	Usage       string            `json:"usage"`
	Manager     string            `json:"manager"`
	State       State             `json:"state"`
	Window      int               `json:"window,omitempty"`   // days, while a deletion is pending
	Deletion    time.Time         `json:"deletion,omitzero"`  // when it is deleted
	Policy      string            `json:"policy"`             // as it was put
	Tags        map[string]string `json:"tags,omitempty"`     // by their keys
	Rotation    Rotation          `json:"rotation,omitzero"`  // of symmetric keys
	Materials   []Material        `json:"materials"`          // at least one
	OnDemand    int               `json:"onDemand,omitempty"` // rotations on demand so far
}

// Errors of operations on a key; the first field is the key's ARN.
var (
	ErrNoKey           = fault.NewRule(fault.KMSNotFound, "kms: no such key")                       // ARN
	ErrDisabled        = fault.NewRule(fault.KMSDisabled, "kms: the key is disabled")               // ARN
	ErrPendingDeletion = fault.NewRule(fault.KMSInvalidState, "kms: the key is pending deletion")   // ARN
	ErrNotPending      = fault.NewRule(fault.KMSInvalidState, "kms: no deletion is pending")        // ARN
	ErrUsage           = fault.NewRule(fault.KMSInvalidKeyUsage, "kms: the key is for another use") // ARN, usage, operation
	ErrManaged         = fault.NewRule(fault.KMSAccessDenied, "kms: the key is managed by AWS")     // ARN
	ErrAsymmetric      = fault.NewRule(fault.UnsupportedOperation, "kms: only symmetric keys do so")
	ErrWindow          = fault.NewRule(fault.ValidationFailed, "kms: a window of deletion out of range") // least, most
	ErrRotationPeriod  = fault.NewRule(fault.ValidationFailed, "kms: a period of rotation out of range") // least, most
	ErrTooManyRotated  = fault.NewRule(fault.LimitExceeded, "kms: rotated on demand too often")          // ARN, most
	ErrTooManyTags     = fault.NewRule(fault.InvalidTag, "kms: too many tags")
)

// ARN is the key's ARN.
func (k *Key) ARN() arn.ARN { return KeyARN(k.Region, k.Account, k.ID) }

// KeyARN is the ARN of a key by its id.
func KeyARN(region, account, id string) arn.ARN {
	return arn.ARN{Service: "kms", Region: region, Account: account, Resource: "key/" + id}
}

// Clone is a copy for changes.
func (k *Key) Clone() *Key {
	c := *k
	c.Tags = maps.Clone(k.Tags)
	c.Materials = slices.Clone(k.Materials)
	return &c
}

// Current is the material for encryption.
func (k *Key) Current() *Material { return &k.Materials[len(k.Materials)-1] }

// Symmetric reports whether the key is a symmetric encryption key, which can rotate.
func (k *Key) Symmetric() bool { return k.Spec == SymmetricDefault }

// alive refuses a key that is pending deletion.
func (k *Key) alive() error {
	if k.State == PendingDeletion {
		return ErrPendingDeletion.With(k.ARN().String())
	}
	return nil
}

// customer refuses changes of an AWS managed key.
func (k *Key) customer() error {
	if k.Manager == ManagerAWS {
		return ErrManaged.With(k.ARN().String())
	}
	return nil
}

// changeable refuses changes of a key that is AWS managed, or pending deletion.
func (k *Key) changeable() error {
	if err := k.customer(); err != nil {
		return err
	}
	return k.alive()
}

// Usable refuses an operation unless the key is enabled and has the usage: ErrDisabled,
// ErrPendingDeletion, ErrUsage.
func (k *Key) Usable(operation, usage string) error {
	switch {
	case k.State == PendingDeletion:
		return ErrPendingDeletion.With(k.ARN().String())
	case k.State == Disabled:
		return ErrDisabled.With(k.ARN().String())
	case k.Usage != usage:
		return ErrUsage.With(k.ARN().String(), k.Usage, operation)
	}
	return nil
}

// Enable makes the key usable.
func (k *Key) Enable() error {
	if err := k.changeable(); err != nil {
		return err
	}
	k.State = Enabled
	return nil
}

// Disable makes the key unusable until Enable.
func (k *Key) Disable() error {
	if err := k.changeable(); err != nil {
		return err
	}
	k.State = Disabled
	return nil
}

// ScheduleDeletion schedules the deletion of the key in 7 to 30 days. It is unusable at once.
func (k *Key) ScheduleDeletion(days int, now time.Time) error {
	if days < minWindow || days > MaxWindow {
		return ErrWindow.With(minWindow, MaxWindow)
	}
	if err := k.changeable(); err != nil {
		return err
	}
	k.State, k.Window, k.Deletion = PendingDeletion, days, now.Add(time.Duration(days)*hoursInDay*time.Hour)
	return nil
}

// CancelDeletion cancels a pending deletion. The key is then disabled.
func (k *Key) CancelDeletion() error {
	if k.State != PendingDeletion {
		return ErrNotPending.With(k.ARN().String())
	}
	k.State, k.Window, k.Deletion = Disabled, 0, time.Time{}
	return nil
}

// Describe changes the key's description.
func (k *Key) Describe(text string) error {
	if err := k.changeable(); err != nil {
		return err
	}
	k.Description = text
	return nil
}

// PutPolicy replaces the key's policy by a valid one, also of a key that is pending deletion:
// who may cancel that can be a matter of the policy.
func (k *Key) PutPolicy(doc string) error {
	if err := k.customer(); err != nil {
		return err
	}
	k.Policy = doc
	return nil
}

// Tag adds tags, or replaces their values.
func (k *Key) Tag(tags map[string]string) error {
	if err := k.changeable(); err != nil {
		return err
	}
	if k.Tags == nil {
		k.Tags = map[string]string{}
	}
	maps.Copy(k.Tags, tags)
	if len(k.Tags) > MaxTags {
		return ErrTooManyTags
	}
	return nil
}

// Untag removes tags; unknown keys are ignored.
func (k *Key) Untag(keys []string) error {
	if err := k.changeable(); err != nil {
		return err
	}
	for _, key := range keys {
		delete(k.Tags, key)
	}
	return nil
}

// rotates refuses a key that cannot rotate.
func (k *Key) rotates() error {
	if err := k.changeable(); err != nil {
		return err
	}
	if !k.Symmetric() {
		return ErrAsymmetric
	}
	if k.State == Disabled {
		return ErrDisabled.With(k.ARN().String())
	}
	return nil
}

// EnableRotation enables automatic rotation with a period in days, 90 to 2,560; 0 is the
// current period, or 365. A changed period starts now.
func (k *Key) EnableRotation(days int, now time.Time) error {
	if days != 0 && (days < minRotation || days > maxRotation) {
		return ErrRotationPeriod.With(minRotation, maxRotation)
	}
	if err := k.rotates(); err != nil {
		return err
	}
	if days == 0 {
		if days = k.Rotation.Days; days == 0 {
			days = DefaultRotation
		}
	}
	if days != k.Rotation.Days {
		k.Rotation = Rotation{Days: days, Next: now.Add(time.Duration(days) * hoursInDay * time.Hour)}
	}
	return nil
}

// DisableRotation disables automatic rotation.
func (k *Key) DisableRotation() error {
	if err := k.rotates(); err != nil {
		return err
	}
	k.Rotation = Rotation{}
	return nil
}

// RotateOnDemand adds new material now. The next automatic rotation is unchanged.
func (k *Key) RotateOnDemand(m Material) error {
	if err := k.rotates(); err != nil {
		return err
	}
	if k.OnDemand >= maxOnDemand {
		return ErrTooManyRotated.With(k.ARN().String(), maxOnDemand)
	}
	k.OnDemand++
	m.How = "ON_DEMAND"
	k.Materials = append(k.Materials, m)
	return nil
}

// DueRotation reports whether an automatic rotation is due.
func (k *Key) DueRotation(now time.Time) bool {
	return k.Rotation.Days > 0 && k.State == Enabled && !now.Before(k.Rotation.Next)
}

// Rotate adds the material of a due rotation. Missed periods are skipped.
func (k *Key) Rotate(m Material, now time.Time) {
	m.How = "AUTOMATIC"
	k.Materials = append(k.Materials, m)
	period := time.Duration(k.Rotation.Days) * hoursInDay * time.Hour
	for !k.Rotation.Next.After(now) {
		k.Rotation.Next = k.Rotation.Next.Add(period)
	}
}

// DueDeletion reports whether the key's deletion is due.
func (k *Key) DueDeletion(now time.Time) bool {
	return k.State == PendingDeletion && !now.Before(k.Deletion)
}

// NextDue is the time of the next rotation or deletion; zero: none.
func (k *Key) NextDue() time.Time {
	switch {
	case k.State == PendingDeletion:
		return k.Deletion
	case k.State == Enabled && k.Rotation.Days > 0:
		return k.Rotation.Next
	}
	return time.Time{}
}
