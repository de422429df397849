package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTables(t *testing.T) {
	r := &report{
		Facts:    []string{"A fact."},
		tables:   []*table{{title: "Send", header: []string{"server", "× r"}, rows: [][]string{{"godwit", "1.25"}, {"r", unknown}}}},
		Verdicts: []verdict{{What: "cheap", Met: true, Says: "1.25 ×"}, {What: "small", Says: "200 MB"}},
	}
	var plain, markdown strings.Builder
	r.text(&plain, false)
	r.text(&markdown, true)
	const wantPlain = `A fact.

Send
server  × r
godwit  1.25
r          –

Against the targets
target          measured
cheap   met     1.25 ×
small   MISSED  200 MB
`
	if plain.String() != wantPlain {
		t.Errorf("plain:\n%s", plain.String())
	}
	for _, want := range []string{"\n### Send\n", "| godwit | 1.25 |\n", "| ------ | ---- |\n", "| small  | MISSED |"} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("no %q in:\n%s", want, markdown.String())
		}
	}
}

func TestFill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + fillBegin + "\nold\n" + fillEnd + "\nafter\n")
	for _, results := range []string{"new", "newer\n"} {
		if err := fill(path, results); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := os.ReadFile(path)
	if want := "before\n" + fillBegin + "\n\nnewer\n\n" + fillEnd + "\nafter\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	write("no markers")
	if err := fill(path, "x"); err == nil {
		t.Error("filled a document without markers")
	}
	if got, _ := os.ReadFile(path); string(got) != "no markers" {
		t.Errorf("a document without markers became %q", got)
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: unknown, -1: unknown, 0.123: "0.12", 1.256: "1.26", 26.04: "26.0", 1234.5: "1234"} {
		if got := figure(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

func TestJudgeCPU(t *testing.T) {
	of := func(r role, cpu float64) result {
		return result{server: &server{name: string(r), role: r}, sample: sample{ServerCPU: cpu}}
	}
	for _, c := range []struct {
		results []result
		want    int
		met     bool
	}{
		{[]result{of(subject, 130), of(durable, 100)}, 1, true},
		{[]result{of(subject, 131), of(durable, 100)}, 1, false},
		{[]result{of(subject, 0), of(durable, 100)}, 1, false}, // not known is not met
		{[]result{of(durable, 100), of(inMemory, 50)}, 0, false},
	} {
		b := &bench{}
		b.judgeCPU("send", "case", 1.3, c.results, durable)
		if len(b.report.Verdicts) != c.want || c.want == 1 && b.report.Verdicts[0].Met != c.met {
			t.Errorf("%v: %+v", c.results, b.report.Verdicts)
		}
	}
}

func TestMeasure(t *testing.T) {
	s := &server{name: "none"}
	count := 0
	out, err := measure(t.Context(), s, 0, time.Minute, []step{func() (work, error) {
		if count == 5 {
			return work{}, errDone
		}
		count++
		return work{messages: 2, due: time.Now().Add(-time.Second)}, nil
	}})
	if err != nil || out.Messages != 10 || out.Requests != 5 {
		t.Errorf("%+v, %v", out, err)
	}
	if out.P50 < 990 || out.P50 > 2000 {
		t.Errorf("latency %v ms does not count from the due time", out.P50)
	}

	broken := errors.New("broken")
	endless := func() (work, error) { return work{messages: 1}, nil }
	if _, err := measure(t.Context(), s, 0, time.Minute, []step{endless, func() (work, error) { return work{}, broken }}); !errors.Is(err, broken) {
		t.Errorf("a failing step gave %v", err)
	}
	if _, err := measure(t.Context(), s, 0, time.Minute, []step{func() (work, error) { return work{}, errDone }}); err == nil {
		t.Error("a window without a message is no error")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := measure(ctx, s, time.Minute, time.Minute, []step{endless}); !errors.Is(err, broken) {
		t.Errorf("a cancelled window gave %v", err)
	}
}

// A stall counts for everything that was due during it, not for one call.
func TestScheduleCountsWaiting(t *testing.T) {
	const stall = 300 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		out, err := schedule(t.Context(), &server{name: "none"}, 1000, stall, []func(time.Time) error{func(time.Time) error {
			if calls++; calls == 1 {
				time.Sleep(stall)
			}
			return nil
		}})
		if err != nil || calls != 300 || out.Messages != 300 {
			t.Fatalf("%d calls, %+v, %v", calls, out, err)
		}
		// The first is due after 1 ms and takes 300. The others are due from then
		// on, one each ms, and done at once when it ends.
		if out.Max != 300 || out.P50 < 147 || out.P50 > 153 {
			t.Errorf("p50 %v ms, max %v ms", out.P50, out.Max)
		}
	})
}

func TestContest(t *testing.T) {
	broken := errors.New("broken")
	of := func(name string, r role, cpu float64, err error) contender {
		return contender{name, &server{name: name, role: r}, func(context.Context) (sample, map[string]float64, error) {
			return sample{ServerCPU: cpu}, map[string]float64{"k": cpu}, err
		}}
	}
	b := &bench{progress: io.Discard, specs: []spec{{role: peer}}}
	results, err := b.contest(t.Context(), "s", "l", 3, []contender{
		of("x", subject, 4, nil), of("bad", peer, 9, broken), of("good", peer, 2, nil),
	})
	if err != nil || len(results) != 2 || results[0].more["k"] != 4 || len(b.report.Facts) != 1 || !strings.Contains(b.report.Facts[0], "bad") {
		t.Errorf("%+v, %v, %q", results, err, b.report.Facts)
	}
	if len(b.report.Records) != 6 {
		t.Errorf("%d records", len(b.report.Records))
	}
	header, cells := b.loadHeader("first"), b.loadCells(results[0], results, "1")
	if len(header) != len(cells) || header[5] != "× peer" || cells[5] != "2.00" {
		t.Errorf("%q\n%q", header, cells)
	}
	if _, err := b.contest(t.Context(), "s", "l", 1, []contender{of("x", subject, 4, broken)}); !errors.Is(err, broken) {
		t.Errorf("a failure of the server gave %v", err)
	}
}

func TestPeers(t *testing.T) {
	for _, good := range []string{"http://127.0.0.1:4566", "http://localhost:1,77", "http://[::1]:9"} {
		if sp, err := parsePeer(good); err != nil || sp.host == "" || strings.HasSuffix(good, ",77") != (sp.pid == 77) {
			t.Errorf("%s: %+v, %v", good, sp, err)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:4566", "http://10.0.0.1:80", "http://sqs.us-east-1.amazonaws.com:80", "http://127.0.0.1", "http://127.0.0.1:1,x"} {
		if sp, err := parsePeer(bad); err == nil {
			t.Errorf("%q was taken: %+v", bad, sp)
		}
	}
}
