package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/internal/config"
)

// forms are the formats of flags' values.
const forms = "Durations are written 1.5s, 90m, 1h30m or 2d; sizes 10GiB, 512MiB, 10GB or a number of bytes."

type version struct{}

func (version) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, versionText())
	return err
}

func versionText() string {
	return fmt.Sprintf("godwit %s %s/%s %s", config.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

type help struct {
	Command []string `arg:"" optional:"" help:"The command that is meant, such as dev or policy plan."`
}

// Run prints what COMMAND --help prints.
func (h help) Run(p *process) error {
	if status := run(append(h.Command, "--help"), p.stdin, p.stdout, p.stderr, p.began); status != 0 {
		return errHelp
	}
	return nil
}

// errHelp ends help for an unknown command, which was reported already.
var errHelp = errors.New("no help")

// parseDuration and parseBytes read flags of their kinds.
var (
	parseDuration = mapper(reflect.TypeFor[time.Duration](), config.ParseDuration)
	parseBytes    = mapper(reflect.TypeFor[int64](), config.ParseBytes)
)

// parseEndpoint reads the address of a server that a command asks. An empty variable is one that is
// not set.
var parseEndpoint kong.MapperFunc = func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("URL", &text); err != nil {
		return err
	}
	if u, err := url.Parse(text); text != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("want a URL such as http://127.0.0.1:4566, have %q", text)
	}
	target.SetString(text)
	return nil
}

func mapper[T ~int64](kind reflect.Type, parse func(string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto(kind.Name(), &text); err != nil {
			return err
		}
		n, err := parse(text)
		target.SetInt(int64(n))
		return err
	}
}

var (
	unexpected = regexp.MustCompile(`^unexpected argument (\S+?)(,.*)?$`)
	valueless  = regexp.MustCompile(`^(--\S+): expected .+ value but got "EOL"`)
)

// usage is the error message of an invalid command line: the unknown command's name, and where
// to find the known ones.
func usage(app *kong.Application, args []string, err error) error {
	at, path := app.Node, "godwit"
	for _, arg := range args {
		for _, child := range at.Children {
			if child.Name == arg {
				at, path = child, path+" "+arg
				break
			}
		}
	}
	found := unexpected.FindStringSubmatch(err.Error())
	switch {
	case found != nil && len(at.Children) > 0:
		var names []string
		for _, child := range at.Children {
			names = append(names, child.Name)
		}
		list := strings.Replace(path, "godwit", "godwit help", 1)
		return fmt.Errorf("there is no command %q%s; %s lists the commands", found[1], config.DidYouMean(found[1], names), list)
	case found != nil || strings.HasPrefix(err.Error(), "unknown flag ") || strings.HasPrefix(err.Error(), "missing flags: "):
		if at == app.Node {
			path += " dev"
		}
		return fmt.Errorf("%w; %s --help lists the flags", err, path)
	case strings.HasPrefix(err.Error(), "expected one of "):
		return fmt.Errorf("%w; %s lists the commands", err, strings.Replace(path, "godwit", "godwit help", 1))
	}
	if found := valueless.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Errorf("%s needs a value", found[1])
	}
	return err
}

// variables are the names of all settings in the environment.
func variables(app *kong.Application) (names []string) {
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			names = append(names, flag.Envs...)
		}
		return next(nil)
	})
	return names
}

// warn reports a probable mistake.
func warn(w io.Writer, warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(w, "godwit: warning: %s\n", text)
	}
}

// Help is shown before the flags.
func (*dev) Help() string { return forms }

// Help is shown before the flags.
func (*serve) Help() string { return forms }
