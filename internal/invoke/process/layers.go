package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"godwit.dev/godwit/internal/function"
)

// layersTarget is where a function finds its layers. Without isolation that is the machine's, and the layers
// are in the directory that layersVariable names, which is on the search paths.
const (
	layersTarget   = "/opt"
	layersVariable = "GODWIT_LAYERS"
)

// places are directories as a function sees them.
type places struct {
	task string // its code
	lib  string // what runs it
	opt  string // its layers; empty: it has none
}

// acquireLayers unpacks the layers of a function; nil: it has none. Where the interpreter is in the machine's
// /opt, which the layers cover, they get places for it.
func (r *Runner) acquireLayers(ctx context.Context, t *function.Target, l *language) (*code, error) {
	layers, err := r.code.acquireLayers(ctx, t.Layers)
	if err != nil || layers == nil || r.Plain {
		return layers, err
	}
	for _, path := range l.needs {
		if !within(path, layersTarget) || path == layersTarget {
			continue
		}
		if err := makePlace(layers.dir, path); err != nil {
			layers.release()
			return nil, fmt.Errorf("making a place for the interpreter among the layers: %w", err)
		}
	}
	return layers, nil
}

// makePlace makes a file or a directory on which the one of the machine can be bound.
func makePlace(dir, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	name, err := filepath.Rel(layersTarget, path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	return file.Close()
}

// layersDir is the directory of the layers; empty: there are none.
func (e *environment) layersDir() string {
	if e.layers == nil {
		return ""
	}
	return e.layers.dir
}

// bootstrap is the program of a function with a provided runtime, in its code or else in its layers, as the
// function sees it; found says whether it is there.
func (e *environment) bootstrap(task, opt string) (program string, found bool) {
	if _, err := os.Stat(filepath.Join(e.code.dir, bootstrapName)); err == nil || e.layers == nil {
		return filepath.Join(task, bootstrapName), err == nil
	}
	_, err := os.Stat(filepath.Join(e.layers.dir, bootstrapName))
	return filepath.Join(opt, bootstrapName), err == nil
}

// nodePath is where Node.js finds modules besides those beside the code. Source: the Lambda developer guide,
// "Defined runtime environment variables".
func nodePath(runtime string, at places) string {
	release := "node" + strings.TrimSuffix(strings.TrimPrefix(runtime, "nodejs"), ".x")
	return strings.Join([]string{
		filepath.Join(at.opt, "nodejs", release, "node_modules"), filepath.Join(at.opt, "nodejs", "node_modules"),
		filepath.Join(at.lib, "node_modules"), at.lib, at.task,
	}, ":")
}
