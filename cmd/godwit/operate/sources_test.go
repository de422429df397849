package operate

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const oneSource = `{"name":"shop","path":"/in/shop","target":"arn:aws:sqs:us-east-1:000000000000:orders","owner":"arn:aws:iam::000000000000:root",
	"verification":{"kind":"github"},"secrets":2,"paused":%PAUSED%,"problem":null,"changedAt":"2024-02-29T12:00:00Z"}`

func TestSources(t *testing.T) {
	active, paused := strings.Replace(oneSource, "%PAUSED%", "false", 1), strings.Replace(oneSource, "%PAUSED%", "true", 1)
	broken := strings.Replace(active, `"problem":null`, `"problem":"its secrets are to be set anew"`, 1)
	c := server(t, map[string]string{
		"sources": `{"sources":[` + active + `,` + paused + `,` + broken + `],"next":null}`, "source": active,
		"source/pause": paused, "source/resume": active, "source/delete": `{"name":"shop"}`,
	})
	const row = "shop  github       arn:aws:sqs:us-east-1:000000000000:orders  "
	for name, tt := range map[string]struct {
		run  func(Streams) error
		want string
	}{
		"list":            {(&listSources{Connection: c}).Run, row + "active"},
		"a paused one":    {(&listSources{Connection: c}).Run, row + "paused"},
		"a broken one":    {(&listSources{Connection: c}).Run, row + "its secrets are to be set anew"},
		"one":             {(&listSources{Connection: c, Source: "shop"}).Run, "\nsecrets            2\n"},
		"pause":           {(&pauseSource{Connection: c, Source: "shop"}).Run, "paused             true\n"},
		"resume":          {(&resumeSource{Connection: c, Source: "shop"}).Run, "paused             false\n"},
		"delete":          {(&deleteSource{Connection: c, Source: "shop"}).Run, "name  shop\n"},
		"there is no one": {(&listSources{Connection: server(t, map[string]string{"sources": `{"sources":[],"next":null}`})}).Run, "NAME  VERIFIED BY"},
	} {
		var out bytes.Buffer
		if err := tt.run(Streams{Out: &out}); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %v\n%s\nwant:\n%s", name, err, out.String(), tt.want)
		}
	}
	for name, run := range map[string]func(Streams) error{"pause": (&pauseSource{Connection: c, Source: "shop"}).Run, "delete": (&deleteSource{Connection: c, Source: "shop"}).Run} {
		var out, said bytes.Buffer
		if err := run(Streams{In: strings.NewReader("n\n"), Out: &out, Err: &said, Terminal: true}); err == nil || out.Len() > 0 || !strings.Contains(said.String(), "[y/N]") {
			t.Errorf("%s: %v, asked %q, printed %q", name, err, said.String(), out.String())
		}
	}
}

// A source is put as a file has it, YAML or JSON; who would replace one at a terminal is asked;
// and what is wrong with a file is said without what it has, which is secret.
func TestPutSource(t *testing.T) {
	var sent []map[string]any
	known, warning := true, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !known {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"there is no such source"}`)
			return
		}
		if r.Method == http.MethodPost {
			body := map[string]any{}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			sent = append(sent, body)
		}
		answer := strings.Replace(oneSource, "%PAUSED%", "false", 1)
		if warning != "" {
			answer = strings.Replace(answer, `"problem"`, `"warning":"`+warning+`","problem"`, 1)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	c := Connection{Endpoint: s.URL, Output: "table"}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte("name: shop\ntarget: arn:aws:sqs:us-east-1:000000000000:orders\nverification: {kind: github, tolerance: 60}\nsecrets:\n- canary-secret-of-a-source\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	put := func(file, typed string, terminal bool) (string, error) {
		var out, said bytes.Buffer
		err := (&putSource{Connection: c, File: file}).Run(Streams{In: strings.NewReader(typed), Out: &out, Err: &said, Terminal: terminal})
		return out.String() + said.String(), err
	}
	if said, err := put(file, "", false); err != nil || strings.Contains(said, "canary") {
		t.Errorf("%v: %s", err, said)
	}
	if said, err := put("-", `{"name":"shop","verification":{"kind":"github","tolerance":60},"secrets":["canary-secret-of-a-source"]}`, false); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	for i, body := range sent {
		verification, _ := body["verification"].(map[string]any)
		secrets, _ := body["secrets"].([]any)
		if body["name"] != "shop" || verification["kind"] != "github" || verification["tolerance"] != 60.0 || len(secrets) != 1 {
			t.Errorf("%d: %v was sent", i, body)
		}
	}
	if said, err := put(file, "n\n", true); err == nil || !strings.Contains(said, "Replace the source shop? [y/N]") || len(sent) != 2 {
		t.Errorf("%v: %s, %d were sent", err, said, len(sent))
	}
	warning = "its target does not exist"
	if said, err := put(file, "", false); err != nil || !strings.Contains(said, "godwit: warning: its target does not exist\n") {
		t.Errorf("%v: %s", err, said)
	}
	known, warning, sent = false, "", sent[:2]
	if said, err := put(file, "", true); err != nil || len(sent) != 3 {
		t.Errorf("a new one: %v: %s, %d were sent", err, said, len(sent))
	}
	for _, text := range []string{"", "canary-secret", "- canary-secret", "name: [canary-secret", strings.Repeat("canary-secret: 1 #", 1<<17)} {
		if _, err := put("-", text, false); err == nil || strings.Contains(err.Error(), "canary") || !strings.HasPrefix(err.Error(), "-: ") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
