package process_test

import (
	"strings"
	"testing"

	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/test/programs"
)

// A function of a managed runtime is started by the wrapper script that AWS_LAMBDA_EXEC_WRAPPER
// names, which is given the interpreter and its arguments. Provided runtimes have none, as with AWS.
func TestWrapper(t *testing.T) {
	programs.Allow(t)
	const runtime = "python3.11"
	if err := process.Installed(t.Context(), runtime); err != nil {
		programs.Skip(t, err.Error())
	}
	each(t, func(t *testing.T, l *lab) {
		files := map[string]string{
			"index.py": "import os, sys\ndef handler(e, c): return [os.environ.get('WRAPPED'), sys.flags.dont_write_bytecode]",
			"wrap":     "#!/bin/sh\nexport WRAPPED=\"$(basename \"$1\") $#\"\nexec \"$@\"\n",
			"quiet/":   "",
		}
		for _, c := range []struct{ wrapper, functionError, answer, log string }{
			{"", "", `[null, 1]`, ""},
			{"/var/task/wrap", "", `["python3.11 4", 1]`, ""},
			{"/var/task/absent", "Unhandled", "exit status 127", "/absent: does not exist"},
			{"/var/task/quiet", "Unhandled", "exit status 127", "/quiet: does not exist"},
		} {
			f := l.function(zipOf(files), runtime, "index.handler", "AWS_LAMBDA_EXEC_WRAPPER", c.wrapper)
			out := l.invoke(t, f, "1")
			if log := l.log(); out.FunctionError != c.functionError || !strings.Contains(string(out.Payload), c.answer) || !strings.Contains(log, c.log) {
				t.Errorf("%q: %q %s\n%s", c.wrapper, out.FunctionError, out.Payload, log)
			}
		}
		bootstrap := "#!/bin/sh\nexit 7\n"
		out := l.invoke(t, l.function(zipOf(map[string]string{"bootstrap": bootstrap, "wrap": files["wrap"]}), "provided.al2023", "x", "AWS_LAMBDA_EXEC_WRAPPER", "/var/task/absent"), "1")
		if !strings.Contains(string(out.Payload), "exit status 7") {
			t.Errorf("a provided runtime: %s", out.Payload)
		}
	})
}
