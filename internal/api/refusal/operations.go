package refusal

import (
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// ofOperations are CloudFormation's messages about what an operation on a stack comes to, most of
// which are reasons of statuses.
var ofOperations = sentences{
	stack.ErrPolicy:     "Error validating stack policy: Invalid stack policy",
	stack.ErrDenied:     "Action denied by stack policy: Statement [#%d] does not allow [%s] for resource [LogicalResourceId/%s]",
	stack.ErrNotAllowed: "Action not allowed by stack policy: no statement allows [%s] for resource [LogicalResourceId/%s]",

	stack.ErrProperties:  "Properties validation failed for resource %s with message:\n%s",
	stack.ErrTooLarge:    wrong + "the properties of the resources have more than %d bytes",
	stack.ErrNotMade:     "Unresolved resource dependencies [%s] in the Resources block of the template",
	stack.ErrNoAttribute: "Attribute '%s' does not exist",
	stack.ErrNoExport:    "No export named %s found.",
	stack.ErrExportTwice: "Duplicate Export names: [%s]",
	stack.ErrExportTaken: "Export with name %s is already exported by stack %s",
	stack.ErrExportInUse: "Export %s cannot be %s as it is in use by %s",

	resource.ErrExtraneous: "#: extraneous key [%s] is not permitted",
	resource.ErrRequired:   "#: required key [%s] not found",
	resource.ErrMismatch:   "#/%s: expected type: %s, found: %s",
}
