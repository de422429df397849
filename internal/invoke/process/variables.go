package process

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
)

// userName is what functions' users are called.
const userName = "sbx_user1051"

// writePasswd gives the function's user a name, for what looks itself up.
func (e *environment) writePasswd() error {
	path, ok := followed("/etc/passwd")
	if !ok {
		return nil
	}
	machine, _ := os.ReadFile(path) // none knows nobody
	own := fmt.Sprintf("%s:x:%d:%d::/home/%[1]s:/sbin/nologin\n", userName, e.user, e.user)
	if err := os.WriteFile(filepath.Join(e.dir, "passwd"), append([]byte(own), machine...), 0o644); err != nil {
		return fmt.Errorf("naming a function's user: %w", err)
	}
	e.passwd = path
	return nil
}

// The address where X-Ray's libraries send traces: nobody listens there, and the traces are
// lost.
const (
	tracing     = "169.254.100.1"
	tracingPort = "2000"
)

// variables are the process's environment variables. The function's configuration overrides
// ours where AWS allows it.
func (e *environment) variables(api string, at places, configured map[string]string) []string {
	t, task, lib := e.target, at.task, at.lib
	opt := cmp.Or(at.opt, layersTarget)
	v := map[string]string{
		"PATH":                     "/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:" + opt + "/bin",
		"LD_LIBRARY_PATH":          "/var/lang/lib:/lib64:/usr/lib64:" + lib + ":" + lib + "/lib:" + task + ":" + task + "/lib:" + opt + "/lib",
		"PWD":                      task,
		"SHLVL":                    "0",
		"LANG":                     "en_US.UTF-8",
		"TZ":                       ":UTC",
		"AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
	}
	if e.language.managed {
		maps.Copy(v, e.language.variables(lib))
	} else {
		v["GOMAXPROCS"] = strconv.Itoa(min(processors(t.MemoryMB), runtime.NumCPU()))
	}
	if e.language.node() && at.opt != "" {
		v["NODE_PATH"] = nodePath(t.Runtime, at)
	}
	if !e.runner.Plain {
		v["AWS_ENDPOINT_URL"] = e.runner.Network.Endpoint()
	} else if e.runner.Endpoint != "" {
		v["AWS_ENDPOINT_URL"] = e.runner.Endpoint
	}
	maps.Copy(v, configured)
	own := map[string]string{
		"_HANDLER":                        t.Handler,
		"AWS_REGION":                      t.Function.Region,
		"AWS_DEFAULT_REGION":              t.Function.Region,
		"AWS_LAMBDA_FUNCTION_NAME":        t.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     t.Version,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(t.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_RUNTIME_API":          api,
		"AWS_XRAY_DAEMON_ADDRESS":         tracing + ":" + tracingPort,
		"_AWS_XRAY_DAEMON_ADDRESS":        tracing,
		"_AWS_XRAY_DAEMON_PORT":           tracingPort,
		"LAMBDA_TASK_ROOT":                task,
		"LAMBDA_RUNTIME_DIR":              lib,
	}
	c := e.credentials.Load()
	if c == nil { // requests are the account's, if signatures are not verified
		c = &invoke.Credentials{AccessKey: t.Function.Account, Secret: "godwit-secret", Token: "godwit-session"}
	}
	own["AWS_ACCESS_KEY_ID"], own["AWS_SECRET_ACCESS_KEY"], own["AWS_SESSION_TOKEN"] = c.AccessKey, c.Secret, c.Token
	own["AWS_LAMBDA_LOG_GROUP_NAME"], own["AWS_LAMBDA_LOG_STREAM_NAME"] = e.out.Stream()
	if t.Logging.Format == function.JSONLogs {
		own["AWS_LAMBDA_LOG_FORMAT"], own["AWS_LAMBDA_LOG_LEVEL"] = t.Logging.Format, t.Logging.ApplicationLevel
	}
	if e.language.managed {
		own["AWS_EXECUTION_ENV"] = "AWS_Lambda_" + t.Runtime
	}
	if at.opt != "" {
		own[layersVariable] = at.opt
	}
	maps.Copy(v, own)
	list := make([]string, 0, len(v)+1)
	for name, value := range v {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// memoryOfProcessor is the memory for which AWS gives a function a processor, in MB.
// Source: the Lambda developer guide, "Configure Lambda function memory".
const memoryOfProcessor = 1769

// processors is how many processors a function of so much memory can keep busy at
// AWS, where a program finds at least two and has less than one. A program in Go
// that counts on more of them spends up to a fifth of its time looking for work.
func processors(megabytes int) int {
	return max(1, (megabytes+memoryOfProcessor-1)/memoryOfProcessor)
}
