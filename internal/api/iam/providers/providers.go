// Package providers answers the operations on OpenID Connect providers.
package providers

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

// Service answers the operations.
type Service struct{ entities entity.Store }

// New makes a Service.
func New(s entity.Store) *Service { return &Service{s} }

// Operations are the operations on OpenID Connect providers.
func (s *Service) Operations() []api.Operation {
	return []api.Operation{
		api.Op("CreateOpenIDConnectProvider", s.createProvider),
		api.Op("GetOpenIDConnectProvider", s.getProvider),
		api.Op("DeleteOpenIDConnectProvider", s.deleteProvider),
		api.Op("ListOpenIDConnectProviders", s.listProviders),
		api.Op("AddClientIDToOpenIDConnectProvider", s.addClientID),
		api.Op("RemoveClientIDFromOpenIDConnectProvider", s.removeClientID),
		api.Op("UpdateOpenIDConnectProviderThumbprint", s.updateThumbprints),
		api.Op("TagOpenIDConnectProvider", s.tagProvider),
		api.Op("UntagOpenIDConnectProvider", s.untagProvider),
		api.Op("ListOpenIDConnectProviderTags", s.listProviderTags),
	}
}

const (
	maxClientIDs   = 100
	maxThumbprints = 5
)

// readProviderURL reads the URL of a provider as in its name: without https://.
func readProviderURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", check.Invalid("Invalid Open ID Connect Provider URL")
	}
	return strings.TrimPrefix(text, "https://"), nil
}

func checkThumbprints(all []string) error {
	if len(all) > maxThumbprints {
		return fault.New(fault.InvalidInput, "Thumbprint list must contain fewer than 5 entries.")
	}
	return nil
}

func checkClientIDs(all []string) error {
	if len(all) > maxClientIDs {
		return iam.ErrQuota.With("ClientIdsPerOpenIdConnectProvider", maxClientIDs)
	}
	return nil
}

func (s *Service) createProvider(_ context.Context, call *api.Call, in *CreateOpenIDConnectProviderInput) (*CreateOpenIDConnectProviderOutput, error) {
	name, err := readProviderURL(*in.Url)
	if err != nil {
		return nil, err
	}
	if err := checkThumbprints(in.ThumbprintList); err != nil {
		return nil, err
	}
	if err := checkClientIDs(in.ClientIDList); err != nil {
		return nil, err
	}
	tags, err := entity.ReadTags(in.Tags)
	if err != nil {
		return nil, err
	}
	e, err := s.entities.Create(call.Account, &iam.Entity{
		Kind: iam.Provider, Name: name, Tags: tags, Provider: &iam.ProviderPart{ClientIDs: in.ClientIDList, Thumbprints: in.ThumbprintList},
	})
	if err != nil {
		return nil, err
	}
	out := &CreateOpenIDConnectProviderOutput{OpenIDConnectProviderArn: e.ARN()}
	if len(e.Tags) > 0 {
		out.Tags = entity.ShownTags(e.Tags)
	}
	return out, nil
}

// provider finds a provider by its ARN.
func (s *Service) provider(call *api.Call, arn string) (e *iam.Entity, err error) {
	err = s.entities.Engine.Read(call.Account, func(a *iam.Account) error {
		e, err = a.FindProvider(arn)
		return err
	})
	return e, err
}

func (s *Service) getProvider(_ context.Context, call *api.Call, in *ProviderInput) (*GetOpenIDConnectProviderOutput, error) {
	e, err := s.provider(call, *in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	return &GetOpenIDConnectProviderOutput{
		Url: e.Name, ClientIDList: append([]string{}, e.Provider.ClientIDs...), ThumbprintList: append([]string{}, e.Provider.Thumbprints...),
		CreateDate: api.TimeOf(e.Created), Tags: entity.ShownTags(e.Tags),
	}, nil
}

// changeProvider runs a command on a provider.
func (s *Service) changeProvider(call *api.Call, arn *string, command func(a *iam.Account, e *iam.Entity) error) (*entity.Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error {
		e, err := a.FindProvider(*arn)
		if err != nil {
			return err
		}
		return command(a, e)
	})
}

// deleteProvider answers DeleteOpenIDConnectProvider.
func (s *Service) deleteProvider(_ context.Context, call *api.Call, in *ProviderInput) (*entity.Empty, error) {
	return s.entities.Change(call.Account, func(a *iam.Account, _ time.Time) error {
		e, err := a.FindProvider(*in.OpenIDConnectProviderArn)
		if err != nil {
			return iam.ErrGoneProvider.With(*in.OpenIDConnectProviderArn)
		}
		return a.Delete(iam.Provider, e.Name)
	})
}

func (s *Service) listProviders(_ context.Context, call *api.Call, _ *NoInput) (*ListOpenIDConnectProvidersOutput, error) {
	all, err := s.entities.List(call, iam.Provider, nil)
	if err != nil {
		return nil, err
	}
	out := &ListOpenIDConnectProvidersOutput{OpenIDConnectProviderList: []ProviderEntry{}}
	for _, e := range all {
		out.OpenIDConnectProviderList = append(out.OpenIDConnectProviderList, ProviderEntry{e.ARN()})
	}
	return out, nil
}

func (s *Service) addClientID(_ context.Context, call *api.Call, in *ClientIDInput) (*entity.Empty, error) {
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error {
		return a.EditProvider(e.ARN(), func(p *iam.ProviderPart) error {
			if !slices.Contains(p.ClientIDs, *in.ClientID) {
				p.ClientIDs = append(p.ClientIDs, *in.ClientID)
			}
			return checkClientIDs(p.ClientIDs)
		})
	})
}

func (s *Service) removeClientID(_ context.Context, call *api.Call, in *ClientIDInput) (*entity.Empty, error) {
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error {
		return a.EditProvider(e.ARN(), func(p *iam.ProviderPart) error {
			p.ClientIDs = slices.DeleteFunc(p.ClientIDs, func(id string) bool { return id == *in.ClientID })
			return nil
		})
	})
}

func (s *Service) updateThumbprints(_ context.Context, call *api.Call, in *ThumbprintsInput) (*entity.Empty, error) {
	if err := checkThumbprints(in.ThumbprintList); err != nil {
		return nil, err
	}
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error {
		return a.EditProvider(e.ARN(), func(p *iam.ProviderPart) error {
			p.Thumbprints = in.ThumbprintList
			return nil
		})
	})
}

func (s *Service) tagProvider(_ context.Context, call *api.Call, in *TagProviderInput) (*entity.Empty, error) {
	tags, err := entity.ReadTags(in.Tags)
	if err != nil {
		return nil, err
	}
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error { return a.Tag(iam.Provider, e.Name, tags) })
}

func (s *Service) untagProvider(_ context.Context, call *api.Call, in *UntagProviderInput) (*entity.Empty, error) {
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error { return a.Untag(iam.Provider, e.Name, in.TagKeys) })
}

func (s *Service) listProviderTags(_ context.Context, call *api.Call, in *ProviderListInput) (*entity.TagsOutput, error) {
	e, err := s.provider(call, *in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	return entity.TagsOf(e, in.Marker, in.MaxItems)
}
