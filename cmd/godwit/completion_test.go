package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func TestCompletions(t *testing.T) {
	var flags cli
	parser, err := newParser(&flags, kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	names := func(kind, endpoint string) []string { return []string{kind + "-1", endpoint} }
	for words, want := range map[string]string{
		"queu":                            "queues",
		"dlq ":                            "show redrive status",
		"dlq show q":                      "queue-1",
		"queues --sort messages q":        "queue-1",
		"jobs start re":                   "retry redrive",
		"queues --endpoint http://x http": "http://x",
		"queues --wa":                     "--watch",
		"queues --sort ":                  "name messages",
		"queues --sort m":                 "messages",
		"queues --search ":                "",
		"queues -o j":                     "json",
		"topics --ta":                     "--tag",
		"subscriptions --topic t":         "topic-1",
		"subscriptions --state f":         "failing",
		"jobs cancel j":                   "job-1",
		"jobs start redrive q --to q":     "queue-1",
		"jobs start delete q":             "queue-1",
		"jobs start retry s":              "subscription-1",
		"sources s":                       "source-1",
		"sources pause s":                 "source-1",
		"tail q":                          "queue-1",
		"comple":                          "completion",
		"dlq show one q":                  "",
		"queues --endpoint=http://y http": "http://y",
	} {
		got := completions(parser.Model, strings.Split(words, " "), names)
		slices.Sort(got)
		expected := strings.Fields(want)
		slices.Sort(expected)
		if !slices.Equal(got, expected) {
			t.Errorf("%q: %q, want %q", words, got, expected)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out, errors bytes.Buffer
		if status := run([]string{"completion", shell}, strings.NewReader(""), &out, &errors, time.Now()); status != 0 || !strings.Contains(out.String(), "godwit complete") {
			t.Errorf("%s: %d %s%s", shell, status, out.String(), errors.String())
		}
	}
	var out bytes.Buffer
	if status := run([]string{"complete", "--", "dlq", "st"}, strings.NewReader(""), &out, &out, time.Now()); status != 0 || out.String() != "status\n" {
		t.Errorf("%d: %s", status, out.String())
	}
}
