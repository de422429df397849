package stack

import "godwit.dev/godwit/internal/fault"

// The errors of operations and of stack policies, with the fields of each.
var (
	ErrPolicy     = fault.NewRule(fault.ValidationFailed, "stack: the policy is not valid")
	ErrDenied     = fault.NewRule(fault.ValidationFailed, "stack: the policy denies the change")     // the number of the statement, the action, the resource
	ErrNotAllowed = fault.NewRule(fault.ValidationFailed, "stack: the policy allows no such change") // the action, the resource

	ErrProperties  = fault.NewRule(fault.ValidationFailed, "stack: the properties are not valid")                // the resource, the error
	ErrTooLarge    = fault.NewRule(fault.ValidationFailed, "stack: the properties take too much")                // the limit in bytes
	ErrNotMade     = fault.NewRule(fault.ValidationFailed, "stack: it refers to what is not made")               // the resource
	ErrNoAttribute = fault.NewRule(fault.ValidationFailed, "stack: it refers to an attribute that is not there") // the attribute
	ErrNoExport    = fault.NewRule(fault.ValidationFailed, "stack: there is no such export")                     // its name
	ErrExportTwice = fault.NewRule(fault.ValidationFailed, "stack: it has two exports of a name")                // the name
	ErrExportTaken = fault.NewRule(fault.ValidationFailed, "stack: another stack has the export")                // its name, the stack
	ErrExportInUse = fault.NewRule(fault.ValidationFailed, "stack: another stack uses the export")               // its name, "updated" or "deleted", the stack
)

// The reasons of statuses, with the fields of each.
var (
	ErrRequested         = fault.NewRule(fault.ValidationFailed, "stack: a user asks for it")
	ErrRollbackRequested = fault.NewRule(fault.ValidationFailed, "stack: a user asks for a rollback")
	ErrDeleteRequested   = fault.NewRule(fault.ValidationFailed, "stack: a user asks for a deletion")
	ErrTimeout           = fault.NewRule(fault.ValidationFailed, "stack: the creation has taken too long")
	ErrCircular          = fault.NewRule(fault.ValidationFailed, "stack: resources depend on each other")
	ErrCreationCancelled = fault.NewRule(fault.ValidationFailed, "stack: another resource has failed when this one was made")
	ErrUpdateCancelled   = fault.NewRule(fault.ValidationFailed, "stack: another resource has failed when this one was changed")
	ErrNotWhole          = fault.NewRule(fault.ValidationFailed, "stack: a resource was not made whole") // its physical name
	ErrReplaces          = fault.NewRule(fault.ValidationFailed, "stack: the change makes a new resource")
	ErrNamed             = fault.NewRule(fault.ValidationFailed, "stack: what is to be replaced has a name of its own")          // the name
	ErrDeletionCancelled = fault.NewRule(fault.ValidationFailed, "stack: another stack uses an export of what is to be deleted") // the export, the stack
	ErrFailedToCreate    = fault.NewRule(fault.ValidationFailed, "stack: resources were not made")                               // their names
	ErrFailedToUpdate    = fault.NewRule(fault.ValidationFailed, "stack: resources were not changed")                            // their names
	ErrFailedToDelete    = fault.NewRule(fault.ValidationFailed, "stack: resources were not deleted")                            // their names
	ErrChangedMeanwhile  = fault.NewRule(fault.ValidationFailed, "stack: it was changed while it was compared")
	ErrNotCompared       = fault.NewRule(fault.ValidationFailed, "stack: resources could not be compared") // their names
)
