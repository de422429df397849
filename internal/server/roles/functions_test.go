package roles_test

import (
	"context"
	"errors"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestNotLookedAt: a caller who goes while it is looked up what a role may is not told that it may
// not.
func TestNotLookedAt(t *testing.T) {
	engine := shardtest.Open(t, shard.Options{Journal: journal.Open(journal.Options{Store: memory.New()}), Clock: clock.NewVirtual(began)})
	if _, err := engine.CreateFunction(t.Context(), shardtest.CreateFunction("f", nil), nil); err != nil {
		t.Fatal(err)
	}
	queue := shardtest.QueueARN("q")
	for what, do := range map[string]func(f *roles.Functions, ctx context.Context) error{
		"a destination": func(f *roles.Functions, ctx context.Context) error {
			to := queue.String()
			_, err := f.SetEventInvoke(ctx, function.SetEventInvoke{
				Function: shardtest.FunctionARN("f"), Change: function.EventInvokeChange{OnFailure: &to, Destinations: true},
			})
			return err
		},
		"a mapping": func(f *roles.Functions, ctx context.Context) error {
			_, err := f.CreateMapping(ctx, mapping.Mapping{Function: shardtest.FunctionARN("f"), Queue: queue})
			return err
		},
	} {
		ctx, leave := context.WithCancel(t.Context())
		f := &roles.Functions{Engine: engine, Acting: func(ctx context.Context, _ *function.Target, _ arn.ARN, _ string) (*caller.Caller, error) {
			leave()
			return nil, ctx.Err()
		}}
		if err := do(f, ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
