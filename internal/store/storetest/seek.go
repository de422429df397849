package storetest

import (
	"errors"
	"fmt"
	"testing"

	"godwit.dev/godwit/internal/store"
)

func testSeek(t *testing.T, e Engine) {
	s := e.open(t)
	apply(t, s, Sets("a", "1", "c", "1", "e", "1", "g", "1"))
	it, err := s.Iter([]byte("b"), []byte("g"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	note := func(ok bool) {
		if !ok {
			got = append(got, "none")
			return
		}
		got = append(got, string(it.Key()))
	}
	note(it.Seek([]byte("a"))) // before the range
	note(it.Seek([]byte("c")))
	note(it.Seek([]byte("d")))
	note(it.Next())
	note(it.Seek([]byte("f")))
	note(it.Seek([]byte("z")))
	if err := it.Close(); err != nil || fmt.Sprint(got) != "[c c e none none none]" {
		t.Errorf("Seek found %q, %v", got, err)
	}
	it, err = s.Iter([]byte("x"), []byte("b")) // an empty range
	if err != nil {
		t.Fatal(err)
	}
	if it.Seek([]byte("c")) {
		t.Error("Seek found something in an empty range")
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}

func testGetEach(t *testing.T, e Engine) {
	s := e.open(t)
	apply(t, s, Sets("a", "1", "c", "2", "cc", "", "e", "4"))
	apply(t, s, Sets("range 1 00000001", "5", "range 2 00000001", "6", "range 2 00000002", "7", "range 3 00000001", "8"))
	for _, c := range []struct {
		keys []string
		want string
	}{
		{nil, ""},
		{[]string{"c"}, "0=2 "},
		{[]string{"b"}, ""},
		{[]string{"e", "a", "b", "c", "d", "cc", "z"}, "1=1 3=2 5= 0=4 "},
		{[]string{"a", "a"}, "0=1 1=1 "},
		{[]string{"range 3 00000001", "range 1 00000001", "range 2 00000001", "range 4 00000001"}, "1=5 2=6 0=8 "},
		{[]string{"range 2 00000002", "range 2 00000001", "range 2 00000003", "range 3 00000001"}, "1=6 0=7 3=8 "},
	} {
		var keys [][]byte
		for _, k := range c.keys {
			keys = append(keys, []byte(k))
		}
		got := ""
		if err := store.GetEach(s, keys, func(i int, value []byte) error {
			got += fmt.Sprintf("%d=%s ", i, value)
			return nil
		}); err != nil || got != c.want {
			t.Errorf("GetEach(%q) = %q, %v; want %q", c.keys, got, err, c.want)
		}
		failed := errors.New("enough")
		if err := store.GetEach(s, keys, func(int, []byte) error { return failed }); (err == nil) != (c.want == "") {
			t.Errorf("GetEach(%q) with a failing function: %v", c.keys, err)
		}
	}
}
