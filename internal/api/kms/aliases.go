package kms

import (
	"context"
	"regexp"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/kms"
)

var aliasName = regexp.MustCompile(`^[a-zA-Z0-9/_-]+$`)

// target validates an alias's name, and finds its target key by id or ARN.
func (s *Service) target(call *api.Call, in *AliasInput) (*kms.Key, error) {
	if err := checkAlias(in.AliasName); err != nil {
		return nil, err
	}
	if isAlias(in.TargetKeyId) {
		return nil, invalid("Aliases must refer to keys. Not aliases")
	}
	return s.own(call, in.TargetKeyId, call.Operation)
}

func checkAlias(name string) error {
	if !strings.HasPrefix(name, kms.AliasPrefix) {
		return invalid(`Alias must start with the prefix "alias/". Please see https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html`)
	}
	if !aliasName.MatchString(name) {
		return invalid("%s contains invalid characters for an alias", name)
	}
	return kms.CheckAliasName(name)
}

// createAlias answers CreateAlias.
func (s *Service) createAlias(_ context.Context, call *api.Call, in *AliasInput) (*Empty, error) {
	k, err := s.target(call, in)
	if err != nil {
		return nil, err
	}
	return nil, s.store.CreateAlias(call.Account, call.Region, in.AliasName, k.ID)
}

// updateAlias answers UpdateAlias.
func (s *Service) updateAlias(_ context.Context, call *api.Call, in *AliasInput) (*Empty, error) {
	k, err := s.target(call, in)
	if err != nil {
		return nil, err
	}
	if err := s.ofAlias(call, in.AliasName); err != nil { // the current target
		return nil, err
	}
	return nil, s.store.UpdateAlias(call.Account, call.Region, in.AliasName, k.ID)
}

// deleteAlias answers DeleteAlias.
func (s *Service) deleteAlias(_ context.Context, call *api.Call, in *DeleteAliasInput) (*Empty, error) {
	if err := checkAlias(in.AliasName); err != nil {
		return nil, err
	}
	if err := s.ofAlias(call, in.AliasName); err != nil {
		return nil, err
	}
	return nil, s.store.DeleteAlias(call.Account, call.Region, in.AliasName)
}

// ofAlias refuses the operation if the caller has no permission for the alias's target key.
// An unknown alias is accepted.
func (s *Service) ofAlias(call *api.Call, name string) error {
	a := s.store.Alias(call.Account, call.Region, name)
	if a == nil {
		return nil
	}
	k, err := s.store.Find(call.Account, call.Region, a.Key)
	if err != nil {
		return nil //nolint:nilerr // it is gone, and with it what could be done to it
	}
	return s.store.Allow(k, access(call, call.Operation))
}

// listAliases answers ListAliases.
func (s *Service) listAliases(_ context.Context, call *api.Call, in *ListAliasesInput) (*ListAliasesOutput, error) {
	most, err := limit(in.Limit, listedTags, listed)
	if err != nil {
		return nil, err
	}
	key := ""
	if in.KeyId != nil {
		k, err := s.own(call, *in.KeyId, "ListAliases")
		if err != nil {
			return nil, err
		}
		key = k.ID
	}
	list := "aliases " + key
	after, err := from(list, in.Marker)
	if err != nil {
		return nil, err
	}
	found, more := s.store.Aliases(call.Account, call.Region, key, after, most)
	out := &ListAliasesOutput{Aliases: []Alias{}, Truncated: more}
	for _, a := range found {
		entry := Alias{AliasName: a.Name, AliasArn: a.ARN(), TargetKeyId: a.Key}
		if a.Key != "" {
			created, updated := api.TimeOf(a.Created), api.TimeOf(a.Updated)
			entry.CreationDate, entry.LastUpdatedDate = &created, &updated
		}
		out.Aliases = append(out.Aliases, entry)
		out.NextMarker = next(list, a.Name, more)
	}
	return out, nil
}
