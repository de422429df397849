package stacks

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/stack"
)

// Task is a step with its stack.
type Task struct {
	stack.Step

	Stack, Name, Account, Region string // ARN, name and home of the stack
	// By is the caller that acts; with a Role, it acts as that role.
	By   *caller.Caller
	Role string
	// Root is the ARN of the topmost stack of the nesting, itself if it is not nested; Depth is
	// how many stacks are above it.
	Root         string
	Depth        int
	Capabilities []string
	Secrets      []string // the values of hidden parameters
	// Back says that the step is of a rollback, and Skip which resources within it are left as they are.
	Back bool
	Skip []string
	// Resumed says that an earlier process may have executed the step.
	Resumed bool
	// Part counts what is done of a step that has several parts and is put off between them. Another
	// process begins with the first one again.
	Part int
	// Try counts how often the step was postponed.
	Try int
}

// Creates reports that a token belongs to the creation of another resource of a step's stack,
// in the current phase.
func (m *Module) Creates(t *Task, token string) (creates bool) {
	id, _ := idOf(t.Stack)
	m.shard.View(func() {
		e := m.byID[id]
		if e == nil {
			return
		}
		for logical := range e.Resources {
			creates = creates || logical != t.Logical && e.CreationToken(logical) == token
		}
	})
	return creates
}

// Beside are the properties of the other resources of some types that a step's stack has, and does not
// delete.
func (m *Module) Beside(t *Task, types ...string) (all []map[string]any) {
	id, _ := idOf(t.Stack)
	m.shard.View(func() {
		e := m.byID[id]
		if e == nil {
			return
		}
		for _, logical := range sorted(e.Resources) {
			if r := e.Resources[logical]; logical != t.Logical && r.Exists() && !r.PendingDelete && slices.Contains(types, r.Type) {
				all = append(all, r.Properties)
			}
		}
	})
	return all
}

// IsGone reports that an error of any service says that the resource does not exist.
func IsGone(err error) bool {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.QueueDoesNotExist, fault.ResourceNotFound, fault.NoSuchEntity, fault.KMSNotFound:
		return true
	default:
		return false
	}
}

// Worker executes steps. Its changes are durable when it returns.
type Worker interface {
	// Do executes a step. If later is not 0, the step cannot be executed now, and is to be
	// retried after that time. A failure after the end of ctx counts for nothing: the next
	// start takes the step again.
	Do(ctx context.Context, t *Task) (o stack.Outcome, later time.Duration)
}

// Start begins to execute steps, first those that were in progress when the last process ended.
func (m *Module) Start(w Worker) {
	var begun []*Task
	var comparisons []*comparison
	err := m.shard.RunDurable(func(*kernel.Tx) error {
		m.worker = w
		for _, e := range m.byID {
			if e.Detecting() != nil {
				comparisons = append(comparisons, e.comparison())
			}
			if !e.Status.Busy() {
				continue
			}
			if e.Status == stack.CreateInProgress || e.Status == stack.UpdateInProgress {
				var err error
				if e.Design, err = m.designOf(e, &e.Input, nil); err != nil {
					m.shard.Logger.Error("a stack cannot go on as its template cannot be read again", slog.String("stack", e.ID), slog.Any("error", err))
					continue
				}
			}
			e.Resume(m.shard.Now())
			begun = append(begun, m.tasks(e, m.save(e))...)
		}
		return nil
	})
	if err == nil {
		m.launch(begun)
		for _, c := range comparisons {
			m.detect(c)
		}
	}
}

// tasks are steps with the properties of their stack; none before Start, which gives them again.
func (m *Module) tasks(e *entry, steps []stack.Step) []*Task {
	if m.worker == nil {
		return nil
	}
	tasks := make([]*Task, 0, len(steps))
	root := e.Root
	if root == "" {
		root = e.ID
	}
	for _, s := range steps {
		var skip []string
		for _, id := range e.Keep {
			if within, ok := strings.CutPrefix(id, s.Logical+"."); ok {
				skip = append(skip, within)
			}
		}
		tasks = append(tasks, &Task{
			Resumed: s.Again, Back: e.Status == stack.UpdateRollback, Skip: skip,
			Step: s, Stack: e.ID, Name: e.Name, Account: e.Account, Region: e.Region, By: e.By, Role: e.Input.Role,
			Root: root, Depth: e.Depth, Capabilities: e.Input.Capabilities, Secrets: stack.Secrets(&e.Stack),
		})
	}
	return tasks
}

// launch executes tasks in the background, once the commit that has them is durable.
func (m *Module) launch(tasks []*Task) {
	for _, t := range tasks {
		m.kernel.GoBackground(func() { m.do(t) })
	}
}

// do executes a step, and the steps that follow.
func (m *Module) do(t *Task) {
	select {
	case m.running <- struct{}{}:
	case <-m.kernel.Stopping:
		return
	}
	outcome, later := m.worker.Do(m.kernel.Running, t)
	<-m.running
	if outcome.Reason != "" && m.kernel.Running.Err() != nil {
		return // it may have failed by that: the next start takes it again
	}
	if later > 0 {
		t.Again = true
		t.Try++
		clock.System.AfterFunc(later, func() { m.kernel.GoBackground(func() { m.do(t) }) })
		return
	}
	m.done(t, outcome)
}

// done stores the result of a step, and launches the steps that follow.
func (m *Module) done(t *Task, o stack.Outcome) {
	id, _ := idOf(t.Stack)
	var next []*Task
	err := m.shard.RunDurable(func(*kernel.Tx) error {
		if e := m.byID[id]; e != nil {
			e.Done(m.shard.Now(), t.Logical, t.Token, o)
			next = m.tasks(e, m.save(e))
		}
		return nil
	})
	if err == nil {
		m.launch(next)
	}
}
