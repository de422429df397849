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

	stack.ErrRequested:         "User Initiated",
	stack.ErrRollbackRequested: "Rollback requested by user.",
	stack.ErrDeleteRequested:   "Delete requested by user.",
	stack.ErrTimeout:           "Stack creation time exceeded the specified timeout.",
	stack.ErrCircular:          "Circular dependency between resources.",
	stack.ErrCreationCancelled: "Resource creation cancelled",
	stack.ErrUpdateCancelled:   "Resource update cancelled",
	stack.ErrNotWhole:          "The resource %s was not made whole before. Roll the stack back and update it again.",
	stack.ErrReplaces:          "Requested update requires the creation of a new physical resource; hence creating one.",
	stack.ErrNamed:             "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename %s and update the stack again.",
	stack.ErrDeletionCancelled: "Delete canceled. Cannot delete export %s as it is in use by %s.",
	stack.ErrFailedToCreate:    "The following resource(s) failed to create: [%s].",
	stack.ErrFailedToUpdate:    "The following resource(s) failed to update: [%s].",
	stack.ErrFailedToDelete:    "The following resource(s) failed to delete: [%s].",
	stack.ErrChangedMeanwhile:  "The stack was changed while drift detection was under way.",
	stack.ErrNotCompared:       "Failed to detect drift on resource [%s]",

	resource.ErrExtraneous: "#: extraneous key [%s] is not permitted",
	resource.ErrRequired:   "#: required key [%s] not found",
	resource.ErrMismatch:   "#/%s: expected type: %s, found: %s",
}
