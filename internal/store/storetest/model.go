package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// model is the simplest possible store: engines are compared with it.
type model map[string]entry

type entry struct {
	value string
	sets  int // since the key last did not exist
}

func (m model) apply(t TB, batches ...*mutation.Batch) {
	for _, b := range batches {
		err := b.Each(func(op mutation.Op, key, value []byte) error {
			k := string(key)
			switch op {
			case mutation.Set:
				m[k] = entry{string(value), m[k].sets + 1}
			case mutation.Delete, mutation.SingleDelete:
				delete(m, k)
			case mutation.DeleteRange:
				maps.DeleteFunc(m, func(k string, _ entry) bool { return k >= string(key) && k < string(value) })
			}
			return nil
		})
		if err != nil {
			t.Fatalf("Each: %v", err)
		}
	}
}

// check compares all of r with the model.
func (m model) check(t TB, r store.Reader) {
	t.Helper()
	m.checkRange(t, r, "", "", false)
}

// checkRange compares the keys of r in [lower, upper) with the model's.
func (m model) checkRange(t TB, r store.Reader, lower, upper string, bounded bool) {
	t.Helper()
	var end []byte
	if bounded {
		end = []byte(upper)
	}
	var want, got strings.Builder
	var up []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k >= lower && (!bounded || k < upper) {
			fmt.Fprintf(&want, "%q = %q\n", k, m[k].value)
		}
	}
	for k, v := range Range(t, r, []byte(lower), end) {
		fmt.Fprintf(&got, "%q = %q\n", k, v)
		up = append(up, string(k))
	}
	if want.String() != got.String() {
		t.Fatalf("in [%q, %q):\n%s\nwant:\n%s", lower, end, got.String(), want.String())
	}
	it, err := r.Iter([]byte(lower), end)
	if err != nil {
		t.Fatalf("Iter: %v", err)
	}
	var down []string
	for it.Prev() {
		down = append(down, string(it.Key()))
	}
	slices.Reverse(down)
	if err := it.Close(); err != nil || !slices.Equal(up, down) {
		t.Fatalf("down from %q to %q: %q, %v; up: %q", end, lower, down, err, up)
	}
}

// keys collide often, and one is a prefix of others.
var keys = rapid.OneOf(
	rapid.SampledFrom([]string{"a", "aa", "a\x00", "a\xff", "b", "\x00", "\xff", "\xff\xff"}),
	rapid.StringMatching(`[a-d]{1,3}`),
)

var values = rapid.OneOf(
	rapid.StringN(0, 8, 16),
	rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("v", n) }),
)

// drawBatch makes a batch that is legal after m, and does not change m.
func drawBatch(t *rapid.T, m model) *mutation.Batch {
	after := maps.Clone(m)
	all := new(mutation.Batch)
	for range rapid.IntRange(0, 6).Draw(t, "writes") {
		b := new(mutation.Batch)
		key := []byte(keys.Draw(t, "key"))
		switch rapid.SampledFrom([]mutation.Op{
			mutation.Set, mutation.Set, mutation.Set, mutation.Delete, mutation.SingleDelete, mutation.DeleteRange,
		}).Draw(t, "op") {
		case mutation.Set:
			b.Set(key, []byte(values.Draw(t, "value")))
		case mutation.Delete:
			b.Delete(key)
		case mutation.SingleDelete:
			if after[string(key)].sets != 1 {
				continue
			}
			b.SingleDelete(key)
		case mutation.DeleteRange:
			b.DeleteRange(key, []byte(keys.Draw(t, "end"))) // the end may be below the start
		}
		after.apply(t, b)
		all.Append(b)
	}
	return all
}
