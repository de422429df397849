package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/stack/resource"
)

// Late gives what of other resources and stacks is known only once they are made. It is a
// template.Late.
type Late interface {
	Ref(id string) (any, error)
	GetAtt(id, attribute string) (any, error)
	Import(name string) (any, error)
}

// Part is a resource as the template has it.
type Part struct {
	Type                        string
	DependsOn                   []string
	DeletePolicy, ReplacePolicy string
}

// Design is a template with its parameters: what a stack is to be.
type Design struct {
	Order      []string // of resources, dependencies first
	Parts      map[string]Part
	Properties func(id string, late Late) (map[string]any, error)
	Outputs    func(late Late) ([]Output, error)
}

// Exports are the outputs that stacks of an account and region share.
type Exports interface {
	// Export is the value of an export, and the name of the stack that has it.
	Export(name string) (value, owner string, ok bool)
	// Importer is a stack that uses an export; empty: none does.
	Importer(name string) string
}

// most bounds the steps of a stack that are under way at once, and with them what one command
// writes.
const most = 64

// Machine is a stack with all that its commands need. Its commands are called one after the
// other, and Take gives what they have changed.
type Machine struct {
	Stack
	Resources map[string]*Resource
	Design    *Design // of Source, while a forward phase is under way
	Exports   Exports

	now     int64
	imports map[string]bool // that resources of this phase have asked for
	weights map[string]int  // bytes of properties, by resource
	changed Changed
}

// Changed is what commands have changed, and what is to be done.
type Changed struct {
	Touched []string // resources, in their order; one that is not there any more was removed
	Events  []Event
	Steps   []Step
}

// Take gives what was changed since the last call.
func (m *Machine) Take() Changed {
	c := m.changed
	m.changed = Changed{}
	slices.Sort(c.Touched)
	c.Touched = slices.Compact(c.Touched)
	return c
}

func (m *Machine) touch(id string) { m.changed.Touched = append(m.changed.Touched, id) }

// set gives a resource a status, and tells of it.
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
	e.Number, e.At = m.Events, m.now
	m.changed.Events = append(m.changed.Events, e)
}

// become gives the stack a status, and tells of it.
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

// derive makes an id of the stack that is the same whenever it is made of the same parts.
func (m *Machine) derive(parts ...string) [sha256.Size]byte {
	return sha256.Sum256([]byte(m.ID + "\x00" + strings.Join(parts, "\x00")))
}

// token is a step's, in the form of a UUID.
func (m *Machine) token(id string, a Action) string {
	sum := m.derive("token", id, string(a), strconv.FormatUint(m.Operation, 10), strconv.FormatUint(m.Phase, 10))
	t := hex.EncodeToString(sum[:16])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// CreationToken is that of a resource's creation in the phase under way.
func (m *Machine) CreationToken(id string) string { return m.token(id, Create) }

// take begins a step on a resource.
func (m *Machine) take(r *Resource, s Step) {
	s.Logical, s.Token, s.Began = r.Logical, m.token(r.Logical, s.Action), m.now
	if s.Spare { // of several, one after the other
		s.Token = m.token(r.Logical+"\x00"+s.Target.Physical, s.Action)
	}
	r.Next, r.Drift = &s, nil
	m.touch(r.Logical)
	m.changed.Steps = append(m.changed.Steps, s)
}

// Resume gives the steps that were under way again, and goes on. now is in epoch milliseconds.
func (m *Machine) Resume(now int64) {
	if !m.Status.Busy() {
		return
	}
	m.now = now
	if m.Former != nil { // a version that began the update may have kept nothing hidden
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

// advance begins what can begin, and the next phase when one is over.
func (m *Machine) advance() {
	for {
		var over bool
		switch m.Status {
		case CreateInProgress, UpdateInProgress:
			over = m.forward()
		case UpdateRollback:
			over = m.backward()
		case RollbackInProgress, DeleteInProgress, UpdateCleanup, UpdateRollbackCleanup:
			over = m.clear()
		default:
			return
		}
		if !over {
			return
		}
	}
}

// fail notes that a resource has failed to be made, changed or deleted: no further step of
// the phase begins, unless it deletes.
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

// because is what AWS says of the resources that have failed.
func (m *Machine) because() string {
	var text strings.Builder
	for _, failure := range m.Failures {
		text.WriteString(strings.TrimSuffix(failure, ".") + ". ")
	}
	for _, kind := range []struct {
		status Status
		verb   string
	}{{CreateFailed, "create"}, {UpdateFailed, "update"}, {DeleteFailed, "delete"}} {
		if names := m.failed(kind.status); len(names) > 0 {
			fmt.Fprintf(&text, "The following resource(s) failed to %s: [%s]. ", kind.verb, strings.Join(names, ", "))
		}
	}
	return text.String()
}

// Done takes in what came of a step. A step that is not under way any more changes nothing.
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
	case step.Action == Delete:
		m.deleted(r, &step, o)
	case m.Status == UpdateRollback:
		m.restored(r, &step, o)
	default:
		m.made(r, &step, o)
	}
	m.advance()
}

// late gives what resources are as of now.
type late struct{ *Machine }

// Ref implements Late.
func (l late) Ref(id string) (any, error) {
	if r := l.Resources[id]; r != nil && r.Physical != "" {
		return r.Physical, nil
	}
	return nil, fmt.Errorf("Unresolved resource dependencies [%s] in the Resources block of the template", id) //nolint:staticcheck // AWS's sentence
}

// GetAtt implements Late.
func (l late) GetAtt(id, attribute string) (any, error) {
	if r := l.Resources[id]; r != nil && r.Physical != "" {
		if value, ok := r.Attributes[attribute]; ok {
			return value, nil
		}
	}
	return nil, fmt.Errorf("Attribute '%s' does not exist", attribute) //nolint:staticcheck // AWS's sentence
}

// Import implements Late.
func (l late) Import(name string) (any, error) {
	value, owner, ok := l.Exports.Export(name)
	if !ok || owner == l.Name {
		return nil, fmt.Errorf("No export named %s found.", name) //nolint:staticcheck // AWS's sentence
	}
	if !slices.Contains(l.Imports, name) {
		l.Imports = append(slices.Clone(l.Imports), name) // others read what it was
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

// typed finds a resource's type, which was looked for before the operation began.
func typed(name string) *resource.Type {
	t, _ := resource.Find(name)
	return t
}
