package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Sources lists, makes, pauses and deletes sources.
type Sources struct {
	List   listSources  `cmd:"" default:"withargs" help:"List sources, or show one. The default."`
	Put    putSource    `cmd:"" help:"Make a source as a file has it, or replace one."`
	Pause  pauseSource  `cmd:"" help:"Have a source take no posts."`
	Resume resumeSource `cmd:"" help:"Have it take them again."`
	Delete deleteSource `cmd:"" help:"Delete a source."`
}

type listSources struct {
	Connection
	page
	Source string `arg:"" optional:"" help:"Name of a source; without one they are listed."`
}

func (l *listSources) Run(s Streams) error {
	if l.Source != "" {
		return l.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
			answer := object{}
			err := api.get(ctx, "source", url.Values{"name": {l.Source}}, &answer)
			return answer, members, err
		})
	}
	return list(&l.Connection, s, "sources", "sources", fixed(url.Values{"limit": {strconv.Itoa(l.Limit)}}),
		member("NAME", "name"), member("VERIFIED BY", "verification.kind"), member("TARGET", "target"), column{title: "STATE", of: sourceState},
		count("SECRETS", "secrets"), member("AS", "owner"), member("CHANGED", "changedAt"))
}

// sourceState is whether a source accepts posts, and why not.
func sourceState(row object) string {
	switch problem, _ := row["problem"].(string); {
	case problem != "":
		return problem
	case row["paused"] == true:
		return "paused"
	default:
		return "active"
	}
}

type putSource struct {
	Connection
	File string `arg:"" help:"The source, as YAML or JSON with the members of the API; - reads it from standard input. What has secrets is for your eyes only."`
	Yes  bool   `env:"-" short:"y" help:"Do not ask. Without a terminal nobody is asked."`
}

// maxSource bounds the file of a source, in bytes.
const maxSource = 1 << 20

func (p *putSource) Run(s Streams) error {
	source, err := p.read(s.In)
	if err != nil {
		return err
	}
	if name, _ := source["name"].(string); name != "" && s.Terminal && p.File != "-" && !p.Yes {
		known := object{}
		err := p.client().get(context.Background(), "source", url.Values{"name": {name}}, &known)
		var answer *refusal
		switch {
		case err == nil:
			if err := s.sure("Replace the source " + Clean(name) + "?"); err != nil {
				return err
			}
		case !errors.As(err, &answer): // the server cannot be reached
			return err
		}
	}
	one := p.Connection
	one.Watch = 0
	return one.show(s, func(ctx context.Context, api *client) (any, func(io.Writer, any) error, error) {
		answer := object{}
		err := api.post(ctx, "sources", source, &answer)
		if warning, _ := answer["warning"].(string); err == nil && warning != "" {
			fmt.Fprintf(s.Err, "godwit: warning: %s\n", Clean(warning))
		}
		return answer, members, err
	})
}

// read reads the file. The error does not quote it: it has secrets.
func (p *putSource) read(in io.Reader) (object, error) {
	if p.File != "-" {
		f, err := os.Open(p.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	if in == nil {
		return nil, errors.New("there is no standard input")
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSource+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSource {
		return nil, fmt.Errorf("%s: more than %d bytes", Clean(p.File), maxSource)
	}
	source := object{}
	if yaml.Unmarshal(text, &source) != nil || len(source) == 0 {
		return nil, fmt.Errorf("%s: want a source as YAML or JSON: name, target, verification, secrets", Clean(p.File))
	}
	return source, nil
}

type pauseSource struct {
	Connection
	Source string `arg:"" help:"Name of a source."`
	Yes    bool   `env:"-" short:"y" help:"Do not ask. Without a terminal nobody is asked."`
}

func (p *pauseSource) Run(s Streams) error {
	if !p.Yes {
		if err := s.sure("Have the source " + Clean(p.Source) + " take no posts? Who posts is told to come again."); err != nil {
			return err
		}
	}
	return p.once(s, "source/pause", object{"name": p.Source})
}

type resumeSource struct {
	Connection
	Source string `arg:"" help:"Name of a source."`
}

func (r *resumeSource) Run(s Streams) error {
	return r.once(s, "source/resume", object{"name": r.Source})
}

type deleteSource struct {
	Connection
	Source string `arg:"" help:"Name of a source."`
	Yes    bool   `env:"-" short:"y" help:"Do not ask. Without a terminal nobody is asked."`
}

func (d *deleteSource) Run(s Streams) error {
	if !d.Yes {
		if err := s.sure("Delete the source " + Clean(d.Source) + " and its secrets?"); err != nil {
			return err
		}
	}
	return d.once(s, "source/delete", object{"name": d.Source})
}
