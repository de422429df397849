package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTracesURL(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                                     "",
		"http://127.0.0.1:4318":                "http://127.0.0.1:4318/v1/traces",
		"http://127.0.0.1:4318/":               "http://127.0.0.1:4318/v1/traces",
		"https://collector.example/otlp":       "https://collector.example/otlp/v1/traces",
		"https://collector.example/v1/traces/": "https://collector.example/v1/traces/",
	} {
		if got, err := (Traces{Endpoint: endpoint}).TracesURL(); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", endpoint, got, err, want)
		}
	}
	for _, endpoint := range []string{"127.0.0.1:4318", "grpc://collector:4317", "http://", "http://anna:hunter2@collector", "http://collector?key=hunter2", "::"} {
		c := Config{Traces: Traces{Endpoint: endpoint}}
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "--trace-endpoint") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q is refused with %v", endpoint, err)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	got, err := ParseHeaders("Authorization: Bearer a:b c\r\n\n# of the team\nX-Team:  blue \n")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"Authorization": "Bearer a:b c", "X-Team": "blue"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, text := range []string{"Authorization hunter2", "A: 1\n: hunter2", "A B: hunter2", "A:\n", "A: hunter2\x01"} {
		if _, err := ParseHeaders(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q is refused with %v", text, err)
		}
	}
}
