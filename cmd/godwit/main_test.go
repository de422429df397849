package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
		AllowPrivateEndpoints: true, Jitter: 0.1, Retry429: true, RetryAfter: true, MaxAlarms: 5000, Metrics: true, Prometheus: true, PrometheusSeries: 1000, DeliveryHistory: time.Hour, LogsMaxBytes: 10 << 30, AuditKeep: 10, FirehoseMaxStreams: 5000, FirehoseMaxBuffer: 1 << 30,
		LambdaConcurrency: 1000, LambdaCodeStorage: 80530636800, LambdaIdle: 5 * time.Minute,
		MinTransferRate: 4096, TransferWindow: 10 * time.Second, MaxStreams: 100, MaxUnreadBytes: 128 << 10,
		FunctionNetwork: "private", FunctionConnections: 4096,
		FunctionIsolation:   config.IsolationNamespaces,
		EndpointConcurrency: 50, DeliveryConcurrency: 5000, LogLevel: "warn", LogFormat: config.TextLog,
		ACMEDirectory: "https://acme-v02.api.letsencrypt.org/directory",
		MailFrom:      "no-reply@godwit.localhost",
		SMS:           config.SMS{Window: 100, Price: "0.00645"},
		Traces:        config.Traces{Ratio: 1},
		Backup:        config.Backup{Interval: 20 * time.Second, Retention: 7 * 24 * time.Hour},
		OIDC:          config.OIDC{Scopes: []string{"openid", "email"}},
		Clock:         config.SystemClock, Store: config.PebbleStore,
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
	want.AllowPrivateEndpoints, want.SQSCooldowns, want.LogLevel, want.FunctionNetwork = false, true, "info", "public"
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

// A list is written with commas, wherever it is written.
func TestLists(t *testing.T) {
	t.Setenv("GODWIT_ALLOWED_HOSTS", "a.example,*.b.example")
	path := settingsFile(t, "cors-origins: http://localhost:3000,https://app.example\n")
	flags, err := parse(t, "serve", "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	got := flags.Serve.Config
	if d := cmp.Diff([]string{"a.example", "*.b.example"}, got.AllowedHosts); d != "" {
		t.Errorf("hosts (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"http://localhost:3000", "https://app.example"}, got.CORSOrigins); d != "" {
		t.Errorf("origins (-want +got):\n%s", d)
	}
}

// A file may have a list as YAML has it, too, whose values may have commas.
func TestListsOfYAML(t *testing.T) {
	flags, err := parse(t, "serve", "--config", settingsFile(t, "console-oidc-scopes: [openid, email, groups]\nconsole-oidc-roles:\n- groups=sre=operators\n- 'team=a,b=watchers'\ncors-origins: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := flags.Serve.Config
	if d := cmp.Diff(config.OIDC{Scopes: []string{"openid", "email", "groups"}, Roles: []string{"groups=sre=operators", "team=a,b=watchers"}}, got.OIDC); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(got.CORSOrigins) > 0 {
		t.Errorf("no origins are %q", got.CORSOrigins)
	}
}

// An empty variable of a flag that is true or false is none.
func TestEmptyBooleans(t *testing.T) {
	for _, name := range []string{"GODWIT_ACCEPT_DATA_LOSS", "GODWIT_RETRY_429", "GODWIT_METRICS"} {
		t.Setenv(name, "")
	}
	flags, err := parse(t, "dev")
	if err != nil {
		t.Fatal(err)
	}
	if got := flags.Dev.Config; got.AcceptDataLoss || !got.Retry429 || !got.Metrics {
		t.Errorf("settings: %+v", got)
	}
	flags, err = parse(t, "serve", "--config", settingsFile(t, "retry-429: false\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := flags.Serve.Config; got.Retry429 || !got.Metrics {
		t.Errorf("with a file: %+v", got)
	}
	t.Setenv("GODWIT_ACCEPT_DATA_LOSS", "true")
	if flags, err = parse(t, "dev"); err != nil || !flags.Dev.Config.AcceptDataLoss {
		t.Errorf("a variable that is not empty: %v", err)
	}
}

func TestRefusedStarts(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"production without a root key", []string{"serve", "--config", settingsFile(t, "listen: 127.0.0.1:1\n")}, "--root-key: there is no root key"},
		{"production with zeros", []string{"serve", "--config", settingsFile(t, "min-transfer-rate: 0\n")}, "--min-transfer-rate: want 1 or more"},
		{"a certificate without a key", []string{"dev", "--tls-cert", "x"}, "--tls-key: want the file"},
		{"certificates for an address", []string{"dev", "--acme-domains", "10.0.0.1"}, "--acme-domains: want names"},
		{"an account with letters", []string{"init", "--dir", "x", "--account", "x"}, "--account: want 12 digits"},
		{"production without a file", []string{"serve"}, "--config"},
		{"missing file", []string{"serve", "--config", "/nonexistent/x.yaml"}, "/nonexistent/x.yaml"},
		{"unknown setting", []string{"serve", "--config", settingsFile(t, "listen: 127.0.0.1:1\nlissen: x\n")}, `line 2: there is no setting "lissen"`},
		{"virtual clock in production", []string{"serve", "--config", settingsFile(t, "clock: virtual\n")}, `line 1: there is no setting "clock"`},
		{"a file that names a file", []string{"serve", "--config", settingsFile(t, "config: x\n")}, `line 1: there is no setting "config"`},
		{"a list in the file", []string{"serve", "--config", settingsFile(t, "region: r\nlisten: [a, b]\n")}, "line 2: listen: want a single value"},
		{"wrong type in the file", []string{"serve", "--config", settingsFile(t, "jitter: much\n")}, "--jitter"},
		{"unknown flag", []string{"--lissen", "x"}, "--lissen"},
		{"out of range", []string{"dev", "--jitter", "2"}, "--jitter: want a number from 0 to 1"},
		{"every origin", []string{"dev", "--cors-origins", "*"}, `--cors-origins: "*" would let every web page run code here`},
		{"no connections of functions", []string{"dev", "--function-connections", "0"}, "--function-connections: want 1 or more"},
		{"no rate", []string{"dev", "--min-transfer-rate", "0"}, "--min-transfer-rate: want 1 or more"},
		{"no streams", []string{"dev", "--max-streams", "0"}, "--max-streams: want 1 or more"},
		{"no bytes that nobody has read", []string{"dev", "--max-unread-bytes", "0"}, "--max-unread-bytes: want 64KiB or more"},
		{"no functions", []string{"dev", "--lambda-concurrency", "0"}, "--lambda-concurrency: want 100 or more"},
		{"no time for functions", []string{"dev", "--lambda-idle", "0s"}, "--lambda-idle: want a duration above 0s"},
		{"no text messages", []string{"dev", "--sms-window", "0"}, "--sms-window: want 1 to 1000"},
		{"no window", []string{"dev", "--transfer-window", "0s"}, "--transfer-window: want 1s or more"},
		{"less than no storage", []string{"dev", "--function-storage=-1"}, "--function-storage: want 0 or more"},
		{"a metadata service for functions", []string{"dev", "--function-allow", "169.254.169.254:80"}, "--function-allow: 169.254.169.254 is never reached"},
		{"a bad port for functions", []string{"dev", "--function-allow", "localhost:http"}, "--function-allow: want HOST:PORT"},
		{"no region", []string{"dev", "--region", "US-East-1"}, `--region: want the name of a region, such as us-east-1, have "US-East-1" (did you mean us-east-1?)`},
		{"no URL", []string{"export", "--endpoint", "foo"}, `--endpoint: want a URL such as http://127.0.0.1:4566, have "foo"`},
		{"no scheme", []string{"backup", "dir", "--endpoint", "127.0.0.1:4566"}, `--endpoint: want a URL`},
		{"no URL to take from", []string{"import", "--from-endpoint", "foo"}, `--from-endpoint: want a URL`},
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
		"--help": "Commands:", "dev --help": "GODWIT_LISTEN", "version": "godwit " + config.Version + " ", "--version": "godwit " + config.Version + " ",
		"help": "Commands:", "help dev": "GODWIT_LISTEN", "help policy plan": "--protocol", "help help": "[<command> ...]",
		"dev -h": "10GiB, 512MiB, 10GB or a number of bytes",
	} {
		var stdout, stderr bytes.Buffer
		if status := run(strings.Fields(args), nil, &stdout, &stderr, time.Now()); status != 0 || stderr.Len() != 0 {
			t.Errorf("%s: status %d, stderr %q", args, status, stderr.String())
		}
		if !strings.Contains(strings.Join(strings.Fields(stdout.String()), " "), want) {
			t.Errorf("%s: %q lacks %q", args, stdout.String(), want)
		}
	}
}

// What is mistyped is reported with what may have been meant, and where to look.
func TestMistypedCommands(t *testing.T) {
	for args, want := range map[string]string{
		"bake":               `there is no command "bake"; godwit help lists the commands`,
		"chekc":              `there is no command "chekc" (did you mean check?); godwit help lists the commands`,
		"--listen :0 salvag": `there is no command "salvag" (did you mean salvage?); godwit help lists the commands`,
		"policy plam":        `there is no command "plam" (did you mean plan?); godwit help policy lists the commands`,
		"policy":             `expected one of "plan", "simulate"; godwit help policy lists the commands`,
		"dev --listen":       `--listen needs a value`,
		"--max-streams":      `--max-streams needs a value`,
		"--lambda-idle":      `--lambda-idle needs a value`,
		"help chekc":         `there is no command "chekc" (did you mean check?); godwit help lists the commands`,
		"dev now":            "unexpected argument now; godwit dev --help lists the flags",
		"--lissen x":         `unknown flag --lissen, did you mean "--listen"?; godwit dev --help lists the flags`,
		"serve":              "missing flags: --config=FILE; godwit serve --help lists the flags",
		"check --dato x":     `unknown flag --dato, did you mean one of "--data", "--at"?; godwit check --help lists the flags`,
	} {
		var stdout, stderr bytes.Buffer
		status := run(strings.Fields(args), nil, &stdout, &stderr, time.Now())
		if status != exitUsage || stderr.String() != "godwit: "+want+"\n" || stdout.Len() != 0 {
			t.Errorf("godwit %s: status %d, %q, %q; want %q", args, status, stdout.String(), stderr.String(), want)
		}
	}
}

// Every flag that is a duration takes days, every one of bytes takes units, on the
// command line, in the environment and in a file; what is wrong names the forms.
func TestUnitsInEveryFlag(t *testing.T) {
	var flags cli
	parser, err := newParser(&flags)
	if err != nil {
		t.Fatal(err)
	}
	durations, bytesFlags := 0, 0
	for _, command := range parser.Model.Children {
		if command.Name != "dev" {
			continue
		}
		for _, flag := range command.Flags {
			var good, bad, forms string
			var want int64
			switch {
			case flag.Target.Type() == reflect.TypeFor[time.Duration]():
				durations++
				good, bad, want, forms = "1d", "1 day", int64(24*time.Hour), `"23d", "1d12h", "90m"`
			case flag.PlaceHolder == "BYTES":
				bytesFlags++
				good, bad, want, forms = "10GiB", "10 gigs", 10<<30, `"10GiB", "512MiB", "10GB"`
			case flag.Target.Kind() == reflect.Int64:
				t.Errorf("--%s is an int64 that is neither a duration nor BYTES", flag.Name)
				continue
			default:
				continue
			}
			if _, err := parse(t, "dev", "--"+flag.Name, bad); err == nil || !strings.Contains(err.Error(), "--"+flag.Name) || !strings.Contains(err.Error(), forms) {
				t.Errorf("--%s %q: %v", flag.Name, bad, err)
			}
			for _, how := range []string{"command line", "environment"} {
				args := []string{"dev"}
				if how == "environment" {
					t.Setenv(flag.Envs[0], good)
				} else {
					args = append(args, "--"+flag.Name, good)
				}
				var got cli
				again, err := newParser(&got)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := again.Parse(args); err != nil {
					t.Errorf("--%s %s by %s: %v", flag.Name, good, how, err)
				}
				if os.Unsetenv(flag.Envs[0]) != nil {
					t.Fatal("unset")
				}
				for _, c := range again.Model.Children {
					for _, f := range c.Flags {
						if c.Name == "dev" && f.Name == flag.Name && f.Target.Int() != want {
							t.Errorf("--%s %s by %s is %d", flag.Name, good, how, f.Target.Int())
						}
					}
				}
			}
		}
	}
	if durations < 4 || bytesFlags < 5 {
		t.Errorf("%d durations and %d sizes: the test looks at nothing", durations, bytesFlags)
	}
	got, err := parse(t, "serve", "--config", settingsFile(t, "delivery-history: 1d12h\nlogs-max-bytes: 512MiB\n"))
	if err != nil || got.Serve.Config.DeliveryHistory != 36*time.Hour || got.Serve.Config.LogsMaxBytes != 512<<20 {
		t.Errorf("a file: %v, %+v", err, got.Serve.Config)
	}
}

// A variable that is no setting is reported, with the one that may be meant. Those that
// are not for Godwit are left alone.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("GODWIT_LISSEN", "127.0.0.1:1")
	t.Setenv("GODWIT_FLUX", "1")
	t.Setenv("GODWIT_DATA", "./elsewhere")
	t.Setenv("GODWIT_SERVICE_HOST", "10.0.0.1") // of Kubernetes, as are these
	t.Setenv("GODWIT_PORT_4566_TCP_ADDR", "10.0.0.1")
	var stdout, stderr bytes.Buffer
	if status := run([]string{"policy", "plan", "--protocol", "sqs"}, nil, &stdout, &stderr, time.Now()); status != 0 {
		t.Fatalf("status %d, %s", status, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	slices.Sort(lines)
	want := []string{
		"godwit: warning: GODWIT_FLUX is not a setting",
		"godwit: warning: GODWIT_LISSEN is not a setting (did you mean GODWIT_LISTEN?)",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

// Each flag's variable is called as the flag is. Where digits were set apart that spelling
// still counts, unless there is the other one, and is reported.
func TestFormerVariables(t *testing.T) {
	var flags cli
	parser, err := newParser(&flags)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Leaves(true) {
		for _, flag := range node.Flags {
			if want := "GODWIT_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_")); len(flag.Envs) > 0 && flag.Envs[0] != want && flag.Envs[0] != "GODWIT_CLUSTER_TOKEN" {
				t.Errorf("--%s of %s has %q, not %s", flag.Name, node.Path(), flag.Envs, want)
			}
		}
	}
	t.Setenv("GODWIT_ARTIFACTS_S_3_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("GODWIT_ARTIFACTS_S_3_HOST_STYLE", "true")
	for _, mode := range []string{"dev", "serve"} {
		got, err := parse(t, mode, "--config", settingsFile(t, "artifacts-s3-endpoint: http://127.0.0.1:3\n"))
		if mode == "dev" {
			got, err = parse(t, mode)
		}
		of := &got.Dev.Config.Artifacts
		if mode == "serve" {
			of = &got.Serve.Config.Artifacts
		}
		if err != nil || of.Endpoint != "http://127.0.0.1:1" || !of.HostStyle {
			t.Errorf("%s by the former names: %+v, %v", mode, of, err)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"policy", "plan", "--protocol", "sqs"}, nil, &stdout, &stderr, time.Now()); status != 0 {
		t.Fatalf("status %d, %s", status, stderr.String())
	}
	if want := "godwit: warning: GODWIT_ARTIFACTS_S_3_ENDPOINT is called GODWIT_ARTIFACTS_S3_ENDPOINT now\n"; !strings.Contains(stderr.String(), want) {
		t.Errorf("no warning: %q", stderr.String())
	}
	t.Setenv("GODWIT_ARTIFACTS_S3_ENDPOINT", "http://127.0.0.1:2")
	if got, err := parse(t, "dev"); err != nil || got.Dev.Config.Artifacts.Endpoint != "http://127.0.0.1:2" {
		t.Errorf("by both names: %+v, %v", got.Dev.Config.Artifacts, err)
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
