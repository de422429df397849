// Command console makes the web console's files, internal/console/dist, of its source,
// internal/console/ui. It needs nothing but Go: the bundler is a Go module, and what the
// console has of others lies beside its source.
//
//	cd tools/console && go run .
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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

// bundle makes the console's files, by name.
func bundle(root string) (map[string][]byte, error) {
	ui, err := filepath.Abs(filepath.Join(root, "internal/console/ui"))
	if err != nil {
		return nil, err
	}
	of := func(path string) string { return filepath.Join(ui, "third_party", path) }
	out := map[string][]byte{}
	for name, entry := range map[string]string{"app.js": "src/main.tsx", "app.css": "src/main.css"} {
		result := api.Build(api.BuildOptions{
			EntryPoints: []string{filepath.Join(ui, entry)},
			Outfile:     filepath.Join(ui, name), AbsWorkingDir: ui,
			Bundle: true, Format: api.FormatIIFE, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
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
		out[name] = result.OutputFiles[0].Contents
	}
	return out, nil
}

// write keeps the files, compressed.
func write(dir string, built map[string][]byte) error {
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
