package lambda

import (
	"context"
	"fmt"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
)

// URLPath is what the path of a function URL begins with where the names of function URLs do not
// resolve; then comes the URL's id.
const URLPath = "/_godwit/function-url/"

// URLLabel is the label behind the id in the names of function URLs, before the region.
const URLLabel = "lambda-url"

// Cors is what browsers let pages of other origins do with a function URL.
type Cors struct {
	AllowCredentials *bool
	AllowHeaders     []string
	AllowMethods     []string
	AllowOrigins     []string
	ExposeHeaders    []string
	MaxAge           *int
}

// CreateFunctionUrlConfigInput is the request of CreateFunctionUrlConfig.
type CreateFunctionUrlConfigInput struct {
	FunctionName string  `wire:"required,uri"`
	Qualifier    *string `wire:"query=Qualifier"`
	AuthType     string  `wire:"required"`
	Cors         *Cors
	InvokeMode   *string
}

// UpdateFunctionUrlConfigInput is the request of UpdateFunctionUrlConfig.
type UpdateFunctionUrlConfigInput struct {
	FunctionName string  `wire:"required,uri"`
	Qualifier    *string `wire:"query=Qualifier"`
	AuthType     *string
	Cors         *Cors
	InvokeMode   *string
}

// CreateFunctionUrlConfigOutput is the answer of CreateFunctionUrlConfig.
type CreateFunctionUrlConfigOutput struct {
	FunctionUrl  string
	FunctionArn  string
	AuthType     string
	Cors         *Cors
	CreationTime string
	InvokeMode   string
}

// FunctionUrlConfig is the configuration of a function URL in an answer.
type FunctionUrlConfig struct {
	FunctionUrl      string
	FunctionArn      string
	AuthType         string
	Cors             *Cors
	CreationTime     string
	LastModifiedTime string
	InvokeMode       string
}

// ListFunctionUrlConfigsInput is the request of ListFunctionUrlConfigs.
type ListFunctionUrlConfigsInput struct {
	FunctionName string  `wire:"required,uri"`
	Marker       *string `wire:"query=Marker"`
	MaxItems     *int    `wire:"query=MaxItems"`
}

// ListFunctionUrlConfigsOutput is the answer of ListFunctionUrlConfigs.
type ListFunctionUrlConfigsOutput struct {
	FunctionUrlConfigs []FunctionUrlConfig
	NextMarker         string
}

// URLs has the engine's methods for function URLs.
type URLs interface {
	CreateFunctionURL(ctx context.Context, cmd function.CreateURL) (function.QualifiedURL, error)
	UpdateFunctionURL(ctx context.Context, cmd function.UpdateURL) (function.QualifiedURL, error)
	ShowFunctionURL(ctx context.Context, fn arn.ARN, qualifier string) (function.QualifiedURL, error)
	DeleteFunctionURL(ctx context.Context, fn arn.ARN, qualifier string) error
	// FunctionURLs returns up to limit URLs, ordered by qualifier; if begun, from the first
	// qualifier greater than after.
	FunctionURLs(ctx context.Context, fn arn.ARN, begun bool, after string, limit int) ([]function.QualifiedURL, bool, error)
}

// urlOperations are the operations on function URLs.
func (s *Service) urlOperations() []api.Operation {
	const path = "/2021-10-31/functions/{FunctionName}/url"
	return []api.Operation{
		api.Op("CreateFunctionUrlConfig", s.createFunctionURLConfig).At("POST "+path, 201),
		api.Op("UpdateFunctionUrlConfig", s.updateFunctionURLConfig).At("PUT "+path, 200),
		api.Op("GetFunctionUrlConfig", s.getFunctionURLConfig).At("GET "+path, 200),
		api.Op("DeleteFunctionUrlConfig", s.deleteFunctionURLConfig).At("DELETE "+path, 204),
		api.Op("ListFunctionUrlConfigs", s.listFunctionURLConfigs).At("GET "+path+"s", 200),
	}
}

// Invoke modes.
const (
	buffered       = "BUFFERED"
	responseStream = "RESPONSE_STREAM" // not implemented
)

// checkURL checks the members of a function URL.
func checkURL(c *request.Constraints, auth, mode *string, cors *Cors) {
	c.Enum("authType", auth, function.AuthNone, function.AuthIAM)
	c.Enum("invokeMode", mode, buffered, responseStream)
	if cors == nil {
		return
	}
	c.Between("cors.maxAge", cors.MaxAge, 0, 86400)
	texts := func(member string, items []string, most, shortest, longest int) {
		if !c.Count("cors."+member, items, 0, most) {
			return
		}
		for i := range items {
			c.Length(fmt.Sprintf("cors.%s.%d.member", member, i+1), &items[i], shortest, longest)
		}
	}
	texts("allowHeaders", cors.AllowHeaders, 100, 0, 1024)
	texts("exposeHeaders", cors.ExposeHeaders, 100, 0, 1024)
	texts("allowMethods", cors.AllowMethods, 6, 0, 6)
	texts("allowOrigins", cors.AllowOrigins, 100, 1, 253)
}

// checkURLQualifier checks a qualifier, which must not be a number or $LATEST.
func checkURLQualifier(c *request.Constraints, qualifier *string) {
	if qualifier == nil {
		return
	}
	c.Length("qualifier", qualifier, 1, 128)
	if *qualifier != "" && (strings.Trim(*qualifier, "0123456789") == "" || !aliasCharacters.MatchString(*qualifier)) {
		c.Add("qualifier", *qualifier, "Member must satisfy regular expression pattern: %s", `((?!^\d+$)^[0-9a-zA-Z-_]+$)`)
	}
}

var aliasCharacters = request.Compile(`[0-9a-zA-Z-_]+`)

// ofURL is the function or alias that a request about its URL names. It validates the members of a URL that the
// request has.
func (s *Service) ofURL(ctx context.Context, call *api.Call, name string, qualifier, auth, mode *string, cors *Cors) (n request.Named, err error) {
	var c request.Constraints
	checkURLQualifier(&c, qualifier)
	checkURL(&c, auth, mode, cors)
	if err := c.Err(); err != nil {
		return n, err
	}
	if n, err = s.parse(ctx, call, name, qualifier, request.MaxShortName); err != nil {
		return n, err
	}
	return n, unbuilt(unbuiltMembers{"InvokeMode " + responseStream: api.Deref(mode) == responseStream})
}

// corsOf converts the configuration of a request.
func corsOf(c *Cors) *function.CORS {
	if c == nil {
		return nil
	}
	return &function.CORS{
		Credentials: c.AllowCredentials, Headers: c.AllowHeaders, Methods: c.AllowMethods, Origins: c.AllowOrigins, Expose: c.ExposeHeaders, MaxAgeS: c.MaxAge,
	}
}

// shownURL converts a function URL for an answer.
func (s *Service) shownURL(call *api.Call, u *function.QualifiedURL) FunctionUrlConfig {
	const form = "2006-01-02T15:04:05.000000Z"
	out := FunctionUrlConfig{
		FunctionUrl: s.functionURL(call, u), FunctionArn: u.Target().String(), AuthType: u.Auth,
		CreationTime: u.Created.UTC().Format(form), LastModifiedTime: u.Modified.UTC().Format(form), InvokeMode: buffered,
	}
	if c := u.CORS; c != nil {
		out.Cors = &Cors{
			AllowCredentials: c.Credentials, AllowHeaders: c.Headers, AllowMethods: c.Methods, AllowOrigins: c.Origins, ExposeHeaders: c.Expose, MaxAge: c.MaxAgeS,
		}
	}
	return out
}

// functionURL is the address of a function URL: a name below the host of queue URLs, if there is
// one, else a path at the address that the caller has asked.
func (s *Service) functionURL(call *api.Call, u *function.QualifiedURL) string {
	if s.URLHost == "" {
		return call.Host + URLPath + u.ID + "/"
	}
	scheme, host, _ := strings.Cut(call.Host, "://")
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		port = host[i:]
	}
	return scheme + "://" + u.ID + "." + URLLabel + "." + u.Function.Region + "." + s.URLHost + port + "/"
}

// createFunctionURLConfig answers CreateFunctionUrlConfig.
func (s *Service) createFunctionURLConfig(ctx context.Context, call *api.Call, in *CreateFunctionUrlConfigInput) (*CreateFunctionUrlConfigOutput, error) {
	n, err := s.ofURL(ctx, call, in.FunctionName, in.Qualifier, &in.AuthType, in.InvokeMode, in.Cors)
	if err != nil {
		return nil, err
	}
	made, err := s.engine.CreateFunctionURL(ctx, function.CreateURL{
		Function: n.Function, Qualifier: n.Qualifier, ID: s.NewURL(), Auth: in.AuthType, CORS: corsOf(in.Cors),
	})
	if err != nil {
		return nil, err
	}
	u := s.shownURL(call, &made)
	return &CreateFunctionUrlConfigOutput{
		FunctionUrl: u.FunctionUrl, FunctionArn: u.FunctionArn, AuthType: u.AuthType, Cors: u.Cors, CreationTime: u.CreationTime, InvokeMode: u.InvokeMode,
	}, nil
}

// updateFunctionURLConfig answers UpdateFunctionUrlConfig.
func (s *Service) updateFunctionURLConfig(ctx context.Context, call *api.Call, in *UpdateFunctionUrlConfigInput) (*FunctionUrlConfig, error) {
	n, err := s.ofURL(ctx, call, in.FunctionName, in.Qualifier, in.AuthType, in.InvokeMode, in.Cors)
	if err != nil {
		return nil, err
	}
	changed, err := s.engine.UpdateFunctionURL(ctx, function.UpdateURL{
		Function: n.Function, Qualifier: n.Qualifier, Auth: api.Deref(in.AuthType), CORS: corsOf(in.Cors),
	})
	if err != nil {
		return nil, err
	}
	return new(s.shownURL(call, &changed)), nil
}

// getFunctionURLConfig answers GetFunctionUrlConfig.
func (s *Service) getFunctionURLConfig(ctx context.Context, call *api.Call, in *FunctionInput) (*FunctionUrlConfig, error) {
	n, err := s.ofURL(ctx, call, in.FunctionName, in.Qualifier, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	u, err := s.engine.ShowFunctionURL(ctx, n.Function, n.Qualifier)
	if err != nil {
		return nil, err
	}
	return new(s.shownURL(call, &u)), nil
}

// deleteFunctionURLConfig answers DeleteFunctionUrlConfig.
func (s *Service) deleteFunctionURLConfig(ctx context.Context, call *api.Call, in *FunctionInput) (*Empty, error) {
	n, err := s.ofURL(ctx, call, in.FunctionName, in.Qualifier, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.DeleteFunctionURL(ctx, n.Function, n.Qualifier)
}

// maxURLs is the most that a page of function URLs has.
const maxURLs = 50

// listFunctionURLConfigs answers ListFunctionUrlConfigs.
func (s *Service) listFunctionURLConfigs(ctx context.Context, call *api.Call, in *ListFunctionUrlConfigsInput) (*ListFunctionUrlConfigsOutput, error) {
	var c request.Constraints
	c.Between("maxItems", in.MaxItems, 1, maxURLs)
	if err := c.Err(); err != nil {
		return nil, err
	}
	fn, err := s.parseWhole(ctx, call, in.FunctionName)
	if err != nil {
		return nil, err
	}
	list := "function-urls " + fn.String()
	after, err := request.ReadMarker(list, in.Marker)
	if err != nil {
		return nil, err
	}
	limit := maxURLs
	if in.MaxItems != nil {
		limit = *in.MaxItems
	}
	// The function itself comes first, with an empty qualifier, for which a token has nothing.
	begun := api.Deref(in.Marker) != ""
	page, more, err := s.engine.FunctionURLs(ctx, fn, begun, strings.TrimPrefix(after, "/"), limit)
	if err != nil {
		return nil, err
	}
	out := &ListFunctionUrlConfigsOutput{FunctionUrlConfigs: make([]FunctionUrlConfig, 0, len(page))}
	for i := range page {
		out.FunctionUrlConfigs = append(out.FunctionUrlConfigs, s.shownURL(call, &page[i]))
	}
	if more {
		out.NextMarker = api.NextToken(list, "/"+page[len(page)-1].Qualifier)
	}
	return out, nil
}
