package providers

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/iam/entity"
)

// CreateOpenIDConnectProviderInput is the request of CreateOpenIDConnectProvider.
type CreateOpenIDConnectProviderInput struct {
	Url            *string `wire:"required"`
	ClientIDList   []string
	ThumbprintList []string
	Tags           []entity.Tag
}

// CreateOpenIDConnectProviderOutput is the answer of CreateOpenIDConnectProvider.
type CreateOpenIDConnectProviderOutput struct {
	OpenIDConnectProviderArn string
	Tags                     []entity.Tag
}

// ProviderInput names an OpenID Connect provider.
type ProviderInput struct {
	OpenIDConnectProviderArn *string `wire:"required"`
}

// ProviderListInput is the request of ListOpenIDConnectProviderTags.
type ProviderListInput struct {
	OpenIDConnectProviderArn *string `wire:"required"`
	Marker                   *string
	MaxItems                 *int
}

// GetOpenIDConnectProviderOutput is the answer of GetOpenIDConnectProvider.
type GetOpenIDConnectProviderOutput struct {
	Url                          string
	ClientIDList, ThumbprintList []string
	CreateDate                   api.Time
	Tags                         []entity.Tag
}

// NoInput is a request without members.
type NoInput struct{}

// ListOpenIDConnectProvidersOutput is the answer of ListOpenIDConnectProviders.
type ListOpenIDConnectProvidersOutput struct{ OpenIDConnectProviderList []ProviderEntry }

// ProviderEntry is a provider in a list.
type ProviderEntry struct{ Arn string }

// ClientIDInput names a client of a provider.
type ClientIDInput struct {
	OpenIDConnectProviderArn *string `wire:"required"`
	ClientID                 *string `wire:"required"`
}

// ThumbprintsInput is the request of UpdateOpenIDConnectProviderThumbprint.
type ThumbprintsInput struct {
	OpenIDConnectProviderArn *string  `wire:"required"`
	ThumbprintList           []string `wire:"required"`
}

// TagProviderInput is the request of TagOpenIDConnectProvider.
type TagProviderInput struct {
	OpenIDConnectProviderArn *string      `wire:"required"`
	Tags                     []entity.Tag `wire:"required"`
}

// UntagProviderInput is the request of UntagOpenIDConnectProvider.
type UntagProviderInput struct {
	OpenIDConnectProviderArn *string  `wire:"required"`
	TagKeys                  []string `wire:"required"`
}
