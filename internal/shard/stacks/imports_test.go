package stacks_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/template"
	"godwit.dev/godwit/internal/store/memory"
)

// gate makes what it is asked for; "delete A" and the like fail, or wait.
type gate struct {
	mu    sync.Mutex
	fails map[string]bool
	waits map[string]chan struct{}
}

func (g *gate) Do(ctx context.Context, t *stacks.Task) (o stack.Outcome, later time.Duration) {
	g.mu.Lock()
	what := string(t.Action) + " " + t.Logical
	fails, wait := g.fails[what], g.waits[what]
	g.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return stack.Outcome{Reason: "ended"}, 0
		}
	}
	o = stack.Outcome{Physical: t.Target.Physical, Attributes: map[string]any{"Arn": "arn:" + t.Target.Physical}}
	if fails {
		o.Reason = "no"
	}
	return o, 0
}

// arnOf is the ARN of the nth stack of a test.
func arnOf(name string, n int) string {
	return fmt.Sprintf("arn:aws:cloudformation:us-east-1:000000000000:stack/%s/11111111-2222-4333-8444-%012d", name, n)
}

func requestOf(t *testing.T, name, id, text string) stack.Request {
	t.Helper()
	read, err := template.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := stack.Bind(read, &stack.Stack{ID: id, Name: name, Account: account, Region: region}, &stack.Input{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Request{Design: stack.Designed(bound), OnFailure: stack.OnFailureRollback}
}

func madeStack(t *testing.T, m *stacks.Module, name string, n int, text string) {
	t.Helper()
	id := arnOf(name, n)
	if _, err := m.Create(t.Context(), &stacks.Creation{ID: id, Name: name, Account: account, Region: region, Body: []byte(text), Request: requestOf(t, name, id, text)}); err != nil {
		t.Fatal(err)
	}
}

func updated(t *testing.T, m *stacks.Module, name string, n int, text string) {
	t.Helper()
	o := requestOf(t, name, arnOf(name, n), text)
	if _, err := m.Update(t.Context(), account, region, name, []byte(text), &o); err != nil {
		t.Fatal(err)
	}
}

// idle waits until nothing of a stack is under way, and wants a status then.
func idle(t *testing.T, m *stacks.Module, id string, want stack.Status) {
	t.Helper()
	for {
		v, err := m.Get(account, region, id)
		if err != nil {
			t.Fatal(err)
		}
		if !v.Status.Busy() {
			if v.Status != want {
				t.Fatalf("%s: %s", v.Status, v.Reason)
			}
			return
		}
		runtime.Gosched()
	}
}

const (
	exporting = "Resources: {Q: {Type: AWS::SQS::Queue}}\nOutputs: {O: {Value: !GetAtt Q.Arn, Export: {Name: shared}}}"
	importing = "Resources: {R: {Type: AWS::SQS::Queue, Properties: {Tags: [{Key: k, Value: !ImportValue shared}]}}, S: {Type: AWS::SQS::Queue, DependsOn: R}}"
	aloof     = "Resources: {R: {Type: AWS::SQS::Queue}}"
)

// An update that is rolled back does not use the exports any more that it was to use, nor does one go
// on using those, behind a restart, that it has given up.
func TestImportsGivenUp(t *testing.T) {
	st := memory.New()
	g := &gate{fails: map[string]bool{"create S": true}, waits: map[string]chan struct{}{}}
	with(t, st, nil, func(_ *kernel.Kernel, m *stacks.Module) {
		m.Start(g)
		madeStack(t, m, "exporter", 1, exporting)
		idle(t, m, arnOf("exporter", 1), stack.CreateComplete)
		madeStack(t, m, "importer", 2, aloof)
		idle(t, m, arnOf("importer", 2), stack.CreateComplete)
		updated(t, m, "importer", 2, importing)
		idle(t, m, arnOf("importer", 2), stack.UpdateRollbackDone)
		if users := m.Importers(account, region, "shared"); len(users) > 0 {
			t.Errorf("behind a rollback %q use the export", users)
		}
		g.fails = map[string]bool{}
		updated(t, m, "importer", 2, importing)
		idle(t, m, arnOf("importer", 2), stack.UpdateComplete)
		if users := m.Importers(account, region, "shared"); len(users) != 1 {
			t.Errorf("%q use the export", users)
		}
		g.waits["update R"] = make(chan struct{})
		updated(t, m, "importer", 2, aloof)
	})
	with(t, st, nil, func(_ *kernel.Kernel, m *stacks.Module) {
		m.Start(&gate{})
		idle(t, m, arnOf("importer", 2), stack.UpdateComplete)
		if users := m.Importers(account, region, "shared"); len(users) > 0 {
			t.Errorf("behind a restart %q use the export", users)
		}
	})
}

// What is exported by a stack that is being deleted cannot be imported any more, and is nobody else's
// yet.
func TestImportOfWhatIsDeleted(t *testing.T) {
	g := &gate{waits: map[string]chan struct{}{"delete Q": make(chan struct{})}}
	with(t, memory.New(), nil, func(_ *kernel.Kernel, m *stacks.Module) {
		m.Start(g)
		madeStack(t, m, "exporter", 1, exporting)
		idle(t, m, arnOf("exporter", 1), stack.CreateComplete)
		if err := m.Delete(t.Context(), account, region, "exporter", &stack.Request{}); err != nil {
			t.Fatal(err)
		}
		madeStack(t, m, "importer", 2, importing)
		idle(t, m, arnOf("importer", 2), stack.RollbackComplete)
		madeStack(t, m, "other", 3, strings.NewReplacer("Q:", "P:", "Q.Arn", "P.Arn").Replace(exporting))
		idle(t, m, arnOf("other", 3), stack.RollbackComplete)
		close(g.waits["delete Q"])
		idle(t, m, arnOf("exporter", 1), stack.DeleteComplete)
	})
}
