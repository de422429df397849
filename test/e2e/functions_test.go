package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"godwit.dev/godwit/test/built"
)

// handlerZip is the function of test/handler in a zip.
func handlerZip(t *testing.T) []byte {
	t.Helper()
	code, err := built.Function(t.TempDir(), "../..", "test/handler")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// lambda calls an operation of Lambda.
func (p *process) lambda(t *testing.T, method, path string, in any) answer {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.call(t.Context(), method, path, map[string]string{"Authorization": signed("lambda")}, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.status >= http.StatusMultipleChoices {
		t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return a
}

func (p *process) createFunction(t *testing.T, name string, zip []byte) {
	t.Helper()
	p.lambda(t, http.MethodPost, "/2015-03-31/functions", object{
		"FunctionName": name, "Runtime": "provided.al2023", "Handler": "x", "Role": "arn:aws:iam::" + account + ":role/r",
		"Code": object{"ZipFile": base64.StdEncoding.EncodeToString(zip)},
	})
}

// marked counts the processes with a text in their command lines, and with them
// those whose parent is pid.
func marked(t *testing.T, mark string, pid int) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		status, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		if strings.Contains(string(line), mark) || strings.Contains(string(status), "\nPPid:\t"+strconv.Itoa(pid)+"\n") {
			n++
		}
	}
	return n
}

// What functions started is gone once the server is, however that comes, even
// what had left its parent, its group and its session.
func TestNoProcessOutlivesTheServer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("functions run on Linux only")
	}
	zip := handlerZip(t)
	for name, end := range map[string]func(t *testing.T, p *process){
		"kill": func(_ *testing.T, p *process) { p.kill() },
		"shutdown": func(t *testing.T, p *process) {
			p.terminate(t)
			if status := p.exit(t); status != 0 {
				t.Errorf("status %d: %s", status, p.stderr.String())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			p := startAt(t, freeAddress(t), data)
			p.createFunction(t, "f", zip)
			p.createFunction(t, "g", zip)
			mark := fmt.Sprintf("2%d%d.5", os.Getpid(), len(name))
			for _, f := range []string{"f", "g"} {
				a := p.lambda(t, http.MethodPost, "/2015-03-31/functions/"+f+"/invocations", object{"leak": mark})
				if a.header.Get("X-Amz-Function-Error") != "" {
					t.Fatalf("%s", a.body)
				}
			}
			pid := p.cmd.Process.Pid
			eventually(t, "a keeper and two sleeps of each function run", func() (bool, error) {
				n := marked(t, mark, pid)
				return n >= 6, fmt.Errorf("%d run", n)
			})
			end(t, p)
			eventually(t, "every process ends", func() (bool, error) {
				n := marked(t, mark, pid)
				return n == 0, fmt.Errorf("%d are left", n)
			})
			if name == "shutdown" {
				if left, _ := filepath.Glob(filepath.Join(data, "functions", "*")); len(left) > 0 {
					t.Errorf("files are left: %v", left)
				}
			}
			// What is left of an unclean end is no hindrance.
			again := startAt(t, p.addr, data)
			again.lambda(t, http.MethodPost, "/2015-03-31/functions/f/invocations", object{})
			if runs, _ := filepath.Glob(filepath.Join(data, "functions", "run", "*")); len(runs) != 1 {
				t.Errorf("directories of environments: %v", runs)
			}
		})
	}
}
