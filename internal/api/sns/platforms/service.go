// Package platforms answers the operations of Amazon SNS on push platforms: on their
// applications and endpoints.
package platforms

import (
	"context"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/sns/arns"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/shard"
)

// Engine executes the operations; *shard.Engine implements it.
type Engine interface {
	// CreateApplication creates an application, or finds the existing one with equal
	// attributes.
	CreateApplication(ctx context.Context, name arn.ARN, attributes map[string]string) error
	DeleteApplication(ctx context.Context, name arn.ARN) error
	// ApplicationAttributes returns the attributes without secrets.
	ApplicationAttributes(ctx context.Context, name arn.ARN) (map[string]string, error)
	SetApplicationAttributes(ctx context.Context, name arn.ARN, attributes map[string]string) error
	// ListApplications returns up to limit applications, ordered by platform and name, from
	// the first one greater than after: platform/name.
	ListApplications(ctx context.Context, region, account, after string, limit int) (page []shard.PlatformApplication, more bool, err error)
	// CreateEndpoint creates an endpoint, or finds the existing one with the same token and
	// attributes.
	CreateEndpoint(ctx context.Context, application arn.ARN, token string, userData *string, attributes map[string]string) (arn.ARN, error)
	DeleteEndpoint(ctx context.Context, name arn.ARN) error
	EndpointAttributes(ctx context.Context, name arn.ARN) (map[string]string, error)
	SetEndpointAttributes(ctx context.Context, name arn.ARN, attributes map[string]string) error
	// ListEndpoints returns up to limit endpoints, ordered by id, from the first id greater
	// than after.
	ListEndpoints(ctx context.Context, application arn.ARN, after string, limit int) (page []shard.PlatformEndpoint, more bool, err error)
}

// pageSize is the page size of lists of applications and endpoints.
const pageSize = 100

type service struct{ engine Engine }

// Operations declares the operations.
func Operations(engine Engine) []api.Operation {
	s := &service{engine}
	return api.Guarded(access, []api.Operation{
		api.Op("CreatePlatformApplication", s.create),
		api.Op("DeletePlatformApplication", s.delete),
		api.Op("GetPlatformApplicationAttributes", s.attributes),
		api.Op("SetPlatformApplicationAttributes", s.setAttributes),
		api.Op("ListPlatformApplications", s.list),
		api.Op("CreatePlatformEndpoint", s.createEndpoint),
		api.Op("DeleteEndpoint", s.deleteEndpoint),
		api.Op("GetEndpointAttributes", s.endpointAttributes),
		api.Op("SetEndpointAttributes", s.setEndpointAttributes),
		api.Op("ListEndpointsByPlatformApplication", s.listEndpoints),
	})
}

// access has the permissions that each operation requires. AWS's list of SNS's resources has
// only topics; but policies can name applications and endpoints.
var access = map[string]api.Access{
	"CreatePlatformApplication": api.Needs(func(call *api.Call, in *CreatePlatformApplicationInput) ([]authorize.Need, error) {
		needs := api.One("sns:CreatePlatformApplication", arn.PlatformApplication(call.Region, call.Account, in.Platform, api.Deref(in.Name)))
		return append(needs, passing(in.Attributes)...), nil
	}),
	"DeletePlatformApplication":        on("DeletePlatformApplication", parseApplication, func(in *DeletePlatformApplicationInput) string { return in.PlatformApplicationArn }),
	"GetPlatformApplicationAttributes": on("GetPlatformApplicationAttributes", parseApplication, func(in *GetPlatformApplicationAttributesInput) string { return in.PlatformApplicationArn }),
	"SetPlatformApplicationAttributes": api.Needs(func(call *api.Call, in *SetPlatformApplicationAttributesInput) ([]authorize.Need, error) {
		a, err := parseApplication(call, in.PlatformApplicationArn)
		return append(api.One("sns:SetPlatformApplicationAttributes", a), passing(in.Attributes)...), err
	}),
	"ListPlatformApplications": func(_ context.Context, call *api.Call, _ any) ([]authorize.Need, error) {
		return api.One("sns:ListPlatformApplications", arn.Topic(call.Region, call.Account, "*")), nil
	},
	"CreatePlatformEndpoint":             on("CreatePlatformEndpoint", parseApplication, func(in *CreatePlatformEndpointInput) string { return in.PlatformApplicationArn }),
	"DeleteEndpoint":                     on("DeleteEndpoint", parseEndpoint, func(in *DeleteEndpointInput) string { return in.EndpointArn }),
	"GetEndpointAttributes":              on("GetEndpointAttributes", parseEndpoint, func(in *GetEndpointAttributesInput) string { return in.EndpointArn }),
	"SetEndpointAttributes":              on("SetEndpointAttributes", parseEndpoint, func(in *SetEndpointAttributesInput) string { return in.EndpointArn }),
	"ListEndpointsByPlatformApplication": on("ListEndpointsByPlatformApplication", parseApplication, func(in *ListEndpointsByPlatformApplicationInput) string { return in.PlatformApplicationArn }),
}

// on requires an action on the application or endpoint of an input.
func on[In any](action string, parse func(*api.Call, string) (arn.ARN, error), name func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) {
		a, err := parse(call, name(in))
		return api.One("sns:"+action, a), err
	})
}

// passing requires iam:PassRole for the roles in attributes, which log deliveries.
func passing(attributes map[string]string) (needs []authorize.Need) {
	for _, name := range [...]string{"FailureFeedbackRoleArn", "SuccessFeedbackRoleArn"} {
		if role := attributes[name]; role != "" {
			needs = append(needs, api.Passing(role, "sns.amazonaws.com"))
		}
	}
	return needs
}

// IsEndpoint reports whether a value may be the ARN of an endpoint.
func IsEndpoint(value string) bool {
	if !strings.Contains(value, ":endpoint/") {
		return false // most publishes are to topics: do not parse their ARNs
	}
	a, err := arn.Parse(value)
	return err == nil && a.Service == "sns" && strings.HasPrefix(a.Resource, "endpoint/")
}

// own refuses a resource of another account.
func own(call *api.Call, a arn.ARN, err error) (arn.ARN, error) {
	if err != nil {
		return a, err
	}
	return a, api.Owned(call, a, "sns:"+call.Operation)
}

// applicationIn parses the ARN of an application of the caller's account.
func applicationIn(call *api.Call, value string) (arn.ARN, error) {
	a, err := parseApplication(call, value)
	return own(call, a, err)
}

// ownEndpoint parses the ARN of an endpoint of the caller's account.
func ownEndpoint(call *api.Call, value string) (arn.ARN, error) {
	a, err := parseEndpoint(call, value)
	return own(call, a, err)
}

func parseApplication(call *api.Call, value string) (arn.ARN, error) {
	const member = "PlatformApplicationArn"
	a, err := arns.Parse(call, member, value)
	if err != nil {
		return a, err
	}
	if strings.Count(a.Resource, "/") != 2 {
		return arn.ARN{}, wrongSlashes(member)
	}
	if _, _, ok := a.SplitApplication(); !ok {
		return arn.ARN{}, arns.Invalid("%s", member)
	}
	return a, nil
}

func parseEndpoint(call *api.Call, value string) (arn.ARN, error) {
	return endpointIn(call, "EndpointArn", value)
}

func endpointIn(call *api.Call, member, value string) (arn.ARN, error) {
	a, err := arns.Parse(call, member, value)
	if err != nil {
		return a, err
	}
	if strings.Count(a.Resource, "/") != 3 {
		return arn.ARN{}, wrongSlashes(member)
	}
	if _, _, ok := a.SplitEndpoint(); !ok {
		return arn.ARN{}, arns.Invalid("%s", member)
	}
	return a, nil
}

func wrongSlashes(member string) error {
	return arns.Invalid("%s Reason: Wrong number of slashes in relative portion of the ARN.", member)
}

// ParseTarget parses the ARN of the endpoint of a publish, of any account, and returns its
// platform.
func ParseTarget(call *api.Call, member, value string) (endpoint arn.ARN, of string, err error) {
	if endpoint, err = endpointIn(call, member, value); err != nil {
		return endpoint, "", err
	}
	app, _, _ := endpoint.SplitEndpoint()
	of, _, _ = app.SplitApplication()
	return endpoint, of, nil
}

// mustHave refuses attributes that are missing, as AWS's model does.
func mustHave(attributes map[string]string) error {
	if len(attributes) == 0 {
		return fault.New(fault.MissingParameter, "1 validation error detected: Value null at 'attributes' failed to satisfy constraint: Member must not be null")
	}
	return nil
}

func (s *service) create(ctx context.Context, call *api.Call, in *CreatePlatformApplicationInput) (*CreatePlatformApplicationOutput, error) {
	if err := mustHave(in.Attributes); err != nil {
		return nil, err
	}
	if err := platform.CheckName(in.Platform, api.Deref(in.Name)); err != nil {
		return nil, err
	}
	name := arn.PlatformApplication(call.Region, call.Account, in.Platform, *in.Name)
	if err := s.engine.CreateApplication(ctx, name, in.Attributes); err != nil {
		return nil, err
	}
	return &CreatePlatformApplicationOutput{PlatformApplicationArn: name.String()}, nil
}

func (s *service) delete(ctx context.Context, call *api.Call, in *DeletePlatformApplicationInput) (*DeletePlatformApplicationOutput, error) {
	a, err := applicationIn(call, in.PlatformApplicationArn)
	if err != nil {
		return nil, err
	}
	return &DeletePlatformApplicationOutput{}, s.engine.DeleteApplication(ctx, a)
}

func (s *service) attributes(ctx context.Context, call *api.Call, in *GetPlatformApplicationAttributesInput) (*GetPlatformApplicationAttributesOutput, error) {
	a, err := applicationIn(call, in.PlatformApplicationArn)
	if err != nil {
		return nil, err
	}
	attributes, err := s.engine.ApplicationAttributes(ctx, a)
	return &GetPlatformApplicationAttributesOutput{Attributes: attributes}, err
}

func (s *service) setAttributes(ctx context.Context, call *api.Call, in *SetPlatformApplicationAttributesInput) (*SetPlatformApplicationAttributesOutput, error) {
	a, err := applicationIn(call, in.PlatformApplicationArn)
	if err != nil {
		return nil, err
	}
	if err := mustHave(in.Attributes); err != nil {
		return nil, err
	}
	return &SetPlatformApplicationAttributesOutput{}, s.engine.SetApplicationAttributes(ctx, a, in.Attributes)
}

func (s *service) list(ctx context.Context, call *api.Call, in *ListPlatformApplicationsInput) (*ListPlatformApplicationsOutput, error) {
	const list = "platform applications"
	after, ok := api.ReadToken(list, in.NextToken)
	if !ok {
		return nil, arns.Invalid("NextToken")
	}
	page, more, err := s.engine.ListApplications(ctx, call.Region, call.Account, after, pageSize)
	if err != nil {
		return nil, err
	}
	out := &ListPlatformApplicationsOutput{PlatformApplications: make([]PlatformApplication, len(page))}
	for i, a := range page {
		out.PlatformApplications[i] = PlatformApplication{a.ARN.String(), a.Attributes}
	}
	if more {
		of, name, _ := page[len(page)-1].ARN.SplitApplication()
		out.NextToken = api.NextToken(list, of+"/"+name)
	}
	return out, nil
}

func (s *service) createEndpoint(ctx context.Context, call *api.Call, in *CreatePlatformEndpointInput) (*CreatePlatformEndpointOutput, error) {
	a, err := applicationIn(call, in.PlatformApplicationArn)
	if err != nil {
		return nil, err
	}
	name, err := s.engine.CreateEndpoint(ctx, a, api.Deref(in.Token), in.CustomUserData, in.Attributes)
	if err != nil {
		return nil, err
	}
	return &CreatePlatformEndpointOutput{EndpointArn: name.String()}, nil
}

func (s *service) deleteEndpoint(ctx context.Context, call *api.Call, in *DeleteEndpointInput) (*DeleteEndpointOutput, error) {
	a, err := ownEndpoint(call, in.EndpointArn)
	if err != nil {
		return nil, err
	}
	return &DeleteEndpointOutput{}, s.engine.DeleteEndpoint(ctx, a)
}

func (s *service) endpointAttributes(ctx context.Context, call *api.Call, in *GetEndpointAttributesInput) (*GetEndpointAttributesOutput, error) {
	a, err := ownEndpoint(call, in.EndpointArn)
	if err != nil {
		return nil, err
	}
	attributes, err := s.engine.EndpointAttributes(ctx, a)
	return &GetEndpointAttributesOutput{Attributes: attributes}, err
}

func (s *service) setEndpointAttributes(ctx context.Context, call *api.Call, in *SetEndpointAttributesInput) (*SetEndpointAttributesOutput, error) {
	a, err := ownEndpoint(call, in.EndpointArn)
	if err != nil {
		return nil, err
	}
	if err := mustHave(in.Attributes); err != nil {
		return nil, err
	}
	return &SetEndpointAttributesOutput{}, s.engine.SetEndpointAttributes(ctx, a, in.Attributes)
}

func (s *service) listEndpoints(ctx context.Context, call *api.Call, in *ListEndpointsByPlatformApplicationInput) (*ListEndpointsByPlatformApplicationOutput, error) {
	a, err := applicationIn(call, in.PlatformApplicationArn)
	if err != nil {
		return nil, err
	}
	list := a.String()
	after, ok := api.ReadToken(list, in.NextToken)
	if !ok {
		return nil, arns.Invalid("NextToken")
	}
	page, more, err := s.engine.ListEndpoints(ctx, a, after, pageSize)
	if err != nil {
		return nil, err
	}
	out := &ListEndpointsByPlatformApplicationOutput{Endpoints: make([]Endpoint, len(page))}
	for i, e := range page {
		out.Endpoints[i] = Endpoint{e.ARN.String(), e.Attributes}
	}
	if more {
		out.NextToken = api.NextToken(list, page[len(page)-1].ID)
	}
	return out, nil
}
