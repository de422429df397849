// Command godwit serves the wire APIs of SQS, SNS, Lambda, Firehose, CloudWatch, CloudFormation,
// IAM and KMS on one port, and delivers what it has acknowledged. Without arguments it is "godwit
// dev".
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
)

// exitUsage is the exit code of a start that cannot succeed by a retry: bad flags, or files
// that are missing or unsafe.
const exitUsage = 2

type cli struct {
	Dev     dev             `cmd:"" default:"withargs" help:"Serve for development: any credentials, private endpoints allowed. The default."`
	Serve   serve           `cmd:"" help:"Serve for production: every request signed, and allowed by policies."`
	Init    initialise      `cmd:"" help:"Make what godwit serve starts from: settings, root key, access key of the root user."`
	Keys    keys            `cmd:"" help:"Change the keys that a server starts from."`
	Check   check           `cmd:"" help:"Look for damage in a data directory that no server has open, or in a backup."`
	Salvage salvage         `cmd:"" help:"Copy what can be read of a damaged data directory into a new one."`
	Backup  makeBackup      `cmd:"" help:"Make a backup of a server while it runs."`
	Restore restore         `cmd:"" help:"Make a data directory of a backup."`
	Export  exportResources `cmd:"" help:"Print the queues, topics, subscriptions and alarms of a server as a file."`
	Apply   applyResources  `cmd:"" help:"Have a server have what a file of resources has."`
	Import  importResources `cmd:"" help:"Take resources from another server of AWS's APIs."`
	Cluster clusters        `cmd:"" help:"Look at a cluster."`
	Policy  policy          `cmd:"" help:"Look at delivery policies."`

	Queues        operate.Queues        `cmd:"" help:"List the queues of a server, or show one."`
	Topics        operate.Topics        `cmd:"" help:"List topics, or show one."`
	Subscriptions operate.Subscriptions `cmd:"" help:"List subscriptions; pause and resume them."`
	Deliveries    operate.Deliveries    `cmd:"" help:"List the deliveries of a subscription; have a restored server begin with them."`
	Messages      operate.Messages      `cmd:"" help:"Show messages of a queue, without touching them."`
	Tail          operate.Tail          `cmd:"" help:"Print what comes to a queue, a topic or a log group, without touching it."`
	DLQ           operate.DLQ           `cmd:"" name:"dlq" help:"Look at dead letters, and move them back."`
	Functions     operate.Functions     `cmd:"" help:"List functions, or show one."`
	Sources       operate.Sources       `cmd:"" help:"List sources of posts; make, pause and delete them."`
	Jobs          operate.Jobs          `cmd:"" help:"Do something to all messages or deliveries that meet a condition."`
	Doctor        operate.Doctor        `cmd:"" help:"Tell what needs a person; the status is 1 if anything is critical."`

	Completion completion `cmd:"" help:"Print what a shell reads to complete this command's lines."`
	Complete   complete   `cmd:"" hidden:""`
	Man        man        `cmd:"" help:"Write manual pages of all commands."`

	Version version `cmd:"" help:"Print the version."`
	Help    help    `cmd:"" help:"Print the help of a command."`

	ShowVersion kong.VersionFlag `name:"version" env:"-" help:"Print the version."`

	Variables []string          `kong:"-"` // names of all settings in the environment
	Former    map[string]string `kong:"-"` // of those that are set under a former name
}

type dev struct {
	Config config.Config `kong:"embed,set='private_endpoints=true',set='function_network=private',set='cooldowns=false',set='log_level=warn'"`

	Clock config.ClockKind `enum:"system,virtual" default:"system" help:"Clock to run on: ${enum} (${default}). A virtual one moves only by POST /_godwit/v1/clock."`
	Store config.StoreKind `enum:"pebble,memory" default:"pebble" help:"What keeps the state: ${enum} (${default})."`

	Nodes int `default:"1" placeholder:"N" help:"Try out a cluster: run so many nodes, 1 or 3, as processes of their own, at --listen and the two ports behind it (and ten and twenty further on for their logs and for each other), with data in directories 1, 2, 3 of --data (${default})."`

	ClusterLogLimit int64 `default:"1GiB" type:"bytes" placeholder:"BYTES" help:"How large the nodes' log may become for nodes that do not answer; at twice that it is kept for a majority only (${default})."`

	NodeFile string `hidden:"" env:"-"` // of a process started as one of these

	Enforce bool `help:"Verify signatures and authorise callers as production does. GODWIT_ROOT_ACCESS_KEY_ID and GODWIT_ROOT_SECRET_ACCESS_KEY are the root user's access key, else one is made and printed."`
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, time.Now()))
}

// run is main with its surroundings as parameters. It returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, began time.Time) int {
	var flags cli
	exited := -1
	parser, err := newParser(&flags, kong.Writers(stdout, stderr), kong.Exit(func(status int) { exited = status }))
	if err != nil { // an error in the tags above and in config
		panic(err)
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help, --version
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "godwit: %v\n", usage(parser.Model, args, err))
		return exitUsage
	}
	if command.Command() != "help" {
		warn(stderr, config.UnknownVariables(os.Environ(), flags.Variables, flags.Former))
	}
	err = command.Run(&process{args: args, stdin: stdin, stdout: stdout, stderr: stderr, began: began}, operate.Streams{In: stdin, Out: stdout, Err: stderr, Terminal: isTerminal(stdin)})
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errHelp):
		return exitUsage
	}
	fmt.Fprintf(operate.Plain(stderr), "godwit: %v\n", bootstrap.WithOwner(err)) // it may repeat a server's text
	if errors.Is(err, errDamaged) {
		return exitDamaged
	}
	if errors.Is(err, errDiffers) {
		return exitDiffers
	}
	if bootstrap.IsUnsafe(err) {
		return exitUsage
	}
	return 1
}

// isTerminal reports that a person may be at the other end: a character device, except the null
// device, which services have.
func isTerminal(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	none, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, none)
}

func newParser(flags *cli, options ...kong.Option) (*kong.Kong, error) {
	flags.Former = map[string]string{}
	return kong.New(flags, append(options,
		kong.Name("godwit"),
		kong.Description("Queues, topics, functions and their delivery behind the APIs of AWS, on one machine. "+
			"Every flag is also an environment variable: --log-level is GODWIT_LOG_LEVEL. "+forms),
		kong.Vars{"version": versionText()},
		kong.TypeMapper(reflect.TypeFor[time.Duration](), parseDuration),
		kong.NamedMapper("bytes", parseBytes),
		kong.NamedMapper("endpoint", parseEndpoint),
		kong.DefaultEnvars("GODWIT"),
		kong.PostBuild(spellVariables(flags.Former)),
		kong.PostBuild(func(k *kong.Kong) error {
			flags.Variables = append(variables(k.Model), config.RootKeyVariable, config.RootSecretVariable)
			return nil
		}),
		kong.PostBuild(dropEmptyBooleans),
		kong.Configuration(loadSettings),
	)...)
}

// process has the surroundings of a command.
type process struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	began          time.Time
}

func (d *dev) config() config.Config {
	cfg := d.Config
	cfg.Clock, cfg.Store, cfg.Enforce = d.Clock, d.Store, d.Enforce
	return cfg
}

// Validate is called by the parser.
func (d *dev) Validate() error {
	cfg := d.config()
	return cmp.Or(d.checkNodes(), cfg.CheckFlags())
}

func (d *dev) Run(p *process) error {
	cfg := d.config()
	cfg.Root = rootOfEnvironment()
	if err := cfg.Check(); err != nil { // with that
		return err
	}
	if cfg.Enforce && cfg.Root.AccessKeyID == "" {
		cfg.Root, cfg.Drawn = bootstrap.NewAccessKey(cfg.Account), true
	}
	switch {
	case d.NodeFile != "":
		return p.serveNode(cfg, d.NodeFile)
	case d.Nodes > 1:
		return p.serveNodes(cfg, d)
	}
	return p.serve(cfg)
}

// serve runs a server until it is told to end.
func (p *process) serve(cfg config.Config) error {
	warn(p.stderr, cfg.Warnings())
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore) // a second signal ends the process at once
	log, done := p.logging(&cfg)
	defer done()
	return server.Run(ctx, cfg, log, p.stdout, p.began)
}

func newLogger(cfg config.Config, w io.Writer) *slog.Logger {
	return newLoggerAt(levelOf(cfg), cfg, w)
}

// levelOf is the lowest level that is logged.
func levelOf(cfg config.Config) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return level
}

func newLoggerAt(level slog.Leveler, cfg config.Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == config.JSONLog {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
