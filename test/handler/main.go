// Command handler is a function for tests: a bootstrap of the provided runtimes
// that does what its event asks for.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// event says what the function does. What is not set is not done; the answer
// comes last.
type event struct {
	Print   string `json:"print"`   // to standard output
	Lines   int    `json:"lines"`   // of 1,000 bytes, to standard error
	Leak    string `json:"leak"`    // start `sleep LEAK` away from this process
	Flood   bool   `json:"flood"`   // start what prints without an end
	Write   string `json:"write"`   // into /tmp/kept
	Memory  int    `json:"memory"`  // MiB to fill
	Fill    int    `json:"fill"`    // MiB to write into a file in /tmp
	Sleep   string `json:"sleep"`   // a duration
	Spin    string `json:"spin"`    // a duration to compute for; answer with the processor's time, in ms
	Exit    *int   `json:"exit"`    // status to end with
	Kill    bool   `json:"kill"`    // end with signal 9
	Abort   bool   `json:"abort"`   // end with signal 6, which leaves a core dump where one may be
	Fail    string `json:"fail"`    // the handler's error
	Panic   string `json:"panic"`   // the handler's panic
	Size    int    `json:"size"`    // bytes of the answer
	Raw     string `json:"raw"`     // answer with this, be it JSON or not
	Twice   bool   `json:"twice"`   // answer past the library, and then again
	Context bool   `json:"context"` // answer with what the context says
	Env     bool   `json:"env"`     // answer with the environment
	Read    bool   `json:"read"`    // answer with /tmp/kept
	Fetch   string `json:"fetch"`   // answer with what a URL answers
	Run     string `json:"run"`     // answer with what a command of the shell prints

	Call  *call    `json:"call"`  // answer with what the services answer the function
	Probe []string `json:"probe"` // answer with what comes of trying these URLs
	Load  string   `json:"load"`  // answer with how long Size bytes take to an address and back, in ms
}

func main() {
	switch os.Getenv("START") { // what goes wrong before the first event
	case "exit0":
		os.Exit(0)
	case "exit":
		fmt.Println("cannot start")
		os.Exit(7)
	case "hang":
		time.Sleep(time.Hour)
	case "slow":
		time.Sleep(300 * time.Millisecond)
	case "error":
		report("init/error", `{"errorMessage":"no database","errorType":"StartError"}`)
		time.Sleep(time.Hour)
	case "raw":
		raw()
	case "bare":
		panic(bare())
	}
	lambda.StartWithOptions(handle, options()...)
}

func options() []lambda.Option {
	if os.Getenv("SIGTERM") == "" {
		return nil
	}
	return []lambda.Option{lambda.WithEnableSIGTERM(func() { fmt.Println("told to end") })}
}

// spin keeps a processor busy for d, and reports how much of it this process had.
func spin(d time.Duration) (milliseconds int64, err error) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return 0, err
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	return (after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()) / 1e6, err
}

// fill writes so many MiB into a file.
func fill(megabytes int) error {
	f, err := os.Create(os.TempDir() + "/fill")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 1<<20); megabytes > 0; megabytes-- {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// echo answers with its event, without a copy.
type echo json.RawMessage

func (e echo) MarshalJSON() ([]byte, error) { return e, nil }

func handle(ctx context.Context, in json.RawMessage) (any, error) {
	var e event
	if err := json.Unmarshal(in, &e); err != nil {
		return echo(in), nil // not for us
	}
	fmt.Print(e.Print)
	for i := range e.Lines {
		fmt.Fprintf(os.Stderr, "%06d%s\n", i, strings.Repeat("x", 993))
	}
	if e.Leak != "" {
		leaked := exec.Command("setsid", "sh", "-c", "sleep "+e.Leak+" & sleep "+e.Leak)
		leaked.Stdout, leaked.Stderr = os.Stdout, os.Stderr
		if err := leaked.Start(); err != nil {
			return nil, err
		}
	}
	if e.Flood {
		flood := exec.Command("yes", strings.Repeat("y", 1000))
		flood.Stdout = os.Stdout
		if err := flood.Start(); err != nil {
			return nil, err
		}
	}
	if e.Write != "" {
		if err := os.WriteFile(os.TempDir()+"/kept", []byte(e.Write), 0o600); err != nil {
			return nil, err
		}
	}
	if e.Fill > 0 {
		if err := fill(e.Fill); err != nil {
			return nil, err
		}
	}
	if e.Memory > 0 {
		filled := bytes.Repeat([]byte{1}, e.Memory<<20)
		defer func() { fmt.Print(string(filled[:0])) }()
	}
	if d, err := time.ParseDuration(e.Sleep); err == nil {
		time.Sleep(d)
	}
	if d, err := time.ParseDuration(e.Spin); err == nil {
		return spin(d)
	}
	switch {
	case e.Exit != nil:
		os.Exit(*e.Exit)
	case e.Kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	case e.Abort:
		debug.SetTraceback("crash") // else the runtime ends by an exit
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		time.Sleep(time.Hour)
	case e.Panic != "":
		panic(e.Panic)
	case e.Fail != "":
		return nil, errors.New(e.Fail)
	}
	return answer(ctx, in, e)
}

func answer(ctx context.Context, in json.RawMessage, e event) (any, error) {
	call, _ := lambdacontext.FromContext(ctx)
	switch {
	case e.Call != nil:
		return e.Call.make(ctx)
	case len(e.Probe) > 0:
		return probe(e.Probe), nil
	case e.Run != "":
		out, _ := exec.CommandContext(ctx, "/bin/sh", "-c", e.Run).CombinedOutput()
		return string(out), nil
	case e.Load != "":
		return load(e.Load, e.Size)
	case e.Size > 0:
		return strings.Repeat("y", e.Size-2), nil
	case e.Raw != "":
		report("invocation/"+call.AwsRequestID+"/response", e.Raw)
		os.Exit(0)
	case e.Twice:
		path := "invocation/" + call.AwsRequestID + "/response"
		first, second := report(path, `"first"`), report(path, `"second"`)
		unknown := report("invocation/unknown/response", `"unknown"`)
		_ = os.WriteFile(os.TempDir()+"/kept", fmt.Append(nil, first, second, unknown), 0o600)
		fmt.Println("answered twice")
		os.Exit(0)
	case e.Context:
		deadline, _ := ctx.Deadline()
		return map[string]any{
			"requestId": call.AwsRequestID, "arn": call.InvokedFunctionArn, "client": call.ClientContext,
			"left": time.Until(deadline).Seconds(), "trace": os.Getenv("_X_AMZN_TRACE_ID"),
			"uid": os.Getuid(), "pid": os.Getpid(),
		}, nil
	case e.Env:
		return os.Environ(), nil
	case e.Read:
		text, err := os.ReadFile(os.TempDir() + "/kept")
		return string(text), err
	case e.Fetch != "":
		resp, err := http.Get(e.Fetch)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return resp.Status, nil
	}
	return echo(in), nil
}

// report posts to the Runtime API and returns the status.
func report(path, body string) int {
	resp, err := http.Post("http://"+os.Getenv("AWS_LAMBDA_RUNTIME_API")+"/2018-06-01/runtime/"+path, "application/json", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// raw is a runtime without the library that answers with the event.
func raw() {
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/"
	for {
		resp, err := http.Get(base + "invocation/next")
		if err != nil {
			panic(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		report("invocation/"+resp.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/response", body.String())
	}
}
