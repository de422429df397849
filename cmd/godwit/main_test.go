package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/config"
)

// parse reads flags as run does.
func parse(t *testing.T, args ...string) (*cli, error) {
	t.Helper()
	var flags cli
	parser, err := newParser(&flags)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return &flags, err
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "godwit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The defaults of both modes are promises of the documentation.
func TestDefaults(t *testing.T) {
	want := config.Config{
		Listen: "127.0.0.1:4566", Data: "./godwit-data", Region: "us-east-1", Account: "000000000000",
		AllowPrivateEndpoints: true, Jitter: 0.1, Retry429: true, RetryAfter: true, MaxAlarms: 5000, Metrics: true, Prometheus: true, PrometheusSeries: 1000, DeliveryHistory: time.Hour, LogsMaxBytes: 10 << 30,
		LambdaConcurrency: 1000, LambdaCodeStorage: 80530636800, LambdaIdle: 5 * time.Minute,
		EndpointConcurrency: 50, DeliveryConcurrency: 5000, LogLevel: "warn", LogFormat: config.TextLog,
		Clock: config.SystemClock, Store: config.PebbleStore,
	}
	for _, args := range [][]string{nil, {"dev"}} {
		flags, err := parse(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, flags.Dev.config()); d != "" {
			t.Errorf("godwit %v (-want +got):\n%s", args, d)
		}
	}
	flags, err := parse(t, "serve", "--config", settingsFile(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	want.AllowPrivateEndpoints, want.SQSCooldowns, want.LogLevel = false, true, "info"
	want.Clock, want.Store = "", ""
	if d := cmp.Diff(want, flags.Serve.Config); d != "" {
		t.Errorf("godwit serve (-want +got):\n%s", d)
	}
}

func TestFlagsWithoutACommandAreDevs(t *testing.T) {
	flags, err := parse(t, "--listen", "127.0.0.1:1", "--clock", "virtual", "--store=memory", "--no-retry-429")
	if err != nil {
		t.Fatal(err)
	}
	got := flags.Dev.config()
	if got.Listen != "127.0.0.1:1" || got.Clock != config.VirtualClock || got.Store != config.MemoryStore || got.Retry429 {
		t.Errorf("flags were not taken: %+v", got)
	}
}

// Command line before environment before file before default.
func TestPrecedence(t *testing.T) {
	t.Setenv("GODWIT_REGION", "of-env")
	t.Setenv("GODWIT_LISTEN", "127.0.0.1:2")
	path := settingsFile(t, "listen: 127.0.0.1:3\nregion: of-file\naccount: 012345678901\nretry-429: false\njitter: 0.5\n")
	flags, err := parse(t, "serve", "--config", path, "--listen", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	got := flags.Serve.Config
	if got.Listen != "127.0.0.1:1" || got.Region != "of-env" || got.Account != "012345678901" ||
		got.Retry429 || got.Jitter != 0.5 || got.Data != "./godwit-data" {
		t.Errorf("settings: %+v", got)
	}
}

func TestRefusedStarts(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"production is not built", []string{"serve", "--config", settingsFile(t, "listen: 127.0.0.1:1\n")}, "signature verification is not built yet"},
		{"production without a file", []string{"serve"}, "--config"},
		{"missing file", []string{"serve", "--config", "/nonexistent/x.yaml"}, "/nonexistent/x.yaml"},
		{"unknown setting", []string{"serve", "--config", settingsFile(t, "listen: 127.0.0.1:1\nlissen: x\n")}, `line 2: there is no setting "lissen"`},
		{"virtual clock in production", []string{"serve", "--config", settingsFile(t, "clock: virtual\n")}, `line 1: there is no setting "clock"`},
		{"a file that names a file", []string{"serve", "--config", settingsFile(t, "config: x\n")}, `line 1: there is no setting "config"`},
		{"wrong type in the file", []string{"serve", "--config", settingsFile(t, "jitter: much\n")}, "--jitter"},
		{"unknown flag", []string{"--lissen", "x"}, "--lissen"},
		{"out of range", []string{"dev", "--jitter", "2"}, "--jitter: want a number from 0 to 1"},
		{"unknown clock", []string{"dev", "--clock", "sundial"}, "--clock"},
		{"unknown level", []string{"dev", "--log-level", "loud"}, "--log-level"},
		{"unknown command", []string{"bake"}, "bake"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(tt.args, nil, &stdout, &stderr, time.Now()); status != exitUsage {
				t.Errorf("status %d, want %d", status, exitUsage)
			}
			if !strings.HasPrefix(stderr.String(), "godwit: ") || !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("stderr %q lacks %q", stderr.String(), tt.want)
			}
			if stdout.Len() != 0 {
				t.Errorf("stdout %q", stdout.String())
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for args, want := range map[string]string{
		"--help": "Commands:", "dev --help": "GODWIT_LISTEN", "version": "godwit " + config.Version + " ",
	} {
		var stdout, stderr bytes.Buffer
		if status := run(strings.Fields(args), nil, &stdout, &stderr, time.Now()); status != 0 || stderr.Len() != 0 {
			t.Errorf("%s: status %d, stderr %q", args, status, stderr.String())
		}
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: %q lacks %q", args, stdout.String(), want)
		}
	}
}

func TestLogger(t *testing.T) {
	var b bytes.Buffer
	log := newLogger(config.Config{LogLevel: "warn", LogFormat: config.JSONLog}, &b)
	log.Info("quiet")
	log.Warn("loud")
	if got := b.String(); strings.Contains(got, "quiet") || !strings.Contains(got, `"msg":"loud"`) {
		t.Errorf("log %q", got)
	}
}
