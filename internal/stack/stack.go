// Package stack has the rules by which a stack of resources is made, changed, rolled back and
// deleted: commands and the time give a new state, events, and the next steps, each of which
// makes, changes or deletes one resource.
//
// A step is stored with its resource before it is executed, and its outcome afterwards. So a
// process that starts from the stored state knows which steps may have been executed already,
// and returns them again, with the same names and tokens.
//
// An operation has phases: the resources of the template are made or changed, dependencies
// first; after a failure they are rolled back; resources that are not needed any more are
// deleted, dependents first. A resource has completed a phase when it has the phase's number.
package stack

import (
	"slices"

	"godwit.dev/godwit/internal/caller"
)

// Status is the status of a stack or of a resource, in AWS's words.
type Status string

// The statuses of stacks; those of resources are the first of each line and DELETE_SKIPPED.
const (
	CreateInProgress Status = "CREATE_IN_PROGRESS"
	CreateComplete   Status = "CREATE_COMPLETE"
	CreateFailed     Status = "CREATE_FAILED"
	DeleteInProgress Status = "DELETE_IN_PROGRESS"
	DeleteComplete   Status = "DELETE_COMPLETE"
	DeleteFailed     Status = "DELETE_FAILED"
	DeleteSkipped    Status = "DELETE_SKIPPED"
	UpdateInProgress Status = "UPDATE_IN_PROGRESS"
	UpdateComplete   Status = "UPDATE_COMPLETE"
	UpdateFailed     Status = "UPDATE_FAILED"

	ReviewInProgress      Status = "REVIEW_IN_PROGRESS" // it has a change set, and no resources yet
	RollbackInProgress    Status = "ROLLBACK_IN_PROGRESS"
	RollbackComplete      Status = "ROLLBACK_COMPLETE"
	RollbackFailed        Status = "ROLLBACK_FAILED"
	UpdateCleanup         Status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
	UpdateRollback        Status = "UPDATE_ROLLBACK_IN_PROGRESS"
	UpdateRollbackCleanup Status = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
	UpdateRollbackDone    Status = "UPDATE_ROLLBACK_COMPLETE"
	UpdateRollbackFailed  Status = "UPDATE_ROLLBACK_FAILED"
)

// Busy reports that steps are, or may be, in progress.
func (s Status) Busy() bool {
	switch s {
	case CreateInProgress, DeleteInProgress, UpdateInProgress, RollbackInProgress, UpdateCleanup, UpdateRollback, UpdateRollbackCleanup:
		return true
	default:
		return false
	}
}

// Updatable reports that an update may begin.
func (s Status) Updatable() bool {
	return slices.Contains([]Status{CreateComplete, UpdateComplete, UpdateRollbackDone, UpdateFailed}, s)
}

// Parameter is a value of a template's parameter.
type Parameter struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Resolved string `json:"resolved,omitempty"` // the value of the stored parameter that Value names
	NoEcho   bool   `json:"noEcho,omitempty"`
}

// Tag is a tag of a stack, which its resources also get.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Output is an output of a complete stack.
type Output struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
	Export      string `json:"export,omitempty"`
}

// Input is what a stack is made of, as CreateStack's input has it. It is immutable.
type Input struct {
	Template      uint64      `json:"template"` // number of the template's text
	Description   string      `json:"description,omitempty"`
	Parameters    []Parameter `json:"parameters,omitempty"`
	Tags          []Tag       `json:"tags,omitempty"`
	Capabilities  []string    `json:"capabilities,omitempty"`
	Notifications []string    `json:"notifications,omitempty"` // ARNs of topics
	Role          string      `json:"role,omitempty"`          // that acts; empty: the requester
	// RetainExceptOnCreate has the rollback of what is made delete it, though its policy is to retain it.
	RetainExceptOnCreate bool `json:"retainExceptOnCreate,omitempty"`
	// Store looks up stored parameters while a template is bound; nil: there are none.
	Store func(name string) (value string, ok bool) `json:"-"`
}

// Standing is what a stack gives to others, and takes from them.
type Standing struct {
	Outputs []Output `json:"outputs,omitempty"`
	Imports []string `json:"imports,omitempty"`
}

// What happens to a stack whose creation fails.
const (
	OnFailureRollback = "ROLLBACK"
	OnFailureDelete   = "DELETE"
	OnFailureNothing  = "DO_NOTHING"
)

// Stack is a stack without its resources.
type Stack struct {
	ID      string `json:"id"` // its ARN
	Name    string `json:"name"`
	Account string `json:"account"`
	Region  string `json:"region"`

	Parent string `json:"parent,omitempty"` // ARN of the stack that has it as a resource
	Root   string `json:"root,omitempty"`   // ARN of the one that has no parent
	Depth  int    `json:"depth,omitempty"`  // below the root

	Status  Status `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Created int64  `json:"created"` // epoch milliseconds
	Updated int64  `json:"updated,omitempty"`
	Deleted int64  `json:"deleted,omitempty"`

	Input  Input  `json:"source"`
	Former *Input `json:"former,omitempty"` // the input to return to if the update in progress fails
	// Stood is what the stack was to others with the input to return to; nil: an earlier version began
	// the update.
	Stood *Standing `json:"stood,omitempty"`
	// Within says that the current update is a step of the parent's: it waits, with all that it has
	// replaced, until that is complete or rolled back.
	Within bool `json:"within,omitempty"`
	// Hidden are hidden values of former inputs, as long as resources have any of them.
	Hidden []string `json:"hidden,omitempty"`
	// By is the requester of the current operation, without the access key.
	By        *caller.Caller `json:"by,omitempty"`
	Token     string         `json:"token,omitempty"` // of that request
	OnFailure string         `json:"onFailure,omitempty"`
	Timeout   int64          `json:"timeout,omitempty"` // of the creation, milliseconds; 0: none
	Keep      []string       `json:"keep,omitempty"`    // resources that a deletion retains, or a rollback skips
	Protected bool           `json:"protected,omitempty"`
	Policy    string         `json:"policy,omitempty"`    // which resources updates may change, as JSON
	PolicyNow string         `json:"policyNow,omitempty"` // that of the current update
	Outputs   []Output       `json:"outputs,omitempty"`
	// Drift is the result of the latest comparison; empty: there was none since the stack was
	// changed.
	Drift      DriftStatus `json:"drift,omitempty"`
	DriftAt    int64       `json:"driftAt,omitempty"`    // epoch milliseconds
	Detections []Detection `json:"detections,omitempty"` // the latest last
	// Imports are the exports of other stacks that it, or its current operation, uses.
	Imports []string `json:"imports,omitempty"`

	Operation uint64   `json:"operation"` // counts creations and updates
	Phase     uint64   `json:"phase"`
	Failing   bool     `json:"failing,omitempty"`  // no further step begins in this phase
	Failures  []string `json:"failures,omitempty"` // for AWS's reason of this phase
	Events    uint64   `json:"events"`             // how many were recorded
	// EventAt is the time of the latest event, in epoch milliseconds. No two events of a stack have the
	// same time: clients order events by it, and their ids are made of it.
	EventAt   int64  `json:"eventAt,omitempty"`
	Templates uint64 `json:"templates"`       // how many texts were stored
	First     uint64 `json:"first,omitempty"` // how many of these, the first ones, were removed again
}

// Version is a resource as it was requested and made.
type Version struct {
	Type          string         `json:"type"`
	Physical      string         `json:"physical,omitempty"` // its name, URL or ARN; empty: there is none
	Properties    map[string]any `json:"properties,omitempty"`
	Attributes    map[string]any `json:"attributes,omitempty"` // for GetAtt
	DependsOn     []string       `json:"dependsOn,omitempty"`
	DeletePolicy  string         `json:"deletePolicy,omitempty"`
	ReplacePolicy string         `json:"replacePolicy,omitempty"`
	// Metadata is that of the template, in JSON; nil: an earlier version made the resource.
	Metadata *string `json:"metadata,omitempty"`
}

// Action is the action of a step.
type Action string

// The actions.
const (
	Create  Action = "create"
	Update  Action = "update"
	Delete  Action = "delete"
	Cleanup Action = "settle" // as records have it; of a nested stack, which is not rolled back any more
)

// Step is an action on one resource.
type Step struct {
	Action Action `json:"action"`
	Token  string `json:"token"` // the same whenever the step is executed again
	Began  int64  `json:"began"` // epoch milliseconds
	// Target is the desired resource; for a deletion, the one to be deleted. For a creation
	// Physical is a unique name; for an update that of the existing one.
	Target Version `json:"target"`
	// Now are the properties that an update changes. For a deletion they are those before a
	// failed update, which the resource may partly still have.
	Now map[string]any `json:"now,omitempty"`
	// Failed and Former are, of an update behind one that failed, what that was to lead to and what was
	// before: in part the resource may have either. nil: it was updated whole.
	Failed map[string]any `json:"failed,omitempty"`
	Former map[string]any `json:"former,omitempty"`
	// Spare says that it deletes what has been replaced, and the resource stays.
	Spare bool `json:"spare,omitempty"`

	// Order is that of the steps of all stacks; 0: they were not counted yet.
	Order uint64 `json:"order,omitempty"`

	Logical string `json:"-"`
	// Again says that an earlier process may have executed the step.
	Again bool `json:"-"`
}

// Resource is a resource of a stack.
type Resource struct {
	Logical string `json:"logical"`
	Version

	Status        Status `json:"status"`
	Reason        string `json:"reason,omitempty"`
	Changed       int64  `json:"changed"` // epoch milliseconds
	Operation     uint64 `json:"operation"`
	Phase         uint64 `json:"phase"`            // the last completed one
	PendingDelete bool   `json:"doomed,omitempty"` // it is to be deleted
	// AwaitsCleanup says that it is a nested stack whose update waits for the end of this one's.
	AwaitsCleanup bool `json:"unsettled,omitempty"`
	// Next is the step in progress; nil: there is none.
	Next  *Step  `json:"next,omitempty"`
	Drift *Drift `json:"drift,omitempty"` // nil: not compared since it was changed
	// Before is the former version during an incomplete update, and also during a deletion
	// after that update failed.
	Before *Version `json:"before,omitempty"`
	// Strays are properties that what Before is about may have otherwise than that and this version say, as
	// updates behind a failed one have not brought them back; nil is one that it may not have.
	Strays map[string]any `json:"strays,omitempty"`
	// Spares are replaced versions to be deleted.
	Spares []Version `json:"spares,omitempty"`
}

// Exists reports that the resource was made and not deleted.
func (r *Resource) Exists() bool {
	return r.Physical != "" && r.Status != DeleteComplete && r.Status != DeleteSkipped
}

// Event is an event in a stack's history.
type Event struct {
	Number   uint64 `json:"number"`
	Logical  string `json:"logical"`
	Physical string `json:"physical,omitempty"`
	Type     string `json:"type"`
	Status   Status `json:"status"`
	Reason   string `json:"reason,omitempty"`
	At       int64  `json:"at"` // epoch milliseconds
	Token    string `json:"token,omitempty"`
	// Properties are the resource's desired properties, as JSON.
	Properties string `json:"properties,omitempty"`
}

// Type is the type of the stack itself in events.
const Type = "AWS::CloudFormation::Stack"

// Outcome is the outcome of a step.
type Outcome struct {
	// Physical is the existing resource; empty after a failure means that nothing was made.
	Physical   string
	Attributes map[string]any
	// Reason is why it failed; empty: it did not.
	Reason string
}
