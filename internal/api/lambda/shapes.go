package lambda

import (
	"godwit.dev/godwit/internal/api/lambda/variables"
)

// CreateFunctionInput is the request of CreateFunction.
type CreateFunctionInput struct {
	FunctionName           string        `wire:"required"`
	Role                   string        `wire:"required"`
	Code                   *FunctionCode `wire:"required"`
	Runtime                *string
	Handler                *string
	Description            *string
	Timeout                *int
	MemorySize             *int
	Publish                bool
	VpcConfig              *VpcConfig
	PackageType            *string
	DeadLetterConfig       *DeadLetterConfig
	Environment            *Environment
	KMSKeyArn              *string
	TracingConfig          *TracingConfig
	Tags                   map[string]string
	Layers                 []string
	FileSystemConfigs      []FileSystemConfig
	ImageConfig            *ImageConfig
	CodeSigningConfigArn   *string
	Architectures          []string
	EphemeralStorage       *EphemeralStorage
	SnapStart              *SnapStart
	LoggingConfig          *LoggingConfig
	CapacityProviderConfig *Unbuilt
	PublishTo              *string
	DurableConfig          *Unbuilt
	TenancyConfig          *Unbuilt
}

// FunctionCode has the code of a new function, or where it is.
type FunctionCode struct {
	ZipFile         []byte
	S3Bucket        *string
	S3Key           *string
	S3ObjectVersion *string
	ImageUri        *string
	SourceKMSKeyArn *string
}

// Unbuilt is a member of features that are not implemented: only its presence is checked.
type Unbuilt struct{}

// VpcConfig is a function's network.
type VpcConfig struct {
	SubnetIds               []string
	SecurityGroupIds        []string
	Ipv6AllowedForDualStack *bool
}

// DeadLetterConfig names the dead-letter queue or topic of asynchronous invocations.
type DeadLetterConfig struct{ TargetArn *string }

// Environment is a function's environment variables.
type Environment = variables.Environment

// TracingConfig says whether a function is traced.
type TracingConfig struct{ Mode *string }

// FileSystemConfig is a file system to mount.
type FileSystemConfig struct {
	Arn            string `wire:"required"`
	LocalMountPath string `wire:"required"`
}

// ImageConfig overrides how an image starts.
type ImageConfig struct {
	EntryPoint       []string
	Command          []string
	WorkingDirectory *string
}

// EphemeralStorage is the size of /tmp.
type EphemeralStorage struct{ Size *int }

// SnapStart says whether versions start from snapshots.
type SnapStart struct{ ApplyOn *string }

// LoggingConfig configures the logs of a function.
type LoggingConfig struct {
	LogFormat           *string
	ApplicationLogLevel *string
	SystemLogLevel      *string
	LogGroup            *string
}

// FunctionConfiguration is a version of a function in the answers of most operations.
type FunctionConfiguration struct {
	FunctionName               string
	FunctionArn                string
	Runtime                    string
	Role                       string
	Handler                    string
	CodeSize                   int
	Description                *string
	Timeout                    int
	MemorySize                 int
	LastModified               string
	CodeSha256                 string
	Version                    string
	DeadLetterConfig           *DeadLetterConfig
	Environment                *Environment
	KMSKeyArn                  string
	TracingConfig              *TracingConfig
	RevisionId                 string
	State                      string
	StateReason                string
	StateReasonCode            string
	LastUpdateStatus           string
	LastUpdateStatusReason     string
	LastUpdateStatusReasonCode string
	PackageType                string
	Architectures              []string
	EphemeralStorage           *EphemeralStorage
	SnapStart                  *SnapStartResponse
	RuntimeVersionConfig       *RuntimeVersionConfig
	LoggingConfig              *LoggingConfig
	Layers                     []Layer

	token string // that PublishVersion made it under
}

// TokenOf is the token that a version was published under, for who calls within the process; empty: none.
func TokenOf(c *FunctionConfiguration) string { return c.token }

// WithToken sets what TokenOf returns.
func WithToken(c *FunctionConfiguration, token string) *FunctionConfiguration {
	c.token = token
	return c
}

// Layer is a version of a layer that a function has.
type Layer struct {
	Arn      string
	CodeSize int
}

// RuntimeVersionConfig names the version of a runtime.
type RuntimeVersionConfig struct{ RuntimeVersionArn string }

// SnapStartResponse is the state of a version's snapshots.
type SnapStartResponse struct{ ApplyOn, OptimizationStatus string }

// FunctionInput is the request of operations on a function, a version or an alias.
type FunctionInput struct {
	FunctionName string  `wire:"required,uri"`
	Qualifier    *string `wire:"query=Qualifier"`
}

// GetFunctionOutput is the answer of GetFunction.
type GetFunctionOutput struct {
	Configuration *FunctionConfiguration
	Code          *FunctionCodeLocation
	Tags          map[string]string
	Concurrency   *Concurrency
}

// FunctionCodeLocation is where the code of a function can be downloaded.
type FunctionCodeLocation struct {
	RepositoryType   string
	Location         string
	ImageUri         string
	ResolvedImageUri string
}

// Concurrency is the reserved concurrency of a function.
type Concurrency struct{ ReservedConcurrentExecutions *int }

// ListFunctionsInput is the request of ListFunctions.
type ListFunctionsInput struct {
	MasterRegion    *string `wire:"query=MasterRegion"`
	FunctionVersion *string `wire:"query=FunctionVersion"`
	Marker          *string `wire:"query=Marker"`
	MaxItems        *int    `wire:"query=MaxItems"`
}

// ListFunctionsOutput is the answer of ListFunctions.
type ListFunctionsOutput struct {
	NextMarker string
	Functions  []FunctionConfiguration
}

// UpdateFunctionCodeInput is the request of UpdateFunctionCode.
type UpdateFunctionCodeInput struct {
	FunctionName    string `wire:"required,uri"`
	ZipFile         []byte
	S3Bucket        *string
	S3Key           *string
	S3ObjectVersion *string
	ImageUri        *string
	Publish         bool
	DryRun          bool
	RevisionId      *string
	Architectures   []string
	SourceKMSKeyArn *string
	PublishTo       *string
}

// UpdateFunctionConfigurationInput is the request of UpdateFunctionConfiguration.
type UpdateFunctionConfigurationInput struct {
	FunctionName           string `wire:"required,uri"`
	Role                   *string
	Handler                *string
	Description            *string
	Timeout                *int
	MemorySize             *int
	VpcConfig              *VpcConfig
	Environment            *Environment
	Runtime                *string
	DeadLetterConfig       *DeadLetterConfig
	KMSKeyArn              *string
	TracingConfig          *TracingConfig
	RevisionId             *string
	Layers                 []string
	FileSystemConfigs      []FileSystemConfig
	ImageConfig            *ImageConfig
	EphemeralStorage       *EphemeralStorage
	SnapStart              *SnapStart
	LoggingConfig          *LoggingConfig
	CapacityProviderConfig *Unbuilt
	DurableConfig          *Unbuilt
}

// DeleteFunctionOutput is the answer of DeleteFunction.
type DeleteFunctionOutput struct {
	StatusCode int `wire:"status"`
}

// PublishVersionInput is the request of PublishVersion.
type PublishVersionInput struct {
	FunctionName string `wire:"required,uri"`
	CodeSha256   *string
	Description  *string
	RevisionId   *string
	PublishTo    *string
}

// ListVersionsByFunctionInput is the request of ListVersionsByFunction.
type ListVersionsByFunctionInput struct {
	FunctionName string  `wire:"required,uri"`
	Marker       *string `wire:"query=Marker"`
	MaxItems     *int    `wire:"query=MaxItems"`
}

// ListVersionsByFunctionOutput is the answer of ListVersionsByFunction.
type ListVersionsByFunctionOutput struct {
	NextMarker string
	Versions   []FunctionConfiguration
}

// CreateAliasInput is the request of CreateAlias.
type CreateAliasInput struct {
	FunctionName    string `wire:"required,uri"`
	Name            string `wire:"required"`
	FunctionVersion string `wire:"required"`
	Description     *string
	RoutingConfig   *AliasRoutingConfiguration
}

// UpdateAliasInput is the request of UpdateAlias.
type UpdateAliasInput struct {
	FunctionName    string `wire:"required,uri"`
	Name            string `wire:"required,uri"`
	FunctionVersion *string
	Description     *string
	RoutingConfig   *AliasRoutingConfiguration
	RevisionId      *string
}

// AliasRoutingConfiguration is the second version of an alias, with its weight.
type AliasRoutingConfiguration struct {
	AdditionalVersionWeights map[string]float64
}

// AliasInput is the request of operations on an alias.
type AliasInput struct {
	FunctionName string `wire:"required,uri"`
	Name         string `wire:"required,uri"`
}

// ListAliasesInput is the request of ListAliases.
type ListAliasesInput struct {
	FunctionName    string  `wire:"required,uri"`
	FunctionVersion *string `wire:"query=FunctionVersion"`
	Marker          *string `wire:"query=Marker"`
	MaxItems        *int    `wire:"query=MaxItems"`
}

// AliasConfiguration is an alias.
type AliasConfiguration struct {
	AliasArn        string
	Name            string
	FunctionVersion string
	Description     *string
	RoutingConfig   *AliasRoutingConfiguration
	RevisionId      string
}

// ListAliasesOutput is the answer of ListAliases.
type ListAliasesOutput struct {
	NextMarker string
	Aliases    []AliasConfiguration
}

// Empty is an answer without members.
type Empty struct{}

// TagResourceInput is the request of TagResource.
type TagResourceInput struct {
	Resource string            `wire:"required,uri"`
	Tags     map[string]string `wire:"required"`
}

// UntagResourceInput is the request of UntagResource.
type UntagResourceInput struct {
	Resource string   `wire:"required,uri"`
	TagKeys  []string `wire:"required,query=tagKeys"`
}

// ListTagsInput is the request of ListTags.
type ListTagsInput struct {
	Resource string `wire:"required,uri"`
}

// ListTagsOutput is the answer of ListTags.
type ListTagsOutput struct{ Tags map[string]string }

// AddPermissionInput is the request of AddPermission.
type AddPermissionInput struct {
	FunctionName          string `wire:"required,uri"`
	StatementId           string `wire:"required"`
	Action                string `wire:"required"`
	Principal             string `wire:"required"`
	SourceArn             *string
	SourceAccount         *string
	EventSourceToken      *string
	Qualifier             *string `wire:"query=Qualifier"`
	RevisionId            *string
	PrincipalOrgID        *string
	FunctionUrlAuthType   *string
	InvokedViaFunctionUrl *bool
}

// AddPermissionOutput is the answer of AddPermission.
type AddPermissionOutput struct{ Statement string }

// RemovePermissionInput is the request of RemovePermission.
type RemovePermissionInput struct {
	FunctionName string  `wire:"required,uri"`
	StatementId  string  `wire:"required,uri"`
	Qualifier    *string `wire:"query=Qualifier"`
	RevisionId   *string `wire:"query=RevisionId"`
}

// GetPolicyOutput is the answer of GetPolicy.
type GetPolicyOutput struct{ Policy, RevisionId string }

// NameInput is the request of operations on a function as a whole.
type NameInput struct {
	FunctionName string `wire:"required,uri"`
}

// PutFunctionConcurrencyInput is the request of PutFunctionConcurrency.
type PutFunctionConcurrencyInput struct {
	FunctionName                 string `wire:"required,uri"`
	ReservedConcurrentExecutions *int   `wire:"required"`
}

// GetAccountSettingsInput is the request of GetAccountSettings.
type GetAccountSettingsInput struct{}

// GetAccountSettingsOutput is the answer of GetAccountSettings.
type GetAccountSettingsOutput struct {
	AccountLimit *AccountLimit
	AccountUsage *AccountUsage
}

// AccountLimit has the quotas of an account in a region; sizes are in bytes.
type AccountLimit struct {
	TotalCodeSize                  int
	CodeSizeUnzipped               int
	CodeSizeZipped                 int
	ConcurrentExecutions           int
	UnreservedConcurrentExecutions int
}

// AccountUsage is an account's usage in a region.
type AccountUsage struct {
	TotalCodeSize int // bytes
	FunctionCount int
}

// GetFunctionCodeSigningConfigOutput is the answer of GetFunctionCodeSigningConfig; AWS omits
// both members for a function without a configuration.
type GetFunctionCodeSigningConfigOutput struct {
	CodeSigningConfigArn string
	FunctionName         string
}
