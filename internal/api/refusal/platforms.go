package refusal

import "godwit.dev/godwit/internal/platform"

// ofAttributes is the prefix of messages about one of several attributes.
const ofAttributes = badParameter + "Attributes Reason: "

var platforms = sentences{
	platform.ErrNoApplication:       "PlatformApplication does not exist",
	platform.ErrNoEndpoint:          "Endpoint does not exist",
	platform.ErrNoTarget:            badParameter + "TargetArn Reason: No endpoint found for the target arn specified",
	platform.ErrDisabled:            "",
	platform.ErrApplicationDisabled: "",
	platform.ErrNotSent:             badParameter + "TargetArn Reason: this server sends no messages to %s, only to APNS, APNS_SANDBOX and GCM",

	platform.ErrPlatform:          badParameter + "Platform Reason: %s is not supported",
	platform.ErrNameEmpty:         badParameter + " Reason: cannot be empty",
	platform.ErrNameTooLong:       badParameter + "%s Reason: must be at most %d characters long",
	platform.ErrName:              badParameter + "%s Reason: must contain only characters 'a'-'z', 'A'-'Z', '0'-'9', '_', '-', and '.'",
	platform.ErrNoCredential:      ofAttributes + "PlatformPrincipal attribute provided without PlatformCredential",
	platform.ErrNoPrincipal:       ofAttributes + "PlatformCredential attribute provided without PlatformPrincipal",
	platform.ErrCredentialMissing: ofAttributes + "PlatformCredential attribute not provided",
	platform.ErrAttributeName:     ofAttributes + "Invalid attribute name: %s",
	platform.ErrTooLong:           ofAttributes + "Invalid value for attribute: %s: must be at most %d bytes long in UTF-8 encoding",
	platform.ErrUTF8:              ofAttributes + "Invalid value for attribute: %s: must be UTF-8",
	platform.ErrBool:              ofAttributes + "Invalid value for attribute: %s: must be true or false",
	platform.ErrTopic:             ofAttributes + "Invalid value for attribute: %s: must be the ARN of a standard topic of the application's account and region",
	platform.ErrRole:              ofAttributes + "%s: [%s] is not the ARN of a role",
	platform.ErrRate:              ofAttributes + "%s: %s value provided is not an integer between 0-100",
	platform.ErrOtherExists:       ofAttributes + "An application with the same name but different properties already exists",

	platform.ErrTokenEmpty:   badParameter + "Token Reason: cannot be empty",
	platform.ErrTokenTooLong: badParameter + "Token Reason: must be at most %d bytes long in UTF-8 encoding",
	platform.ErrTokenTaken:   badParameter + "Token Reason: Endpoint %s already exists with the same Token, but different attributes.",
}
