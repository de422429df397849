package identity

import (
	"errors"
	"log/slog"
	"slices"
)

// Secret is the secret of an access key. It is hidden in formatted output and logs.
type Secret string

const hidden = "(secret)"

// String hides the secret.
func (Secret) String() string { return hidden }

// GoString hides the secret.
func (Secret) GoString() string { return hidden }

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// The stored forms of a secret: its first byte.
const (
	inClear  byte = 0
	isSealed byte = 1
)

func isClear(kept []byte) bool { return len(kept) > 0 && kept[0] == inClear }

// errSealed refuses to open a secret that another key has sealed.
var errSealed = errors.New("identity: a secret is sealed, and there is no key for it")

// sealContext binds a sealed secret to its name, so that it cannot be moved to another one.
func sealContext(name string) []byte { return []byte("identity\x00" + name) }

// Seal makes the stored form of a secret, which is bound to name.
func (m *Module) Seal(name string, secret Secret) ([]byte, error) {
	return m.seal(name, []byte(secret))
}

func (m *Module) seal(name string, secret []byte) ([]byte, error) {
	if m.sealer == nil {
		return slices.Concat([]byte{inClear}, secret), nil
	}
	sealed, err := m.sealer.Seal(secret, sealContext(name))
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte{isSealed}, sealed), nil
}

func (m *Module) open(name string, kept []byte) ([]byte, error) {
	switch {
	case len(kept) == 0:
		return nil, errRecord
	case kept[0] == inClear:
		return kept[1:], nil
	case kept[0] != isSealed || m.sealer == nil:
		return nil, errSealed
	}
	return m.sealer.Open(kept[1:], sealContext(name))
}
