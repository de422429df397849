package platform

import "godwit.dev/godwit/internal/fault"

// The errors of commands, with the fields of each.
var (
	ErrNoApplication       = fault.NewRule(fault.NotFound, "platform: there is no such application")
	ErrNoEndpoint          = fault.NewRule(fault.NotFound, "platform: there is no such endpoint")
	ErrNoTarget            = fault.NewRule(fault.InvalidParameter, "platform: there is no such endpoint to publish to")
	ErrDisabled            = fault.NewRule(fault.EndpointDisabled, "platform: the endpoint is disabled")
	ErrApplicationDisabled = fault.NewRule(fault.PlatformApplicationDisabled, "platform: the application is disabled")
	ErrNotSent             = fault.NewRule(fault.InvalidParameter, "platform: nothing is sent to the platform") // the platform

	ErrPlatform          = fault.NewRule(fault.InvalidParameter, "platform: there is no such platform") // the platform
	ErrNameEmpty         = fault.NewRule(fault.InvalidParameter, "platform: the name is empty")
	ErrNameTooLong       = fault.NewRule(fault.InvalidParameter, "platform: the name is too long")          // the name, the limit in characters
	ErrName              = fault.NewRule(fault.InvalidParameter, "platform: the name has other characters") // the name
	ErrNoCredential      = fault.NewRule(fault.InvalidParameter, "platform: a principal without a credential")
	ErrCredentialMissing = fault.NewRule(fault.InvalidParameter, "platform: no credential")
	ErrNoPrincipal       = fault.NewRule(fault.InvalidParameter, "platform: a credential without a principal")
	ErrAttributeName     = fault.NewRule(fault.InvalidParameter, "platform: there is no such attribute")                          // its name
	ErrTooLong           = fault.NewRule(fault.InvalidParameter, "platform: the attribute's value is too long")                   // its name, the limit in bytes
	ErrUTF8              = fault.NewRule(fault.InvalidParameter, "platform: the attribute is not UTF-8")                          // its name
	ErrBool              = fault.NewRule(fault.InvalidParameter, "platform: neither true nor false")                              // the attribute's name
	ErrTopic             = fault.NewRule(fault.InvalidParameter, "platform: not a topic of the application's account and region") // the attribute's name
	ErrRole              = fault.NewRule(fault.InvalidParameter, "platform: not a role")                                          // the attribute's name, the value
	ErrRate              = fault.NewRule(fault.InvalidParameter, "platform: no percentage")                                       // the attribute's name, the value
	ErrOtherExists       = fault.NewRule(fault.InvalidParameter, "platform: the application exists with other attributes")

	ErrTokenEmpty   = fault.NewRule(fault.InvalidParameter, "platform: the token is empty")
	ErrTokenTooLong = fault.NewRule(fault.InvalidParameter, "platform: the token is too long")                           // the limit in bytes
	ErrTokenTaken   = fault.NewRule(fault.InvalidParameter, "platform: an endpoint has the token, and other attributes") // its ARN
)
