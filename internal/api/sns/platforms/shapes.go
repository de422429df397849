package platforms

// The shapes of the operations, as those of package sns.

// CreatePlatformApplicationInput is the request of CreatePlatformApplication.
type CreatePlatformApplicationInput struct {
	Name       *string           `wire:"required"`
	Platform   string            `wire:"required"`
	Attributes map[string]string `wire:"required"`
}

// CreatePlatformApplicationOutput is the answer of CreatePlatformApplication.
type CreatePlatformApplicationOutput struct {
	PlatformApplicationArn string
}

// DeletePlatformApplicationInput is the request of DeletePlatformApplication.
type DeletePlatformApplicationInput struct {
	PlatformApplicationArn string `wire:"required"`
}

// DeletePlatformApplicationOutput is the empty answer of DeletePlatformApplication.
type DeletePlatformApplicationOutput struct{}

// GetPlatformApplicationAttributesInput is the request of GetPlatformApplicationAttributes.
type GetPlatformApplicationAttributesInput struct {
	PlatformApplicationArn string `wire:"required"`
}

// GetPlatformApplicationAttributesOutput is the answer of GetPlatformApplicationAttributes.
type GetPlatformApplicationAttributesOutput struct {
	Attributes map[string]string
}

// SetPlatformApplicationAttributesInput is the request of SetPlatformApplicationAttributes.
type SetPlatformApplicationAttributesInput struct {
	PlatformApplicationArn string `wire:"required"`
	Attributes             map[string]string
}

// SetPlatformApplicationAttributesOutput is the empty answer of
// SetPlatformApplicationAttributes.
type SetPlatformApplicationAttributesOutput struct{}

// ListPlatformApplicationsInput is the request of ListPlatformApplications.
type ListPlatformApplicationsInput struct {
	NextToken *string
}

// ListPlatformApplicationsOutput is the answer of ListPlatformApplications.
type ListPlatformApplicationsOutput struct {
	PlatformApplications []PlatformApplication
	NextToken            string
}

// PlatformApplication is one application of a list.
type PlatformApplication struct {
	PlatformApplicationArn string
	Attributes             map[string]string
}

// CreatePlatformEndpointInput is the request of CreatePlatformEndpoint.
type CreatePlatformEndpointInput struct {
	PlatformApplicationArn string  `wire:"required"`
	Token                  *string `wire:"required"`
	CustomUserData         *string
	Attributes             map[string]string
}

// CreatePlatformEndpointOutput is the answer of CreatePlatformEndpoint.
type CreatePlatformEndpointOutput struct {
	EndpointArn string
}

// DeleteEndpointInput is the request of DeleteEndpoint.
type DeleteEndpointInput struct {
	EndpointArn string `wire:"required"`
}

// DeleteEndpointOutput is the empty answer of DeleteEndpoint.
type DeleteEndpointOutput struct{}

// GetEndpointAttributesInput is the request of GetEndpointAttributes.
type GetEndpointAttributesInput struct {
	EndpointArn string `wire:"required"`
}

// GetEndpointAttributesOutput is the answer of GetEndpointAttributes.
type GetEndpointAttributesOutput struct {
	Attributes map[string]string
}

// SetEndpointAttributesInput is the request of SetEndpointAttributes.
type SetEndpointAttributesInput struct {
	EndpointArn string `wire:"required"`
	Attributes  map[string]string
}

// SetEndpointAttributesOutput is the empty answer of SetEndpointAttributes.
type SetEndpointAttributesOutput struct{}

// ListEndpointsByPlatformApplicationInput is the request of
// ListEndpointsByPlatformApplication.
type ListEndpointsByPlatformApplicationInput struct {
	PlatformApplicationArn string `wire:"required"`
	NextToken              *string
}

// ListEndpointsByPlatformApplicationOutput is the answer of
// ListEndpointsByPlatformApplication.
type ListEndpointsByPlatformApplicationOutput struct {
	Endpoints []Endpoint
	NextToken string
}

// Endpoint is one endpoint of a list.
type Endpoint struct {
	EndpointArn string
	Attributes  map[string]string
}
