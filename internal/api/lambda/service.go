// Package lambda answers the operations of AWS Lambda.
package lambda

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/layers"
	"godwit.dev/godwit/internal/api/lambda/link"
	"godwit.dev/godwit/internal/api/lambda/mappings"
	"godwit.dev/godwit/internal/api/lambda/variables"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/shard"
)

// Engine executes the operations; *shard.Engine implements it. Its errors are of package
// fault, with the message for the caller.
type Engine interface {
	// Function resolves the function, version or alias of an invocation.
	Function(ctx context.Context, fn arn.ARN, qualifier string) (function.Target, error)

	CreateFunction(ctx context.Context, cmd function.Create, zip []byte) (shard.FunctionInfo, error)
	UpdateFunctionCode(ctx context.Context, cmd function.Update, zip []byte) (shard.FunctionInfo, error)
	UpdateFunctionConfiguration(ctx context.Context, cmd function.Update) (shard.FunctionInfo, error)
	DeleteFunction(ctx context.Context, fn arn.ARN, qualifier string) error
	FunctionInfo(ctx context.Context, fn arn.ARN, qualifier string) (shard.FunctionInfo, error)
	// ListFunctions returns up to limit functions, ordered by name, from the first name
	// greater than after. ListFunctionVersions returns all their versions, beginning after
	// the version number of the function after.
	ListFunctions(ctx context.Context, region, account, after string, limit int) ([]shard.FunctionInfo, bool, error)
	ListFunctionVersions(ctx context.Context, region, account, after string, number uint64, limit int) ([]shard.FunctionInfo, bool, error)
	FunctionUpload(ctx context.Context, fn arn.ARN, upload uint64) ([]byte, error)

	PublishVersion(ctx context.Context, cmd function.Publish) (shard.FunctionInfo, error)
	ListVersions(ctx context.Context, fn arn.ARN, after string, limit int) ([]shard.FunctionInfo, bool, error)
	CreateAlias(ctx context.Context, cmd function.CreateAlias) (function.Alias, error)
	UpdateAlias(ctx context.Context, cmd function.UpdateAlias) (function.Alias, error)
	Alias(ctx context.Context, fn arn.ARN, name string) (function.Alias, error)
	ListAliases(ctx context.Context, fn arn.ARN, version, after string, limit int) ([]function.Alias, bool, error)
	DeleteAlias(ctx context.Context, fn arn.ARN, name string) error

	TagFunction(ctx context.Context, fn arn.ARN, tags map[string]string, revision string) error
	UntagFunction(ctx context.Context, fn arn.ARN, keys []string, revision string) error
	FunctionTags(ctx context.Context, fn arn.ARN) (map[string]string, error)

	PermitFunction(ctx context.Context, cmd function.Permit) error
	ForbidFunction(ctx context.Context, cmd function.Forbid) error
	FunctionPolicy(ctx context.Context, fn arn.ARN, qualifier string) (doc, revision string, err error)
	// AdmitsCaller reports whether the policy of a function, with an optional qualifier,
	// allows an action of another account; address is the caller's host and port.
	AdmitsCaller(ctx context.Context, fn arn.ARN, account, action, address string) bool

	ReserveExecutions(ctx context.Context, fn arn.ARN, executions *int) error
	FunctionUsage(account, region string) function.Usage

	layers.Engine
	LayerUpload(ctx context.Context, version arn.ARN) ([]byte, error)
	mappings.Engine
	// TagMapping sets and removes tags of an event-source mapping.
	TagMapping(ctx context.Context, a arn.ARN, set map[string]string, remove []string) error
	InvokeAsync(ctx context.Context, fn arn.ARN, ev function.Event) error
	EventInvoker
	URLs
}

// Options are the dependencies and settings of a Service.
type Options struct {
	Engine Engine
	Pool   Pool
	// NewRevision returns a unique id.
	NewRevision func() string
	// Installed returns why functions of a runtime cannot run on this machine, or nil; a nil
	// function: not known.
	Installed func(ctx context.Context, runtime string) error
	// Refusal returns why functions of zips cannot run on this machine, whatever their
	// runtime, or nil; a nil function: they can.
	Refusal func() error
	// Limits are the quotas of an account, for GetAccountSettings.
	Limits shard.FunctionLimits
	// Links makes the tokens of download links.
	Links link.Tokens
	// Environments encrypts variables under customer keys; nil: there are no keys.
	Environments variables.Keys
	// Principals resolves the principals in functions' policies; nil: api.Unbound.
	Principals api.Principals
	// NewURL makes the id of a function URL, of function.URLIDLength hexadecimal digits that nobody can guess.
	NewURL func() string
	// URLHost is the host below which function URLs have their names, like queue URLs; empty: they
	// are paths at the host of the request.
	URLHost string
	// Objects reads code from S3.
	Objects Objects
}

// Objects are the objects of an S3 server.
type Objects interface {
	// Host is the server's host; empty: there is no server.
	Host() string
	// Get reads an object of at most limit bytes.
	Get(ctx context.Context, bucket, key string, limit int64) ([]byte, error)
}

// Service answers the operations of Lambda.
type Service struct {
	Options
	engine Engine
	layers layers.Service
	// granting is held for reading from the making of a grant for a function's variables until
	// the function needs it, and for writing while the grants that none needs are ended.
	granting sync.RWMutex
}

// New makes a Service.
func New(o Options) *Service {
	o.Principals = cmp.Or[api.Principals](o.Principals, api.Unbound{})
	s := &Service{Options: o, engine: o.Engine}
	s.layers = layers.Service{
		Engine: o.Engine, NewRevision: o.NewRevision, Read: s.layerContent, Location: s.link, Runtimes: slices.Concat(runtimes, withdrawn), MaxBody: maxCodeBody,
	}
	return s
}

// maxCodeBody bounds a request with code, in bytes: the largest zip in base64, and the other
// members. Source: AWS's error for a larger one.
const maxCodeBody = 70167211

// Operations are the operations that are implemented; package access has the permissions that
// they require.
func (s *Service) Operations() []api.Operation {
	const functions, one = "/2015-03-31/functions", "/2015-03-31/functions/{FunctionName}"
	return slices.Concat(mappings.New(s.engine).Operations(), s.layers.Operations(), s.eventInvokeOperations(), s.urlOperations(), []api.Operation{
		api.Op("CreateFunction", s.createFunction).At("POST "+functions, 201).Limit(maxCodeBody),
		api.Op("GetFunction", s.getFunction).At("GET "+one, 200),
		api.Op("GetFunctionConfiguration", s.getFunctionConfiguration).At("GET "+one+"/configuration", 200),
		api.Op("ListFunctions", s.listFunctions).At("GET "+functions, 200),
		api.Op("UpdateFunctionCode", s.updateFunctionCode).At("PUT "+one+"/code", 200).Limit(maxCodeBody),
		api.Op("UpdateFunctionConfiguration", s.updateFunctionConfiguration).At("PUT "+one+"/configuration", 200),
		api.Op("DeleteFunction", s.deleteFunction).At("DELETE "+one, 204),
		api.Op("Invoke", s.invoke).At("POST "+one+"/invocations", 200).Limit(maxPayload),
		api.Op("PublishVersion", s.publishVersion).At("POST "+one+"/versions", 201),
		api.Op("ListVersionsByFunction", s.listVersionsByFunction).At("GET "+one+"/versions", 200),
		api.Op("CreateAlias", s.createAlias).At("POST "+one+"/aliases", 201),
		api.Op("GetAlias", s.getAlias).At("GET "+one+"/aliases/{Name}", 200),
		api.Op("ListAliases", s.listAliases).At("GET "+one+"/aliases", 200),
		api.Op("UpdateAlias", s.updateAlias).At("PUT "+one+"/aliases/{Name}", 200),
		api.Op("DeleteAlias", s.deleteAlias).At("DELETE "+one+"/aliases/{Name}", 204),
		api.Op("AddPermission", s.addPermission).At("POST "+one+"/policy", 201),
		api.Op("RemovePermission", s.removePermission).At("DELETE "+one+"/policy/{StatementId}", 204),
		api.Op("GetPolicy", s.getPolicy).At("GET "+one+"/policy", 200),
		api.Op("PutFunctionConcurrency", s.putFunctionConcurrency).At("PUT /2017-10-31/functions/{FunctionName}/concurrency", 200),
		api.Op("GetFunctionConcurrency", s.getFunctionConcurrency).At("GET /2019-09-30/functions/{FunctionName}/concurrency", 200),
		api.Op("DeleteFunctionConcurrency", s.deleteFunctionConcurrency).At("DELETE /2017-10-31/functions/{FunctionName}/concurrency", 204),
		api.Op("TagResource", s.tagResource).At("POST /2017-03-31/tags/{Resource}", 204),
		api.Op("UntagResource", s.untagResource).At("DELETE /2017-03-31/tags/{Resource}", 204),
		api.Op("ListTags", s.listTags).At("GET /2017-03-31/tags/{Resource}", 200),
		api.Op("GetFunctionCodeSigningConfig", s.getFunctionCodeSigningConfig).At("GET /2020-06-30/functions/{FunctionName}/code-signing-config", 200),
		api.Op("GetAccountSettings", s.getAccountSettings).At("GET /2016-08-19/account-settings", 200),
	})
}
