package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"godwit.dev/godwit/internal/config"
)

// settings gives flags the values of a settings file.
type settings struct{ file *config.File }

var _ kong.Resolver = settings{}

func loadSettings(r io.Reader) (kong.Resolver, error) {
	file, err := config.ParseFile(r)
	if err != nil {
		return nil, err
	}
	return settings{file}, nil
}

// Validate refuses settings that production has no flag for.
func (s settings) Validate(app *kong.Application) error {
	at := slices.IndexFunc(app.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	var known []string
	for _, f := range app.Children[at].Flags {
		if f.Name != "config" {
			known = append(known, f.Name)
		}
	}
	return s.file.Check(known)
}

// Resolve returns the file's value, unless the environment has one. The command line overrides
// both.
func (s settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	if value, ok := s.file.Value(flag.Name); ok {
		return value, nil
	}
	if !flag.IsSlice() {
		return nil, s.file.CheckSingle(flag.Name)
	}
	if values, ok := s.file.List(flag.Name); ok {
		list := make([]any, len(values)) // as a resolver of JSON has it: values may have commas
		for i, value := range values {
			list[i] = value
		}
		return list, nil
	}
	return nil, nil
}

// spellVariables names the variable of each flag like the flag, in capitals and with
// underscores. kong also separates digits (GODWIT_BACKUP_S_3), as earlier versions did: such a
// variable is used if the other is not set, and former has its new name.
func spellVariables(former map[string]string) func(*kong.Kong) error {
	return func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
			flag, ok := node.(*kong.Flag)
			if !ok || len(flag.Envs) != 1 {
				return next(nil)
			}
			was, is := flag.Envs[0], "GODWIT_"+strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
			together := func(s string) string { return strings.ReplaceAll(s, "_", "") }
			if was == is || together(was) != together(is) { // it has an explicit name
				return next(nil)
			}
			envs := []string{is}
			if _, set := os.LookupEnv(was); set {
				envs, former[was] = append(envs, was), is
			}
			flag.Envs, flag.Tag.Envs = envs, envs
			return next(nil)
		})
	}
}

// dropEmptyBooleans ignores an empty variable of a boolean flag.
func dropEmptyBooleans(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.IsBool() {
			var envs []string
			for _, env := range flag.Envs {
				if value, set := os.LookupEnv(env); !set || value != "" {
					envs = append(envs, env)
				}
			}
			flag.Envs, flag.Tag.Envs = envs, envs
		}
		return next(nil)
	})
}
