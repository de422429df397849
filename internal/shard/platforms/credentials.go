package platforms

import (
	"log/slog"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/platform"
)

// Credentials authenticate an application at a push platform. They are hidden in formatted
// output and logs.
type Credentials struct{ Principal, Credential string }

const hidden = "(credentials)"

// String hides them.
func (Credentials) String() string { return hidden }

// GoString hides them.
func (Credentials) GoString() string { return hidden }

// LogValue hides them.
func (Credentials) LogValue() slog.Value { return slog.StringValue(hidden) }

func credentialsIn(attributes map[string]string) Credentials {
	return Credentials{attributes[platform.AttrPrincipal], attributes[platform.AttrCredential]}
}

// The stored forms of a secret: its first byte.
const (
	inClear  byte = 0
	isSealed byte = 1
)

func place(name arn.ARN, attribute string) []byte { return []byte(attribute + " of " + name.String()) }

// seal seals the secrets among attributes into an application's record.
func (p *Platforms) seal(record *platform.Application, name arn.ARN, attributes map[string]string) (err error) {
	c := credentialsIn(attributes)
	if record.Principal, err = p.sealed(c.Principal, name, platform.AttrPrincipal); err == nil {
		record.Credential, err = p.sealed(c.Credential, name, platform.AttrCredential)
	}
	return err
}

func (p *Platforms) sealed(secret string, name arn.ARN, attribute string) ([]byte, error) {
	if secret == "" {
		return nil, nil
	}
	if p.options.Sealer == nil {
		return slices.Concat([]byte{inClear}, []byte(secret)), nil
	}
	sealed, err := p.options.Sealer.Seal([]byte(secret), place(name, attribute))
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte{isSealed}, sealed), nil
}

// open opens an application's secrets, once.
func (p *Platforms) open(app *application) (*Credentials, error) {
	if app.opened != nil {
		return app.opened, nil
	}
	principal, err := p.clear(app.Principal, app.arn, platform.AttrPrincipal)
	if err != nil {
		return nil, err
	}
	credential, err := p.clear(app.Credential, app.arn, platform.AttrCredential)
	if err != nil {
		return nil, err
	}
	app.opened = &Credentials{principal, credential}
	return app.opened, nil
}

func (p *Platforms) clear(kept []byte, name arn.ARN, attribute string) (string, error) {
	switch {
	case len(kept) == 0:
		return "", nil
	case kept[0] == inClear:
		return string(kept[1:]), nil
	case kept[0] != isSealed || p.options.Sealer == nil:
		return "", platform.ErrRecord
	}
	secret, err := p.options.Sealer.Open(kept[1:], place(name, attribute))
	return string(secret), err
}
