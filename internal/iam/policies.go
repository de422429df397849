package iam

import (
	"slices"
	"strings"
	"time"
)

// Limits of policies. Sizes are in characters without white space. Source: IAM and AWS STS
// quotas.
const (
	MaxManaged  = 6_144
	MaxTrust    = 2_048
	MaxAttached = 10
	MaxVersions = 5
)

var inlineSizes = map[Kind]int{User: 2_048, Group: 5_120, Role: 10_240}

// size is the size of a document for the limits.
func size(document string) (n int) {
	for _, c := range document {
		if !strings.ContainsRune(" \t\r\n", c) {
			n++
		}
	}
	return n
}

// CheckTrustSize refuses a trust policy, as it is given, beyond its quota: the stored form, with
// unique ids instead of ARNs, is shorter.
func CheckTrustSize(document string) error {
	if size(document) > MaxTrust {
		return ErrQuota.With("ACLSizePerRole", MaxTrust)
	}
	return nil
}

func checkManagedSize(document string) error {
	if size(document) > MaxManaged {
		return ErrQuota.With("PolicySize", MaxManaged)
	}
	return nil
}

// PutInline adds an inline policy to a user, group or role, or replaces the one of that name.
func (a *Account) PutInline(kind Kind, name, policy, document string) error {
	return a.edit(kind, name, func(e *Entity) error {
		i, found := slices.BinarySearchFunc(e.Inline, policy, func(p Inline, name string) int { return strings.Compare(p.Name, name) })
		if found {
			e.Inline[i].Document = document
		} else {
			e.Inline = slices.Insert(e.Inline, i, Inline{policy, document})
		}
		total := 0
		for _, p := range e.Inline {
			total += size(p.Document)
		}
		if total > inlineSizes[kind] {
			return ErrInlineSize.With(inlineSizes[kind], words[kind], e.Name)
		}
		return nil
	})
}

// DeleteInline removes an inline policy.
func (a *Account) DeleteInline(kind Kind, name, policy string) error {
	return a.edit(kind, name, func(e *Entity) error {
		if _, err := e.FindInline(policy); err != nil {
			return err
		}
		e.Inline = slices.DeleteFunc(e.Inline, func(p Inline) bool { return p.Name == policy })
		return nil
	})
}

// managed finds a managed policy, of the account or of AWS.
func (a *Account) managed(arn string) (*Entity, error) {
	if e := AWSManaged(arn); e != nil {
		return e, nil
	}
	if e := a.ByARN(arn); e != nil && e.Kind == Policy {
		return e, nil
	}
	return nil, ErrNotAttachable.With(arn)
}

// Managed is a managed policy, of the account or of AWS. It fails with ErrNoPolicy.
func (a *Account) Managed(arn string) (*Entity, error) {
	e, err := a.managed(arn)
	if err != nil {
		return nil, ErrNoPolicy.With(arn)
	}
	return e, nil
}

// Attach attaches a managed policy; it is idempotent.
func (a *Account) Attach(kind Kind, name, arn string) error {
	return a.edit(kind, name, func(e *Entity) error {
		if _, err := a.managed(arn); err != nil {
			return err
		}
		if slices.Contains(e.Attached, arn) {
			return nil
		}
		if len(e.Attached) >= MaxAttached {
			return ErrQuota.With("PoliciesPer"+titles[kind], MaxAttached)
		}
		e.Attached = append(e.Attached, arn)
		return nil
	})
}

// Detach detaches a managed policy.
func (a *Account) Detach(kind Kind, name, arn string) error {
	return a.edit(kind, name, func(e *Entity) error {
		if !slices.Contains(e.Attached, arn) {
			return ErrNoPolicy.With(arn)
		}
		e.Attached = slices.DeleteFunc(e.Attached, func(other string) bool { return other == arn })
		return nil
	})
}

// SetBoundary makes a managed policy the permissions boundary of a user or role.
func (a *Account) SetBoundary(kind Kind, name, arn string) error {
	return a.edit(kind, name, func(e *Entity) error {
		if _, err := a.managed(arn); err != nil {
			return ErrNoBoundaryPolicy.With(arn)
		}
		e.Boundary = arn
		return nil
	})
}

// DeleteBoundary removes the permissions boundary of a user or role.
func (a *Account) DeleteBoundary(kind Kind, name string) error {
	return a.edit(kind, name, func(e *Entity) error {
		if e.Boundary == "" {
			return ErrNoBoundary.With(titles[kind], e.Name)
		}
		e.Boundary = ""
		return nil
	})
}

// editPolicy edits a managed policy of the account, by its ARN. AWS's own cannot be changed.
func (a *Account) editPolicy(arn string, f func(p *PolicyPart) error) error {
	e, err := a.Managed(arn)
	if err != nil {
		return err
	}
	if e.Account != a.ID {
		return ErrAWSManaged
	}
	return a.edit(Policy, e.Name, func(e *Entity) error { return f(e.Policy) })
}

// OwnPolicy finds a managed policy of the account by its ARN, for commands that change it.
func (a *Account) OwnPolicy(arn string) (*Entity, error) {
	e, err := a.Managed(arn)
	if err == nil && e.Account != a.ID {
		return nil, ErrAWSManaged
	}
	return e, err
}

// AddVersion adds a version to a managed policy and returns its number.
func (a *Account) AddVersion(arn, document string, isDefault bool, now time.Time) (number int, err error) {
	err = a.editPolicy(arn, func(p *PolicyPart) error {
		if err := checkManagedSize(document); err != nil {
			return err
		}
		if len(p.Versions) >= MaxVersions {
			return ErrVersions.With(MaxVersions)
		}
		p.Latest++
		number = p.Latest
		p.Versions = append(p.Versions, Version{Number: number, Document: document, Created: now})
		if p.Updated = now; isDefault {
			p.Default = number
		}
		return nil
	})
	return number, err
}

// DeleteVersion deletes a version that is not the default. name is its name in the request.
func (a *Account) DeleteVersion(arn, name string, number int) error {
	return a.editPolicy(arn, func(p *PolicyPart) error {
		i := slices.IndexFunc(p.Versions, func(v Version) bool { return v.Number == number })
		switch {
		case i < 0:
			return ErrNoVersion.With(arn, name)
		case number == p.Default:
			return ErrDefaultVersion
		}
		p.Versions = slices.Delete(p.Versions, i, i+1)
		return nil
	})
}

// SetDefault makes a version the default.
func (a *Account) SetDefault(arn, name string, number int, now time.Time) error {
	return a.editPolicy(arn, func(p *PolicyPart) error {
		if !slices.ContainsFunc(p.Versions, func(v Version) bool { return v.Number == number }) {
			return ErrNoVersion.With(arn, name)
		}
		p.Default, p.Updated = number, now
		return nil
	})
}

// FindProvider is an OpenID Connect provider by its ARN.
func (a *Account) FindProvider(arn string) (*Entity, error) {
	if e := a.ByARN(arn); e != nil && e.Kind == Provider {
		return e, nil
	}
	return nil, ErrNoProvider.With(arn)
}

// EditProvider edits an OpenID Connect provider.
func (a *Account) EditProvider(arn string, f func(p *ProviderPart) error) error {
	e, err := a.FindProvider(arn)
	if err != nil {
		return err
	}
	return a.edit(Provider, e.Name, func(e *Entity) error { return f(e.Provider) })
}
