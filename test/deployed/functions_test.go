package deployed_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// base makes a directory of which an image is made that has a shell and both languages, of those
// of this machine: no registry is asked for one.
func base(t *testing.T) string {
	t.Helper()
	need(t, "ldd", "cp", "/usr/bin/node", "/usr/bin/python3")
	dir := t.TempDir()
	library, err := exec.Command("/usr/bin/python3", "-c", "import os; print(os.path.dirname(os.__file__))").Output()
	if err != nil {
		t.Fatal(err)
	}
	of := strings.TrimSpace(string(library))
	programs := []string{"/bin/sh", "/usr/bin/node", "/usr/bin/python3"}
	modules, err := filepath.Glob(filepath.Join(of, "lib-dynload", "*.so"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	shown, err := exec.Command("ldd", append(programs, modules...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)(?:=> |^\s)(/\S+) \(`).FindAllStringSubmatch(string(shown), -1) {
		files[found[1]] = true
	}
	for _, program := range programs {
		files[program] = true
	}
	copied := func(from string) {
		to := filepath.Join(dir, "files", from)
		err := os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil {
			var out []byte
			if out, err = exec.Command("cp", "-rL", from, to).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for file := range files {
		copied(file)
	}
	copied(of)
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY files/ /\nENV PATH=/usr/local/bin:/usr/bin:/bin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// seen is what a function finds where it runs.
type seen struct {
	Data         bool     // whether there is the server's data
	UID          int      // as the function sees it
	Processes    []string // numbers
	Capabilities string   // effective ones, from /proc
}

// languages are functions that look around, by the runtimes that run them.
var languages = map[string]struct{ file, text string }{
	"python3.12": {"index.py", `
import os
def handler(event, context):
    status = open("/proc/self/status").read()
    caps = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")][0]
    return {"Data": os.path.exists("/data"), "UID": os.getuid(), "Processes": [p for p in os.listdir("/proc") if p.isdigit()], "Capabilities": caps}
`},
	"nodejs22.x": {"index.js", `
const fs = require("fs");
exports.handler = async () => ({
  Data: fs.existsSync("/data"), UID: process.getuid(), Processes: fs.readdirSync("/proc").filter((p) => /^\d+$/.test(p)),
  Capabilities: fs.readFileSync("/proc/self/status", "utf8").match(/CapEff:\s*(\w+)/)[1],
});
`},
}

// TestFunctionsImage runs functions in the sandbox, inside of a container of the image that has
// their languages, with the rights that docs/functions.md says it takes.
func TestFunctionsImage(t *testing.T) {
	i := builtBy(t, "Dockerfile.functions", base(t))
	if i.Config.User != "65532:65532" {
		t.Errorf("its user is %s", i.Config.User)
	}
	address := freeAddress(t)
	url := "http://" + address
	c := &container{image: i, writable: true, user: "0:0", functions: true, env: []string{"GODWIT_LISTEN=" + address}, mounts: []mount{{from: i.volume(t, "/data"), to: "/data"}, {to: "/tmp"}}}
	r := c.start(t)
	r.ready(t, http.DefaultClient, url+"/_godwit/ready")
	for runtime, of := range languages {
		invoke(t, url, runtime, of.file, of.text, func(status int, failed, answer string) {
			var s seen
			if err := json.Unmarshal([]byte(answer), &s); err != nil || status != http.StatusOK || failed != "" {
				t.Errorf("%s: %d %s %v: %s", runtime, status, failed, err, answer)
				return
			}
			if s.Data || len(s.Processes) > 3 || strings.Trim(s.Capabilities, "0") != "" {
				t.Errorf("%s: a function sees %+v", runtime, s)
			}
		})
	}
	if status := r.end(t); status != 0 {
		t.Errorf("it ends with %d", status)
	}
}

// invoke makes a function and calls it.
func invoke(t *testing.T, url, runtime, file, text string, then func(status int, failed, answer string)) {
	t.Helper()
	var code bytes.Buffer
	archive := zip.NewWriter(&code)
	w, err := archive.Create(file)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	name := strings.NewReplacer(".", "-").Replace(runtime)
	body, err := json.Marshal(map[string]any{
		"FunctionName": name, "Runtime": runtime, "Handler": "index.handler", "Role": "arn:aws:iam::000000000000:role/any", "Timeout": 60,
		"Code": map[string]any{"ZipFile": code.Bytes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	post := func(path string, body []byte) (*http.Response, string) {
		t.Helper()
		answer, err := http.Post(url+path, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(text)
	}
	if answer, text := post("/2015-03-31/functions", body); answer.StatusCode != http.StatusCreated {
		then(answer.StatusCode, "", text)
		return
	}
	answer, said := post("/2015-03-31/functions/"+name+"/invocations", []byte("{}"))
	then(answer.StatusCode, answer.Header.Get("X-Amz-Function-Error"), said)
}
