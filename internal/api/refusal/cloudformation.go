package refusal

import "godwit.dev/godwit/internal/shard/stacks"

// ofStacks are CloudFormation's messages.
var ofStacks = sentences{
	stacks.ErrNone:      "Stack with id %s does not exist",
	stacks.ErrNoStack:   "Stack [%s] does not exist",
	stacks.ErrExists:    "Stack [%s] already exists",
	stacks.ErrTooMany:   "Limit for stack has been exceeded",
	stacks.ErrProtected: "Stack [%s] cannot be deleted while TerminationProtection is enabled",

	stacks.ErrRootProtected:    "Stack [%s] cannot be deleted while TerminationProtection is enabled on its root stack",
	stacks.ErrNestedProtection: "Stack [%s] is a nested stack: TerminationProtection is enabled on its root stack",
	stacks.ErrNothing:          "No updates are to be performed.",

	stacks.ErrExistsAlready: "Stack [%s] already exists and cannot be created again with the changeSet [%s].",
	stacks.ErrNotUpdatable:  "Stack:%s is in %s state and can not be updated.",
	stacks.ErrRetyped:       "Update of resource type is not permitted. The new template modifies resource type of the following resources: [%s]",
	stacks.ErrChanged:       "Stack:%s was changed by another operation at the same time. Try again.",
	stacks.ErrNotDeletable:  "Stack [%s] cannot be deleted while in status %s",
	stacks.ErrNotKept:       "The stack must be in the DELETE_FAILED state to retain resources.",
	stacks.ErrNotCancelable: "CancelUpdateStack cannot be called from current stack status",
	stacks.ErrNotSkipped:    "Resource %s is in %s state and cannot be skipped: only resources whose rollback has failed can be.",
	stacks.ErrNotRolling:    "Stack:%s is in %s state and can not be rolled back.",

	stacks.ErrNotDetectable: "Drift detection cannot be performed on stack [%s] in status %s",
	stacks.ErrDetecting:     "Drift detection is already in progress for stack [%s]",
	stacks.ErrNoDetection:   "Drift detection operation [%s] does not exist",
	stacks.ErrNoResource:    "Resource %s does not exist for stack %s",

	stacks.ErrNoChanges: "ChangeSet [%s] does not exist",
	stacks.ErrChanges:   "ChangeSet %s cannot be created due to a mismatch with existing attribute Name",
	stacks.ErrNoChange:  "The submitted information didn't contain changes. Submit different information to create a change set.",
	stacks.ErrState:     "ChangeSet [%s] cannot be executed in its current status of [%s]",
}
