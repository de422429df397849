package storetest

import (
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Sets makes a batch of key, value, key, value and so on.
func Sets(kv ...string) *mutation.Batch {
	b := new(mutation.Batch)
	for i := 0; i < len(kv); i += 2 {
		b.Set([]byte(kv[i]), []byte(kv[i+1]))
	}
	return b
}

// Wants fails the test unless a key has a value.
func Wants(t TB, r store.Reader, key, want string) {
	t.Helper()
	if v, ok, err := r.Get(nil, []byte(key)); err != nil || !ok || string(v) != want {
		t.Errorf("Get(%q) = %.40q, %v, %v, want %.40q", key, v, ok, err, want)
	}
}
