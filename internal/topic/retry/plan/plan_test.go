package plan

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/topic/retry"
)

var update = flag.Bool("update", false, "write the golden files")

const sample = `{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,` +
	`"numNoDelayRetries":3,"numMinDelayRetries":2,"numMaxDelayRetries":35,"backoffFunction":"exponential"},` +
	`"defaultThrottlePolicy":{"maxReceivesPerSecond":1500}}}`

func plans(t *testing.T) map[string]Plan {
	t.Helper()
	out := map[string]Plan{}
	for name, document := range map[string]string{
		"sample":      sample,
		"hundred":     `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":70,"numRetries":100,"backoffFunction":"geometric"}}`,
		"no-retries":  `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":0}}`,
		"one-retry":   `{"healthyRetryPolicy":{"minDelayTarget":600,"maxDelayTarget":600,"numRetries":1}}`,
		"no-delay":    `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":2,"numNoDelayRetries":2}}`,
		"of-defaults": `{"throttlePolicy":{"maxReceivesPerSecond":1}}`,
	} {
		p, err := Of(name+".json", document)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = p
	}
	for _, protocol := range []string{"sqs", "sms", "https"} {
		out[protocol], _ = OfProtocol(protocol)
	}
	return out
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", name, d)
	}
}

func TestText(t *testing.T) {
	for name, p := range plans(t) {
		var b bytes.Buffer
		if err := p.Text(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", b.Bytes())
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: a line of %d columns: %s", name, n, line)
			}
		}
	}
	var b bytes.Buffer
	if err := FunctionsText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "functions.txt", b.Bytes())
}

func TestSVG(t *testing.T) {
	for name, p := range plans(t) {
		p.Name += ` <&">`
		var b bytes.Buffer
		if err := p.SVG(&b); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, name, b.String())
		golden(t, name+".svg", b.Bytes())
	}
	var b bytes.Buffer
	if err := FunctionsSVG(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, "functions", b.String())
	golden(t, "../../../../../docs/backoff-functions.svg", b.Bytes()) // README shows it
}

func wellFormed(t *testing.T, name, document string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(document))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if strings.Contains(document, "NaN") || strings.Contains(document, "Inf") || strings.Contains(document, "%!") {
		t.Errorf("%s: a value that is none", name)
	}
}

// TestEveryRetryIsInThePlan: runs hide none.
func TestEveryRetryIsInThePlan(t *testing.T) {
	for name, p := range plans(t) {
		n, at := 0, time.Duration(0)
		for _, s := range stepsOf(p.Policy) {
			if s.first != n+1 {
				t.Errorf("%s: retry %d follows %d", name, s.first, n)
			}
			n, at = s.last, s.until
		}
		if n != p.Policy.NumRetries || at != p.Policy.Total() {
			t.Errorf("%s: %d retries over %s, want %d over %s", name, n, at, p.Policy.NumRetries, p.Policy.Total())
		}
		n = 0
		for _, c := range columnsOf(p.Policy) {
			if n += c.omitted; c.omitted == 0 {
				if n++; c.retry != n {
					t.Errorf("%s: the picture has retry %d in place of %d", name, c.retry, n)
				}
			}
		}
		if n != p.Policy.NumRetries {
			t.Errorf("%s: the picture has %d of %d retries", name, n, p.Policy.NumRetries)
		}
	}
	if got := (Plan{Policy: retry.AWSManaged}).summary(); got != "100,015 retries after the first attempt, over 23 d 4 h (2,000,050 s)" {
		t.Errorf("AWS-managed: %s", got)
	}
}

func TestOfRefuses(t *testing.T) {
	for document, want := range map[string]string{
		"":        "want a JSON object",
		"null":    "want a JSON object",
		"[]":      "want a JSON object",
		"{":       "want a JSON object",
		`{"x":1}`: "Unexpected JSON member: x",
		`{"http":{"defaultHealthyRetryPolicy":{"numRetries":101}}}`:                         "http.defaultHealthyRetryPolicy.numRetries must be less than or equal to 100",
		`{"healthyRetryPolicy":{"minDelayTarget":37,"maxDelayTarget":37,"numRetries":100}}`: "total retry time",
	} {
		if _, err := Of("x", document); err == nil || !strings.Contains(refusal.Text(err), want) {
			t.Errorf("%s: %v, want %q", document, err, want)
		}
	}
	if _, ok := OfProtocol("pigeon"); ok {
		t.Error("pigeons have a policy")
	}
}

func FuzzOf(f *testing.F) {
	f.Add(sample)
	f.Add(`{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":70,"numRetries":100,"backoffFunction":"geometric"}}`)
	f.Fuzz(func(t *testing.T, document string) {
		p, err := Of("x", document)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if p.Text(&b) != nil || p.SVG(&b) != nil {
			t.Error("a policy that cannot be shown")
		}
		wellFormed(t, document, b.String()[strings.Index(b.String(), "<svg"):])
	})
}
