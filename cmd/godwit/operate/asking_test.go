package operate

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A person at a terminal is asked before a redrive and a pause; scripts, and who says --yes, are
// not.
func TestAsking(t *testing.T) {
	changes := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			changes++
		}
		_, _ = w.Write([]byte(`{"messages":12}`))
	}))
	t.Cleanup(s.Close)
	c := Connection{Endpoint: s.URL, Output: "table"}
	for name, run := range map[string]func(yes bool, s Streams) error{
		"Move the 12 messages of arn:q? [y/N] ": func(yes bool, s Streams) error { return (&redrive{Connection: c, Queue: "arn:q", Yes: yes}).Run(s) },
		"Stop the deliveries of a\\u001b[2Js? [y/N] ": func(yes bool, s Streams) error {
			return (&pause{Connection: c, Subscription: "a\x1b[2Js", Yes: yes}).Run(s)
		},
	} {
		for _, tt := range []struct {
			terminal, yes, done bool
			typed               string
		}{
			{true, false, true, "y\n"}, {true, false, false, "n\n"}, {true, false, false, ""}, {true, true, true, ""}, {false, false, true, ""},
		} {
			var said bytes.Buffer
			changes = 0
			err := run(tt.yes, Streams{In: strings.NewReader(tt.typed), Out: &bytes.Buffer{}, Err: &said, Terminal: tt.terminal})
			asked := tt.terminal && !tt.yes
			if (err == nil) != tt.done || (changes == 1) != tt.done || asked && said.String() != name || !asked && said.Len() > 0 {
				t.Errorf("%+v: %v, %d changes, %q", tt, err, changes, said.String())
			}
		}
	}
}
