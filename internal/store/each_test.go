package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/keyspace"
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
	if err := s.Apply(store.NoSync, &b); err != nil {
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
}

// counted counts the iterators of a store.
type counted struct {
	store.Store
	iterators int
}

func (c *counted) Iter(lower, upper []byte) (store.Iterator, error) {
	c.iterators++
	return c.Store.Iter(lower, upper)
}

// Keys next to each other are found by one iterator, those of many ranges by none.
func TestGetEachOfRanges(t *testing.T) {
	for _, c := range []struct {
		keys      string
		iterators int
	}{
		{"a-00000001", 0},
		{"a-00000001 a-00000002", 1},
		{"a-00000001 b-00000001", 0},
		{"a-00000001 a-00000009 b-00000001 b-00000002", 1},
		{"a-00000001 b-00000001 c-00000001 c-00000002", 0},
		{"a-1 a-11111111 a-111111111 a-111111111111", 0},
	} {
		s := &counted{Store: memory.New()}
		var b mutation.Batch
		var keys [][]byte
		for key := range strings.FieldsSeq(c.keys) {
			keys = append(keys, []byte(key))
			b.Set([]byte(key), []byte(key))
		}
		if err := s.Apply(store.NoSync, &b); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := store.GetEach(s, keys, func(i int, value []byte) error {
			n++
			if string(value) != string(keys[i]) {
				t.Errorf("%s: %q is found for %q", c.keys, value, keys[i])
			}
			return nil
		}); err != nil || n != len(keys) || s.iterators != c.iterators {
			t.Errorf("%s: %v, %d keys, %d iterators", c.keys, err, n, s.iterators)
		}
	}
}

// TestStop: an error of the callback ends a walk and comes back as it is, ErrStop ends it without
// an error, and what the store fails with at the end is not lost.
func TestStop(t *testing.T) {
	s := memory.New()
	var b mutation.Batch
	for i := range 4 {
		b.Set([]byte{byte(i)}, []byte{byte(i)})
	}
	if err := s.Apply(store.NoSync, &b); err != nil {
		t.Fatal(err)
	}
	span := keyspace.Span{Lower: []byte{1}}
	failed, damaged := errors.New("failed"), errors.New("damaged")
	for name, walk := range map[string]func(r store.Reader, f func(value []byte) error) error{
		"Each": func(r store.Reader, f func(value []byte) error) error {
			return store.Each(r, span, func(key, value []byte) error { return f(value) })
		},
		"EachDown": func(r store.Reader, f func(value []byte) error) error {
			return store.EachDown(r, span, func(key, value []byte) error { return f(value) })
		},
		"GetEach": func(r store.Reader, f func(value []byte) error) error {
			return store.GetEach(r, [][]byte{{1}, {2}, {3}}, func(_ int, value []byte) error { return f(value) })
		},
	} {
		for _, c := range []struct {
			of, closes error // what the callback returns for the second key, and the iterator in the end
			want       []error
			seen       int
		}{
			{nil, nil, nil, 3},
			{nil, damaged, []error{damaged}, 3},
			{store.ErrStop, nil, nil, 2},
			{store.ErrStop, damaged, []error{damaged}, 2},
			{failed, nil, []error{failed}, 2},
			{failed, damaged, []error{failed, damaged}, 2},
		} {
			seen := 0
			err := walk(closing{s, c.closes}, func(value []byte) error {
				if seen++; name == "EachDown" && int(value[0]) != 4-seen || name != "EachDown" && int(value[0]) != seen {
					t.Errorf("%s: key %d is %d", name, seen, value[0])
				}
				if seen == 2 {
					return c.of
				}
				return nil
			})
			if seen != c.seen || (err == nil) != (len(c.want) == 0) || errors.Is(err, store.ErrStop) {
				t.Errorf("%s, with %v and %v: %d keys, %v", name, c.of, c.closes, seen, err)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) || len(c.want) == 1 && err != want { //nolint:errorlint // as it is
					t.Errorf("%s, with %v and %v: %v", name, c.of, c.closes, err)
				}
			}
		}
	}
	if err := store.GetEach(s, [][]byte{{1}}, func(int, []byte) error { return store.ErrStop }); err != nil {
		t.Errorf("a single key: %v", err)
	}
	if err := store.GetEach(s, [][]byte{{1}}, func(int, []byte) error { return failed }); err != failed { //nolint:errorlint // as it is
		t.Errorf("a single key: %v", err)
	}
}

// TestEachOf: the keys come taken apart, an error of the callback names the record, and a key that
// is not of the kind, or of none, is an error and not passed over.
func TestEachOf(t *testing.T) {
	s := memory.New()
	set := func(keys ...string) {
		var b mutation.Batch
		for _, key := range keys {
			b.Set([]byte(key), []byte("value of "+key))
		}
		if err := s.Apply(store.NoSync, &b); err != nil {
			t.Fatal(err)
		}
	}
	set("jr1", "jr2", "wra")
	jobs := keyspace.Prefix([]byte{keyspace.JobSpace})
	of := func(f func(k *keyspace.Key, value []byte) error) error {
		return store.EachOf(s, keyspace.KindJob, jobs, f)
	}
	parsed := func(f func(k *keyspace.Key, value []byte) error) error {
		return store.EachParsed(s, keyspace.Span{}, f)
	}
	for _, c := range []struct {
		walk func(f func(k *keyspace.Key, value []byte) error) error
		want string
	}{{of, "job 1, job 2, "}, {parsed, "job 1, job 2, source a, "}} {
		got := ""
		if err := c.walk(func(k *keyspace.Key, value []byte) error {
			if string(value) != "value of "+string(k.Encoded()) {
				t.Errorf("the value of %q is %q", k.Encoded(), value)
			}
			job, _ := k.Text("job")
			_, _, name := k.Named()
			got += map[keyspace.ID]string{keyspace.KindJob: "job ", keyspace.KindSource: "source "}[k.ID] + job + name + ", "
			return nil
		}); err != nil || got != c.want {
			t.Errorf("%q, %v", got, err)
		}
		failed := errors.New("failed")
		if err := c.walk(func(*keyspace.Key, []byte) error { return failed }); !errors.Is(err, failed) || err.Error() != `job of an operator, what it looks for sealed: "jr1": failed` {
			t.Errorf("%v", err)
		}
		if err := c.walk(func(*keyspace.Key, []byte) error { return store.ErrStop }); err != nil {
			t.Errorf("%v", err)
		}
	}
	for _, key := range []string{"j", "jx3"} {
		set(key)
		n := 0
		count := func(*keyspace.Key, []byte) error { n++; return nil }
		if err := of(count); !errors.Is(err, keyspace.ErrKey) || err.Error() != fmt.Sprintf("keyspace: an unreadable key: job of an operator, what it looks for sealed: %q", key) {
			t.Errorf("%q: %v", key, err)
		}
		if err := parsed(count); !errors.Is(err, keyspace.ErrUnknown) {
			t.Errorf("%q: %v", key, err)
		}
		if want := map[string]int{"j": 0, "jx3": 4}[key]; n != want {
			t.Errorf("%q: %d of %d keys before it", key, n, want)
		}
		var b mutation.Batch
		b.Delete([]byte(key))
		if err := s.Apply(store.NoSync, &b); err != nil {
			t.Fatal(err)
		}
	}
}

// closing is a Reader whose iterators fail with an error in the end.
type closing struct {
	store.Reader
	err error
}

func (c closing) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := c.Reader.Iter(lower, upper)
	return closingIterator{it, c.err}, err
}

type closingIterator struct {
	store.Iterator
	err error
}

func (c closingIterator) Close() error {
	if err := c.Iterator.Close(); err != nil {
		return err
	}
	return c.err
}
