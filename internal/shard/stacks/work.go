package stacks

import (
	"context"
	"log/slog"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/stack"
)

// Task is a step with the stack that it is for.
type Task struct {
	stack.Step

	Stack, Name, Account, Region string // ARN, name and home of the stack
	// By is who acts; where there is a Role, it acts as that.
	By   *caller.Caller
	Role string
	Tags []stack.Tag
	// Root is the ARN of the stack above all that it is nested in, itself if in none; Depth is
	// how many those are.
	Root         string
	Depth        int
	Capabilities []string
	// Try counts how often the step was put off.
	Try int
}

// Creates reports that a token is of the creation of another resource of a step's stack, in the
// phase under way.
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

// IsGone reports that a service does not have what it is asked for, whichever service it is.
func IsGone(err error) bool {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.QueueDoesNotExist, fault.ResourceNotFound, fault.NoSuchEntity, fault.KMSNotFound:
		return true
	default:
		return false
	}
}

// Worker takes steps. What it makes is durable when it returns.
type Worker interface {
	// Do takes a step. later, if it is not 0, says that it cannot be taken now, and to try
	// again then.
	Do(ctx context.Context, t *Task) (o stack.Outcome, later time.Duration)
}

// Start has steps taken from now on, those first that were under way when the process before
// ended.
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
				if e.Design, err = m.designOf(e, &e.Source, nil); err != nil {
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

// tasks are steps with what a Worker needs to know.
func (m *Module) tasks(e *entry, steps []stack.Step) []*Task {
	tasks := make([]*Task, 0, len(steps))
	root := e.Root
	if root == "" {
		root = e.ID
	}
	for _, s := range steps {
		tasks = append(tasks, &Task{
			Step: s, Stack: e.ID, Name: e.Name, Account: e.Account, Region: e.Region, By: e.By, Role: e.Source.Role, Tags: e.Source.Tags,
			Root: root, Depth: e.Depth, Capabilities: e.Source.Capabilities,
		})
	}
	return tasks
}

// launch has tasks done in the background, once the commit that says so is durable.
func (m *Module) launch(tasks []*Task) {
	if m.worker == nil {
		return // Start gives them again
	}
	for _, t := range tasks {
		m.kernel.GoBackground(func() { m.do(t) })
	}
}

// do takes a step, and what follows from it.
func (m *Module) do(t *Task) {
	select {
	case m.running <- struct{}{}:
	case <-m.kernel.Stopping:
		return
	}
	outcome, later := m.worker.Do(context.Background(), t)
	<-m.running
	if later > 0 {
		t.Again = true
		t.Try++
		clock.System.AfterFunc(later, func() { m.kernel.GoBackground(func() { m.do(t) }) })
		return
	}
	m.done(t, outcome)
}

// done notes what came of a step, and has what follows done.
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
