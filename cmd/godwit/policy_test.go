package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const samplePolicy = `{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,"numNoDelayRetries":3,` +
	`"numMinDelayRetries":2,"numMaxDelayRetries":35,"backoffFunction":"exponential"}}`

func TestPolicyPlan(t *testing.T) {
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "policy.json"), filepath.Join(dir, "policy.svg")
	if err := os.WriteFile(file, []byte(samplePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	const sample = "50 retries after the first attempt, over 37 min 9 s (2,229 s)"
	for _, tt := range []struct {
		args  []string
		stdin string
		want  string
		svg   string
	}{
		{[]string{file}, "", sample, ""},
		{[]string{"-"}, samplePolicy, sample, ""},
		{[]string{"--protocol", "sqs"}, "", "100,015 retries after the first attempt, over 23 d 4 h", ""},
		{[]string{"--protocol", "sqs", "-o", "json"}, "", `"retries": 100015,`, ""},
		{[]string{"--protocol=sms"}, "", "50 retries", ""},
		{[]string{file, "--svg", picture}, "", sample, sample},
		{[]string{"--svg", picture}, "", "The four backoff functions", "The four backoff functions"},
	} {
		_ = os.Remove(picture)
		var stdout, stderr bytes.Buffer
		status := run(append([]string{"policy", "plan"}, tt.args...), strings.NewReader(tt.stdin), &stdout, &stderr, time.Now())
		if status != 0 || stderr.Len() != 0 || !strings.Contains(stdout.String(), tt.want) {
			t.Errorf("%v: status %d, %q, %q", tt.args, status, stdout.String(), stderr.String())
		}
		drawn, err := os.ReadFile(picture)
		if (err == nil) != (tt.svg != "") || !strings.Contains(string(drawn), tt.svg) {
			t.Errorf("%v: the picture is %.80q, %v", tt.args, drawn, err)
		}
	}
}

func TestPolicyPlanRefuses(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		stdin  string
		status int
		want   string
	}{
		{nil, "", exitUsage, "want a FILE"},
		{[]string{"-", "--protocol", "sqs"}, "", exitUsage, "want a FILE"},
		{[]string{"--protocol", "pigeon"}, "", exitUsage, "--protocol"},
		{[]string{"/nonexistent/x.json"}, "", 1, "/nonexistent/x.json"},
		{[]string{"-"}, "{", 1, "standard input: want a JSON object"},
		{[]string{"-"}, `{"healthyRetryPolicy":{"numRetries":101}}`, 1, "healthyRetryPolicy.numRetries must be less than or equal to 100"},
		{[]string{"-"}, strings.Repeat(" ", maxPolicy) + "{}", 1, "longer than"},
		{[]string{"--protocol", "sqs", "--svg", "/nonexistent/x.svg"}, "", 1, "/nonexistent/x.svg"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(append([]string{"policy", "plan"}, tt.args...), strings.NewReader(tt.stdin), &stdout, &stderr, time.Now())
		if status != tt.status || !strings.HasPrefix(stderr.String(), "godwit: ") || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%v: status %d, %q; want %d, %q", tt.args, status, stderr.String(), tt.status, tt.want)
		}
	}
}
