package stack

import (
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/resource"
)

// Rollback rolls back a stack whose creation or update has failed without a rollback.
func (m *Machine) Rollback(now int64, req *Request) {
	m.begin(now, req)
	m.assume(req)
	for id, r := range m.Resources {
		if req.Input.RetainExceptOnCreate && r.Operation == m.Operation && r.DeletePolicy == retain {
			r.DeletePolicy = retainButCreate
			m.touch(id)
		}
	}
	if m.Status == CreateFailed {
		m.planDeletion()
		m.phase(RollbackInProgress, m.Sentence(ErrRequested))
	} else {
		m.phase(UpdateRollback, m.Sentence(ErrRequested))
	}
	m.advance()
}

// ContinueRollback continues an update's rollback that has failed, without the resources to be
// skipped.
func (m *Machine) ContinueRollback(now int64, req *Request) {
	m.begin(now, req)
	m.assume(req)
	m.Keep = req.Keep
	m.phase(UpdateRollback, m.Sentence(ErrRequested))
	for _, id := range req.Keep {
		r := m.Resources[id]
		if r == nil || r.Before == nil {
			continue
		}
		r.awaitCleanup()
		r.Before, r.Strays, r.Phase = nil, nil, m.Phase
		m.set(r, UpdateComplete, "")
	}
	m.advance()
}

// BeginCleanup ends the wait of a nested stack whose update is Held: that of its parent is complete.
func (m *Machine) BeginCleanup(now int64) {
	if !Held(&m.Stack) {
		return
	}
	m.now = now
	m.beginCleanup()
	m.advance()
}

// Revert rolls back an update that is Held, as that of its parent is rolled back.
func (m *Machine) Revert(now int64, req *Request) {
	if !Held(&m.Stack) {
		return
	}
	m.begin(now, req)
	m.assume(req)
	m.cancelDeletions()
	m.phase(UpdateRollback, m.Sentence(ErrRequested))
	m.advance()
}

// assume sets another role for the steps, if one is given.
func (m *Machine) assume(req *Request) {
	if req.Input.Role == "" {
		return
	}
	m.Input.Role = req.Input.Role
	if m.Former != nil { // which the stack returns to, and then deletes what it had made
		former := *m.Former
		former.Role = req.Input.Role
		m.Former = &former
	}
}

// dependents are, by resource, the resources that depend on it in their current or former
// version.
func (m *Machine) dependents(counts func(r *Resource) bool) map[string][]string {
	on := map[string][]string{}
	for id, r := range m.Resources {
		if !counts(r) {
			continue
		}
		versions := append([]Version{r.Version}, r.Spares...)
		for i := range versions {
			for _, dependency := range versions[i].DependsOn {
				on[dependency] = append(on[dependency], id)
			}
		}
	}
	return on
}

// backward makes the next steps of an update's rollback; true: it is complete.
func (m *Machine) backward() bool {
	// What this operation has made, though a former attempt of it, is deleted behind the rollback.
	changed := func(r *Resource) bool { return r.Before != nil && r.Operation != m.Operation }
	waiting := m.dependents(changed)
	underWay, left, moved := m.underWay(), false, true
	for moved {
		moved, left = false, false
		for _, id := range slices.Sorted(maps.Keys(m.Resources)) {
			r := m.Resources[id]
			switch {
			case r.Next != nil || !changed(r) || r.Phase == m.Phase:
			case underWay >= most || slices.ContainsFunc(waiting[id], func(d string) bool { return d != id && changed(m.Resources[d]) }):
				left = true
			default:
				m.restore(r)
				if moved = true; r.Next != nil {
					underWay++
				}
			}
		}
	}
	switch {
	case underWay > 0:
		return false
	case m.Failing, left:
		reason := m.because()
		m.phase(UpdateRollbackFailed, strings.TrimSuffix(reason, " "))
		return true
	}
	for id, r := range m.Resources {
		if r.Operation != m.Operation || r.PendingDelete {
			continue
		}
		if r.Before != nil && r.Before.Physical != r.Physical {
			r.Spares = append(r.Spares, *r.Before)
			r.Before = nil
		}
		r.PendingDelete = true
		m.touch(id)
	}
	if m.Former != nil {
		m.hide()
		m.Input, m.Former, m.Within = *m.Former, nil, false
	}
	if m.Stood != nil {
		m.Outputs, m.Imports, m.Stood = m.Stood.Outputs, m.Stood.Imports, nil
	}
	m.Design = nil
	m.phase(UpdateRollbackCleanup, "")
	return true
}

// restore restores the former version of a resource.
func (m *Machine) restore(r *Resource) {
	before := *r.Before
	same := maps.EqualFunc(before.Properties, r.Properties, resource.Same)
	switch {
	case before.Physical != r.Physical: // the former one still exists
		r.Spares = append(r.Spares, r.Version)
		r.Version = before
		if len(r.Strays) > 0 {
			m.set(r, UpdateInProgress, "")
			m.take(r, Step{Action: Update, Target: before, Now: r.astray(before.Properties, before.Properties)})
			return
		}
		r.Before, r.Phase = nil, m.Phase
		m.set(r, UpdateComplete, "")
	case same && r.Status != UpdateFailed:
		r.awaitCleanup()
		r.Version, r.Before, r.Phase = before, nil, m.Phase
		m.touch(r.Logical)
	case same && len(r.Strays) == 0:
		// Nothing of it was changed, or it was to be replaced.
		r.awaitCleanup()
		r.Version, r.Before, r.Phase = before, nil, m.Phase
		m.set(r, UpdateComplete, "")
	default:
		m.set(r, UpdateInProgress, "")
		m.take(r, Step{Action: Update, Target: before, Now: r.astray(r.Properties, before.Properties)})
	}
}

// restored applies the outcome of a step of a rollback.
func (m *Machine) restored(r *Resource, step *Step, o Outcome) {
	if o.Reason != "" {
		m.fail(r, UpdateFailed, o.Reason)
		return
	}
	r.Version, r.Before, r.Strays, r.Phase = step.Target, nil, nil, m.Phase
	if o.Attributes != nil {
		r.Attributes = o.Attributes
	}
	m.set(r, UpdateComplete, "")
}

// Delete begins a deletion, of a stack without an update or rollback in progress. If another
// stack imports an export, nothing is deleted, and the stack is unchanged.
func (m *Machine) Delete(now int64, req *Request) {
	was := m.Status
	m.begin(now, req)
	m.phase(DeleteInProgress, m.Sentence(ErrRequested))
	for _, out := range m.Outputs {
		if out.Export == "" {
			continue
		}
		if by := m.Exports.Importer(out.Export); by != "" {
			m.phase(was, m.Sentence(ErrDeletionCancelled.With(out.Export, by)))
			return
		}
	}
	m.Keep = req.Keep
	m.OnFailure = ""
	m.assume(req)
	m.planDeletion()
	m.advance()
}

// planDeletion marks resources for deletion, all that exist.
func (m *Machine) planDeletion() {
	for id, r := range m.Resources {
		if r.Status == DeleteComplete || r.Status == DeleteSkipped {
			continue
		}
		r.awaitCleanup()
		switch {
		case r.Before == nil:
		case r.Before.Physical != r.Physical:
			if spare := *r.Before; spare.Physical != "" {
				if spare.DeletePolicy == retain || spare.DeletePolicy == retainButCreate { // it is deleted with its stack, and not replaced
					spare.ReplacePolicy = retain
				}
				r.Spares = append(r.Spares, spare)
			}
			r.Before = nil
		case r.Status != UpdateFailed && !r.PendingDelete: // else it may be in the former version, which a failed deletion has kept
			r.Before = nil
		}
		r.PendingDelete = true
		m.touch(id)
	}
}

// clear deletes marked and replaced resources, dependents first; true: it is complete.
func (m *Machine) clear() bool {
	pending := func(r *Resource) bool { return r.PendingDelete || r.AwaitsCleanup || len(r.Spares) > 0 }
	waiting := m.dependents(pending)
	underWay := m.underWay()
	for moved := true; moved; {
		moved = false
		for _, id := range slices.Sorted(maps.Keys(m.Resources)) {
			r := m.Resources[id]
			switch {
			case r == nil || !pending(r) || r.Next != nil || underWay >= most:
			case r.Phase == m.Phase: // it has failed
			case slices.ContainsFunc(waiting[id], func(d string) bool { return d != id && m.Resources[d] != nil && pending(m.Resources[d]) }):
			default:
				m.remove(r)
				if moved = true; r.Next != nil {
					underWay++
				}
			}
		}
	}
	if underWay > 0 {
		return false
	}
	m.cleared()
	return true
}

// Retention policies of resources.
const (
	retain          = "Retain"
	retainButCreate = "RetainExceptOnCreate"
)

// remove begins the deletion of the first of a resource's versions to be deleted.
func (m *Machine) remove(r *Resource) {
	if r.AwaitsCleanup {
		m.take(r, Step{Action: Cleanup, Target: r.Version})
		return
	}
	if len(r.Spares) > 0 {
		spare := r.Spares[0]
		if spare.ReplacePolicy == retain || spare.Physical == "" || m.keeps(r) || m.elsewhere(r, &spare) {
			if spare.Physical != "" {
				m.noteSpare(r, spare, DeleteSkipped, "")
			}
			m.forgetSpare(r)
			return
		}
		m.noteSpare(r, spare, DeleteInProgress, "")
		m.take(r, Step{Action: Delete, Target: spare, Spare: true})
		return
	}
	switch {
	case !r.Exists():
		m.gone(r, DeleteComplete)
	case m.Leaves(r) || m.elsewhere(r, &r.Version):
		m.gone(r, DeleteSkipped)
	default:
		step := Step{Action: Delete, Target: r.Version}
		if r.Before != nil {
			step.Now = r.Before.Properties
		}
		m.set(r, DeleteInProgress, "")
		m.take(r, step)
	}
}

// elsewhere reports that another resource, which stays, is the very same thing: a service may answer the
// request for something with what is there already, as SNS does for a subscription.
func (m *Machine) elsewhere(r *Resource, v *Version) bool {
	switch v.Type {
	case "AWS::Logs::LogStream", "AWS::Logs::MetricFilter", "AWS::Logs::SubscriptionFilter": // whose name says nothing of its group
		return false
	}
	for id, other := range m.Resources {
		if id != r.Logical && !other.PendingDelete && other.Exists() && other.Type == v.Type && other.Physical == v.Physical {
			return true
		}
	}
	return false
}

// Leaves reports that the deletion of a resource leaves it as it is.
func (m *Machine) Leaves(r *Resource) bool {
	switch r.DeletePolicy {
	case retain:
		return true
	case retainButCreate:
		created := m.Status == RollbackInProgress || m.Status == DeleteInProgress && m.OnFailure == OnFailureDelete
		if !created && (m.Status == DeleteInProgress || r.Operation != m.Operation) {
			return true
		}
	}
	return m.keeps(r)
}

// keeps reports that the requester of a deletion has it retain a resource.
func (m *Machine) keeps(r *Resource) bool {
	return m.Status == DeleteInProgress && slices.Contains(m.Keep, r.Logical)
}

// noteSpare tells of what was replaced, whose resource keeps its status.
func (m *Machine) noteSpare(r *Resource, spare Version, s Status, reason string) {
	m.event(Event{
		Logical: r.Logical, Physical: spare.Physical, Type: spare.Type, Status: s, Reason: reason, Token: m.Token, Properties: m.shown(spare.Properties),
	})
}

func (m *Machine) forgetSpare(r *Resource) {
	r.Spares = slices.Delete(r.Spares, 0, 1)
	if len(r.Spares) == 0 {
		r.Spares = nil
	}
	m.touch(r.Logical)
}

// gone ends a resource. A stack that continues removes it.
func (m *Machine) gone(r *Resource, s Status) {
	r.PendingDelete, r.Before, r.Phase = false, nil, m.Phase
	m.set(r, s, "")
	if m.Status == UpdateCleanup || m.Status == UpdateRollbackCleanup {
		delete(m.Resources, r.Logical)
	}
}

// deleted applies the outcome of a deletion.
func (m *Machine) deleted(r *Resource, step *Step, o Outcome) {
	cleanup := m.Status == UpdateCleanup || m.Status == UpdateRollbackCleanup
	switch {
	case step.Spare && o.Reason != "" && cleanup: // as with AWS it is left behind, with an event
		m.noteSpare(r, step.Target, DeleteFailed, o.Reason)
		m.forgetSpare(r)
	case step.Spare && o.Reason != "":
		m.noteSpare(r, step.Target, DeleteFailed, o.Reason)
		r.Phase, r.Status, r.Reason, r.Changed = m.Phase, DeleteFailed, o.Reason, m.now
	case step.Spare:
		m.noteSpare(r, step.Target, DeleteComplete, "")
		m.forgetSpare(r)
	case o.Reason != "" && cleanup:
		m.set(r, DeleteFailed, o.Reason)
		delete(m.Resources, r.Logical)
	case o.Reason != "":
		r.Phase = m.Phase
		m.set(r, DeleteFailed, o.Reason)
	default:
		m.gone(r, DeleteComplete)
	}
}

// cleared ends a phase of deletions.
func (m *Machine) cleared() {
	reason := strings.TrimSuffix(m.because(), " ")
	switch {
	case m.Status == UpdateCleanup:
		m.phase(UpdateComplete, "")
		m.unhide()
	case m.Status == UpdateRollbackCleanup:
		m.phase(UpdateRollbackDone, "")
		m.unhide()
	case m.Status == RollbackInProgress && reason != "":
		m.phase(RollbackFailed, reason)
	case m.Status == RollbackInProgress:
		m.Outputs, m.Imports = nil, nil
		m.phase(RollbackComplete, "")
	case reason != "":
		m.phase(DeleteFailed, reason)
	default:
		m.Deleted, m.Outputs, m.Imports, m.Former, m.Stood = m.now, nil, nil, nil, nil
		m.phase(DeleteComplete, "")
	}
}
