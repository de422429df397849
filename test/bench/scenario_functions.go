package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/test/built"
)

// The targets of functions.
const (
	warmRate   = 5000.0 // invocations a second
	warmP50    = 1.0    // ms, on one connection
	coldBeyond = 50.0   // ms, beside what the process takes by itself
	idleMemory = 50.0   // MB, of all that are defined
)

// runFunctions invokes functions in Go that answer with their event.
func runFunctions(ctx context.Context, b *bench) error {
	specs := b.of(subject, earlier)
	if len(specs) == 0 {
		fmt.Fprintln(b.progress, "# functions: the references have none")
		return nil
	}
	program := filepath.Join(b.dir, "bootstrap")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", program, "./test/handler")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the function: %w\n%s", err, out)
	}
	servers, stop, err := startAll(ctx, specs, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	code, err := packFunction(program)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if len(servers) > 1 {
			break // these have no figure that is compared
		}
		if err := b.idleFunctions(ctx, s, code); err != nil {
			return err
		}
		if err := b.coldFunctions(ctx, s, code, program); err != nil {
			return err
		}
	}
	if err := b.warmFunctions(ctx, servers, code); err != nil {
		return err
	}
	return b.sourceFunction(ctx, servers, code)
}

// packFunction makes a function's code, in base64.
func packFunction(program string) (string, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	code, err := built.Zip(text)
	return base64.StdEncoding.EncodeToString(code), err
}

var createFunction = operation{service: "lambda", path: "/2015-03-31/functions", contentType: "application/json"}

// What speaks the Runtime API in the functions: aws-lambda-go, or as little as can
// be, which leaves the server's part.
const (
	library     = "library"
	bareRuntime = "bare"
)

// makeFunction makes a function that runs code.
func makeFunction(c *conn, name, code, runtime string) error {
	body, err := json.Marshal(map[string]any{
		"FunctionName": name, "Runtime": "provided.al2023", "Handler": "bootstrap", "Role": "arn:aws:iam::000000000000:role/bench",
		"Code": map[string]string{"ZipFile": code}, "Environment": map[string]any{"Variables": map[string]string{"START": runtime}},
	})
	if err != nil {
		return err
	}
	_, err = c.do(&createFunction, body)
	return err
}

func invocation(name string) *operation {
	return &operation{service: "lambda", path: "/2015-03-31/functions/" + name + "/invocations", contentType: "application/json"}
}

// warmFunctions invokes one function on each number of connections.
func (b *bench) warmFunctions(ctx context.Context, servers []*server, code string) error {
	t := &table{
		title:  "Functions: warm",
		note:   "RequestResponse invocations of a function in Go that answers with its event of 100 bytes. Library: with aws-lambda-go. Bare: on a connection of its own, which leaves the server's part. The CPU is that of the server and of the function's processes.",
		header: b.loadHeader("runtime", "conns"),
	}
	b.report.tables = append(b.report.tables, t)
	event := []byte(`{"print":"","text":"` + strings.Repeat("x", 78) + `"}`)
	for _, x := range []struct {
		runtime string
		width   int
	}{{library, 1}, {library, 4}, {library, 16}, {bareRuntime, 1}, {bareRuntime, 16}} {
		width := x.width
		label := fmt.Sprintf("%s conns %d", x.runtime, width)
		results, err := b.compare(ctx, "functions", label, b.rounds, servers, func(ctx context.Context, s *server) (sample, map[string]float64, error) {
			all, release := conns(s, width)
			defer release()
			name := b.newName()
			if err := makeFunction(all[0], name, code, x.runtime); err != nil {
				return sample{}, nil, err
			}
			op := invocation(name)
			steps := make([]step, width)
			for i, c := range all {
				steps[i] = func() (work, error) {
					_, err := c.do(op, event)
					return work{messages: 1}, err
				}
			}
			out, err := measure(ctx, s, b.warm, b.window, steps)
			return out, nil, err
		})
		if err != nil {
			return err
		}
		for _, y := range results {
			t.add(b.loadCells(y, results, x.runtime, strconv.Itoa(width))...)
		}
		y, ok := find(results, subject)
		switch {
		case ok && width == 1:
			b.judge(y.P50 < warmP50, figure(y.P50)+" ms", "warm invocation, %s: median under %.0f ms", x.runtime, warmP50)
		case ok && width == 16:
			b.judge(y.Throughput >= warmRate, figure(y.Throughput)+"/s", "warm invocations, %s: %.0f a second", x.runtime, warmRate)
		}
	}
	return nil
}

// coldFunctions invokes functions for the first time, one after the other, and
// lets their program start by itself as often.
func (b *bench) coldFunctions(ctx context.Context, s *server, code, program string) error {
	c := newConn(s.host)
	defer c.close()
	var cold, own []float64
	for i := range b.cold {
		name := b.newName()
		if err := makeFunction(c, name, code, library); err != nil {
			return err
		}
		began := time.Now()
		if _, err := c.do(invocation(name), []byte("{}")); err != nil {
			return err
		}
		took := milliseconds(time.Since(began))
		alone, err := startAlone(ctx, program)
		if err != nil {
			return err
		}
		if i > 0 { // the first one unpacks the code
			cold, own = append(cold, took), append(own, alone)
		}
	}
	beyond := median(cold) - median(own)
	b.report.Facts = append(b.report.Facts, fmt.Sprintf(
		"Cold start on %s: %.1f ms from the request to the answer, %.1f ms of which the program takes by itself until it asks for work.",
		s.name, median(cold), median(own)))
	b.judge(beyond < coldBeyond, figure(beyond)+" ms", "cold start: under %.0f ms beyond the process's own", coldBeyond)
	return nil
}

// startAlone runs a program until it asks for work, in ms.
func startAlone(ctx context.Context, program string) (float64, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	asked := make(chan time.Time, 1)
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- time.Now()
		<-r.Context().Done()
	})}
	go func() { _ = srv.Serve(l) }()
	defer func() { _ = srv.Close() }()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + l.Addr().String()}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	timer := time.NewTimer(requestTimeout)
	defer timer.Stop()
	select {
	case at := <-asked:
		return milliseconds(at.Sub(began)), nil
	case <-timer.C:
		return 0, errors.New("the function's program does not ask for work")
	}
}

// idleFunctions defines functions, and looks at what they cost.
func (b *bench) idleFunctions(ctx context.Context, s *server, code string) error {
	c := newConn(s.host)
	defer c.close()
	before, _ := memory(s.pid)
	small := idleCode()
	for range b.functions {
		if err := makeFunction(c, b.newName(), small, library); err != nil {
			return err
		}
	}
	if err := pause(ctx, min(b.settle, 10*time.Second)); err != nil {
		return err
	}
	after, _ := memory(s.pid)
	grown := after - before
	processes := len(family(s.pid)) - 1
	b.report.Facts = append(b.report.Facts, fmt.Sprintf("%d functions that are only defined, on %s: %.1f MB, %d processes.", b.functions, s.name, grown, processes))
	b.judge(grown < idleMemory && processes == 0, fmt.Sprintf("%s MB, %d processes", figure(grown), processes),
		"%d functions that are defined and idle: under %.0f MB, and no process", b.functions, idleMemory)
	return nil
}

// idleCode is code that never runs.
func idleCode() string {
	code, err := built.Zip([]byte("#!/bin/sh\n"))
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return base64.StdEncoding.EncodeToString(code)
}
