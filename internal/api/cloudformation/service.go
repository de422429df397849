// Package cloudformation holds the operations of CloudFormation.
package cloudformation

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/constraints"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// Engine executes the operations; *stacks.Module implements it. Its errors are of package
// fault.
type Engine interface {
	Create(ctx context.Context, c *stacks.Creation) (id string, err error)
	Update(ctx context.Context, account, region, name string, body []byte, req *stack.Request) (id string, err error)
	Delete(ctx context.Context, account, region, name string, req *stack.Request) error
	Cancel(ctx context.Context, account, region, name, token string) error
	Rollback(ctx context.Context, account, region, name string, req *stack.Request) (id string, err error)
	ContinueRollback(ctx context.Context, account, region, name string, req *stack.Request) error
	Protect(ctx context.Context, account, region, name string, on bool) (id string, err error)
	SetPolicy(ctx context.Context, account, region, name, policy string) error
	Get(account, region, name string) (stacks.View, error)
	List(account, region string) []stack.Stack
	Template(account, region, name string) ([]byte, error)
	Events(account, region, name string, before uint64, limit int) ([]stack.Event, stack.Stack, error)
	Exports(account, region string) (exports []stack.Output, owners map[string]string)
	// Parameters returns a lookup in the parameter store, of parameters that may returns true
	// for.
	Parameters(account, region string, may func(name string) bool) func(name string) (value string, ok bool)
	Importers(account, region, export string) []string
	Detect(ctx context.Context, account, region, name string, d stack.Detection) (id string, err error)
	DetectOne(ctx context.Context, account, region, name, logical string, by *caller.Caller) (stack.Resource, stack.Stack, error)
	Detection(account, region, id string) (found stack.Detection, arn string, err error)
	PutChangeSet(ctx context.Context, c *stacks.Creation, set *stacks.ChangeSet) (stackID string, err error)
	ChangeSet(account, region, name, set string) (stacks.ChangeSet, error)
	TemplateOf(account, region, name, set string) ([]byte, error)
	ChangeSets(account, region, name string) ([]stacks.ChangeSet, error)
	DeleteChangeSet(ctx context.Context, account, region, name, set string) error
	Execute(ctx context.Context, account, region, name, set string, req *stack.Request) error
}

// Options are the dependencies and settings of a Service. All are required but May and Acting.
type Options struct {
	Engine Engine
	// NewID returns a random UUID, as text.
	NewID func() string
	// Objects reads the objects of TemplateURL.
	Objects Objects
	// May refuses an access of a caller by a service in a region; nil: everything is allowed.
	May func(ctx context.Context, who *caller.Caller, via, region string, need *authorize.Need) error
	// Acting is who CloudFormation is in a role, for a stack; nil: any role will do.
	Acting func(stack arn.ARN, role string) (*caller.Caller, error)
}

// Objects are the objects of an S3 server.
type Objects interface {
	// Host is the host in URLs of objects; empty: there is no server.
	Host() string
	// Get reads an object of at most limit bytes.
	Get(ctx context.Context, bucket, key string, limit int64) ([]byte, error)
}

// Service answers the operations of CloudFormation.
type Service struct{ Options }

// New makes a Service.
func New(o Options) *Service { return &Service{o} }

// maxBody bounds a request with a template: 51,200 bytes, each of which may be encoded as
// three.
const maxBody = 1 << 20

// Operations are the operations that are implemented.
func (s *Service) Operations() []api.Operation {
	return api.Guarded(s.access(), constraints.Guard("cloudformation", []api.Operation{
		api.Op("CreateStack", s.createStack).Limit(maxBody),
		api.Op("UpdateStack", s.updateStack).Limit(maxBody),
		api.Op("DeleteStack", s.deleteStack),
		api.Op("CancelUpdateStack", s.cancelUpdateStack),
		api.Op("RollbackStack", s.rollbackStack),
		api.Op("ContinueUpdateRollback", s.continueUpdateRollback).WithResult(),
		api.Op("UpdateTerminationProtection", s.updateTerminationProtection),
		api.Op("SetStackPolicy", s.setStackPolicy).Limit(maxBody),
		api.Op("GetStackPolicy", s.getStackPolicy),
		api.Op("DescribeStacks", s.describeStacks),
		api.Op("ListStacks", s.listStacks),
		api.Op("DescribeStackEvents", s.describeStackEvents),
		api.Op("DescribeStackResource", s.describeStackResource),
		api.Op("DescribeStackResources", s.describeStackResources),
		api.Op("ListStackResources", s.listStackResources),
		api.Op("GetTemplate", s.getTemplate),
		api.Op("GetTemplateSummary", s.getTemplateSummary).Limit(maxBody),
		api.Op("ValidateTemplate", s.validateTemplate).Limit(maxBody),
		api.Op("ListExports", s.listExports),
		api.Op("ListImports", s.listImports),
		api.Op("DetectStackDrift", s.detectStackDrift),
		api.Op("DescribeStackDriftDetectionStatus", s.describeStackDriftDetectionStatus),
		api.Op("DetectStackResourceDrift", s.detectStackResourceDrift),
		api.Op("DescribeStackResourceDrifts", s.describeStackResourceDrifts),
		api.Op("CreateChangeSet", s.createChangeSet).Limit(maxBody),
		api.Op("DescribeChangeSet", s.describeChangeSet),
		api.Op("ExecuteChangeSet", s.executeChangeSet).WithResult(),
		api.Op("ListChangeSets", s.listChangeSets),
		api.Op("DeleteChangeSet", s.deleteChangeSet).WithResult(),
	}))
}

// store returns a lookup in the parameter store, of parameters that the caller may read.
func (s *Service) store(ctx context.Context, call *api.Call) func(name string) (value string, ok bool) {
	if s.May == nil {
		return s.Engine.Parameters(call.Account, call.Region, nil)
	}
	return s.Engine.Parameters(call.Account, call.Region, func(name string) bool {
		need := authorize.Need{Action: "ssm:GetParameters", Resource: arn.Parameter(call.Region, call.Account, name).String(), Account: call.Account}
		return s.May(ctx, call.Caller, authorize.CloudFormation, call.Region, &need) == nil
	})
}
