// Package layers answers the operations on layers.
package layers

import (
	"context"
	"strconv"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/shard"
)

// Engine stores layers; *shard.Engine implements it.
type Engine interface {
	PublishLayer(ctx context.Context, cmd layer.Publish, zip []byte) (layer.Version, error)
	DeleteLayer(ctx context.Context, name arn.ARN, number uint64) error
	Layer(ctx context.Context, name arn.ARN, number uint64) (layer.Version, error)
	// ListLayers returns up to limit layers, ordered by name, from the first name greater than after.
	ListLayers(ctx context.Context, region, account, after string, f layer.Filter, limit int) ([]shard.LayerListed, bool, error)
	// ListLayerVersions returns up to limit versions, the newest first, below the number before; 0: all.
	ListLayerVersions(ctx context.Context, name arn.ARN, before uint64, f layer.Filter, limit int) ([]layer.Version, bool, error)
	PermitLayer(ctx context.Context, cmd layer.Permit) error
	ForbidLayer(ctx context.Context, cmd layer.Forbid) error
	LayerPolicy(ctx context.Context, name arn.ARN, number uint64) (doc, revision string, err error)
	// AdmitsReader reports whether the policy of a version allows another account to read it; address is the
	// caller's host and port.
	AdmitsReader(ctx context.Context, version arn.ARN, account, address string) bool
	// UseLayers finds versions for a function, which keep their content until release is called.
	UseLayers(ctx context.Context, versions []arn.ARN) (all []function.Layer, release func(), err error)
}

// Service answers the operations.
type Service struct {
	Engine Engine
	// NewRevision returns a unique id.
	NewRevision func() string
	// Read reads the content in a request, which may be in S3, and validates it.
	Read func(ctx context.Context, in *LayerVersionContentInput) ([]byte, function.Code, error)
	// Location makes a link to the content of a version.
	Location func(call *api.Call, version arn.ARN, upload uint64) (string, error)
	// Runtimes are those that a layer can be for.
	Runtimes []string
	// MaxBody bounds a request with content, in bytes.
	MaxBody int64
}

// Operations are the operations on layers.
func (s *Service) Operations() []api.Operation {
	const all, versions, one = "/2018-10-31/layers", "/2018-10-31/layers/{LayerName}/versions", "/2018-10-31/layers/{LayerName}/versions/{VersionNumber}"
	return []api.Operation{
		api.Op("PublishLayerVersion", s.publish).At("POST "+versions, 201).Limit(s.MaxBody),
		api.Op("GetLayerVersion", s.get).At("GET "+one, 200),
		api.Op("GetLayerVersionByArn", s.getByARN).At("GET "+all+"?find=LayerVersion", 200),
		api.Op("ListLayers", s.list).At("GET "+all, 200),
		api.Op("ListLayerVersions", s.listVersions).At("GET "+versions, 200),
		api.Op("DeleteLayerVersion", s.remove).At("DELETE "+one, 204),
		api.Op("AddLayerVersionPermission", s.permit).At("POST "+one+"/policy", 201),
		api.Op("RemoveLayerVersionPermission", s.forbid).At("DELETE "+one+"/policy/{StatementId}", 204),
		api.Op("GetLayerVersionPolicy", s.policy).At("GET "+one+"/policy", 200),
	}
}

// The model's bounds. Source: the Lambda API reference.
const (
	maxDescription = 256
	maxLicense     = 512
	maxRuntimes    = 15
	pageSize       = 50
)

var (
	statementPattern    = request.Compile(`([a-zA-Z0-9-_]+)`)
	actionPattern       = request.Compile(`lambda:GetLayerVersion`)
	principalPattern    = request.Compile(`\d{12}|\*|arn:(aws[a-zA-Z-]*):iam::\d{12}:root`)
	organizationPattern = request.Compile(`o-[a-z0-9]{10,32}`)
	architectures       = []string{"x86_64", "arm64"}
)

func (s *Service) publish(ctx context.Context, call *api.Call, in *PublishLayerVersionInput) (*LayerVersion, error) {
	var c request.Constraints
	request.CheckLayer(&c, in.LayerName)
	c.Length("description", in.Description, 0, maxDescription)
	c.Length("licenseInfo", in.LicenseInfo, 0, maxLicense)
	if c.Count("compatibleRuntimes", in.CompatibleRuntimes, 0, maxRuntimes) {
		c.Enums("compatibleRuntimes", in.CompatibleRuntimes, s.Runtimes...)
	}
	if c.Count("compatibleArchitectures", in.CompatibleArchitectures, 0, len(architectures)) {
		c.Enums("compatibleArchitectures", in.CompatibleArchitectures, architectures...)
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	name, err := owned(call, in.LayerName)
	if err != nil {
		return nil, err
	}
	zip, code, err := s.Read(ctx, in.Content)
	if err != nil {
		return nil, err
	}
	v, err := s.Engine.PublishLayer(ctx, layer.Publish{
		Layer: name, Description: api.Deref(in.Description), License: api.Deref(in.LicenseInfo),
		Runtimes: in.CompatibleRuntimes, Architectures: in.CompatibleArchitectures, Code: code, Token: call.Once,
	}, zip)
	if err != nil {
		return nil, err
	}
	return s.shown(call, name, &v)
}

// shown converts a version with its content.
func (s *Service) shown(call *api.Call, name arn.ARN, v *layer.Version) (*LayerVersion, error) {
	location, err := s.Location(call, name.LayerVersion(v.Number), v.Code.Upload)
	if err != nil {
		return nil, err
	}
	item := listed(name, v)
	return &LayerVersion{
		Content:  &LayerVersionContentOutput{Location: location, CodeSha256: v.Code.Base64(), CodeSize: int(v.Code.Size)},
		LayerArn: name.String(), LayerVersionArn: item.LayerVersionArn, Description: item.Description, CreatedDate: item.CreatedDate, Version: item.Version,
		CompatibleRuntimes: item.CompatibleRuntimes, LicenseInfo: item.LicenseInfo, CompatibleArchitectures: item.CompatibleArchitectures,
	}, nil
}

// listed converts a version for lists.
func listed(name arn.ARN, v *layer.Version) LayerVersionsListItem {
	return LayerVersionsListItem{
		LayerVersionArn: name.LayerVersion(v.Number).String(), Version: int(v.Number), Description: &v.Description, //nolint:gosec // it counts up from 1
		CreatedDate:        v.Created.Format("2006-01-02T15:04:05.000+0000"),
		CompatibleRuntimes: v.Runtimes, LicenseInfo: v.License, CompatibleArchitectures: v.Architectures,
	}
}

// owned is the layer that a request is about, which is the caller's.
func owned(call *api.Call, text string) (arn.ARN, error) {
	name, err := request.Layer(call, text)
	if err != nil {
		return arn.ARN{}, err
	}
	return name, request.Owned(call, name)
}

// version is the version that a request is about.
func (s *Service) version(call *api.Call, name string, number int) (arn.ARN, uint64, error) {
	version, err := request.LayerVersion(call, name, number)
	if err != nil {
		return arn.ARN{}, 0, err
	}
	of, n, _ := version.SplitLayer()
	return of, n, request.Owned(call, version)
}

func (s *Service) get(ctx context.Context, call *api.Call, in *LayerVersionInput) (*LayerVersion, error) {
	version, err := request.LayerVersion(call, in.LayerName, in.VersionNumber)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, call, version)
}

func (s *Service) getByARN(ctx context.Context, call *api.Call, in *GetLayerVersionByArnInput) (*LayerVersion, error) {
	version, err := request.LayerVersionARN(call, in.Arn)
	if err != nil {
		return nil, err
	}
	return s.read(ctx, call, version)
}

// read answers with a version, if the caller may read it.
func (s *Service) read(ctx context.Context, call *api.Call, version arn.ARN) (*LayerVersion, error) {
	if err := s.admit(ctx, call, version); err != nil {
		return nil, err
	}
	name, number, _ := version.SplitLayer()
	v, err := s.Engine.Layer(ctx, name, number)
	if err != nil {
		return nil, err
	}
	return s.shown(call, name, &v)
}

// admit refuses to another account a version whose policy does not allow it. It fails with AccessDenied.
func (s *Service) admit(ctx context.Context, call *api.Call, version arn.ARN) error {
	err := api.Owned(call, version, request.GetLayerVersion)
	if err != nil && s.Engine.AdmitsReader(ctx, version, call.Account, call.RemoteAddr) {
		return nil
	}
	return err
}

// Use finds the layers that a request gives to a function, and holds them until release is called. It fails
// with InvalidParameter, or AccessDenied.
func (s *Service) Use(ctx context.Context, call *api.Call, names []string) (all []function.Layer, release func(), err error) {
	versions, err := request.Layers(call, names)
	if err != nil {
		return nil, nil, err
	}
	for _, version := range versions {
		if err := s.admit(ctx, call, version); err != nil {
			return nil, nil, err
		}
	}
	return s.Engine.UseLayers(ctx, versions)
}

// filter validates what lists can be asked for.
func (s *Service) filter(c *request.Constraints, runtime, architecture *string, most *int) (layer.Filter, int) {
	c.Enum("compatibleRuntime", runtime, s.Runtimes...)
	c.Enum("compatibleArchitecture", architecture, architectures...)
	c.Between("maxItems", most, 1, pageSize)
	limit := pageSize
	if most != nil {
		limit = *most
	}
	return layer.Filter{Runtime: api.Deref(runtime), Architecture: api.Deref(architecture)}, limit
}

func (s *Service) list(ctx context.Context, call *api.Call, in *ListLayersInput) (*ListLayersOutput, error) {
	var c request.Constraints
	filter, limit := s.filter(&c, in.CompatibleRuntime, in.CompatibleArchitecture, in.MaxItems)
	if err := c.Err(); err != nil {
		return nil, err
	}
	after, err := request.ReadMarker("layers", in.Marker)
	if err != nil {
		return nil, err
	}
	page, more, err := s.Engine.ListLayers(ctx, call.Region, call.Account, after, filter, limit)
	if err != nil {
		return nil, err
	}
	out := &ListLayersOutput{Layers: make([]LayersListItem, 0, len(page))}
	for i := range page {
		item := listed(page[i].Layer, &page[i].Version)
		out.Layers = append(out.Layers, LayersListItem{LayerName: page[i].Layer.LayerName(), LayerArn: page[i].Layer.String(), LatestMatchingVersion: &item})
	}
	if more {
		out.NextMarker = api.NextToken("layers", page[len(page)-1].Layer.LayerName())
	}
	return out, nil
}

func (s *Service) listVersions(ctx context.Context, call *api.Call, in *ListLayerVersionsInput) (*ListLayerVersionsOutput, error) {
	var c request.Constraints
	request.CheckLayer(&c, in.LayerName)
	filter, limit := s.filter(&c, in.CompatibleRuntime, in.CompatibleArchitecture, in.MaxItems)
	if err := c.Err(); err != nil {
		return nil, err
	}
	name, err := owned(call, in.LayerName)
	if err != nil {
		return nil, err
	}
	after, err := request.ReadMarker("layer versions", in.Marker)
	if err != nil {
		return nil, err
	}
	before, _ := strconv.ParseUint(after, 10, 64) // 0 without a marker
	page, more, err := s.Engine.ListLayerVersions(ctx, name, before, filter, limit)
	if err != nil {
		return nil, err
	}
	out := &ListLayerVersionsOutput{LayerVersions: make([]LayerVersionsListItem, 0, len(page))}
	for i := range page {
		out.LayerVersions = append(out.LayerVersions, listed(name, &page[i]))
	}
	if more {
		out.NextMarker = api.NextToken("layer versions", strconv.FormatUint(page[len(page)-1].Number, 10))
	}
	return out, nil
}

func (s *Service) remove(ctx context.Context, call *api.Call, in *LayerVersionInput) (*Empty, error) {
	name, number, err := s.version(call, in.LayerName, in.VersionNumber)
	if err != nil {
		return nil, err
	}
	return nil, s.Engine.DeleteLayer(ctx, name, number)
}

func (s *Service) permit(ctx context.Context, call *api.Call, in *AddLayerVersionPermissionInput) (*AddLayerVersionPermissionOutput, error) {
	var c request.Constraints
	request.CheckLayer(&c, in.LayerName)
	c.Length("statementId", &in.StatementId, 1, 100)
	c.Pattern("statementId", &in.StatementId, statementPattern)
	c.Length("action", &in.Action, 0, 22)
	c.Pattern("action", &in.Action, actionPattern)
	c.Pattern("principal", &in.Principal, principalPattern)
	c.Length("organizationId", in.OrganizationId, 0, 34)
	c.Pattern("organizationId", in.OrganizationId, organizationPattern)
	if err := c.Err(); err != nil {
		return nil, err
	}
	name, number, err := s.version(call, in.LayerName, in.VersionNumber)
	if err != nil {
		return nil, err
	}
	var conditions function.Conditions
	if organization := api.Deref(in.OrganizationId); organization != "" {
		if in.Principal != "*" {
			return nil, request.Invalid("OrganizationId can only be given with the principal *.")
		}
		conditions.StringEquals = map[string]string{"aws:PrincipalOrgID": organization}
	}
	revision := s.NewRevision()
	p := function.NewPermission(in.StatementId, in.Principal, in.Action, name.LayerVersion(number).String(), conditions)
	err = s.Engine.PermitLayer(ctx, layer.Permit{Layer: name, Number: number, RevisionID: api.Deref(in.RevisionId), Permission: p, Revision: revision})
	if err != nil {
		return nil, err
	}
	return &AddLayerVersionPermissionOutput{Statement: p.String(), RevisionId: revision}, nil
}

func (s *Service) forbid(ctx context.Context, call *api.Call, in *RemoveLayerVersionPermissionInput) (*Empty, error) {
	var c request.Constraints
	request.CheckLayer(&c, in.LayerName)
	c.Length("statementId", &in.StatementId, 1, 100)
	c.Pattern("statementId", &in.StatementId, statementPattern)
	if err := c.Err(); err != nil {
		return nil, err
	}
	name, number, err := s.version(call, in.LayerName, in.VersionNumber)
	if err != nil {
		return nil, err
	}
	return nil, s.Engine.ForbidLayer(ctx, layer.Forbid{
		Layer: name, Number: number, RevisionID: api.Deref(in.RevisionId), Sid: in.StatementId, Revision: s.NewRevision(),
	})
}

func (s *Service) policy(ctx context.Context, call *api.Call, in *LayerVersionInput) (*GetLayerVersionPolicyOutput, error) {
	name, number, err := s.version(call, in.LayerName, in.VersionNumber)
	if err != nil {
		return nil, err
	}
	doc, revision, err := s.Engine.LayerPolicy(ctx, name, number)
	if err != nil {
		return nil, err
	}
	return &GetLayerVersionPolicyOutput{Policy: doc, RevisionId: revision}, nil
}
