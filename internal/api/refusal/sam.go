package refusal

import "godwit.dev/godwit/internal/stack/sam"

// failedTransform begins the messages of the Serverless transform.
const failedTransform = "Transform AWS::Serverless-2016-10-31 failed with: Invalid Serverless Application Specification document. Number of errors found: 1. "

// ofSAM are the messages of the Serverless transform of templates.
var ofSAM = sentences{
	sam.ErrResource:       failedTransform + "Resource with id [%s] is invalid. %s",
	sam.ErrGlobals:        failedTransform + "'Globals' section is invalid. It must be a non-empty dictionary",
	sam.ErrGlobalsSection: failedTransform + "'Globals' section is invalid. '%s' is not a supported section.",
	sam.ErrGlobal:         failedTransform + "'Globals' section is invalid. '%s' is not a supported property of 'Function'.",

	sam.ErrType:           "%s is not supported.",
	sam.ErrTaken:          "The logical id %s that it makes is that of another resource.",
	sam.ErrProperties:     "Properties should be a map.",
	sam.ErrTooMany:        "The functions of the template have too many properties in common.",
	sam.ErrConnectors:     "Connectors are not supported.",
	sam.ErrProperty:       "property %s not defined for resource of type %s",
	sam.ErrDeadLetter:     "'DeadLetterQueue' requires Type and TargetArn properties to be specified, and Type to be SQS or SNS.",
	sam.ErrNoCode:         "Missing required property 'CodeUri'.",
	sam.ErrCode:           "'CodeUri' is not a valid S3 Uri of the form 's3://bucket/key' with optional versionId query parameter.",
	sam.ErrAlias:          "AutoPublishAlias must be a string of letters, digits, hyphens and underscores, and no function.",
	sam.ErrURLAuth:        "AuthType is required to configure function property `FunctionUrlConfig`. Please provide either AWS_IAM or NONE.",
	sam.ErrDestination:    "'EventInvokeConfig' requires a Destination of %s, and its Type to be SQS, SNS or Lambda.",
	sam.ErrPolicy:         "Policy at index %d in the 'Policies' property is not valid",
	sam.ErrPolicyTemplate: "Must specify valid parameter values for policy template '%s', of which there are %s",
	sam.ErrPolicyValue:    "The following required parameters of template '%s' don't have values: [%s]",
	sam.ErrPolicyValues:   "Must specify valid parameter values for policy template '%s'",
	sam.ErrEvent:          "Event with id [%s] is invalid. %s",

	sam.ErrEventNoType: "Resource dict has missing or invalid value for key Type. Event Type is: None",
	sam.ErrEventType:   "Events of type %s are not supported.",
	sam.ErrNoQueue:     "No Queue (for SQS) provided.",
	sam.ErrNoTopic:     "Missing required property 'Topic'.",
	sam.ErrNoQueueURL:  "No QueueARN or QueueURL provided.",
}
