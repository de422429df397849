package sdk_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/config"
)

// The index lists all of Godwit's own that is there and docs/admin-api.md says of it, in that
// order. What other tools ask for is not of it.
func TestAdminIndex(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.Prometheus = true })
	text, err := os.ReadFile("../../docs/admin-api.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(GET|POST) (/_godwit/[a-z_/-]*|/metrics|/_godwit/v1/openapi[.]json)`").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	var listed []string
	for _, p := range admin(t, endpoint+"/_godwit/", "")["paths"].([]any) {
		e := p.(map[string]any)
		method, path := e["method"].(string), e["path"].(string)
		listed = append(listed, method+" "+path)
		if e["does"] == "" {
			t.Errorf("%s %s has no line in the index", method, path)
		}
		if method != http.MethodGet {
			continue
		}
		r := visit(t, endpoint+path)
		if r.Status == http.StatusNotFound {
			t.Errorf("GET %s: %d", path, r.Status)
		}
		link, _, _ := strings.Cut(r.Header.Get("Link"), ">") // of what is deprecated
		successor, _ := e["successor"].(string)
		equal(t, path+" is replaced by", strings.TrimPrefix(link, "<"), successor)
	}
	equal(t, "listed, as documented", documented, listed)
	equal(t, "without the last slash", http.StatusOK, visit(t, endpoint+"/_godwit").Status)
}

// The clock and the faults in force can be read.
func TestAdminReads(t *testing.T) {
	endpoint := start(t)
	createQueue(t, client(endpoint), "q")
	before := admin(t, endpoint+"/_godwit/clock", "")
	equal(t, "kind", "virtual", before["clock"])
	moved := admin(t, endpoint+"/_godwit/clock", `{"advance":"1d"}`)
	after := admin(t, endpoint+"/_godwit/clock", "")
	equal(t, "now", moved["now"], after["now"])
	equal(t, "next", moved["next"], after["next"])
	was, err := time.Parse(time.RFC3339, before["now"].(string))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "a day later", was.Add(24*time.Hour).Format(time.RFC3339Nano), after["now"].(string))

	equal(t, "no faults", map[string]any{"faults": []any{}}, admin(t, endpoint+"/_godwit/faults", ""))
	var set []any
	for _, fault := range []map[string]string{
		{"arn": "arn:aws:lambda:us-east-1:000000000000:*", "fault": "denied"},
		{"arn": "arn:aws:sns:us-east-1:000000000000:*", "fault": "internal"},
		{"arn": queueARN("other"), "fault": "throttled"},
		{"arn": queueARN("q"), "fault": "unavailable"},
	} {
		one := admin(t, endpoint+"/_godwit/faults", `{"arn":"`+fault["arn"]+`","fault":"`+fault["fault"]+`"}`)
		if _, told := one["note"]; told != (fault["arn"] == queueARN("other")) {
			t.Errorf("a fault of %s answers %v", fault["arn"], one)
		}
		delete(one, "note") // it is of that moment
		set = append(set, one)
	}
	equal(t, "faults", map[string]any{"faults": set}, admin(t, endpoint+"/_godwit/faults", ""))
	admin(t, endpoint+"/_godwit/faults", `{"arn":"`+queueARN("q")+`","fault":"none"}`)
	equal(t, "one less", map[string]any{"faults": slices.Clone(set[:3])}, admin(t, endpoint+"/_godwit/faults", ""))

	system := startWith(t, func(c *config.Config) { c.Clock = config.SystemClock })
	if got := admin(t, system+"/_godwit/clock", ""); got["clock"] != "system" || got["next"] != nil {
		t.Errorf("the system clock reads %v", got)
	}
}
