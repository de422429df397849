package subscription

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A put is read as it was written, and what is cut off is not read.
func TestPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Put{Stream: rapid.Uint64().Draw(t, "stream"), Ingested: rapid.Uint64().Draw(t, "ingested"), Times: rapid.SliceOfN(rapid.Uint64Max(1<<60), 1, 20).Draw(t, "times")}
		slices.Sort(p.Times)
		text := p.Encode()
		got, ok := DecodePut(text)
		if !ok || got.Stream != p.Stream || got.Ingested != p.Ingested || !slices.Equal(got.Times, p.Times) {
			t.Fatalf("%v is read as %v", p, got)
		}
		if got, ok := DecodePut(text[:rapid.IntRange(0, len(text)-1).Draw(t, "cut")]); ok && len(got.Times) >= len(p.Times) {
			t.Fatal("what is cut off is read")
		}
	})
}

func read(t *testing.T, p *Part) (m message) {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(p.Body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// noise is text that hardly gets shorter.
func noise(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('0' + r.IntN(64))
	}
	return string(text)
}

// Parts have all events, in their order, and no part is larger than it may be; an event that alone is, is left out.
func TestParts(t *testing.T) {
	for name, tt := range map[string]struct {
		messages    []string
		limit       int
		least, left int
	}{
		"one":         {[]string{"a", "b<>&\u2028"}, 1000, 1, 0},
		"many":        {slices.Repeat([]string{""}, 25_000), 1 << 20, 3, 0},
		"much":        {slices.Repeat([]string{strings.Repeat("x", 1000)}, 3000), 1 << 20, 3, 0},
		"noise":       {slices.Repeat([]string{noise(50_000)}, 9), 150_000, 2, 0},
		"one of them": {[]string{"a", noise(5000), "b"}, 2000, 2, 1},
		"alone":       {[]string{noise(5000)}, 2000, 0, 1},
		"none":        {nil, 1000, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			events := make([]Event, len(tt.messages))
			for i, m := range tt.messages {
				events[i] = Event{ID: "i", Timestamp: int64(i), Message: m, Sequence: uint64(i)}
			}
			parts, left := Parts(Source{"o", "g", "s", "f"}, events, tt.limit)
			if len(parts) < tt.least || left != tt.left {
				t.Errorf("%d parts, %d left", len(parts), left)
			}
			var got []Event
			for i := range parts {
				m := read(t, &parts[i])
				if len(parts[i].Body) > tt.limit || len(m.LogEvents) != parts[i].Events || m.LogEvents[len(m.LogEvents)-1].Timestamp != int64(parts[i].Last) {
					t.Errorf("part %d: %d bytes, %d events, the last %d", i, len(parts[i].Body), parts[i].Events, parts[i].Last)
				}
				got = append(got, m.LogEvents...)
			}
			if len(got) != len(events)-left {
				t.Errorf("%d of %d events", len(got), len(events))
			}
			for _, e := range got {
				if e.Message != tt.messages[e.Timestamp] {
					t.Fatalf("event %d differs", e.Timestamp)
				}
			}
			if !slices.IsSortedFunc(got, func(a, b Event) int { return int(a.Timestamp - b.Timestamp) }) {
				t.Error("they are not in order")
			}
		})
	}
}

// The largest part that may be makes a payload that may be.
func TestEventLimit(t *testing.T) {
	for payload := 1000; payload < 1010; payload++ {
		limit := EventLimit(payload)
		for size, fits := range map[int]bool{limit: true, limit + 3: false} {
			p := Part{Body: make([]byte, size)}
			if got := len(p.Event()); got <= payload != fits {
				t.Errorf("%d bytes make %d of %d", size, got, payload)
			}
		}
	}
}
