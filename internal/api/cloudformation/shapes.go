package cloudformation

import "godwit.dev/godwit/internal/api"

// Parameter is a value for a parameter of a template.
type Parameter struct {
	ParameterKey, ParameterValue *string
	UsePreviousValue             *bool
	ResolvedValue                *string
}

// Tag is a tag of a stack.
type Tag struct{ Key, Value string }

// Output is an output of a stack.
type Output struct {
	OutputKey               string
	OutputValue             *string // an empty one is shown
	Description, ExportName string
}

// RollbackConfiguration are alarms that would roll back an operation.
type RollbackConfiguration struct {
	RollbackTriggers        []RollbackTrigger
	MonitoringTimeInMinutes *int
}

// RollbackTrigger is one of these alarms.
type RollbackTrigger struct{ Arn, Type string }

// CreateStackInput is the request of CreateStack.
type CreateStackInput struct {
	StackName                   string `wire:"required"`
	TemplateBody, TemplateURL   *string
	Parameters                  []Parameter
	DisableRollback             *bool
	RollbackConfiguration       *RollbackConfiguration
	TimeoutInMinutes            *int
	NotificationARNs            []string
	Capabilities, ResourceTypes []string
	RoleARN, OnFailure          *string
	StackPolicyBody             *string
	StackPolicyURL              *string
	Tags                        []Tag
	ClientRequestToken          *string
	EnableTerminationProtection *bool
	RetainExceptOnCreate        *bool
}

// CreateStackOutput is the answer of CreateStack.
type CreateStackOutput struct{ StackId string }

// UpdateStackInput is the request of UpdateStack.
type UpdateStackInput struct {
	StackName                   string `wire:"required"`
	TemplateBody, TemplateURL   *string
	UsePreviousTemplate         *bool
	Parameters                  []Parameter
	Capabilities, ResourceTypes []string
	RoleARN                     *string
	RollbackConfiguration       *RollbackConfiguration
	StackPolicyBody             *string
	StackPolicyURL              *string
	StackPolicyDuringUpdateBody *string
	StackPolicyDuringUpdateURL  *string
	NotificationARNs            []string
	Tags                        []Tag
	DisableRollback             *bool
	ClientRequestToken          *string
	RetainExceptOnCreate        *bool
}

// UpdateStackOutput is the answer of UpdateStack.
type UpdateStackOutput struct{ StackId string }

// DeleteStackInput is the request of DeleteStack.
type DeleteStackInput struct {
	StackName          string `wire:"required"`
	RetainResources    []string
	RoleARN            *string
	ClientRequestToken *string
	DeletionMode       *string
}

// DeleteStackOutput is the empty answer of DeleteStack.
type DeleteStackOutput struct{}

// CancelUpdateStackInput is the request of CancelUpdateStack.
type CancelUpdateStackInput struct {
	StackName          string `wire:"required"`
	ClientRequestToken *string
}

// CancelUpdateStackOutput is the empty answer of CancelUpdateStack.
type CancelUpdateStackOutput struct{}

// RollbackStackInput is the request of RollbackStack.
type RollbackStackInput struct {
	StackName                   string `wire:"required"`
	RoleARN, ClientRequestToken *string
	RetainExceptOnCreate        *bool
}

// RollbackStackOutput is the answer of RollbackStack.
type RollbackStackOutput struct{ StackId string }

// ContinueUpdateRollbackInput is the request of ContinueUpdateRollback.
type ContinueUpdateRollbackInput struct {
	StackName                   string `wire:"required"`
	RoleARN, ClientRequestToken *string
	ResourcesToSkip             []string
}

// ContinueUpdateRollbackOutput is the empty answer of ContinueUpdateRollback.
type ContinueUpdateRollbackOutput struct{}

// UpdateTerminationProtectionInput is the request of UpdateTerminationProtection.
type UpdateTerminationProtectionInput struct {
	StackName                   string `wire:"required"`
	EnableTerminationProtection *bool  `wire:"required"`
}

// UpdateTerminationProtectionOutput is the answer of UpdateTerminationProtection.
type UpdateTerminationProtectionOutput struct{ StackId string }

// DescribeStacksInput is the request of DescribeStacks.
type DescribeStacksInput struct{ StackName, NextToken *string }

// DescribeStacksOutput is the answer of DescribeStacks.
type DescribeStacksOutput struct {
	Stacks    []Stack
	NextToken string
}

// DriftInformation is the drift of a stack.
type DriftInformation struct {
	StackDriftStatus   string
	LastCheckTimestamp *api.Time
}

// ResourceDriftInformation is the drift of a resource.
type ResourceDriftInformation struct {
	StackResourceDriftStatus string
	LastCheckTimestamp       *api.Time
}

// Stack is a stack.
type Stack struct {
	StackId, StackName          string
	ChangeSetId                 string
	Description                 string
	Parameters                  []Parameter
	CreationTime                api.Time
	DeletionTime                *api.Time
	LastUpdatedTime             *api.Time
	RollbackConfiguration       RollbackConfiguration
	StackStatus                 string
	StackStatusReason           string
	DisableRollback             bool
	NotificationARNs            []string
	TimeoutInMinutes            *int
	Capabilities                []string
	Outputs                     []Output
	RoleARN                     string
	Tags                        []Tag
	EnableTerminationProtection bool
	ParentId, RootId            string
	DriftInformation            DriftInformation
}

// ListStacksInput is the request of ListStacks.
type ListStacksInput struct {
	NextToken         *string
	StackStatusFilter []string
}

// ListStacksOutput is the answer of ListStacks.
type ListStacksOutput struct {
	StackSummaries []StackSummary
	NextToken      string
}

// StackSummary is a stack of a list.
type StackSummary struct {
	StackId, StackName  string
	TemplateDescription string
	CreationTime        api.Time
	LastUpdatedTime     *api.Time
	DeletionTime        *api.Time
	StackStatus         string
	StackStatusReason   string
	ParentId, RootId    string
	DriftInformation    DriftInformation
}

// DescribeStackEventsInput is the request of DescribeStackEvents.
type DescribeStackEventsInput struct {
	StackName string `wire:"required"`
	NextToken *string
}

// DescribeStackEventsOutput is the answer of DescribeStackEvents.
type DescribeStackEventsOutput struct {
	StackEvents []StackEvent
	NextToken   string
}

// StackEvent is an event of a stack.
type StackEvent struct {
	StackId, EventId, StackName           string
	LogicalResourceId, PhysicalResourceId string
	ResourceType                          string
	Timestamp                             api.Time
	ResourceStatus, ResourceStatusReason  string
	ResourceProperties                    string
	ClientRequestToken                    string
}

// DescribeStackResourceInput is the request of DescribeStackResource.
type DescribeStackResourceInput struct {
	StackName         string `wire:"required"`
	LogicalResourceId string `wire:"required"`
}

// DescribeStackResourceOutput is the answer of DescribeStackResource.
type DescribeStackResourceOutput struct{ StackResourceDetail StackResourceDetail }

// StackResourceDetail is a resource of a stack in full.
type StackResourceDetail struct {
	StackName, StackId                    string
	LogicalResourceId, PhysicalResourceId string
	ResourceType                          string
	LastUpdatedTimestamp                  api.Time
	ResourceStatus, ResourceStatusReason  string
	Description, Metadata                 string
	DriftInformation                      ResourceDriftInformation
}

// DescribeStackResourcesInput is the request of DescribeStackResources.
type DescribeStackResourcesInput struct{ StackName, LogicalResourceId, PhysicalResourceId *string }

// DescribeStackResourcesOutput is the answer of DescribeStackResources.
type DescribeStackResourcesOutput struct{ StackResources []StackResource }

// StackResource is a resource of a stack.
type StackResource struct {
	StackName, StackId                    string
	LogicalResourceId, PhysicalResourceId string
	ResourceType                          string
	Timestamp                             api.Time
	ResourceStatus, ResourceStatusReason  string
	DriftInformation                      ResourceDriftInformation
}

// ListStackResourcesInput is the request of ListStackResources.
type ListStackResourcesInput struct {
	StackName string `wire:"required"`
	NextToken *string
}

// ListStackResourcesOutput is the answer of ListStackResources.
type ListStackResourcesOutput struct {
	StackResourceSummaries []StackResourceSummary
	NextToken              string
}

// StackResourceSummary is a resource of a list.
type StackResourceSummary struct {
	LogicalResourceId, PhysicalResourceId string
	ResourceType                          string
	LastUpdatedTimestamp                  api.Time
	ResourceStatus, ResourceStatusReason  string
	DriftInformation                      ResourceDriftInformation
}

// GetTemplateInput is the request of GetTemplate.
type GetTemplateInput struct{ StackName, ChangeSetName, TemplateStage *string }

// GetTemplateOutput is the answer of GetTemplate.
type GetTemplateOutput struct {
	TemplateBody    string
	StagesAvailable []string
}

// ValidateTemplateInput is the request of ValidateTemplate.
type ValidateTemplateInput struct{ TemplateBody, TemplateURL *string }

// ValidateTemplateOutput is the answer of ValidateTemplate.
type ValidateTemplateOutput struct {
	Parameters         []TemplateParameter
	Description        string
	Capabilities       []string
	CapabilitiesReason string
	DeclaredTransforms []string
}

// TemplateParameter is a parameter as ValidateTemplate reports it.
type TemplateParameter struct {
	ParameterKey string
	DefaultValue *string
	NoEcho       bool
	Description  string
}

// GetTemplateSummaryInput is the request of GetTemplateSummary.
type GetTemplateSummaryInput struct{ TemplateBody, TemplateURL, StackName, StackSetName *string }

// GetTemplateSummaryOutput is the answer of GetTemplateSummary.
type GetTemplateSummaryOutput struct {
	Parameters         []ParameterDeclaration
	Description        string
	Capabilities       []string
	CapabilitiesReason string
	ResourceTypes      []string
	Version            string
	DeclaredTransforms []string
}

// ParameterDeclaration is a parameter as GetTemplateSummary reports it.
type ParameterDeclaration struct {
	ParameterKey         string
	DefaultValue         *string
	ParameterType        string
	NoEcho               bool
	Description          string
	ParameterConstraints ParameterConstraints
}

// ParameterConstraints are the values that a parameter may have.
type ParameterConstraints struct{ AllowedValues []string }

// ListExportsInput is the request of ListExports.
type ListExportsInput struct{ NextToken *string }

// ListExportsOutput is the answer of ListExports.
type ListExportsOutput struct {
	Exports   []Export
	NextToken string
}

// Export is an output that other stacks can import.
type Export struct {
	ExportingStackId, Name string
	Value                  *string
}

// ListImportsInput is the request of ListImports.
type ListImportsInput struct {
	ExportName string `wire:"required"`
	NextToken  *string
}

// ListImportsOutput is the answer of ListImports.
type ListImportsOutput struct {
	Imports   []string
	NextToken string
}
