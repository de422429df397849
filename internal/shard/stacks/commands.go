package stacks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store"
)

// View is a stack with its resources, in the order of their logical ids.
type View struct {
	stack.Stack

	Resources []stack.Resource
}

func (e *entry) view() View {
	v := View{Stack: e.Stack, Resources: make([]stack.Resource, 0, len(e.Resources))}
	for _, id := range sorted(e.Resources) {
		v.Resources = append(v.Resources, *e.Resources[id])
	}
	return v
}

// find is the stack of a name, unless it is deleted, or of an ARN; nil if there is none.
func (m *Module) find(account, region, name string) *entry {
	if e := m.byName[stackName{account, region, name}]; e != nil {
		return e
	}
	if id, ok := idOf(name); ok {
		if e := m.byID[id]; e != nil && e.ID == name && e.Account == account && e.Region == region {
			return e
		}
	}
	return nil
}

// run runs a command on a stack, and returns once all that it read and changed is durable.
func (m *Module) run(ctx context.Context, account, region, name string, command func(e *entry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var tasks []*Task
	err := m.shard.RunDurableReads(func(*kernel.Tx) error {
		e := m.find(account, region, name)
		if e == nil {
			return ErrNone.With(name)
		}
		if err := command(e); err != nil {
			return err
		}
		tasks = m.tasks(e, m.save(e))
		return nil
	})
	m.launch(tasks)
	return err
}

// view calls at with a stack. What it reports is durable. Errors: ErrNone.
func (m *Module) view(account, region, name string, at func(e *entry) error) error {
	return m.shard.RunDurableReads(func(*kernel.Tx) error {
		e := m.find(account, region, name)
		if e == nil {
			return ErrNone.With(name)
		}
		return at(e)
	})
}

// Creation is a request for a stack.
type Creation struct {
	ID, Name, Account, Region string // ID is the ARN
	Body                      []byte // the template
	Request                   stack.Request
	Timeout                   int64  // milliseconds; 0: none
	Parent, Root              string // ARNs of the stacks above a nested one
	Depth                     int
	Protected                 bool
}

// Create begins the creation of a stack. It is idempotent for requests with the same token.
// Errors: ErrExists, ErrTooMany, kernel.ErrFull.
func (m *Module) Create(ctx context.Context, c *Creation) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	var tasks []*Task
	err = m.shard.RunDurableReads(func(*kernel.Tx) error {
		if there := m.byName[stackName{c.Account, c.Region, c.Name}]; there != nil {
			if c.Request.Token != "" && there.Token == c.Request.Token {
				id = there.ID
				return nil
			}
			return ErrExists.With(c.Name)
		}
		if m.kernel.Full() {
			return kernel.ErrFull
		}
		e, err := m.enter(c)
		if err != nil {
			return err
		}
		id = e.ID
		c.Request.Input.Template = m.keep(e, c.Body)
		e.Create(m.shard.Now(), &c.Request)
		tasks = m.tasks(e, m.save(e))
		return nil
	})
	m.launch(tasks)
	return id, err
}

// enter makes a stack without resources, or finds one that has nothing but change sets.
func (m *Module) enter(c *Creation) (*entry, error) {
	e := m.byName[stackName{c.Account, c.Region, c.Name}]
	if e == nil {
		n := 0
		for s := range m.byName {
			if s.account == c.Account && s.region == c.Region {
				n++
			}
		}
		if n >= maxStacks {
			return nil, ErrTooMany
		}
		id, ok := idOf(c.ID)
		if !ok {
			return nil, errRecord
		}
		e = &entry{id: id, changes: map[stackID]*ChangeSet{}}
		e.Resources = map[string]*stack.Resource{}
		e.Exports, e.Sentence = exports{m, e}, m.sentence
		e.ID, e.Name, e.Account, e.Region = c.ID, c.Name, c.Account, c.Region
		e.Parent, e.Root, e.Depth = c.Parent, c.Root, c.Depth
		m.byID[id], m.byName[e.stackName()] = e, e
	}
	e.Timeout, e.Protected = c.Timeout, c.Protected
	return e, nil
}

// again reports that an operation on a stack is its latest one, by the token of the request.
func (e *entry) again(req *stack.Request) bool { return req.Token != "" && e.Token == req.Token }

// Update begins an update; body is nil to keep the template. The same request again, by its token, does
// nothing while it is under way and once it is complete. Errors: ErrNone, ErrNotUpdatable, ErrChanged,
// ErrRetyped, ErrNothing.
func (m *Module) Update(ctx context.Context, account, region, name string, body []byte, req *stack.Request) (id string, err error) {
	err = m.run(ctx, account, region, name, func(e *entry) error {
		id = e.ID
		updating := strings.HasPrefix(string(e.Status), "UPDATE_")
		if updating && e.again(req) && e.Status.Busy() {
			return nil
		}
		if !e.Status.Updatable() && (!req.Nested || !stack.Held(&e.Stack)) {
			return ErrNotUpdatable.With(e.ID, string(e.Status))
		}
		if req.Seen != 0 && req.Seen != e.Phase {
			return ErrChanged.With(e.ID)
		}
		if err := e.checkTypes(req.Design); err != nil {
			return err
		}
		changes, outputs := e.Plan(req.Design, req.Input.Tags)
		if len(changes) == 0 && !outputs && slices.Equal(req.Input.Tags, e.Input.Tags) && e.Status != stack.UpdateFailed {
			if updating && e.again(req) {
				return nil
			}
			return ErrNothing
		}
		if body != nil {
			req.Input.Template = m.keep(e, body)
		} else {
			req.Input.Template = e.Input.Template
		}
		e.Update(m.shard.Now(), req)
		return nil
	})
	return id, err
}

// Delete begins a deletion; it does nothing if the stack does not exist, or is being deleted.
// Errors: ErrNotDeletable, ErrNotKept, ErrNoResource, ErrProtected, ErrRootProtected.
func (m *Module) Delete(ctx context.Context, account, region, name string, req *stack.Request) error {
	err := m.run(ctx, account, region, name, func(e *entry) error {
		switch {
		case e.Status == stack.DeleteComplete || e.Status == stack.DeleteInProgress:
			return nil
		case e.Protected:
			return ErrProtected.With(e.Name)
		case !req.Nested && m.rootProtected(e):
			return ErrRootProtected.With(e.Name)
		case e.Status.Busy() && e.Status != stack.CreateInProgress && e.Status != stack.RollbackInProgress && (!req.Nested || !stack.Held(&e.Stack)):
			return ErrNotDeletable.With(e.ID, string(e.Status))
		case len(req.Keep) > 0 && e.Status != stack.DeleteFailed:
			return ErrNotKept
		}
		for _, id := range req.Keep { // one that is spelled wrongly would be deleted
			if e.Resources[id] == nil {
				return ErrNoResource.With(id, e.Name)
			}
		}
		e.Delete(m.shard.Now(), req)
		return nil
	})
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// rootProtected reports that the root of a nested stack is protected.
func (m *Module) rootProtected(e *entry) bool {
	id, ok := idOf(e.Root)
	return ok && m.byID[id] != nil && m.byID[id].Protected && m.byID[id].Status != stack.DeleteComplete
}

// Cancel cancels an update in progress, which is rolled back. Errors: ErrNone,
// ErrNotCancelable.
func (m *Module) Cancel(ctx context.Context, account, region, name, token string) error {
	return m.run(ctx, account, region, name, func(e *entry) error {
		if e.Status != stack.UpdateInProgress {
			return ErrNotCancelable
		}
		e.Cancel(m.shard.Now(), token)
		return nil
	})
}

// Rollback rolls back a stack whose operation has failed without a rollback. Errors: ErrNone,
// ErrNotRolling.
func (m *Module) Rollback(ctx context.Context, account, region, name string, req *stack.Request) (id string, err error) {
	err = m.run(ctx, account, region, name, func(e *entry) error {
		id = e.ID
		if e.Status != stack.CreateFailed && e.Status != stack.UpdateFailed {
			return ErrNotRolling.With(e.ID, string(e.Status))
		}
		e.Rollback(m.shard.Now(), req)
		return nil
	})
	return id, err
}

// ContinueRollback continues a rollback of an update that has failed. Errors: ErrNone,
// ErrNotRolling, ErrNoResource, ErrNotSkipped.
func (m *Module) ContinueRollback(ctx context.Context, account, region, name string, req *stack.Request) error {
	return m.run(ctx, account, region, name, func(e *entry) error {
		if e.Status != stack.UpdateRollbackFailed {
			return ErrNotRolling.With(e.ID, string(e.Status))
		}
		for _, id := range req.Keep {
			own, within, _ := strings.Cut(id, ".")
			switch r := e.Resources[own]; {
			case r == nil || within != "" && r.Type != stack.Type:
				return ErrNoResource.With(id, e.Name)
			case r.Status != stack.UpdateFailed || r.Before == nil:
				return ErrNotSkipped.With(id, string(r.Status))
			}
		}
		e.ContinueRollback(m.shard.Now(), req)
		return nil
	})
}

// BeginCleanup ends the wait of a nested stack's update for the end of its parent's. Errors: ErrNone.
func (m *Module) BeginCleanup(ctx context.Context, account, region, name string) error {
	return m.run(ctx, account, region, name, func(e *entry) error {
		e.BeginCleanup(m.shard.Now())
		return nil
	})
}

// Revert rolls back a nested stack's update that waits for its parent's. Errors: ErrNone.
func (m *Module) Revert(ctx context.Context, account, region, name string, req *stack.Request) error {
	return m.run(ctx, account, region, name, func(e *entry) error {
		e.Revert(m.shard.Now(), req)
		return nil
	})
}

// Protect sets the termination protection of a stack. Errors: ErrNone, ErrNestedProtection.
func (m *Module) Protect(ctx context.Context, account, region, name string, on bool) (id string, err error) {
	err = m.run(ctx, account, region, name, func(e *entry) error {
		if e.Parent != "" && on {
			return ErrNestedProtection.With(e.Name)
		}
		id, e.Protected = e.ID, on
		return nil
	})
	return id, err
}

// SetPolicy sets which resources updates may change. Errors: ErrNone, ErrNotUpdatable.
func (m *Module) SetPolicy(ctx context.Context, account, region, name, policy string) error {
	return m.run(ctx, account, region, name, func(e *entry) error {
		if e.Status == stack.DeleteComplete || e.Status == stack.DeleteInProgress {
			return ErrNotUpdatable.With(e.ID, string(e.Status))
		}
		e.Policy = policy
		return nil
	})
}

// Get is the stack of a name or an ARN. What it reports is durable. Errors: ErrNone.
func (m *Module) Get(account, region, name string) (v View, err error) {
	err = m.view(account, region, name, func(e *entry) error {
		v = e.view()
		return nil
	})
	return v, err
}

// Tags are the tags of the stack of a name or an ARN, for policies; nil if there is none.
func (m *Module) Tags(account, region, name string) (tags map[string]string) {
	_ = m.view(account, region, name, func(e *entry) error {
		tags = make(map[string]string, len(e.Input.Tags))
		for _, t := range e.Input.Tags {
			tags[t.Key] = t.Value
		}
		return nil
	})
	return tags
}

// List lists the stacks of an account in a region, the latest first, including deleted ones.
func (m *Module) List(account, region string) (all []stack.Stack) {
	_ = m.shard.RunDurableReads(func(*kernel.Tx) error {
		for _, e := range m.byID {
			if e.Account == account && e.Region == region {
				all = append(all, e.Stack)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b stack.Stack) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Template is the text of a stack's template; empty before the first change set is executed.
// Errors: ErrNone.
func (m *Module) Template(account, region, name string) (text []byte, err error) {
	err = m.view(account, region, name, func(e *entry) error {
		if e.Input.Template == 0 {
			return nil
		}
		text, err = m.template(e.id, e.Input.Template)
		return err
	})
	return text, err
}

// Events are the events of a stack before a number, the latest first; 0: from the latest on.
// Errors: ErrNone.
func (m *Module) Events(account, region, name string, before uint64, limit int) (page []stack.Event, s stack.Stack, err error) {
	err = m.view(account, region, name, func(e *entry) error {
		s = e.Stack
		last := e.Events
		if before != 0 {
			last = min(last, before-1)
		}
		span := keyspace.Span{Lower: key(keyspace.StackEvents, e.id), Upper: numbered(keyspace.StackEvents, e.id, last+1)}
		return store.EachDown(m.shard.Stream.Reader(), span, func(key, value []byte) error {
			if len(page) == limit {
				return store.ErrStop
			}
			var event stack.Event
			if err := m.open(key, value, &event); err != nil {
				return err
			}
			page = append(page, event)
			return nil
		})
	})
	return page, s, err
}

// Exports are the exported outputs of the stacks of an account in a region, by name, each with
// the ARN of its stack.
func (m *Module) Exports(account, region string) (exports []stack.Output, owners map[string]string) {
	owners = map[string]string{}
	_ = m.shard.RunDurableReads(func(*kernel.Tx) error {
		for s, e := range m.byName {
			if s.account != account || s.region != region {
				continue
			}
			for _, o := range e.Outputs {
				if o.Export != "" {
					exports = append(exports, o)
					owners[o.Export] = e.ID
				}
			}
		}
		return nil
	})
	slices.SortFunc(exports, func(a, b stack.Output) int { return strings.Compare(a.Export, b.Export) })
	return exports, owners
}

// Importers are the names of the stacks that use an export.
func (m *Module) Importers(account, region, export string) (names []string) {
	_ = m.shard.RunDurableReads(func(*kernel.Tx) error {
		for s, e := range m.byName {
			if s.account == account && s.region == region && slices.Contains(e.Imports, export) {
				names = append(names, e.Name)
			}
		}
		return nil
	})
	slices.Sort(names)
	return names
}

// Reset removes the stacks of an account in a region, with their history and operations in
// progress, but not their resources. It returns how many stacks were not deleted.
func (m *Module) Reset(ctx context.Context, account, region string) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = m.shard.RunDurableReads(func(*kernel.Tx) error {
		for id, e := range m.byID {
			if e.Account != account || e.Region != region {
				continue
			}
			if m.byName[e.stackName()] == e {
				delete(m.byName, e.stackName())
				n++
			}
			m.forget(id)
		}
		return nil
	})
	return n, err
}
