package process_test

import (
	"crypto/sha256"
	"testing"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/test/programs"
)

// layer gives the functions that are made from then on a layer of files.
func (l *lab) layer(files map[string]string) {
	zip := zipOf(files)
	sum := sha256.Sum256(zip)
	l.zips[sum] = zip
	l.layers = append(l.layers, function.Layer{SHA256: sum[:]})
}

// Handlers of Python import what layers have, before what the machine has.
func TestPythonLayers(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		l.layer(map[string]string{"python/helper.py": "name = 'first'", "python/both.py": "name = 'first'"})
		l.layer(map[string]string{"python/lib/python3.12/site-packages/packed.py": "name = 'packed'", "python/both.py": "name = 'second'", "python/smtplib.py": "name = 'of a layer'"})
		l.managed(t, "python3.12", "app.handler", map[string]string{"app.py": `
import os, helper, both, packed, smtplib
def handler(event, context):
    return " ".join([helper.name, both.name, packed.name, smtplib.name, str("/opt" == os.environ["GODWIT_LAYERS"])])
`})(`1`, "", `"first second packed of a layer `+map[bool]string{true: "True", false: "False"}[t.Name() == "TestPythonLayers/isolated"]+`"`)
	})
}

// Handlers of Node.js require what layers have for their release, and for any.
func TestNodeLayers(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		l.layer(map[string]string{"nodejs/node_modules/helper/index.js": "exports.name = 'any'", "nodejs/node_modules/newer/index.js": "exports.name = 'any'"})
		l.layer(map[string]string{"nodejs/node20/node_modules/newer/index.js": "exports.name = '20'"})
		l.managed(t, "nodejs20.x", "index.handler", map[string]string{"index.js": `
const helper = require("helper"), newer = require("newer");
exports.handler = async () => [helper.name, newer.name];
`})(`1`, "", `["any","20"]`)
	})
}

// A wrapper may be in a layer, whose programs and libraries are on the paths.
func TestLayerPaths(t *testing.T) {
	each(t, func(t *testing.T, l *lab) {
		l.layer(map[string]string{"wrap": "#!/bin/sh\nexport WRAPPED=$(found)\nexec \"$@\"", "bin/found": "#!/bin/sh\nprintf yes"})
		programs.Allow(t)
		if err := process.Installed(t.Context(), "nodejs20.x"); err != nil {
			programs.Skip(t, err.Error())
		}
		f := l.function(zipOf(map[string]string{"index.js": `
exports.handler = async () => [process.env.WRAPPED, process.env.LD_LIBRARY_PATH.endsWith(process.env.GODWIT_LAYERS + "/lib")];
`}), "nodejs20.x", "index.handler", "AWS_LAMBDA_EXEC_WRAPPER", "/opt/wrap")
		if got := string(l.invoke(t, f, "1").Payload); got != `["yes",true]` {
			t.Error(got)
		}
	})
}

// What a layer has in place of an earlier one's may be of another kind.
func TestLayersOverOneAnother(t *testing.T) {
	l := newLab(t, true)
	l.layer(map[string]string{"a": "file", "b/c": "file", "d": "file"})
	l.layer(map[string]string{"a/in": "dir", "b": "file"})
	out := l.invoke(t, l.bootstrap(), `{"run":"cd \"$GODWIT_LAYERS\"; find . -type f | sort | tr '\\n' ' '"}`)
	if got := string(out.Payload); got != `"./a/in ./b ./d "` {
		t.Error(got)
	}
}
