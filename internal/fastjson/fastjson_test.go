package fastjson

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendStringRoundTrip(t *testing.T) {
	long := strings.Repeat("0123456789", 10)
	for _, s := range []string{
		"", "a", long, long + `"`, `"` + long, long[:7] + "\\" + long, "\x00\x01\x1f\n\r\t\b\f",
		"é", "漢字" + long, "😀", long + "😀" + long, "\u2028", "<&>", "\x7f",
	} {
		got := AppendString([]byte("x"), s)
		var back string
		if err := json.Unmarshal(got[1:], &back); err != nil || back != s {
			t.Errorf("%q was written as %s and read as %q, %v", s, got[1:], back, err)
		}
	}
	if got := string(AppendString(nil, "a\xffb")); got != "\"a\ufffdb\"" {
		t.Errorf("invalid UTF-8 was written as %s", got)
	}
}

// What the scanner accepts as a string, encoding/json reads the same; what
// AppendString writes, the scanner reads.
func FuzzString(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u00e9\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"é"`, "\"\xff\"", ` "x" `, `"`, `"\`, `"\"`, "\"\x01\"", `"12345678\"`, `"a" 1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s := Scan([]byte(in))
		got := s.String()
		if err := s.End(); err == nil {
			var want string
			if err := json.Unmarshal([]byte(in), &want); err != nil || got != want {
				t.Errorf("%q: read as %q; encoding/json: %q, %v", in, got, want, err)
			}
		}
		s = Scan(AppendString(nil, in))
		got = s.String()
		if err := s.End(); err != nil || utf8.ValidString(in) && got != in {
			t.Errorf("%q came back as %q, %v", in, got, err)
		}
	})
}

// The same for structure and numbers.
func FuzzValue(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[1,2]}`, `{}`, `{"a":-0}`, `{"a":01}`, `{"a":1e3}`, `{"b":[]}`, `{"b":[1,]}`, `{"a":1,}`, "{\x00}", `{"a":1}x`, `{"a" 1}`} {
		f.Add(s)
	}
	type value struct {
		A int   `json:"a"`
		B []int `json:"b"`
	}
	f.Fuzz(func(t *testing.T, in string) {
		s := Scan([]byte(in))
		var got value
		for key, ok := s.Object(); ok; key, ok = s.Key() {
			switch string(key) {
			case "a":
				got.A = s.Int()
			case "b":
				got.B = []int{}
				for more := s.Array(); more; more = s.More() {
					got.B = append(got.B, s.Int())
				}
			default:
				s.Fail()
			}
		}
		if s.End() != nil {
			return
		}
		var want value
		if err := json.Unmarshal([]byte(in), &want); err != nil || got.A != want.A || len(got.B) != len(want.B) {
			t.Errorf("%q: read as %+v; encoding/json: %+v, %v", in, got, want, err)
		}
	})
}

func TestUsualIsAccepted(t *testing.T) {
	s := Scan([]byte("{ \"a\" : \"x\\\"y\" ,\n\t\"b\":[ 1 , -20 ] , \"c\" : {} , \"d\": [] }\r\n"))
	var text string
	var sum int
	for key, ok := s.Object(); ok; key, ok = s.Key() {
		switch string(key) {
		case "a":
			text = s.String()
		case "b", "d":
			for more := s.Array(); more; more = s.More() {
				sum += s.Int()
			}
		case "c":
			if _, ok := s.Object(); ok {
				t.Error("an empty object has a key")
			}
		}
	}
	if err := s.End(); err != nil || text != `x"y` || sum != -19 {
		t.Errorf("%q, %d, %v", text, sum, err)
	}
}

func BenchmarkAppendString(b *testing.B) {
	s := strings.Repeat("0123456789abcdef", 64)
	buf := make([]byte, 0, 2048)
	for b.Loop() {
		buf = AppendString(buf[:0], s)
	}
}

func BenchmarkString(b *testing.B) {
	plainText := AppendString(nil, strings.Repeat("0123456789abcdef", 64))
	escaped := AppendString(nil, strings.Repeat(`{"key": "value"}`, 64))
	for name, in := range map[string][]byte{"plain": plainText, "escaped": escaped} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := Scan(in)
				_ = s.String()
			}
		})
	}
}
