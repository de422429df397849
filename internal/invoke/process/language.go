package process

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/fault"
)

// language is how functions of a runtime are started.
type language struct {
	managed     bool     // by us: AWS_EXECUTION_ENV is set
	interpreter string   // absolute; empty: the code's own bootstrap
	script      string   // in the runtime directory
	flags       []string // of the interpreter
	needs       []string // directories that the interpreter needs to see
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
var found struct {
	sync.Mutex
	languages map[string]language
}

// find says how functions of a runtime are started here.
func find(runtime string) (language, error) {
	if strings.HasPrefix(runtime, "provided.") {
		return language{}, nil
	}
	found.Lock()
	defer found.Unlock()
	if l, ok := found.languages[runtime]; ok {
		if _, err := os.Stat(l.interpreter); err == nil {
			return l, nil
		}
	}
	l, err := look(runtime)
	if err != nil {
		return language{}, err
	}
	if found.languages == nil {
		found.languages = map[string]language{}
	}
	found.languages[runtime] = l
	return l, nil
}

func look(runtime string) (language, error) {
	var names []string
	var ask []string // makes an interpreter say where it is and what it needs
	l := language{managed: true}
	version, isPython := strings.CutPrefix(runtime, "python")
	switch {
	case isPython:
		names = []string{"python" + version, "python3"}
		ask = []string{"-c", "import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')"}
		l.script, l.flags = "bootstrap.py", []string{"-B", "-u"}
	case strings.HasPrefix(runtime, "nodejs"):
		names = []string{"node"}
		ask = []string{"-p", "process.execPath"}
		l.script, l.flags = "bootstrap.mjs", []string{"--no-warnings"}
	default:
		return language{}, fault.Newf(fault.InvalidRuntime, "The runtime %s cannot run on this server.", runtime)
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// What is in the PATH may be a script that chooses a version.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		answer, err := exec.CommandContext(ctx, path, ask...).Output()
		cancel()
		lines := strings.Fields(string(answer))
		if err != nil || len(lines) == 0 || !filepath.IsAbs(lines[0]) {
			continue
		}
		if l.interpreter, err = filepath.EvalSymlinks(lines[0]); err != nil {
			continue
		}
		l.needs = append(lines[1:], l.interpreter)
		return l, nil
	}
	return language{}, fault.Newf(fault.InvalidRuntime,
		"The runtime %s needs %s, which is not installed on this server.", runtime, fmt.Sprintf("%s in the PATH", strings.Join(names, " or ")))
}
