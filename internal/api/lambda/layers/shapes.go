package layers

// PublishLayerVersionInput is the request of PublishLayerVersion.
type PublishLayerVersionInput struct {
	LayerName               string                    `wire:"required,uri"`
	Content                 *LayerVersionContentInput `wire:"required"`
	Description             *string
	CompatibleRuntimes      []string
	LicenseInfo             *string
	CompatibleArchitectures []string
}

// LayerVersionContentInput has the content of a new version, or where it is.
type LayerVersionContentInput struct {
	S3Bucket        *string
	S3Key           *string
	S3ObjectVersion *string
	ZipFile         []byte
}

// LayerVersion is a version of a layer with its content, in the answers of PublishLayerVersion,
// GetLayerVersion and GetLayerVersionByArn.
type LayerVersion struct {
	Content                 *LayerVersionContentOutput
	LayerArn                string
	LayerVersionArn         string
	Description             *string
	CreatedDate             string
	Version                 int
	CompatibleRuntimes      []string
	LicenseInfo             string
	CompatibleArchitectures []string
}

// LayerVersionContentOutput is where the content of a version can be downloaded.
type LayerVersionContentOutput struct {
	Location   string
	CodeSha256 string
	CodeSize   int
}

// LayerVersionInput is the request of operations on a version of a layer.
type LayerVersionInput struct {
	LayerName     string `wire:"required,uri"`
	VersionNumber int    `wire:"required,uri"`
}

// GetLayerVersionByArnInput is the request of GetLayerVersionByArn.
type GetLayerVersionByArnInput struct {
	Arn string `wire:"required,query=Arn"`
}

// ListLayersInput is the request of ListLayers.
type ListLayersInput struct {
	CompatibleRuntime      *string `wire:"query=CompatibleRuntime"`
	CompatibleArchitecture *string `wire:"query=CompatibleArchitecture"`
	Marker                 *string `wire:"query=Marker"`
	MaxItems               *int    `wire:"query=MaxItems"`
}

// ListLayersOutput is the answer of ListLayers.
type ListLayersOutput struct {
	NextMarker string
	Layers     []LayersListItem
}

// LayersListItem is a layer in a list, with the newest version that was asked for.
type LayersListItem struct {
	LayerName             string
	LayerArn              string
	LatestMatchingVersion *LayerVersionsListItem
}

// LayerVersionsListItem is a version of a layer in a list.
type LayerVersionsListItem struct {
	LayerVersionArn         string
	Version                 int
	Description             *string
	CreatedDate             string
	CompatibleRuntimes      []string
	LicenseInfo             string
	CompatibleArchitectures []string
}

// ListLayerVersionsInput is the request of ListLayerVersions.
type ListLayerVersionsInput struct {
	LayerName              string  `wire:"required,uri"`
	CompatibleRuntime      *string `wire:"query=CompatibleRuntime"`
	CompatibleArchitecture *string `wire:"query=CompatibleArchitecture"`
	Marker                 *string `wire:"query=Marker"`
	MaxItems               *int    `wire:"query=MaxItems"`
}

// ListLayerVersionsOutput is the answer of ListLayerVersions.
type ListLayerVersionsOutput struct {
	NextMarker    string
	LayerVersions []LayerVersionsListItem
}

// AddLayerVersionPermissionInput is the request of AddLayerVersionPermission.
type AddLayerVersionPermissionInput struct {
	LayerName      string `wire:"required,uri"`
	VersionNumber  int    `wire:"required,uri"`
	StatementId    string `wire:"required"`
	Action         string `wire:"required"`
	Principal      string `wire:"required"`
	OrganizationId *string
	RevisionId     *string `wire:"query=RevisionId"`
}

// AddLayerVersionPermissionOutput is the answer of AddLayerVersionPermission.
type AddLayerVersionPermissionOutput struct{ Statement, RevisionId string }

// RemoveLayerVersionPermissionInput is the request of RemoveLayerVersionPermission.
type RemoveLayerVersionPermissionInput struct {
	LayerName     string  `wire:"required,uri"`
	VersionNumber int     `wire:"required,uri"`
	StatementId   string  `wire:"required,uri"`
	RevisionId    *string `wire:"query=RevisionId"`
}

// GetLayerVersionPolicyOutput is the answer of GetLayerVersionPolicy.
type GetLayerVersionPolicyOutput struct{ Policy, RevisionId string }

// Empty is an answer without members.
type Empty struct{}
