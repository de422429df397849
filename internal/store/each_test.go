package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// TestGetEach: each key that exists is found once for each time that it is asked for,
// whatever stands between the keys and in whatever order they come.
func TestGetEach(t *testing.T) {
	s := memory.New()
	var b mutation.Batch
	for i := 10; i < 60; i++ {
		if i%7 != 0 {
			b.Set(fmt.Append(nil, i), fmt.Append(nil, "value ", i))
		}
	}
	if err := s.Apply(false, &b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ keys, want []int }{
		{nil, nil},
		{[]int{12}, []int{12}},
		{[]int{14}, nil},
		{[]int{10, 11, 12, 13}, []int{10, 11, 12, 13}},
		{[]int{13, 14, 15, 16}, []int{13, 15, 16}},
		{[]int{14, 15}, []int{15}},
		{[]int{40, 12, 41, 30, 13}, []int{12, 13, 30, 40, 41}},
		{[]int{20, 21, 28, 35, 36}, []int{20, 36}},
		{[]int{11, 11, 50}, []int{11, 11, 50}},
		{[]int{58, 59, 60, 61}, []int{58, 59}},
		{[]int{70, 80}, nil},
	} {
		var keys [][]byte
		for _, k := range c.keys {
			keys = append(keys, fmt.Append(nil, k))
		}
		var got []int
		if err := store.GetEach(s, keys, func(i int, value []byte) error {
			if string(value) != fmt.Sprint("value ", c.keys[i]) {
				t.Errorf("%v: %q is found for %d", c.keys, value, c.keys[i])
			}
			got = append(got, c.keys[i])
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%v: -want +got:\n%s", c.keys, d)
		}
	}
	stop := errors.New("stop")
	if err := store.GetEach(s, [][]byte{[]byte("12"), []byte("13")}, func(int, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, not what f failed with", err)
	}
}
