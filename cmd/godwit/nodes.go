package main

import (
	"context"
	"fmt"

	"godwit.dev/godwit/internal/server/clustered/admin"
)

type clusterAdd struct {
	Added  string `arg:"" name:"node" placeholder:"NAME=HOST:PORT" help:"The node, as --cluster-peers would have it. It was joined, and runs with --cluster-join."`
	Asking asking `embed:""`
}

// Run adds a node, and prints the progress.
func (c *clusterAdd) Run(p *process) error {
	return p.changeNodes(&c.Asking, func(ctx context.Context, a *admin.Client, line func(string)) error {
		return a.AddNode(ctx, c.Added, line)
	})
}

type clusterRemove struct {
	Removed string `arg:"" name:"name" help:"The node. It ends, if it runs, and never comes back under this name."`
	Asking  asking `embed:""`
}

// Run removes a node, and prints the progress.
func (c *clusterRemove) Run(p *process) error {
	return p.changeNodes(&c.Asking, func(ctx context.Context, a *admin.Client, line func(string)) error {
		return a.RemoveNode(ctx, c.Removed, line)
	})
}

type clusterReplace struct {
	Old    string `arg:"" name:"name" help:"The node that goes."`
	New    string `arg:"" name:"node" placeholder:"NAME=HOST:PORT" help:"The node that comes, as with godwit cluster add."`
	Asking asking `embed:""`
}

// Run replaces a node, and prints the progress.
func (c *clusterReplace) Run(p *process) error {
	return p.changeNodes(&c.Asking, func(ctx context.Context, a *admin.Client, line func(string)) error {
		return a.ReplaceNode(ctx, c.Old, c.New, line)
	})
}

type clusterRestart struct {
	Asking asking `embed:""`
}

// Run restarts the nodes, and prints each that is back.
func (c *clusterRestart) Run(p *process) error {
	nodes, err := c.Asking.nodes()
	if err == nil {
		err = nodes.Restart(context.Background(), func(line string) { _, _ = fmt.Fprintln(p.stdout, line) })
	}
	if err != nil {
		return fmt.Errorf("the nodes are not all started again: %w", err)
	}
	return nil
}

func (p *process) changeNodes(asked *asking, change func(context.Context, *admin.Client, func(string)) error) error {
	nodes, err := asked.nodes()
	if err != nil {
		return err
	}
	err = change(context.Background(), nodes, func(line string) { _, _ = fmt.Fprintln(p.stdout, line) })
	if err != nil {
		return fmt.Errorf("the nodes are not changed: %w", err)
	}
	return nil
}
