package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Traces configures the export of OpenTelemetry spans.
type Traces struct {
	Endpoint    string  `name:"trace-endpoint" env:"GODWIT_TRACE_ENDPOINT,OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL" help:"Send traces to this collector of OpenTelemetry, by OTLP over HTTP: http://HOST:4318, to which /v1/traces is added. Without one nothing is traced."`
	HeadersFile string  `name:"trace-headers-file" placeholder:"FILE" help:"Headers that the collector asks for, NAME: VALUE on a line each, readable by their owner only."`
	Ratio       float64 `name:"trace-ratio" default:"1" placeholder:"SHARE" help:"Share of requests that begin a trace, 0 to 1; a request whose caller is in a trace is traced if that is (${default})."`
}

// tracesPath is a collector's path for traces. Source: the OTLP exporters' specification.
const tracesPath = "/v1/traces"

// TracesURL is the URL that spans are sent to; empty: none.
func (t Traces) TracesURL() (string, error) {
	if t.Endpoint == "" {
		return "", nil
	}
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("want http://HOST:PORT or https://HOST, as of a collector that takes OTLP over HTTP")
	case u.User != nil:
		return "", errors.New("what the collector asks for belongs into --trace-headers-file: others on the machine can read flags")
	}
	if path := strings.TrimRight(u.Path, "/"); !strings.HasSuffix(path, tracesPath) {
		u.Path = path + tracesPath
	}
	return u.String(), nil
}

// ParseHeaders parses lines of NAME: VALUE. Empty lines, and those that begin with #, are
// ignored. The error has no value.
func ParseHeaders(text string) (map[string]string, error) {
	all := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !isToken(name) || value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("line %d: want NAME: VALUE", n)
		}
		all[name] = value
	}
	return all, nil
}

// isToken reports whether s is a valid header name. Source: RFC 9110, 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

func (c *Config) checkTraces(check checkFunc) {
	_, err := c.Traces.TracesURL()
	check(err == nil, "trace-endpoint", "%v", err)
	check(c.Traces.Ratio >= 0 && c.Traces.Ratio <= 1, "trace-ratio", "want 0 to 1, have %v", c.Traces.Ratio)
	check(c.Traces.HeadersFile == "" || c.Traces.Endpoint != "", "trace-headers-file", "want --trace-endpoint too")
}
