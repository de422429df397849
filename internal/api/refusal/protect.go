package refusal

import "godwit.dev/godwit/internal/topic/protect"

const badProtection = badParameter + "DataProtectionPolicy Reason: "

var dataProtection = sentences{
	protect.ErrTooLong:      badProtection + "the policy is longer than %d bytes",
	protect.ErrJSON:         badProtection + "the policy cannot be read: %s",
	protect.ErrVersion:      badProtection + "Version must be %s",
	protect.ErrLacks:        badProtection + "%s is missing",
	protect.ErrTooManyParts: badProtection + "more than %d statements",
	protect.ErrTooManyOwn:   badProtection + "more than %d custom data identifiers",
	protect.ErrOwnName:      badProtection + "the name of a custom data identifier must have 1 to 128 letters, digits, - and _, be given once, and not be that of a managed one",
	protect.ErrOwnRegex:     badProtection + "the regular expression of %s must be RE2 of at most 200 characters that matches no empty text",
	protect.ErrProgram:      badProtection + "the regular expressions of all custom data identifiers together are compiled to more than %d instructions: repetitions that are counted, such as {1000}, have that many each",
	protect.ErrStatement:    badProtection + "statement %d: %s",

	// These follow the number of a statement.
	protect.ErrStatementLacks: "%s is missing",
	protect.ErrDirection:      "DataDirection must be Inbound or Outbound",
	protect.ErrPrincipals:     "either Principal or NotPrincipal must name somebody",
	protect.ErrIdentifier:     "there is no data identifier %s",
	protect.ErrModel:          "the data identifier %s needs a model of language, which this server does not have",
	protect.ErrOperation:      "Operation must be one of Audit, Deidentify and Deny",
	protect.ErrInboundOnly:    "%s is for inbound messages only",
	protect.ErrAudits:         "a policy has one statement that audits",
	protect.ErrSampleRate:     "SampleRate must be an integer from 0 to 99",
	protect.ErrLogGroup:       "the name of the log group must begin with %s",
	protect.ErrDestination:    "%s is no destination for findings on this server: use CloudWatchLogs",
	protect.ErrDeidentify:     "Deidentify must have one of MaskConfig and RedactConfig",
	protect.ErrMask:           "MaskWithCharacter must be one character of ASCII that can be printed, and none of \" ' + \\ { }",
}
