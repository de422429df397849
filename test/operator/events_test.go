package operator_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Changes are reported as they come, each event holds what the document says, and a server that
// stops ends the stream.
func TestEvents(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	w.refused(http.StatusNotFound, http.MethodGet, "events", "arn="+queueARN("none"))
	w.refused(http.StatusBadRequest, http.MethodGet, "events", "arn=x")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.endpoint+prefix+"events?arn="+queueARN("orders"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp := must(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	equal(t, "type", "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewReader(resp.Body)
	doc := document(w)
	schema := doc.operation(t, http.MethodGet, prefix+"events").Responses["200"].Content["text/event-stream"].Schema
	next := func() (name string, data map[string]map[string]any) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if named, ok := strings.CutPrefix(line, "event: "); ok {
				name = strings.TrimSpace(named)
			}
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				var value any
				if err := json.Unmarshal([]byte(text), &value); err != nil {
					t.Fatal(err)
				}
				for _, wrong := range doc.check(schema, value, name) {
					t.Error(wrong)
				}
				data = map[string]map[string]any{}
				_ = json.Unmarshal([]byte(text), &data)
				return name, data
			}
		}
	}
	name, _ := next()
	equal(t, "the first", "overview", name)
	name, data := next()
	equal(t, "the second", "queue", name)
	equal(t, "messages", 0.0, data["queue"]["messages"].(float64))
	w.send(url, "x")
	for {
		if name, data = next(); name == "queue" && data["queue"]["messages"].(float64) == 1 {
			break
		}
	}
	w.stop()
	_, _ = io.Copy(io.Discard, lines) // it ends
}
