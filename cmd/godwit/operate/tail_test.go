package operate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A tail prints a line for whatever comes, which no stranger's text breaks, and ends with what
// it is of.
func TestTail(t *testing.T) {
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	for event, data := range map[string]string{
		"messages":  `{"messages":[{"sentAt":"2024-02-29T12:00:00Z","messageId":"m","body":%s},{"sentAt":"t","messageId":"n","body":"","refused":%s}]}`,
		"publishes": `{"publishes":[{"publishedAt":"2024-02-29T12:00:00Z","messageId":"m","body":%s},{"publishedAt":"t","messageId":"n","body":%s}]}`,
		"lines":     `{"lines":[{"at":"2024-02-29T12:00:00Z","stream":"m","message":%s},{"at":"t","stream":"n","message":%s}]}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.URL.RawQuery; got != "arn=arn%3Aaws%3Asqs%3Aq&search=x" {
				t.Errorf("it asks for %s", got)
			}
			fmt.Fprintf(w, ": it begins\n\nevent: %s\ndata: "+data+"\n\nevent: gone\ndata: \"x\"\n\n", event, text, text)
		}))
		for _, output := range []string{"text", "json"} {
			var out bytes.Buffer
			err := (&Tail{Endpoint: s.URL, Output: output, Queue: "arn:aws:sqs:q", Search: "x"}).Run(Streams{Out: &out})
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if err == nil || len(lines) != 2 || strings.ContainsFunc(strings.Join(lines, ""), unsafe) {
				t.Errorf("%s as %s: %v: %q", event, output, err, out.String())
			}
			if output == "json" && !json.Valid([]byte(lines[0])) || output == "text" && !strings.HasPrefix(lines[0], `2024-02-29T12:00:00Z  m  =cmd|'/c x'!A1\u001b[2J`) {
				t.Errorf("%s as %s: %q", event, output, lines[0])
			}
		}
		s.Close()
	}
	c := server(t, nil)
	if err := (&Tail{Endpoint: c.Endpoint, Queue: "arn:aws:sqs:q"}).Run(Streams{Out: &bytes.Buffer{}}); err == nil || err.Error() != `there is no \u001b[31msuch thing` {
		t.Errorf("refused: %v", err)
	}
}

// A tail goes on where a stream ended, also one that was cut off, and while the server does not
// answer.
func TestTailGoesOn(t *testing.T) {
	asked := []string{}
	answers := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) {
			fmt.Fprint(w, ": it begins\nid: a\n\nevent: messages\nid: b\ndata: {\"messages\":[{\"body\":\"1\"}]}\n\nevent: messages\nid: c\ndata: {\"messages\":[{\"bo")
		},
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter) {
			fmt.Fprint(w, "event: messages\nid: c\ndata: {\"messages\":[{\"body\":\"2\"}]}\n\n")
		},
		func(w http.ResponseWriter) { fmt.Fprint(w, "event: gone\ndata: \"messages\"\n\n") },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		answers[len(asked)-1](w)
	}))
	defer s.Close()
	var out, told bytes.Buffer
	err := (&Tail{Endpoint: s.URL, Output: "json", Queue: "arn:aws:sqs:q"}).Run(Streams{Out: &out, Err: &told})
	if !errors.Is(err, errGone) || out.String() != "{\"body\":\"1\"}\n{\"body\":\"2\"}\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	if n := strings.Count(told.String(), "trying again\n"); n != 1 {
		t.Errorf("it tells of one interruption %d times: %s", n, told.String())
	}
	if got := strings.Join(asked, ","); got != ",b,b,b,c" {
		t.Errorf("asked for what comes behind %s", got)
	}
	s.Close()
	if err := (&Tail{Endpoint: s.URL, Queue: "arn:aws:sqs:q"}).Run(Streams{Out: &out}); err == nil {
		t.Error("a server that never was there is waited for")
	}
}
