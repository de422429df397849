package lambda

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
)

const (
	maxAlias   = 128 // characters of an alias's name
	maxWeights = 1   // versions of an alias, beyond the first
)

func checkAlias(c *request.Constraints, name string, version, description *string, routing *AliasRoutingConfiguration) {
	c.Length("name", &name, 1, maxAlias)
	if !aliasPattern.MatchString(name) || numberPattern.MatchString(name) {
		c.Add("name", name, "Member must satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)")
	}
	c.Length("functionVersion", version, 1, 1024)
	c.Pattern("functionVersion", version, versionPattern)
	c.Length("description", description, 0, maxDescription)
	if routing == nil || len(routing.AdditionalVersionWeights) > maxWeights { // routing refuses more
		return
	}
	for _, number := range slices.Sorted(maps.Keys(routing.AdditionalVersionWeights)) {
		weight := routing.AdditionalVersionWeights[number]
		shown := "{" + request.Shorten(number) + "=" + double(weight) + "}"
		if !numberPattern.MatchString(number) || len(number) > 1024 {
			c.Add("routingConfig.additionalVersionWeights", shown, "Map keys must satisfy constraint: [Member must have length less than or equal to 1024, "+
				"Member must have length greater than or equal to 1, Member must satisfy regular expression pattern: [0-9]+]")
		}
		if !(weight >= 0 && weight <= 1) {
			c.Add("routingConfig.additionalVersionWeights", shown,
				"Map value must satisfy constraint: [Member must have value less than or equal to 1.0, Member must have value greater than or equal to 0.0, Member must not be null]")
		}
	}
}

// double is a number in AWS's error messages, which have a fraction.
func double(n float64) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// routing reads the second version of an alias and its weight. It fails with
// InvalidParameter.
func routing(config *AliasRoutingConfiguration) (r function.Routing, err error) {
	if config == nil || len(config.AdditionalVersionWeights) == 0 {
		return r, nil
	}
	if len(config.AdditionalVersionWeights) > maxWeights {
		return r, request.Invalid("Number of items in AdditionalVersionWeights cannot be greater than %d", maxWeights)
	}
	for version, weight := range config.AdditionalVersionWeights {
		r = function.Routing{Version: version, Weight: weight}
	}
	return r, nil
}

func shownAlias(fn arn.ARN, a *function.Alias) *AliasConfiguration {
	out := &AliasConfiguration{
		AliasArn: fn.Qualify(a.Name).String(), Name: a.Name, FunctionVersion: a.Version, Description: &a.Description, RevisionId: a.Revision,
	}
	if a.Other != "" {
		out.RoutingConfig = &AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{a.Other: a.Weight}}
	}
	return out
}

// createAlias answers CreateAlias.
func (s *Service) createAlias(ctx context.Context, call *api.Call, in *CreateAliasInput) (*AliasConfiguration, error) {
	var c request.Constraints
	checkAlias(&c, in.Name, &in.FunctionVersion, in.Description, in.RoutingConfig)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	to, err := routing(in.RoutingConfig)
	if err != nil {
		return nil, err
	}
	a, err := s.engine.CreateAlias(ctx, function.CreateAlias{
		Function: fn, Name: in.Name, Version: in.FunctionVersion, Description: api.Deref(in.Description), Routing: to, Revision: s.NewRevision(),
	})
	if err != nil {
		return nil, err
	}
	return shownAlias(fn, &a), nil
}

// updateAlias answers UpdateAlias.
func (s *Service) updateAlias(ctx context.Context, call *api.Call, in *UpdateAliasInput) (*AliasConfiguration, error) {
	var c request.Constraints
	checkAlias(&c, in.Name, in.FunctionVersion, in.Description, in.RoutingConfig)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	cmd := function.UpdateAlias{
		Function: fn, Name: in.Name, RevisionID: api.Deref(in.RevisionId), Version: in.FunctionVersion, Description: in.Description, Revision: s.NewRevision(),
	}
	if in.RoutingConfig != nil {
		to, err := routing(in.RoutingConfig)
		if err != nil {
			return nil, err
		}
		cmd.Routing = &to
	}
	a, err := s.engine.UpdateAlias(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return shownAlias(fn, &a), nil
}

func (s *Service) parseAlias(ctx context.Context, call *api.Call, in *AliasInput) (arn.ARN, error) {
	var c request.Constraints
	checkAlias(&c, in.Name, nil, nil, nil)
	if err := c.Err(); err != nil {
		return arn.ARN{}, err
	}
	return s.parseWhole(ctx, call, in.FunctionName)
}

// getAlias answers GetAlias.
func (s *Service) getAlias(ctx context.Context, call *api.Call, in *AliasInput) (*AliasConfiguration, error) {
	fn, err := s.parseAlias(ctx, call, in)
	if err != nil {
		return nil, err
	}
	a, err := s.engine.Alias(ctx, fn, in.Name)
	if err != nil {
		return nil, err
	}
	return shownAlias(fn, &a), nil
}

// deleteAlias answers DeleteAlias.
func (s *Service) deleteAlias(ctx context.Context, call *api.Call, in *AliasInput) (*Empty, error) {
	fn, err := s.parseAlias(ctx, call, in)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.DeleteAlias(ctx, fn, in.Name)
}

// listAliases answers ListAliases.
func (s *Service) listAliases(ctx context.Context, call *api.Call, in *ListAliasesInput) (*ListAliasesOutput, error) {
	var c request.Constraints
	c.Length("functionVersion", in.FunctionVersion, 1, 1024)
	c.Pattern("functionVersion", in.FunctionVersion, versionPattern)
	c.Between("maxItems", in.MaxItems, 1, request.MaxItems)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	list := "aliases " + fn.String() + " " + api.Deref(in.FunctionVersion)
	after, err := request.ReadMarker(list, in.Marker)
	if err != nil {
		return nil, err
	}
	limit := pageSize
	if in.MaxItems != nil {
		limit = *in.MaxItems
	}
	page, more, err := s.engine.ListAliases(ctx, fn, api.Deref(in.FunctionVersion), after, limit)
	if err != nil {
		return nil, err
	}
	out := &ListAliasesOutput{Aliases: make([]AliasConfiguration, 0, len(page))}
	for i := range page {
		out.Aliases = append(out.Aliases, *shownAlias(fn, &page[i]))
	}
	if more {
		out.NextMarker = api.NextToken(list, page[len(page)-1].Name)
	}
	return out, nil
}
