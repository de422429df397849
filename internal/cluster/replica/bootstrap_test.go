package replica_test

import (
	"errors"
	"testing"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/replica"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// TestBootstrap: a store is founded once, again without effect while it has not led, and is a
// single node's again when it has left.
func TestBootstrap(t *testing.T) {
	st := memory.New()
	fence := func() (f record.Fence, ok bool) {
		t.Helper()
		value, ok, err := st.Get(nil, record.Key(3))
		if err == nil && ok {
			f, err = record.DecodeFence(value)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f, ok
	}
	for range 2 {
		if err := replica.Bootstrap(st, 3); err != nil {
			t.Fatal(err)
		}
	}
	founded, ok := fence()
	if !ok || founded.Epoch != 1 || founded.Number != 1 {
		t.Fatalf("%+v, %v", founded, ok)
	}
	led := founded
	led.Number = 9
	var b mutation.Batch
	led.Put(&b, 3)
	if err := st.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	if err := replica.Bootstrap(st, 3); !errors.Is(err, replica.ErrBootstrapped) {
		t.Errorf("%v", err)
	}
	if f, _ := fence(); f != led {
		t.Errorf("a refused founding left %+v", f)
	}
	if err := replica.Standalone(st, 3); err != nil {
		t.Fatal(err)
	}
	if _, ok := fence(); ok {
		t.Error("it is a replica's still")
	}
}
