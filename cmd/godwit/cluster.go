package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered"
)

// checkNodes refuses what does not go with several nodes.
func (d *dev) checkNodes() error {
	switch {
	case d.Nodes != 1 && d.Nodes != clustered.LocalNodes:
		return fmt.Errorf("--nodes: %d nodes or 1, not %d", clustered.LocalNodes, d.Nodes)
	case d.Nodes == 1:
		return nil
	case d.Clock == config.VirtualClock:
		return errors.New("--nodes: nodes are on the system's clock, and a virtual one is of one process: leave out --clock")
	case d.Store == config.MemoryStore:
		return errors.New("--nodes: nodes keep their data on disk: leave out --store")
	case d.Enforce:
		return errors.New("--nodes: nodes do not verify callers yet: leave out --enforce")
	case d.Config.TLS() || d.Config.AdminListen != "" || d.Config.Pprof != "":
		return errors.New("--nodes: nodes have one listener each, without TLS yet: leave out --tls-cert, --acme-domains, --admin-listen and --pprof")
	}
	return nil
}

// serveNodes runs nodes as processes of their own until it is told to end.
func (p *process) serveNodes(cfg config.Config, nodes int) error {
	warn(p.stderr, cfg.Warnings())
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore)
	return clustered.RunLocal(ctx, clustered.Local{
		Nodes: nodes, Config: cfg, Args: p.args, Stdout: p.stdout, Stderr: p.stderr, Logger: newLogger(cfg, p.stderr), Since: p.began,
	})
}

// serveNode runs one of them.
func (p *process) serveNode(cfg config.Config, file string) error {
	n, err := clustered.ReadNode(file)
	if err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it ends with who has started it
		_, _ = io.Copy(io.Discard, p.stdin)
		cancel()
	}()
	return clustered.Run(ctx, cfg, n, newLogger(cfg, p.stderr), p.began)
}

type clusters struct {
	Status clusterStatus `cmd:"" help:"Tell how the nodes of a cluster stand."`
}

type clusterStatus struct {
	URL    string `env:"-" name:"url" default:"http://127.0.0.1:4566" placeholder:"URL" help:"Any node of it (${default})."`
	Output string `env:"-" short:"o" enum:"text,json" default:"text" help:"Form of what is printed: ${enum} (${default})."`
}

// Run prints the nodes and the parts of the state.
func (c *clusterStatus) Run(p *process) error {
	s, err := clustered.Ask(context.Background(), c.URL, false)
	if err != nil {
		return fmt.Errorf("the cluster cannot be asked: %w", err)
	}
	if c.Output == "json" {
		return json.NewEncoder(p.stdout).Encode(s)
	}
	w := tabwriter.NewWriter(p.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tURL\tPID\tSTATE\tNUMBER\tLAG")
	for _, n := range s.Nodes {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\n", n.Name, n.URL, n.PID, n.State, n.Number, n.Lag)
	}
	fmt.Fprintln(w, "\nCELL\tOWNER\tEPOCH\tNUMBER\tLAG")
	for _, c := range s.Cells {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\n", c.Cell, c.Owner, c.Epoch, c.Number, c.Lag)
	}
	return w.Flush()
}
