package lambda

import (
	"context"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/shard"
)

// pageSize is the largest page of lists of functions and versions.
const pageSize = 50

// listFunctions answers ListFunctions. No function is a replica (Lambda@Edge).
func (s *Service) listFunctions(ctx context.Context, call *api.Call, in *ListFunctionsInput) (*ListFunctionsOutput, error) {
	var c request.Constraints
	c.Pattern("masterRegion", in.MasterRegion, regionPattern)
	c.Enum("functionVersion", in.FunctionVersion, "ALL")
	c.Between("maxItems", in.MaxItems, 1, request.MaxItems)
	if err := c.Err(); err != nil {
		return nil, err
	}
	all := in.FunctionVersion != nil
	list := "functions"
	if all {
		list = "versions"
	}
	after, err := request.ReadMarker(list, in.Marker)
	if err != nil {
		return nil, err
	}
	limit := min(api.Deref(in.MaxItems), pageSize)
	if in.MaxItems == nil {
		limit = pageSize
	}
	var page []shard.FunctionInfo
	var more bool
	if all {
		name, number, _ := strings.Cut(after, ":")
		n, _ := strconv.ParseUint(number, 10, 64)
		page, more, err = s.engine.ListFunctionVersions(ctx, call.Region, call.Account, name, n, limit)
	} else {
		page, more, err = s.engine.ListFunctions(ctx, call.Region, call.Account, after, limit)
	}
	if err != nil {
		return nil, err
	}
	out := &ListFunctionsOutput{Functions: s.listed(call, page, all)}
	if more {
		last := page[len(page)-1]
		if after = last.ARN.FunctionName(); all {
			after += ":" + number(last.Version)
		}
		out.NextMarker = api.NextToken(list, after)
	}
	return out, nil
}

// number is a version number as text: 0 for $LATEST.
func number(version string) string {
	if version == function.Latest {
		return "0"
	}
	return version
}

// publishVersion answers PublishVersion.
func (s *Service) publishVersion(ctx context.Context, call *api.Call, in *PublishVersionInput) (*FunctionConfiguration, error) {
	var c request.Constraints
	c.Length("description", in.Description, 0, maxDescription)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	if err := unbuilt(unbuiltMembers{"PublishTo": in.PublishTo != nil}); err != nil {
		return nil, err
	}
	info, err := s.engine.PublishVersion(ctx, function.Publish{
		ARN: fn, RevisionID: api.Deref(in.RevisionId), CodeSHA256: api.Deref(in.CodeSha256), Description: nonEmpty(in.Description),
		Revision: s.NewRevision(), Latest: s.NewRevision(), Token: call.Once,
	})
	if err != nil {
		return nil, err
	}
	out := s.shown(call, &info, info.Version)
	WithToken(out, info.Token)
	return out, nil
}

// listVersionsByFunction answers ListVersionsByFunction.
func (s *Service) listVersionsByFunction(ctx context.Context, call *api.Call, in *ListVersionsByFunctionInput) (*ListVersionsByFunctionOutput, error) {
	if err := request.CheckPage(in.MaxItems); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, nil, request.MaxLongName)
	if err != nil {
		return nil, err
	}
	list := n.Function.String()
	after, err := request.ReadMarker(list, in.Marker)
	if err != nil {
		return nil, err
	}
	limit := pageSize
	if in.MaxItems != nil {
		limit = min(*in.MaxItems, pageSize)
	}
	page, more, err := s.engine.ListVersions(ctx, n.Function, after, limit)
	if err != nil {
		return nil, err
	}
	out := &ListVersionsByFunctionOutput{Versions: s.listed(call, page, true)}
	if more {
		out.NextMarker = api.NextToken(list, page[len(page)-1].Version)
	}
	return out, nil
}
