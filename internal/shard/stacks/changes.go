package stacks

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/template"
)

// ChangeSet is a set of planned changes that can be executed.
type ChangeSet struct {
	ID          string         `json:"id"` // its ARN
	Stack       string         `json:"stack"`
	StackName   string         `json:"stackName"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Created     int64          `json:"created"` // epoch milliseconds
	Token       string         `json:"token,omitempty"`
	Input       stack.Input    `json:"source"`
	OnFailure   string         `json:"onFailure,omitempty"`
	Changes     []stack.Change `json:"changes,omitempty"`
	Failure     string         `json:"failure,omitempty"` // why it cannot be executed
	Executed    bool           `json:"executed,omitempty"`
	Phase       uint64         `json:"phase,omitempty"` // the stack's phase when it was made; 0: made by an earlier version

	Obsolete bool `json:"-"` // the stack was changed since

	Design *stack.Design `json:"-"` // of a change set that is to be made
	Seen   uint64        `json:"-"` // the stack's phase that it was made for; 0: any
	Make   bool          `json:"-"` // it is to create the stack
}

func (m *Module) putSet(e *entry, id stackID, set *ChangeSet) {
	e.changes[id] = set
	m.put(key(keyspace.StackChanges, e.id, id[:]...), set)
}

func (m *Module) dropSet(e *entry, id stackID) {
	delete(e.changes, id)
	m.shard.Batch.Delete(key(keyspace.StackChanges, e.id, id[:]...))
}

// PutChangeSet makes a change set, and the stack for it if it is to create one. Errors:
// ErrNone, ErrExistsAlready, ErrNotUpdatable, ErrChanged, ErrChanges, ErrTooMany, kernel.ErrFull.
func (m *Module) PutChangeSet(ctx context.Context, c *Creation, set *ChangeSet) (stackID string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if m.kernel.Full() {
		return "", kernel.ErrFull
	}
	err = m.shard.RunDurableReads(func(*kernel.Tx) error {
		e, err := m.stackOf(c, set)
		if err != nil {
			return err
		}
		for _, there := range e.changes {
			if there.Name == set.Name {
				if set.Token != "" && there.Token == set.Token {
					set.ID, stackID = there.ID, e.ID
					return nil
				}
				return ErrChanges.With(set.Name)
			}
		}
		if len(e.changes) >= maxChanges {
			return ErrTooMany
		}
		id, ok := idOf(set.ID)
		if !ok {
			return errRecord
		}
		stackID = e.ID
		m.plan(e, c.Body, set)
		m.putSet(e, id, set)
		m.save(e)
		return nil
	})
	return stackID, err
}

// stackOf is the stack that a change set is made for: one that may be updated, or one to create,
// which it enters.
func (m *Module) stackOf(c *Creation, set *ChangeSet) (*entry, error) {
	e := m.find(c.Account, c.Region, c.Name)
	if e != nil && e.Status == stack.DeleteComplete {
		e = nil
	}
	switch {
	case e == nil && !set.Make:
		return nil, ErrNone.With(c.Name)
	case e != nil && set.Make && e.Status != stack.ReviewInProgress:
		return nil, ErrExistsAlready.With(c.Name, set.Name)
	case e != nil && !set.Make && !e.Status.Updatable():
		return nil, ErrNotUpdatable.With(e.ID, string(e.Status))
	case e != nil && set.Seen != 0 && (set.Seen != e.Phase || c.ID != e.ID):
		return nil, ErrChanged.With(e.ID)
	case e != nil:
		return e, nil
	}
	e, err := m.enter(c)
	if err == nil {
		e.Review(m.shard.Now())
	}
	return e, err
}

// plan completes a change set: with its template, and with what it would change or why it cannot
// be executed.
func (m *Module) plan(e *entry, body []byte, set *ChangeSet) {
	set.Stack, set.StackName, set.Created, set.Phase = e.ID, e.Name, m.shard.Now(), e.Phase
	if set.Input.Template = e.Input.Template; body != nil {
		set.Input.Template = m.keep(e, body)
	}
	if refused := e.checkTypes(set.Design); refused != nil {
		set.Failure = m.sentence(refused)
	} else {
		var outputs bool
		set.Changes, outputs = e.Plan(set.Design, set.Input.Tags)
		if len(set.Changes) == 0 && !outputs && slices.Equal(set.Input.Tags, e.Input.Tags) {
			set.Failure = m.sentence(ErrNoChange)
		}
	}
	set.Design = nil
}

// checkTypes refuses a design that has resources by another type; nil: it has none.
func (e *entry) checkTypes(d *stack.Design) error {
	if other := e.Retyped(d); other != nil {
		return ErrRetyped.With(strings.Join(other, ", "))
	}
	return nil
}

// set finds a change set of a stack, by its name or ARN.
func (e *entry) set(name string) (id stackID, found *ChangeSet) {
	for id, c := range e.changes {
		if c.Name == name || c.ID == name {
			return id, c
		}
	}
	return id, nil
}

// obsolete reports that a change set was not executed, and that the stack has changed since it
// was made.
func (e *entry) obsolete(c *ChangeSet) bool {
	return !c.Executed && c.Phase != 0 && c.Phase != e.Phase
}

// findOf is the stack of a change set, which is found by its name or ARN; if that is empty, by
// the ARN of the set. nil: there is none.
func (m *Module) findOf(account, region, name, set string) *entry {
	if name != "" || !strings.HasPrefix(set, "arn:") {
		return m.find(account, region, name)
	}
	for _, e := range m.byID {
		if _, found := e.set(set); found != nil && e.Account == account && e.Region == region {
			return e
		}
	}
	return nil
}

// withSet runs a command on a change set, identified by its name and its stack's name, or by
// its ARN alone. What it reports is durable. Errors: ErrNoChanges.
func (m *Module) withSet(account, region, name, set string, command func(e *entry, id stackID, set *ChangeSet) error) error {
	return m.shard.RunDurableReads(func(*kernel.Tx) error {
		e := m.findOf(account, region, name, set)
		if e == nil {
			return ErrNoChanges.With(set)
		}
		id, found := e.set(set)
		if found == nil {
			return ErrNoChanges.With(set)
		}
		return command(e, id, found)
	})
}

// ChangeSet is a change set of a stack. Errors: ErrNoChanges.
func (m *Module) ChangeSet(account, region, name, set string) (found ChangeSet, err error) {
	err = m.withSet(account, region, name, set, func(e *entry, _ stackID, set *ChangeSet) error {
		found = *set
		found.Obsolete = e.obsolete(set)
		return nil
	})
	return found, err
}

// TemplateOf is the text of a change set's template. Errors: ErrNoChanges.
func (m *Module) TemplateOf(account, region, name, set string) (text []byte, err error) {
	err = m.withSet(account, region, name, set, func(e *entry, _ stackID, set *ChangeSet) (err error) {
		text, err = m.template(e.id, set.Input.Template)
		return err
	})
	return text, err
}

// ChangeSets are the change sets of a stack, the oldest first. Errors: ErrNone.
func (m *Module) ChangeSets(account, region, name string) (all []ChangeSet, err error) {
	err = m.view(account, region, name, func(e *entry) error {
		for _, c := range e.changes {
			one := *c
			one.Obsolete = e.obsolete(c)
			all = append(all, one)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b ChangeSet) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name))
	})
	return all, err
}

// DeleteChangeSet deletes a change set, and succeeds if a stack that is there has none of that
// name, as at AWS. Errors: ErrNoStack, if there is no stack of the name; ErrNoChanges, if
// there is no set of the ARN and no stack is named.
func (m *Module) DeleteChangeSet(ctx context.Context, account, region, name, set string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.shard.RunDurableReads(func(*kernel.Tx) error {
		e := m.findOf(account, region, name, set)
		switch {
		case e == nil && name == "":
			return ErrNoChanges.With(set)
		case e == nil:
			return ErrNoStack.With(name)
		}
		if id, found := e.set(set); found != nil {
			m.dropSet(e, id)
		}
		return nil
	})
}

// executionWait is how long Execute waits for the end of the execution: most have ended by
// then, and the waiters of AWS's tools, which poll at once, poll again only after half a
// minute.
const executionWait = 500 * time.Millisecond

// awaitEnd returns once no operation of the stack is in progress, but after executionWait of
// real time at the latest.
func (m *Module) awaitEnd(ctx context.Context, id stackID) {
	var ended chan struct{}
	_ = m.shard.RunDurable(func(*kernel.Tx) error {
		if e := m.byID[id]; e != nil && e.Status.Busy() {
			ended = make(chan struct{})
			m.ending[id] = append(m.ending[id], ended)
		}
		return nil
	})
	if ended == nil {
		return
	}
	over, stop := clock.After(clock.System, executionWait)
	defer stop()
	select {
	case <-ended:
	case <-over:
	case <-ctx.Done():
	case <-m.kernel.Stopping:
	}
}

// Execute begins the changes of a change set, and waits up to executionWait for their end; it
// removes the stack's other change sets. Errors: ErrNoChanges, ErrState, ErrNotUpdatable.
func (m *Module) Execute(ctx context.Context, account, region, name, set string, req *stack.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var tasks []*Task
	var of stackID
	err := m.withSet(account, region, name, set, func(e *entry, id stackID, set *ChangeSet) error {
		of = e.id
		switch {
		case set.Failure != "":
			return ErrState.With(set.ID, "FAILED")
		case set.Executed && e.again(req):
			return nil
		case set.Executed:
			return ErrState.With(set.ID, "EXECUTE_COMPLETE")
		case e.obsolete(set):
			return ErrState.With(set.ID, "OBSOLETE")
		case e.Status != stack.ReviewInProgress && !e.Status.Updatable():
			return ErrNotUpdatable.With(e.ID, string(e.Status))
		}
		input := set.Input
		input.RetainExceptOnCreate = req.Input.RetainExceptOnCreate
		d, err := m.designOf(e, &input, req.Store)
		if err != nil {
			return err
		}
		req.Input, req.Design = input, d
		if set.OnFailure != "" {
			req.OnFailure = set.OnFailure
		}
		for other := range e.changes {
			if other != id {
				m.dropSet(e, other)
			}
		}
		done := *set
		done.Executed = true
		m.putSet(e, id, &done)
		if e.Status == stack.ReviewInProgress {
			e.Create(m.shard.Now(), req)
		} else {
			e.Update(m.shard.Now(), req)
		}
		tasks = m.tasks(e, m.save(e))
		return nil
	})
	m.launch(tasks)
	if err == nil {
		m.awaitEnd(ctx, of)
	}
	return err
}

// designOf derives the design of a stack from an input whose template is stored; store looks up
// its parameters, nil: the current ones.
func (m *Module) designOf(e *entry, input *stack.Input, store func(name string) (string, bool)) (*stack.Design, error) {
	text, err := m.template(e.id, input.Template)
	if err != nil {
		return nil, err
	}
	t, err := template.Parse(text)
	if err != nil {
		return nil, err
	}
	from := *input
	if from.Store = store; store == nil {
		from.Store = in(m.parameters(e.Account, e.Region))
	}
	bound, err := stack.Bind(t, &e.Stack, &from, nil, nil)
	if err != nil {
		return nil, err
	}
	return input.Of(bound), nil
}
