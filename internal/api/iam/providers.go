package iam

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

func (s *Service) providers() []api.Operation {
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

// readProviderURL reads the URL of a provider as its name has it: without https://.
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
	tags, err := readTags(in.Tags)
	if err != nil {
		return nil, err
	}
	e, err := s.create(call.Account, &iam.Entity{
		Kind: iam.Provider, Name: name, Tags: tags, Provider: &iam.ProviderPart{ClientIDs: in.ClientIDList, Thumbprints: in.ThumbprintList},
	})
	if err != nil {
		return nil, err
	}
	out := &CreateOpenIDConnectProviderOutput{OpenIDConnectProviderArn: e.ARN()}
	if len(e.Tags) > 0 {
		out.Tags = shownTags(e.Tags)
	}
	return out, nil
}

// provider finds a provider by its ARN.
func (s *Service) provider(call *api.Call, arn string) (e *iam.Entity, err error) {
	err = s.engine.Read(call.Account, func(a *iam.Account) error {
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
		CreateDate: api.TimeOf(e.Created), Tags: shownTags(e.Tags),
	}, nil
}

// changeProvider runs a command on a provider.
func (s *Service) changeProvider(call *api.Call, arn *string, command func(a *iam.Account, e *iam.Entity) error) (*Empty, error) {
	return s.change(call.Account, func(a *iam.Account, _ time.Time) error {
		e, err := a.FindProvider(*arn)
		if err != nil {
			return err
		}
		return command(a, e)
	})
}

// deleteProvider answers DeleteOpenIDConnectProvider.
func (s *Service) deleteProvider(_ context.Context, call *api.Call, in *ProviderInput) (*Empty, error) {
	return s.change(call.Account, func(a *iam.Account, _ time.Time) error {
		e, err := a.FindProvider(*in.OpenIDConnectProviderArn)
		if err != nil {
			return iam.ErrGoneProvider.With(*in.OpenIDConnectProviderArn)
		}
		return a.Delete(iam.Provider, e.Name)
	})
}

func (s *Service) listProviders(_ context.Context, call *api.Call, _ *NoInput) (*ListOpenIDConnectProvidersOutput, error) {
	all, err := s.list(call, iam.Provider, nil)
	if err != nil {
		return nil, err
	}
	out := &ListOpenIDConnectProvidersOutput{OpenIDConnectProviderList: []ProviderEntry{}}
	for _, e := range all {
		out.OpenIDConnectProviderList = append(out.OpenIDConnectProviderList, ProviderEntry{e.ARN()})
	}
	return out, nil
}

func (s *Service) addClientID(_ context.Context, call *api.Call, in *ClientIDInput) (*Empty, error) {
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error {
		return a.EditProvider(e.ARN(), func(p *iam.ProviderPart) error {
			if !slices.Contains(p.ClientIDs, *in.ClientID) {
				p.ClientIDs = append(p.ClientIDs, *in.ClientID)
			}
			return checkClientIDs(p.ClientIDs)
		})
	})
}

func (s *Service) removeClientID(_ context.Context, call *api.Call, in *ClientIDInput) (*Empty, error) {
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error {
		return a.EditProvider(e.ARN(), func(p *iam.ProviderPart) error {
			p.ClientIDs = slices.DeleteFunc(p.ClientIDs, func(id string) bool { return id == *in.ClientID })
			return nil
		})
	})
}

func (s *Service) updateThumbprints(_ context.Context, call *api.Call, in *ThumbprintsInput) (*Empty, error) {
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

func (s *Service) tagProvider(_ context.Context, call *api.Call, in *TagProviderInput) (*Empty, error) {
	tags, err := readTags(in.Tags)
	if err != nil {
		return nil, err
	}
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error { return a.Tag(iam.Provider, e.Name, tags) })
}

func (s *Service) untagProvider(_ context.Context, call *api.Call, in *UntagProviderInput) (*Empty, error) {
	return s.changeProvider(call, in.OpenIDConnectProviderArn, func(a *iam.Account, e *iam.Entity) error { return a.Untag(iam.Provider, e.Name, in.TagKeys) })
}

func (s *Service) listProviderTags(_ context.Context, call *api.Call, in *ProviderListInput) (*TagsOutput, error) {
	e, err := s.provider(call, *in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, err
	}
	return tagsOf(e, in.Marker, in.MaxItems)
}

func (s *Service) profiles() []api.Operation {
	return []api.Operation{
		api.Op("CreateInstanceProfile", s.createProfile),
		api.Op("GetInstanceProfile", s.getProfile),
		api.Op("DeleteInstanceProfile", func(_ context.Context, call *api.Call, in *ProfileInput) (*Empty, error) {
			return s.change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Delete(iam.Profile, *in.InstanceProfileName) })
		}),
		api.Op("ListInstanceProfiles", func(_ context.Context, call *api.Call, in *ListInput) (*ProfilesOutput, error) {
			return s.listProfiles(call, in, func(a *iam.Account) ([]*iam.Entity, error) { return a.List(iam.Profile, api.Deref(in.PathPrefix)), nil })
		}),
		api.Op("ListInstanceProfilesForRole", func(_ context.Context, call *api.Call, in *RoleListInput) (*ProfilesOutput, error) {
			return s.listProfiles(call, &ListInput{nil, in.Marker, in.MaxItems}, func(a *iam.Account) ([]*iam.Entity, error) {
				r, err := a.Find(iam.Role, *in.RoleName)
				if err != nil {
					return nil, err
				}
				return a.ProfilesOf(r.ID), nil
			})
		}),
		api.Op("AddRoleToInstanceProfile", func(_ context.Context, call *api.Call, in *ProfileRoleInput) (*Empty, error) {
			return s.change(call.Account, func(a *iam.Account, _ time.Time) error { return a.AddToProfile(*in.InstanceProfileName, *in.RoleName) })
		}),
		api.Op("RemoveRoleFromInstanceProfile", func(_ context.Context, call *api.Call, in *ProfileRoleInput) (*Empty, error) {
			return s.change(call.Account, func(a *iam.Account, _ time.Time) error {
				return a.RemoveFromProfile(*in.InstanceProfileName, *in.RoleName)
			})
		}),
		api.Op("TagInstanceProfile", func(_ context.Context, call *api.Call, in *TagProfileInput) (*Empty, error) {
			return s.tag(call, iam.Profile, *in.InstanceProfileName, in.Tags)
		}),
		api.Op("UntagInstanceProfile", func(_ context.Context, call *api.Call, in *UntagProfileInput) (*Empty, error) {
			return s.untag(call, iam.Profile, *in.InstanceProfileName, in.TagKeys)
		}),
		api.Op("ListInstanceProfileTags", func(_ context.Context, call *api.Call, in *ProfileListInput) (*TagsOutput, error) {
			return s.listTags(call, iam.Profile, *in.InstanceProfileName, in.Marker, in.MaxItems)
		}),
	}
}

// shownProfile shows an instance profile; role is its own, nil if it has none.
func (s *Service) shownProfile(e, role *iam.Entity) InstanceProfile {
	p := InstanceProfile{Path: e.Path, InstanceProfileName: e.Name, InstanceProfileId: e.ID, Arn: e.ARN(), CreateDate: api.TimeOf(e.Created), Roles: []Role{}}
	if role != nil {
		p.Roles = append(p.Roles, s.listedRole(role))
	}
	if len(e.Tags) > 0 {
		p.Tags = shownTags(e.Tags)
	}
	return p
}

func (s *Service) createProfile(_ context.Context, call *api.Call, in *CreateInstanceProfileInput) (*ProfileOutput, error) {
	tags, err := readTags(in.Tags)
	if err != nil {
		return nil, err
	}
	id := iam.NewID(iam.PrefixProfile, call.Account, identity.NewRandom())
	e, err := s.create(call.Account, &iam.Entity{Kind: iam.Profile, Path: pathOf(in.Path), Name: *in.InstanceProfileName, ID: id, Tags: tags})
	if err != nil {
		return nil, err
	}
	p := s.shownProfile(e, nil)
	return &ProfileOutput{&p}, nil
}

func (s *Service) getProfile(_ context.Context, call *api.Call, in *ProfileInput) (*ProfileOutput, error) {
	var e, role *iam.Entity
	err := s.engine.Read(call.Account, func(a *iam.Account) (err error) {
		if e, err = a.Find(iam.Profile, *in.InstanceProfileName); err == nil {
			role = a.ByID(e.Profile)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	p := s.shownProfile(e, role)
	return &ProfileOutput{&p}, nil
}

func (s *Service) listProfiles(call *api.Call, in *ListInput, find func(a *iam.Account) ([]*iam.Entity, error)) (*ProfilesOutput, error) {
	var all []*iam.Entity
	roles := map[string]*iam.Entity{}
	err := s.engine.Read(call.Account, func(a *iam.Account) (err error) {
		all, err = find(a)
		for _, p := range all {
			if r := a.ByID(p.Profile); r != nil {
				roles[p.Profile] = r
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	cut, truncated, next, err := check.Page("profiles", all, nameOf, in.Marker, in.MaxItems)
	if err != nil {
		return nil, err
	}
	out := &ProfilesOutput{InstanceProfiles: make([]InstanceProfile, 0, len(cut)), IsTruncated: truncated, Marker: next}
	for _, p := range cut {
		out.InstanceProfiles = append(out.InstanceProfiles, s.shownProfile(p, roles[p.Profile]))
	}
	return out, nil
}
