// Command console makes the web console's files, internal/console/dist, of its source,
// internal/console/ui. It needs nothing but Go: the bundler is a Go module, and what the
// console has of others lies beside its source.
//
//	cd tools/console && go run .
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/evanw/esbuild/pkg/api"
)

// root is where the repository is, from this directory.
const root = "../.."

func main() {
	built, err := bundle(root)
	if err == nil {
		err = write(filepath.Join(root, "internal/console/dist"), built)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, text := range built {
		fmt.Printf("%s: %d bytes\n", name, len(text))
	}
}

// bundle makes the console's files, by name: its page, its style, its script, and what that
// fetches once it is needed. Each is called after what is in it, but for the page, index.html.
func bundle(root string) (map[string][]byte, error) {
	ui, err := filepath.Abs(filepath.Join(root, "internal/console/ui"))
	if err != nil {
		return nil, err
	}
	of := func(path string) string { return filepath.Join(ui, "third_party", path) }
	result := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: filepath.Join(ui, "src/main.tsx"), OutputPath: "app"}, {InputPath: filepath.Join(ui, "src/main.css"), OutputPath: "style"}},
		Outdir:              filepath.Join(ui, "dist"), AbsWorkingDir: ui, EntryNames: "[name]-[hash]", ChunkNames: "[name]-[hash]", Metafile: true,
		Bundle: true, Splitting: true, Format: api.FormatESModule, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Target: api.ES2022, Engines: []api.Engine{{Name: api.EngineChrome, Version: "123"}, {Name: api.EngineFirefox, Version: "120"}, {Name: api.EngineSafari, Version: "17.5"}},
		Alias: map[string]string{
			"preact": of("preact/preact.mjs"), "preact/hooks": of("preact/hooks.mjs"),
			"@preact/signals": of("signals/signals.mjs"), "@preact/signals-core": of("signals/signals-core.mjs"),
			"uplot": of("uplot/uPlot.esm.js"),
		},
	})
	for _, message := range append(result.Errors, result.Warnings...) {
		text := message.Text
		if at := message.Location; at != nil {
			text = fmt.Sprintf("%s:%d: %s", at.File, at.Line, text)
		}
		err = errors.Join(err, errors.New(text))
	}
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, file := range result.OutputFiles {
		out[filepath.Base(file.Path)] = file.Contents
	}
	text, err := os.ReadFile(filepath.Join(ui, "src/index.html"))
	if err != nil {
		return nil, err
	}
	links, err := links(result.Metafile)
	if err != nil {
		return nil, err
	}
	before, after, found := bytes.Cut(text, []byte("<!-- files -->\n"))
	if !found {
		return nil, errors.New("index.html has no place for the files")
	}
	out[page] = slices.Concat(before, []byte(links), after)
	return out, nil
}

// page is the file that names what is needed at first.
const page = "index.html"

// links has the page load the style and the script, and, without waiting for that, what the
// script begins with.
func links(metafile string) (string, error) {
	var meta struct {
		Outputs map[string]struct {
			EntryPoint string
			Imports    []struct{ Path, Kind string }
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return "", err
	}
	var styles, scripts, preloads string
	for _, name := range slices.Sorted(maps.Keys(meta.Outputs)) {
		output := meta.Outputs[name]
		at := "/_godwit/ui/assets/" + filepath.Base(name)
		switch output.EntryPoint {
		case "src/main.css":
			styles += fmt.Sprintf("<link rel=\"stylesheet\" href=%q>\n", at)
		case "src/main.tsx":
			scripts += fmt.Sprintf("<script type=\"module\" src=%q></script>\n", at)
			for _, needed := range output.Imports { // those import nothing but each other
				if needed.Kind == "import-statement" {
					preloads += fmt.Sprintf("<link rel=\"modulepreload\" href=%q>\n", "/_godwit/ui/assets/"+filepath.Base(needed.Path))
				}
			}
		}
	}
	return styles + preloads + scripts, nil
}

// write keeps the files, compressed, in place of those that were there.
func write(dir string, built map[string][]byte) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.gz"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, text := range built {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".gz"), packed.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
