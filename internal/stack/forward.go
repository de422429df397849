package stack

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/stack/resource"
)

// Request asks for an operation.
type Request struct {
	By    *caller.Caller
	Token string
	// Input is what the stack's new design is of; a deletion takes only its Role.
	Input  Input
	Design *Design
	// Seen is the phase of the stack that the design was made for; 0: of any.
	Seen uint64
	// OnFailure says what happens after the failure of a creation, or of an update.
	OnFailure string
	// Policy replaces the stack's policy, and Meanwhile applies to this update alone; empty:
	// the existing one.
	Policy, Meanwhile string
	// Keep are the resources that a deletion retains, or a rollback skips.
	Keep []string
	// Store looks up the parameters that the requester may read, for a change set's design;
	// nil: all.
	Store func(name string) (value string, ok bool)
	// Nested says that it is a step of the parent stack.
	Nested bool
}

func (m *Machine) begin(now int64, req *Request) {
	m.now = now
	m.By, m.Token = req.By, req.Token
}

// Create begins the creation of a stack that has no resources.
func (m *Machine) Create(now int64, req *Request) {
	m.begin(now, req)
	if m.Created == 0 {
		m.Created = now
	}
	m.Input, m.Design, m.OnFailure = req.Input, req.Design, req.OnFailure
	m.Operation++
	m.Policy = req.Policy
	m.imports = map[string]bool{}
	m.phase(CreateInProgress, m.Sentence(ErrRequested))
	m.advance()
}

// Review makes a stack that only has change sets.
func (m *Machine) Review(now int64) {
	m.now, m.Created = now, now
	m.become(ReviewInProgress, m.Sentence(ErrRequested))
}

// Update begins an update, in a status that is Updatable.
func (m *Machine) Update(now int64, req *Request) {
	m.begin(now, req)
	m.Updated = now
	held := Held(&m.Stack)
	if held {
		m.cancelDeletions()
	}
	m.Within, m.Keep = req.Nested, nil
	if m.Status != UpdateFailed && !held { // else it returns to the last complete input
		former := m.Input
		m.Former, m.Stood = &former, &Standing{m.Outputs, m.Imports}
		m.Operation++
	}
	m.hide()
	m.Input, m.Design, m.OnFailure = req.Input, req.Design, req.OnFailure
	m.PolicyNow = cmp.Or(req.Meanwhile, m.Policy)
	m.Policy = cmp.Or(req.Policy, m.Policy)
	m.imports = map[string]bool{}
	m.phase(UpdateInProgress, m.Sentence(ErrRequested))
	m.advance()
}

// Cancel makes an update in progress fail.
func (m *Machine) Cancel(now int64, token string) {
	m.now = now
	if !m.Within { // else its parent waits for the end of what it has asked for by that token
		m.Token = token
	}
	m.Failing = true
	m.Failures = append(m.Failures, m.Sentence(ErrRequested))
	m.advance()
}

// forward makes and changes the resources of the template; true: it is complete.
func (m *Machine) forward() bool {
	if m.Design == nil { // its template could not be read again
		if m.Failing && m.underWay() == 0 {
			m.giveUp()
			return true
		}
		return false
	}
	if m.imports == nil { // after a restart: those of the resources that are done, or under way
		m.imports = map[string]bool{}
		for _, id := range m.Design.Order {
			if r := m.Resources[id]; r != nil && (r.Next != nil || r.Phase == m.Phase) {
				_, _ = m.Design.Properties(id, late{m})
			}
		}
	}
	if m.Timeout > 0 && m.Status == CreateInProgress && m.now > m.Created+m.Timeout && !m.Failing {
		m.Failing = true
		m.Failures = append(m.Failures, m.Sentence(ErrTimeout))
	}
	underWay, left := m.underWay(), false
	for _, id := range m.Design.Order {
		r := m.Resources[id]
		switch {
		case r != nil && r.Next != nil:
		case r != nil && r.Phase == m.Phase:
		case m.Failing || underWay >= most || !m.ready(id):
			left = true
		default:
			m.start(id)
			if m.Resources[id].Next != nil {
				underWay++
			}
		}
	}
	switch {
	case underWay > 0:
		return false
	case m.Failing:
		m.giveUp()
		return true
	case left: // an order of dependencies leaves none
		m.Failing = true
		m.Failures = append(m.Failures, m.Sentence(ErrCircular))
		return true
	}
	m.complete()
	return true
}

// underWay counts the steps in progress.
func (m *Machine) underWay() (n int) {
	for _, r := range m.Resources {
		if r.Next != nil {
			n++
		}
	}
	return n
}

// ready reports that the phase is complete for everything that a resource depends on.
func (m *Machine) ready(id string) bool {
	for _, on := range m.Design.Parts[id].DependsOn {
		r := m.Resources[on]
		if r == nil || r.Phase != m.Phase || r.Next != nil {
			return false
		}
	}
	return true
}

// start determines the step of a resource, and begins it.
func (m *Machine) start(id string) {
	part := m.Design.Parts[id]
	t := typed(part.Type)
	r := m.Resources[id]
	fresh := r == nil || !r.Exists()
	if fresh {
		r = &Resource{Logical: id, Version: Version{Type: part.Type}, Operation: m.Operation}
		if old := m.Resources[id]; old != nil { // an earlier attempt has left at most the version that it replaced
			r.Spares = old.Spares
		}
		m.Resources[id] = r
	}
	target := Version{
		Type: part.Type, DependsOn: slices.Clone(part.DependsOn), DeletePolicy: part.DeletePolicy, ReplacePolicy: part.ReplacePolicy,
		Metadata: &part.Metadata,
	}
	properties, err := m.Design.Properties(id, late{m})
	if err == nil {
		if properties, err = t.Normalise(properties); err != nil {
			err = ErrProperties.With(id, err)
		}
	}
	if err == nil {
		properties = t.Tagged(properties, m.tags())
	}
	if err == nil {
		err = m.weigh(id, properties)
	}
	target.Properties = properties
	switch {
	case err != nil && fresh:
		m.fail(r, CreateFailed, m.Sentence(err))
	case err != nil:
		m.fail(r, UpdateFailed, m.Sentence(err))
	case fresh:
		target.Physical = m.name(t, id, properties)
		r.Version = target
		r.Physical = ""
		m.set(r, CreateInProgress, "")
		m.take(r, Step{Action: Create, Target: target})
	default:
		m.revise(r, t, target)
	}
}

// mostProperties bounds the properties of all resources of a stack, in bytes: a short template
// can expand to many.
const mostProperties = 4 << 20

// weigh refuses properties that exceed this bound.
func (m *Machine) weigh(id string, properties map[string]any) error {
	if m.weights == nil {
		m.weights = make(map[string]int, len(m.Resources))
		for other, r := range m.Resources {
			m.weights[other] = len(asJSON(r.Properties))
		}
	}
	own := len(asJSON(properties))
	total := own
	for other, weight := range m.weights {
		if other != id && m.Resources[other] != nil {
			total += weight
		}
	}
	if total > mostProperties {
		return ErrTooLarge.With(mostProperties)
	}
	m.weights[id] = own
	return nil
}

func (m *Machine) tags() []resource.Tag {
	tags := make([]resource.Tag, 0, len(m.Input.Tags))
	for _, t := range m.Input.Tags {
		tags = append(tags, resource.Tag{Key: t.Key, Value: t.Value})
	}
	return tags
}

// name is the physical name of a new resource.
func (m *Machine) name(t *resource.Type, id string, properties map[string]any) string {
	sum := m.derive("name", id, fmt.Sprint(m.Operation), fmt.Sprint(m.Phase))
	return t.PhysicalName(m.Name, id, sum[:], properties)
}

// revise updates an existing resource, if it has changed.
func (m *Machine) revise(r *Resource, t *resource.Type, target Version) {
	was := r.Version
	change := resource.Replaced
	if r.Type == target.Type {
		change, _ = t.Compare(r.uncertain(target.Properties), target.Properties)
	}
	if change == resource.Unchanged && r.Status == CreateFailed && r.Before == nil {
		if r.Reason == m.Sentence(ErrCreationCancelled) { // as records have it: it is whole
			target.Physical, target.Attributes = r.Physical, r.Attributes
			r.Version, r.Phase = target, m.Phase
			m.set(r, CreateComplete, "")
			return
		}
		m.fail(r, CreateFailed, m.Sentence(ErrNotWhole.With(r.Physical)))
		return
	}
	if change == resource.Unchanged {
		r.Phase = m.Phase
		target.Physical, target.Attributes, target.Properties = r.Physical, r.Attributes, r.Properties
		if reflect.DeepEqual(target, was) {
			return // a restart would come to the same result
		}
	}
	if r.Before == nil {
		r.Before = &was
	}
	action := updateModify
	if change == resource.Replaced {
		action = updateReplace
	}
	if err := m.denied(action, r); err != nil && change != resource.Unchanged {
		m.fail(r, UpdateFailed, m.Sentence(err))
		return
	}
	switch change {
	case resource.Unchanged:
		r.Version = target
		m.touch(r.Logical)
	case resource.InPlace:
		target.Physical, target.Attributes = r.Physical, r.Attributes
		step := Step{Action: Update, Target: target, Now: r.uncertain(target.Properties)}
		if r.halfUpdated() {
			step.Failed, step.Former = r.Properties, r.Before.Properties
		}
		m.set(r, UpdateInProgress, "")
		m.take(r, step)
	default:
		if name := t.Named(target.Properties); name != "" && r.Type == target.Type && name == t.Named(r.Properties) {
			m.fail(r, UpdateFailed, m.Sentence(ErrNamed.With(r.Physical)))
			return
		}
		target.Physical = m.name(t, r.Logical, target.Properties)
		m.set(r, UpdateInProgress, m.Sentence(ErrReplaces))
		m.take(r, Step{Action: Create, Target: target})
	}
}

// halfUpdated reports that an update in place has failed.
func (r *Resource) halfUpdated() bool {
	return r.Status == UpdateFailed && r.Before != nil && r.Before.Physical == r.Physical
}

// uncertain are the properties that a resource has now. Of one whose update has failed each may be as
// it was before or as it was to be: it is the one that is not as it is to be now, so that it is
// set again.
func (r *Resource) uncertain(target map[string]any) (now map[string]any) {
	if !r.halfUpdated() {
		return r.Properties
	}
	defer func() { now = r.astray(now, target) }()
	now = maps.Clone(r.Properties)
	for name, value := range r.Properties {
		before, ok := r.Before.Properties[name]
		switch {
		case !resource.Same(value, target[name]):
		case ok:
			now[name] = before
		default:
			delete(now, name)
		}
	}
	for name, before := range r.Before.Properties {
		if _, ok := r.Properties[name]; !ok && target[name] == nil {
			now[name] = before
		}
	}
	return now
}

// stray notes where properties that the resource may have differ from those of its version before.
func (r *Resource) stray(properties map[string]any) {
	strays := maps.Clone(r.Strays)
	if strays == nil {
		strays = map[string]any{}
	}
	for name, value := range properties {
		if !resource.Same(value, r.Before.Properties[name]) {
			strays[name] = value
		}
	}
	for name := range r.Before.Properties {
		if _, ok := properties[name]; !ok {
			strays[name] = nil
		}
	}
	r.Strays = strays
	if len(strays) == 0 {
		r.Strays = nil
	}
}

// astray are properties of the resource as it may have them where that differs from others: its strays
// count where they are as those.
func (r *Resource) astray(properties, others map[string]any) map[string]any {
	if len(r.Strays) == 0 {
		return properties
	}
	now := maps.Clone(properties)
	if now == nil {
		now = map[string]any{}
	}
	for name, value := range r.Strays {
		switch {
		case !resource.Same(now[name], others[name]):
		case value == nil:
			delete(now, name)
		default:
			now[name] = value
		}
	}
	return now
}

// made applies the outcome of a creation or an update of the forward phase.
func (m *Machine) made(r *Resource, step *Step, o Outcome) {
	failure, complete := CreateFailed, CreateComplete
	if r.Before != nil {
		failure, complete = UpdateFailed, UpdateComplete
	}
	leaving := m.Status == DeleteInProgress // a deletion does not wait for a creation
	switch {
	case o.Reason != "":
		if step.Action == Create && r.Before == nil {
			r.Physical, r.Attributes = o.Physical, o.Attributes
		} else if step.Action == Create && o.Physical != "" { // an incomplete replacement
			half := step.Target
			half.Physical = o.Physical
			r.Spares = append(r.Spares, half)
		}
		if step.Action == Update { // it may be partly changed, which is rolled back
			if r.Before != nil && r.Before.Physical == r.Physical {
				r.stray(step.Now)
			}
			r.Properties = step.Target.Properties
		}
		if leaving {
			m.set(r, failure, o.Reason)
			return
		}
		m.fail(r, failure, o.Reason)
		return
	}
	switch {
	case r.Before == nil:
	case step.Action == Create && r.Physical != r.Before.Physical:
		r.Spares = append(r.Spares, r.Version) // what an update that has failed had put in its place
	case step.Action == Create:
		r.stray(r.Properties) // that update has changed what there was
	case r.Physical == r.Before.Physical: // it is whole
		r.Strays = nil
	}
	r.Version = step.Target
	r.Physical = o.Physical
	if o.Attributes != nil {
		r.Attributes = o.Attributes
	}
	switch {
	case leaving:
		m.set(r, complete, "")
	case m.Failing:
		reason := ErrCreationCancelled
		if failure == UpdateFailed {
			reason = ErrUpdateCancelled
		}
		r.Phase = m.Phase
		m.set(r, failure, m.Sentence(reason))
	default:
		r.Phase = m.Phase
		m.set(r, complete, "")
	}
}

// complete ends the forward phase successfully.
func (m *Machine) complete() {
	outputs, err := m.Design.Outputs(late{m})
	if err == nil {
		err = m.exportable(outputs)
	}
	if err == nil {
		err = m.losses()
	}
	if err != nil {
		m.Failing = true
		m.Failures = append(m.Failures, m.Sentence(err))
		m.giveUp()
		return
	}
	m.Outputs = outputs
	m.Imports = nil
	for name := range m.imports {
		m.Imports = append(m.Imports, name)
	}
	slices.Sort(m.Imports)
	if m.Status == CreateInProgress {
		m.phase(CreateComplete, "")
		return
	}
	for id, r := range m.Resources {
		if _, ok := m.Design.Parts[id]; !ok {
			r.PendingDelete = true
			m.touch(id)
		}
	}
	if !m.Within {
		m.beginCleanup()
	}
	m.phase(UpdateCleanup, "")
}

// Held reports that an update of a nested stack is complete, and waits for the one that it is a step of.
func Held(s *Stack) bool { return s.Status == UpdateCleanup && s.Former != nil }

// beginCleanup has an update not be rolled back any more: what it has replaced can go.
func (m *Machine) beginCleanup() {
	m.Former, m.Stood, m.Within = nil, nil, false
	for id, r := range m.Resources {
		r.awaitCleanup()
		if r.Before != nil && r.Before.Physical != r.Physical {
			r.Spares = append(r.Spares, *r.Before)
		}
		if r.Before != nil {
			r.Before, r.Strays = nil, nil
			m.touch(id)
		}
	}
}

// awaitCleanup notes that a nested stack waits for the end of this one's update.
func (r *Resource) awaitCleanup() {
	r.AwaitsCleanup = r.AwaitsCleanup || r.Type == Type && r.Before != nil && r.Before.Physical == r.Physical
}

// cancelDeletions has what an update was to delete be left as it is.
func (m *Machine) cancelDeletions() {
	for id, r := range m.Resources {
		if r.PendingDelete {
			r.PendingDelete = false
			m.touch(id)
		}
	}
}

// exportable refuses outputs whose exports another stack has, and the removal of exports that
// are in use.
func (m *Machine) exportable(outputs []Output) error {
	kept := map[string]string{}
	for _, o := range outputs {
		if o.Export == "" {
			continue
		}
		if _, twice := kept[o.Export]; twice {
			return ErrExportTwice.With(o.Export)
		}
		kept[o.Export] = o.Value
		if owner := m.Exports.Exporter(o.Export); owner != "" && owner != m.Name {
			return ErrExportTaken.With(o.Export, owner)
		}
	}
	for _, o := range m.Outputs {
		if o.Export == "" {
			continue
		}
		value, ok := kept[o.Export]
		if by := m.Exports.Importer(o.Export); by != "" && (!ok || value != o.Value) {
			verb := "updated"
			if !ok {
				verb = "deleted"
			}
			return ErrExportInUse.With(o.Export, verb, by)
		}
	}
	return nil
}

// giveUp ends a forward phase after a failure.
func (m *Machine) giveUp() {
	reason := m.because()
	switch {
	case m.Status == UpdateInProgress && m.OnFailure == OnFailureNothing:
		m.phase(UpdateFailed, strings.TrimSuffix(reason, " "))
	case m.Status == UpdateInProgress:
		m.phase(UpdateRollback, reason)
	case m.OnFailure == OnFailureNothing:
		m.phase(CreateFailed, reason)
	case m.OnFailure == OnFailureDelete:
		m.planDeletion()
		m.phase(DeleteInProgress, reason+m.Sentence(ErrDeleteRequested))
	default:
		m.planDeletion()
		m.phase(RollbackInProgress, reason+m.Sentence(ErrRollbackRequested))
	}
}
