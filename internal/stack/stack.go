// Package stack holds the rules by which a stack of resources is made, changed, rolled back
// and deleted: commands and the time give a new state, events, and the steps that come next,
// each of which makes, changes or deletes one resource.
//
// A step is noted on its resource before it is taken, and what came of it afterwards. So a
// process that begins with what was noted knows which steps may have been taken already, and
// gives them again, with the same names and tokens.
//
// An operation goes through phases: what the template has is made or changed, dependencies
// first; after a failure it is brought back; what nobody needs any more is deleted, dependents
// first. A resource is done with a phase when it has its number.
package stack

import (
	"slices"

	"godwit.dev/godwit/internal/caller"
)

// Status is that of a stack or of a resource, as AWS names it.
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

// Busy reports that steps are under way, or may be.
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

// Parameter is a value that a template was given.
type Parameter struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Resolved string `json:"resolved,omitempty"` // what the parameter that is named by Value has
	NoEcho   bool   `json:"noEcho,omitempty"`
}

// Tag is one of a stack, which its resources get too.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Output is what a stack tells when it is complete.
type Output struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
	Export      string `json:"export,omitempty"`
}

// Source is what a stack is made of. It does not change.
type Source struct {
	Template      uint64      `json:"template"` // number of the template's text
	Description   string      `json:"description,omitempty"`
	Parameters    []Parameter `json:"parameters,omitempty"`
	Tags          []Tag       `json:"tags,omitempty"`
	Capabilities  []string    `json:"capabilities,omitempty"`
	Notifications []string    `json:"notifications,omitempty"` // ARNs of topics
	Role          string      `json:"role,omitempty"`          // that acts; empty: who asks
	// Store looks up parameters of the store, while a template is bound; nil: there are none.
	Store func(name string) (value string, ok bool) `json:"-"`
}

// What becomes of a stack whose creation fails.
const (
	OnFailureRollback = "ROLLBACK"
	OnFailureDelete   = "DELETE"
	OnFailureNothing  = "DO_NOTHING"
)

// Stack is a stack but for its resources.
type Stack struct {
	ID      string `json:"id"` // its ARN
	Name    string `json:"name"`
	Account string `json:"account"`
	Region  string `json:"region"`

	Parent string `json:"parent,omitempty"` // ARN of the stack that it is a resource of
	Root   string `json:"root,omitempty"`   // ARN of the one that has no parent
	Depth  int    `json:"depth,omitempty"`  // below the root

	Status  Status `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Created int64  `json:"created"` // epoch milliseconds
	Updated int64  `json:"updated,omitempty"`
	Deleted int64  `json:"deleted,omitempty"`

	Source Source  `json:"source"`
	Former *Source `json:"former,omitempty"` // what it goes back to if the update under way fails
	// Hidden are values that are not to be shown of what was before, as long as resources have
	// something of that.
	Hidden []string `json:"hidden,omitempty"`
	// By is who has asked for the operation under way, without the access key.
	By        *caller.Caller `json:"by,omitempty"`
	Token     string         `json:"token,omitempty"` // of that request
	OnFailure string         `json:"onFailure,omitempty"`
	Timeout   int64          `json:"timeout,omitempty"` // of the creation, milliseconds; 0: none
	Keep      []string       `json:"keep,omitempty"`    // resources that a deletion leaves alone
	Protected bool           `json:"protected,omitempty"`
	Policy    string         `json:"policy,omitempty"`    // which resources updates may change, as JSON
	PolicyNow string         `json:"policyNow,omitempty"` // that of the update under way
	Outputs   []Output       `json:"outputs,omitempty"`
	// Drift is what the latest comparison has found; empty: nothing was compared since the
	// stack was changed.
	Drift      DriftStatus `json:"drift,omitempty"`
	DriftAt    int64       `json:"driftAt,omitempty"`    // epoch milliseconds
	Detections []Detection `json:"detections,omitempty"` // the latest last
	// Imports are the exports of other stacks that it uses, or that the operation under way does.
	Imports []string `json:"imports,omitempty"`

	Operation uint64   `json:"operation"` // counts creations and updates
	Phase     uint64   `json:"phase"`
	Failing   bool     `json:"failing,omitempty"`  // no further step begins in this phase
	Failures  []string `json:"failures,omitempty"` // what AWS's reason says of this phase
	Events    uint64   `json:"events"`             // so many were told
	Templates uint64   `json:"templates"`          // so many texts were kept
	First     uint64   `json:"first,omitempty"`    // of those, so many went again, the first ones
}

// Version is a resource as it was asked for and made.
type Version struct {
	Type          string         `json:"type"`
	Physical      string         `json:"physical,omitempty"` // its name, URL or ARN; empty: there is none
	Properties    map[string]any `json:"properties,omitempty"`
	Attributes    map[string]any `json:"attributes,omitempty"` // what GetAtt gives
	DependsOn     []string       `json:"dependsOn,omitempty"`
	DeletePolicy  string         `json:"deletePolicy,omitempty"`
	ReplacePolicy string         `json:"replacePolicy,omitempty"`
}

// Action is what a step does.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Step is what is to be done to one resource.
type Step struct {
	Action Action `json:"action"`
	Token  string `json:"token"` // the same whenever the step is taken again
	Began  int64  `json:"began"` // epoch milliseconds
	// Target is what the resource is to be; of a deletion, what is to go. Of a creation
	// Physical is a name that nobody else gives; an update has that of what there is.
	Target Version `json:"target"`
	// Now are the properties that an update changes. A deletion has those from before an update
	// that failed: in part it may be so still.
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
	// Again says that an earlier process may have taken the step.
	Again bool `json:"-"`
}

// Resource is one of a stack.
type Resource struct {
	Logical string `json:"logical"`
	Version

	Status    Status `json:"status"`
	Reason    string `json:"reason,omitempty"`
	Changed   int64  `json:"changed"` // epoch milliseconds
	Operation uint64 `json:"operation"`
	Phase     uint64 `json:"phase"`            // that it is done with
	Doomed    bool   `json:"doomed,omitempty"` // it is to be deleted
	// Next is the step under way; nil: none is.
	Next  *Step  `json:"next,omitempty"`
	Drift *Drift `json:"drift,omitempty"` // nil: it was not compared since it was changed
	// Before is what an update that is not complete has changed, also when the resource is deleted
	// after that update failed.
	Before *Version `json:"before,omitempty"`
	// Spares are what has been replaced and is to be deleted.
	Spares []Version `json:"spares,omitempty"`
}

// Exists reports that something was made and not deleted.
func (r *Resource) Exists() bool {
	return r.Physical != "" && r.Status != DeleteComplete && r.Status != DeleteSkipped
}

// Event is one of a stack's history.
type Event struct {
	Number   uint64 `json:"number"`
	Logical  string `json:"logical"`
	Physical string `json:"physical,omitempty"`
	Type     string `json:"type"`
	Status   Status `json:"status"`
	Reason   string `json:"reason,omitempty"`
	At       int64  `json:"at"` // epoch milliseconds
	Token    string `json:"token,omitempty"`
	// Properties are those that the resource was to have, as JSON.
	Properties string `json:"properties,omitempty"`
}

// Type is what events call the stack itself.
const Type = "AWS::CloudFormation::Stack"

// Outcome is what came of a step.
type Outcome struct {
	// Physical is what there is now; empty after a failure means that nothing was made.
	Physical   string
	Attributes map[string]any
	// Reason is why it failed; empty: it did not.
	Reason string
}
