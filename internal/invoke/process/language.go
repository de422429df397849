package process

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

// language says how functions of a runtime are started.
type language struct {
	managed     bool     // by us: AWS_EXECUTION_ENV is set
	interpreter string   // absolute; empty: bootstrap in the code
	script      string   // in the runtime directory
	flags       []string // of the interpreter
	needs       []string // directories that the interpreter requires
	version     string   // of the interpreter: "3.11", "v22"
}

//go:embed runtime
var runtimes embed.FS

// writeRuntimes writes the scripts that run handlers.
func writeRuntimes(dir string) error {
	entries, err := runtimes.ReadDir("runtime")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := runtimes.ReadFile("runtime/" + e.Name())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name()), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// found are the interpreters that were found, by the runtime's name.
var found = struct {
	searching chan struct{} // holds a token while languages is used
	languages map[string]language
}{searching: make(chan struct{}, 1), languages: map[string]language{}}

// searchTime bounds how long an interpreter takes to tell its version and its path.
const searchTime = 10 * time.Second

// find returns how functions of a runtime are started here.
func find(ctx context.Context, runtime string) (language, error) {
	if strings.HasPrefix(runtime, "provided.") {
		return language{}, nil
	}
	select {
	case found.searching <- struct{}{}:
	case <-ctx.Done():
		return language{}, ctx.Err()
	}
	defer func() { <-found.searching }()
	if l, ok := found.languages[runtime]; ok {
		if _, err := os.Stat(l.interpreter); err == nil {
			return l, nil
		}
	}
	l, err := findLanguage(ctx, runtime)
	if err != nil {
		return language{}, err
	}
	found.languages[runtime] = l
	return l, nil
}

func findLanguage(ctx context.Context, runtime string) (language, error) {
	var names []string
	var ask []string // arguments that make an interpreter print its path and its directories
	l := language{managed: true}
	version, isPython := strings.CutPrefix(runtime, "python")
	switch {
	case isPython:
		names = []string{"python" + version, "python3"}
		ask = []string{"-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.executable, sys.prefix, sys.base_prefix, sep='\\n')"}
		l.script, l.flags = "bootstrap.py", []string{"-B", "-u"}
	case strings.HasPrefix(runtime, "nodejs"):
		names = []string{"node"}
		ask = []string{"-p", "process.version.split('.')[0] + '\\n' + process.execPath"}
		l.script, l.flags = "bootstrap.mjs", []string{"--no-warnings"}
	default:
		return language{}, ErrRuntime.With(runtime)
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// The program in the PATH may be a script that selects a version.
		asking, cancel := context.WithTimeout(ctx, searchTime)
		command := exec.CommandContext(asking, path, ask...)
		command.WaitDelay = time.Second // for its output, which what it has started may hold
		answer, err := command.Output()
		cancel()
		if ctx.Err() != nil {
			return language{}, ctx.Err()
		}
		lines := strings.Fields(string(answer))
		if err != nil || len(lines) < 2 || !filepath.IsAbs(lines[1]) {
			continue
		}
		if l.interpreter, err = filepath.EvalSymlinks(lines[1]); err != nil {
			continue
		}
		l.version, l.needs = lines[0], append(lines[2:], l.interpreter)
		return l, nil
	}
	return language{}, ErrNotInstalled.With(runtime, strings.Join(names, " or "))
}

// other reports whether the interpreter is of another version than the runtime's name says.
func (l *language) other(runtime string) bool {
	want, isPython := strings.CutPrefix(runtime, "python")
	if !isPython {
		want = "v" + strings.TrimSuffix(strings.TrimPrefix(runtime, "nodejs"), ".x")
	}
	return l.managed && l.version != want
}

// The libraries that functions can import, as the directory of Options.Libraries has
// them.
const (
	nodeLibraries   = "nodejs/node_modules"
	pythonLibraries = "python"
)

// What runs Python looks for libraries in this directory beside itself. Node.js looks in
// each node_modules above a function's code.
const (
	pythonTarget = "/var/runtime/python"
	nodeTarget   = "/var/node_modules"
)

// libraries are the binds that make the libraries of a directory visible to a language;
// what the directory does not have is left out.
func (l *language) libraries(dir string) []sandbox.Bind {
	bind := sandbox.Bind{Source: filepath.Join(dir, nodeLibraries), Target: nodeTarget}
	if l.python() {
		bind = sandbox.Bind{Source: filepath.Join(dir, pythonLibraries), Target: pythonTarget}
	}
	if info, err := os.Stat(bind.Source); dir == "" || !l.managed || err != nil || !info.IsDir() {
		return nil
	}
	return []sandbox.Bind{bind}
}

func (l *language) python() bool { return l.script == "bootstrap.py" }
func (l *language) node() bool   { return l.script == "bootstrap.mjs" }

// variables are the additional environment variables of a language.
func (l *language) variables(lib string) map[string]string {
	if !l.python() {
		return nil
	}
	return map[string]string{"PYTHONPATH": lib}
}

// wrapperVariable names a wrapper script, which starts the interpreter.
const wrapperVariable = "AWS_LAMBDA_EXEC_WRAPPER"

// wrapping starts a wrapper, $0, with a command. It checks and says what AWS's runtimes do.
const wrapping = `if [ ! -f "$0" ]; then echo "$0: does not exist"; exit 127; fi
if [ ! -x "$0" ]; then echo "$0: is not an executable"; exit 126; fi
exec "$0" "$@"`

// wrapped is a command that a wrapper is given to start; without a wrapper it is the command.
// Where /var/task is not the function's code, task stands for it, and opt for /opt, if there are layers.
func wrapped(wrapper, task, opt string, command []string) []string {
	if wrapper == "" {
		return command
	}
	if rest, ok := strings.CutPrefix(wrapper, "/var/task/"); ok {
		wrapper = filepath.Join(task, rest)
	} else if rest, ok := strings.CutPrefix(wrapper, layersTarget+"/"); ok && opt != "" {
		wrapper = filepath.Join(opt, rest)
	}
	return append([]string{"/bin/sh", "-c", wrapping, wrapper}, command...)
}

// findLibraries is the absolute path of a directory of libraries. It fails if there
// are none in it.
func findLibraries(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, part := range []string{nodeLibraries, pythonLibraries} {
		if info, err := os.Stat(filepath.Join(dir, part)); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("functions' libraries: %s has neither %s nor %s", dir, nodeLibraries, pythonLibraries)
}

// linkLibraries makes the libraries visible to functions without isolation.
func linkLibraries(dir, libraries string) error {
	if libraries == "" {
		return nil
	}
	return errors.Join(
		os.Symlink(filepath.Join(libraries, nodeLibraries), filepath.Join(dir, filepath.Base(nodeTarget))),
		os.Symlink(filepath.Join(libraries, pythonLibraries), filepath.Join(dir, "runtime", filepath.Base(pythonTarget))),
	)
}
