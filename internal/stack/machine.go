package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/stack/resource"
)

// Late has the properties of other resources and stacks that are known only once they are made.
// It is a template.Late.
type Late interface {
	Ref(id string) (any, error)
	GetAtt(id, attribute string) (any, error)
	Import(name string) (any, error)
}

// Part is a resource of the template.
type Part struct {
	Type                        string
	DependsOn                   []string
	DeletePolicy, ReplacePolicy string
	Metadata                    string // as the template has it, in JSON; empty: none
}

// Design is a template with its parameters: the desired state of a stack.
type Design struct {
	Order      []string // of resources, dependencies first
	Parts      map[string]Part
	Properties func(id string, late Late) (map[string]any, error)
	Outputs    func(late Late) ([]Output, error)
}

// Exports are the exported outputs of the stacks of an account and region.
type Exports interface {
	// Export is the value of an export that can be imported, and the name of its stack.
	Export(name string) (value, owner string, ok bool)
	// Exporter is the stack that has an export, which may be being deleted; empty: none has.
	Exporter(name string) string
	// Importer is a stack that uses an export; empty: none does.
	Importer(name string) string
}

// most bounds the concurrent steps of a stack, and so what one command writes.
const most = 64

// Machine is a stack with the state that its commands need. Its commands must not be called
// concurrently; Take returns their changes.
type Machine struct {
	Stack
	Resources map[string]*Resource
	Design    *Design // of Source, during a forward phase
	Exports   Exports
	// Sentence is what a client reads of an error: AWS's sentence, if it is a refusal. Reasons are stored
	// as they were when they were given.
	Sentence func(err error) string

	now     int64
	imports map[string]bool // used by resources in this phase
	weights map[string]int  // bytes of properties, by resource
	masks   masks
	changed Changed
}

// Changed has the changes made by commands, and the steps to be executed.
type Changed struct {
	Touched []string // resources, in order; one that does not exist was removed
	Events  []Event
	Steps   []Step
}

// Take returns the changes since the last call.
func (m *Machine) Take() Changed {
	c := m.changed
	m.changed = Changed{}
	slices.Sort(c.Touched)
	c.Touched = slices.Compact(c.Touched)
	return c
}

func (m *Machine) touch(id string) { m.changed.Touched = append(m.changed.Touched, id) }

// set sets the status of a resource, and records an event. The reason is a sentence; empty: there
// is none.
func (m *Machine) set(r *Resource, s Status, reason string) {
	r.Status, r.Reason, r.Changed = s, m.maskedText(reason), m.now
	m.touch(r.Logical)
	m.tell(r, r.Physical, r.Properties)
}

func (m *Machine) tell(r *Resource, physical string, properties map[string]any) {
	m.event(Event{
		Logical: r.Logical, Physical: physical, Type: r.Type, Status: r.Status, Reason: r.Reason, Token: m.Token, Properties: m.shown(properties),
	})
}

func (m *Machine) event(e Event) {
	m.Events++
	m.EventAt = max(m.now, m.EventAt+1)
	e.Number, e.At = m.Events, m.EventAt
	m.changed.Events = append(m.changed.Events, e)
}

// become sets the status of the stack, and records an event.
func (m *Machine) become(s Status, reason string) {
	reason = m.maskedText(reason)
	m.Status, m.Reason = s, reason
	m.event(Event{Logical: m.Name, Physical: m.ID, Type: Type, Status: s, Reason: reason, Token: m.Token})
}

// phase begins the next phase.
func (m *Machine) phase(s Status, reason string) {
	m.Phase++
	m.Failing, m.Failures, m.Drift = false, nil, ""
	m.become(s, reason)
}

// derive derives an id of the stack, which is always the same for the same parts.
func (m *Machine) derive(parts ...string) [sha256.Size]byte {
	return sha256.Sum256([]byte(m.ID + "\x00" + strings.Join(parts, "\x00")))
}

// token is the token of a step, in the form of a UUID.
func (m *Machine) token(id string, a Action) string {
	sum := m.derive("token", id, string(a), strconv.FormatUint(m.Operation, 10), strconv.FormatUint(m.Phase, 10))
	t := hex.EncodeToString(sum[:16])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// CreationToken is the token of a resource's creation in the current phase.
func (m *Machine) CreationToken(id string) string { return m.token(id, Create) }

// take begins a step of a resource.
func (m *Machine) take(r *Resource, s Step) {
	s.Logical, s.Token, s.Began = r.Logical, m.token(r.Logical, s.Action), m.now
	if s.Spare { // several ones are deleted one after the other
		s.Token = m.token(r.Logical+"\x00"+s.Target.Physical, s.Action)
	}
	r.Next, r.Drift = &s, nil
	m.touch(r.Logical)
	m.changed.Steps = append(m.changed.Steps, s)
}

// Resume returns the steps in progress again, and continues. now is in epoch milliseconds.
func (m *Machine) Resume(now int64) {
	if !m.Status.Busy() {
		return
	}
	m.now = now
	if m.Former != nil { // an earlier version may have begun the update without storing hidden values
		m.Hidden = m.Former.hidden(slices.Clone(m.Hidden))
	}
	for _, id := range slices.Sorted(maps.Keys(m.Resources)) {
		if next := m.Resources[id].Next; next != nil {
			again := *next
			again.Logical, again.Again = id, true
			m.changed.Steps = append(m.changed.Steps, again)
		}
	}
	m.advance()
}

// advance begins the possible steps, and the next phase when one is complete.
func (m *Machine) advance() {
	for {
		var over bool
		switch m.Status {
		case CreateInProgress, UpdateInProgress:
			over = m.forward()
		case UpdateRollback:
			over = m.backward()
		case UpdateCleanup:
			over = m.Former == nil && m.clear() // else Cleanup or Revert goes on
		case RollbackInProgress, DeleteInProgress, UpdateRollbackCleanup:
			over = m.clear()
		default:
			return
		}
		if !over {
			return
		}
	}
}

// fail notes that a resource could not be made, changed or deleted: no further step of the
// phase begins, except deletions.
func (m *Machine) fail(r *Resource, s Status, reason string) {
	r.Next = nil
	r.Phase = m.Phase
	m.set(r, s, reason)
	m.Failing = true
}

// failed lists the resources of this phase with a status.
func (m *Machine) failed(s Status) (names []string) {
	for id, r := range m.Resources {
		if r.Phase == m.Phase && r.Status == s {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	return names
}

// because is AWS's reason for failed resources.
func (m *Machine) because() string {
	var text strings.Builder
	for _, failure := range m.Failures {
		text.WriteString(strings.TrimSuffix(failure, ".") + ". ")
	}
	for _, kind := range []struct {
		status Status
		rule   *fault.Rule
	}{{CreateFailed, ErrFailedToCreate}, {UpdateFailed, ErrFailedToUpdate}, {DeleteFailed, ErrFailedToDelete}} {
		if names := m.failed(kind.status); len(names) > 0 {
			text.WriteString(m.Sentence(kind.rule.With(strings.Join(names, ", "))) + " ")
		}
	}
	return text.String()
}

// Done applies the outcome of a step. It ignores steps that are not in progress.
func (m *Machine) Done(now int64, id, token string, o Outcome) {
	r := m.Resources[id]
	if r == nil || r.Next == nil || r.Next.Token != token {
		return
	}
	m.now = now
	o.Reason = m.maskedText(o.Reason)
	step := *r.Next
	r.Next = nil
	m.touch(id)
	switch {
	case step.Action == Cleanup: // a failure says that there is nothing to clean up any more
		r.AwaitsCleanup = false
	case step.Action == Delete:
		m.deleted(r, &step, o)
	case m.Status == UpdateRollback:
		m.restored(r, &step, o)
	default:
		m.made(r, &step, o)
	}
	m.advance()
}

// late has the current resources.
type late struct{ *Machine }

// Ref implements Late.
func (l late) Ref(id string) (any, error) {
	if r := l.Resources[id]; r != nil && r.Physical != "" {
		return r.Physical, nil
	}
	return nil, ErrNotMade.With(id)
}

// GetAtt implements Late.
func (l late) GetAtt(id, attribute string) (any, error) {
	if r := l.Resources[id]; r != nil && r.Physical != "" {
		if value, ok := r.Attributes[attribute]; ok {
			return value, nil
		}
	}
	return nil, ErrNoAttribute.With(attribute)
}

// Import implements Late.
func (l late) Import(name string) (any, error) {
	value, owner, ok := l.Exports.Export(name)
	if !ok || owner == l.Name {
		return nil, ErrNoExport.With(name)
	}
	if !slices.Contains(l.Imports, name) {
		l.Imports = append(slices.Clone(l.Imports), name) // others read the former slice
		slices.Sort(l.Imports)
	}
	l.imports[name] = true
	return value, nil
}

func asJSON(properties map[string]any) string {
	if len(properties) == 0 {
		return ""
	}
	text, err := json.Marshal(properties)
	if err != nil {
		return ""
	}
	return string(text)
}

// typed finds a resource's type, which was checked before the operation began.
func typed(name string) *resource.Type {
	t, _ := resource.Find(name)
	return t
}
