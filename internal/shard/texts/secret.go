package texts

import (
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/sms"
)

// Purpose is the purpose that one-time passwords are sealed for.
const Purpose = "one-time passwords"

// destination is the record of a number in the sandbox.
type destination struct {
	sms.Destination

	Sealed []byte `json:"sealed,omitempty"` // the password
}

// sealDestination seals the password of a number for its record's key.
func sealDestination(key []byte, d sms.Destination, sealer *seal.Sealer) (r destination, err error) {
	r.Destination = d
	if d.Password == "" || sealer == nil {
		return r, nil
	}
	r.Password = ""
	r.Sealed, err = sealer.Seal([]byte(d.Password), key)
	return r, err
}

// openDestination reads the record of a number. If its password cannot be opened, it has none,
// and no password verifies it: the number must be sent another one.
func openDestination(key, value []byte, sealer *seal.Sealer) (sms.Destination, error) {
	var r destination
	if err := decode(value, &r); err != nil {
		return sms.Destination{}, err
	}
	if r.Sealed != nil && sealer != nil {
		if password, err := sealer.Open(r.Sealed, key); err == nil {
			r.Password = string(password)
		}
	}
	return r.Destination, nil
}

// SealRecord seals the password in the record of a number in the sandbox; nil: it has none in
// clear.
func SealRecord(key, value []byte, sealer *seal.Sealer) ([]byte, error) {
	var r destination
	if err := decode(value, &r); err != nil || r.Password == "" {
		return nil, err
	}
	sealed, err := sealDestination(key, r.Destination, sealer)
	if err != nil {
		return nil, err
	}
	return encode(sealed), nil
}

func (m *Module) putDestination(p Place, number string, d sms.Destination) error {
	k := key(keyspace.SMSDestinations, p, number)
	r, err := sealDestination(k, d, m.options.Sealer)
	if err == nil {
		m.put(k, r)
	}
	return err
}

func encode(v any) []byte { return keyspace.EncodeJSON(version, v) }
