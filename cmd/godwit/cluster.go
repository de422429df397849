package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"godwit.dev/godwit/cmd/godwit/operate"
	"godwit.dev/godwit/cmd/godwit/signed"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered"
	"godwit.dev/godwit/internal/server/clustered/admin"
	"godwit.dev/godwit/internal/server/clustered/local"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/storecopy"
)

// checkNodes refuses settings that do not work with several nodes.
func (d *dev) checkNodes() error {
	switch {
	case d.Nodes != 1 && d.Nodes != local.Nodes:
		return fmt.Errorf("--nodes: %d nodes or 1, not %d", local.Nodes, d.Nodes)
	case d.Nodes == 1:
		return nil
	case d.Clock == config.VirtualClock:
		return errors.New("--nodes: nodes are on the system's clock, and a virtual one is of one process: leave out --clock")
	case d.Store == config.MemoryStore:
		return errors.New("--nodes: nodes keep their data on disk: leave out --store")
	case d.Enforce:
		return errors.New("--nodes: nodes do not verify callers yet: leave out --enforce")
	case d.Config.TLS() || d.Config.AdminListen != "" || d.Config.Pprof != "" || d.Config.IngestListen != "":
		return errors.New("--nodes: nodes have one listener each, without TLS yet: leave out --tls-cert, --acme-domains, --admin-listen, --ingest-listen and --pprof")
	}
	return nil
}

// serveNodes runs nodes as separate processes until it is told to end.
func (p *process) serveNodes(cfg config.Config, d *dev) error {
	warn(p.stderr, cfg.Warnings())
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore)
	return local.Run(ctx, local.Options{
		Nodes: d.Nodes, LogLimit: uint64(d.ClusterLogLimit), Config: cfg, Args: p.args, Stdout: p.stdout, Stderr: p.stderr, Logger: newLogger(cfg, p.stderr), Since: p.began,
	})
}

// serveNode runs one of them.
func (p *process) serveNode(cfg config.Config, file string) error {
	n, err := local.ReadNode(file)
	if err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it ends with the parent process
		_, _ = io.Copy(io.Discard, p.stdin)
		cancel()
	}()
	cfg.Shared = filepath.Dir(cfg.Data)
	return clustered.Run(ctx, cfg, n, newLogger(cfg, p.stderr), p.began)
}

// member are the flags of a node of a cluster.
type member struct {
	ClusterPeers    []string `placeholder:"[NAME=]HOST:PORT" help:"Run as a node of a cluster, of which these are all the nodes, in an order that is the same everywhere. Their logs speak to each other at PORT, and they at the next one. Without NAME a node is called as its host is."`
	Node            string   `placeholder:"NAME" help:"Which of --cluster-peers this is."`
	ClusterDir      string   `placeholder:"DIR" help:"Where the node's certificate is: godwit cluster init or join makes it. Without it nodes speak on loopback only, and know each other by GODWIT_CLUSTER_SECRET."`
	ClusterJoin     bool     `help:"This node, one of --cluster-peers, is none of the cluster's yet: it waits for godwit cluster add. Of no effect from then on."`
	ClusterSecret   string   `hidden:""`
	ClusterLogLimit int64    `default:"1GiB" type:"bytes" placeholder:"BYTES" help:"How large the log may become for nodes that do not answer; at twice that it is kept for a majority only (${default})."`
}

// problems are the reasons why a node cannot start with these settings.
func (m *member) problems(cfg *config.Config) (all []string) {
	check := func(ok bool, text string) {
		if !ok {
			all = append(all, text)
		}
	}
	if len(m.ClusterPeers) == 0 {
		check(m.Node == "" && m.ClusterDir == "" && !m.ClusterJoin, "--node, --cluster-dir, --cluster-join: want --cluster-peers, too")
		return all
	}
	_, err := roster.ParsePeers(m.ClusterPeers)
	check(err == nil, fmt.Sprintf("--cluster-peers: %v", err))
	check(len(m.ClusterPeers)%2 == 1 || m.ClusterJoin, "--cluster-peers: want an odd number of nodes: of four no more may be missing than of three")
	check(m.Node != "", "--node: want which of --cluster-peers this is")
	check(m.ClusterDir != "" || m.ClusterSecret != "", "--cluster-dir: want the directory of the node's certificate")
	check(!m.ClusterJoin || m.ClusterDir != "", "--cluster-join: nodes that come later have certificates: want --cluster-dir")
	check(len(cfg.ACMEDomains) == 0,
		"--acme-domains: nodes of a cluster have certificates from files: want --tls-cert and --tls-key")
	return all
}

// serveMember runs a node of a cluster until it is told to end.
func (p *process) serveMember(cfg config.Config, m *member) error {
	warn(p.stderr, cfg.Warnings())
	peers, err := roster.ParsePeers(m.ClusterPeers)
	if err != nil {
		return err
	}
	n := clustered.Node{Name: m.Node, Peers: peers, Secret: m.ClusterSecret, Identity: m.ClusterDir, RootKey: cfg.RootKey, LogLimit: uint64(m.ClusterLogLimit), Joins: m.ClusterJoin}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(ctx, restore) // a second signal ends the process at once
	log, done := p.logging(&cfg)
	defer done()
	return clustered.Run(ctx, cfg, n, log, p.began)
}

type clusters struct {
	Status   clusterStatus   `cmd:"" help:"Tell how the nodes of a cluster stand."`
	StepDown clusterStepDown `cmd:"" help:"Have the node that serves hand over to another one, and follow it."`
	Init     clusterInit     `cmd:"" help:"Make a cluster's own certificate authority, and its first node's certificate."`
	Token    clusterToken    `cmd:"" help:"Make a token that lets a node in once, where the authority is."`
	Join     clusterJoin     `cmd:"" help:"Have a node let in by a token: it gets a certificate from the node where the authority is."`
	Add      clusterAdd      `cmd:"" help:"Add a node to a cluster that runs."`
	Remove   clusterRemove   `cmd:"" help:"Remove a node from a cluster that runs, for good."`
	Replace  clusterReplace  `cmd:"" help:"Replace a node by another one, also one whose machine is lost."`
	Restart  clusterRestart  `cmd:"" help:"Have one node after the other end and be started again, as for an upgrade."`
	Convert  clusterConvert  `cmd:"" help:"Make the data of a single node that of a cluster's first node."`
	Copy     clusterCopy     `cmd:"" help:"Copy the state of a cluster that runs, as of one moment, for a single node or as a backup."`
	Renew    clusterRenew    `cmd:"" help:"Replace a node's certificate before its time."`
	RotateCA clusterRotateCA `cmd:"" name:"rotate-ca" help:"Replace the authority of a cluster that runs, on the machine where its key is."`
}

type clusterInit struct {
	From string `env:"-" placeholder:"DIR" help:"Have an authority that was made there, as for a volume of secrets, sign the certificate of --node. Its key comes along for the node that it was made for. A node that has its certificate is left as it is."`
	Dir  string `env:"-" required:"" placeholder:"DIR" help:"Where to make ca.crt, ca.key and node.pem. Keep a copy of ca.key elsewhere."`
	Node string `env:"-" required:"" placeholder:"NAME" help:"Name of the node on this machine, as --cluster-peers has it."`
}

// Run makes the authority.
func (c *clusterInit) Run(p *process) error {
	if c.From != "" {
		return ca.Take(c.From, c.Dir, c.Node, p.began)
	}
	if err := ca.Init(c.Dir, c.Node, p.began); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "Made the cluster's authority in %s, and the certificate of node %s.\n"+
		"For each other node: godwit cluster token --dir %s --node NAME\n", c.Dir, c.Node, c.Dir)
	return err
}

type clusterToken struct {
	Dir  string        `env:"-" required:"" placeholder:"DIR" help:"Where godwit cluster init has made the authority."`
	Node string        `env:"-" required:"" placeholder:"NAME" help:"Name of the node that may join."`
	Life time.Duration `env:"-" default:"1h" help:"How long the token is of use, up to 7 days (${default})."`
}

// Run makes a token, and prints it, once.
func (c *clusterToken) Run(p *process) error {
	authority, err := ca.Open(c.Dir)
	if err != nil {
		return fmt.Errorf("the authority is not in %s: %w", c.Dir, err)
	}
	token, err := authority.NewToken(c.Node, p.began, c.Life)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, token)
	return err
}

type clusterJoin struct {
	Again bool   `env:"-" help:"Replace what DIR has: for a node that was let in before, and whose certificate has expired, or that was away when the cluster's authority was replaced."`
	Dir   string `env:"-" required:"" placeholder:"DIR" help:"Where to make ca.crt and node.pem."`
	Node  string `env:"-" required:"" placeholder:"NAME" help:"Name of the node on this machine, for which the token is."`
	From  string `env:"-" required:"" placeholder:"HOST:PORT" help:"The node where the authority is, as --cluster-peers has it. It has to run."`
	Token string `required:"" env:"GODWIT_CLUSTER_TOKEN" placeholder:"TOKEN" help:"What godwit cluster token has printed there; better in the environment."`
}

// Run requests a certificate.
func (c *clusterJoin) Run(p *process) error {
	at, err := roster.ParsePeers([]string{c.From})
	if err != nil {
		return err
	}
	if err := peer.Join(context.Background(), at[0].Address, c.Dir, c.Node, c.Token, c.Again); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "Node %s has its certificate, in %s.\n", c.Node, c.Dir)
	return err
}

type clusterRenew struct {
	Dir  string   `env:"-" required:"" placeholder:"DIR" help:"Where the node's certificate is."`
	Node string   `env:"-" required:"" placeholder:"NAME" help:"Name of the node on this machine."`
	From []string `env:"-" placeholder:"HOST:PORT" help:"The node where the authority is, if it is not in --dir."`
}

// Run replaces the certificate; a running node picks it up within a minute.
func (c *clusterRenew) Run(p *process) error {
	from, err := roster.ParsePeers(c.From)
	if err != nil {
		return err
	}
	names, addresses := []string{c.Node}, []string(nil)
	for _, at := range from {
		names, addresses = append(names, at.Name), append(addresses, at.Address)
	}
	id, err := ca.Load(c.Dir, c.Node, names, clock.System.Now)
	if err != nil {
		return err
	}
	if err := peer.Secured(id).Renew(context.Background(), addresses); err != nil {
		if len(addresses) == 0 {
			err = fmt.Errorf("%w (--from wants the node that has it)", err)
		}
		return err
	}
	until, _ := id.Expires()
	_, err = fmt.Fprintf(p.stdout, "The certificate of node %s is good until %s.\n", c.Node, until.UTC().Format(time.RFC3339))
	return err
}

type clusterRotateCA struct {
	Without []string `env:"-" placeholder:"NAME" help:"A node that is away for long, and is let in again (godwit cluster join --again) when it is back."`
	Asking  asking   `embed:""`
}

// Run replaces the authority, and prints each step that all nodes have completed.
func (c *clusterRotateCA) Run(p *process) error {
	nodes, err := c.Asking.nodes()
	if err == nil {
		err = nodes.RefuseAtURL(context.Background())
	}
	if err == nil {
		err = nodes.RotateCA(context.Background(), c.Without, func(line string) { _, _ = fmt.Fprintln(p.stdout, line) })
	}
	if err != nil {
		return fmt.Errorf("the authority is not replaced: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "The cluster has another authority. Replace the copy of ca.key by that of %s.\n", c.Asking.Dir)
	return err
}

// asking are the flags of requests to a cluster.
type asking struct {
	URL  string   `name:"endpoint" aliases:"url" env:"GODWIT_ENDPOINT" default:"http://127.0.0.1:4566" type:"endpoint" placeholder:"URL" help:"Any node of it (${default})."`
	Dir  string   `env:"-" placeholder:"DIR" help:"Where a node's certificate is: the nodes of --from are asked instead, as that node."`
	Node string   `env:"-" placeholder:"NAME" help:"The name of that node."`
	From []string `env:"-" placeholder:"HOST:PORT" help:"Nodes as --cluster-peers has them; the first that answers counts."`
}

func (a *asking) nodes() (*admin.Client, error) {
	peers, err := roster.ParsePeers(a.From)
	if err == nil && a.Dir != "" && len(peers) == 0 {
		err = errors.New("--dir: want the nodes to ask, too (--from)")
	}
	if err != nil || a.Dir != "" {
		return admin.AsNode(a.Dir, a.Node, peers), err
	}
	client, err := signed.Client(0) // a single server in production requires signatures; the caller bounds the time
	return admin.AtURL(a.URL, client), err
}

type clusterStepDown struct {
	Asking asking        `embed:""`
	Wait   time.Duration `env:"-" default:"30s" help:"How long to wait until another node serves (${default})."`
}

// Run makes the owner hand over, and waits until another node serves.
func (c *clusterStepDown) Run(p *process) error {
	nodes, err := c.Asking.nodes()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Wait)
	defer cancel()
	from, to, err := nodes.StepDown(ctx)
	if err != nil {
		return fmt.Errorf("the owner does not hand over: %w", err)
	}
	_, err = fmt.Fprintf(operate.Plain(p.stdout), "Node %s has handed over; node %s serves.\n", from, to)
	return err
}

type clusterConvert struct {
	Data   string `env:"-" required:"" placeholder:"DIR" help:"The data directory of a single node that does not run."`
	Member bool   `env:"-" help:"For godwit serve --cluster-peers: the data stays where it is, and is this node's. Without it it is for godwit dev --nodes."`
}

// Run converts a single node's data to that of a cluster's first node.
func (c *clusterConvert) Run(p *process) error {
	log := newLogger(config.Config{LogLevel: "warn"}, p.stderr)
	convert := local.Convert
	if c.Member {
		convert = storecopy.Convert
	}
	if err := convert(c.Data, log); err != nil {
		return fmt.Errorf("%s is not converted: %w", c.Data, err)
	}
	_, err := fmt.Fprintf(p.stdout, "%s is that of a cluster's first node. The others begin with empty directories, and copy it. Until they have, it is the only copy.\n", c.Data)
	return err
}

type clusterCopy struct {
	To     string `env:"-" required:"" placeholder:"DIR" help:"A data directory for a single node, which has no data yet."`
	Local  string `env:"-" placeholder:"DIR" help:"A node's directory of godwit dev --nodes, such as godwit-cluster/1."`
	Asking asking `embed:""`
}

// Run copies the state of a running cluster.
func (c *clusterCopy) Run(p *process) error {
	nodes, err := c.Asking.nodes()
	rootKey := ""
	if c.Local != "" && err == nil {
		var n clustered.Node
		n, err = local.NodeOf(c.Local)
		nodes, rootKey = admin.OnLoopback(n.Secret, n.Peers), n.RootKey
	}
	if err != nil {
		return err
	}
	if err := nodes.RefuseAtURL(context.Background()); err != nil {
		return fmt.Errorf("the state is not copied: %w (--local copies from a node of godwit dev --nodes)", err)
	}
	reported := time.Time{}
	err = nodes.Copy(context.Background(), c.To, newLogger(config.Config{LogLevel: "warn"}, p.stderr), func(done, all int64) {
		if now := clock.System.Now(); now.Sub(reported) > time.Second {
			reported = now
			fmt.Fprintf(p.stderr, "%d of %d MiB\n", done>>20, all>>20)
		}
	})
	if err == nil && rootKey != "" {
		err = local.CopyRootKey(rootKey, c.To)
	}
	if err != nil {
		return fmt.Errorf("the state is not copied: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s has what the cluster had, for a single node.\n", c.To)
	return err
}

type clusterStatus struct {
	Asking asking `embed:""`
	Output string `env:"-" short:"o" enum:"text,json" default:"text" help:"Form of what is printed: ${enum} (${default})."`
}

// Run prints the nodes and the parts of the state.
func (c *clusterStatus) Run(p *process) error {
	nodes, err := c.Asking.nodes()
	if err != nil {
		return err
	}
	s, err := nodes.Status(context.Background())
	if err != nil {
		return fmt.Errorf("the cluster cannot be asked: %w", err)
	}
	if c.Output == "json" {
		return json.NewEncoder(p.stdout).Encode(s)
	}
	w := tabwriter.NewWriter(operate.Plain(p.stdout), 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tURL\tPID\tSTATE\tNUMBER\tLAG\tVERSION")
	for _, n := range s.Nodes {
		state := n.State
		if n.ToCopy > 0 {
			state = fmt.Sprintf("%s, %d of %d MiB", state, n.Copied>>20, n.ToCopy>>20)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\t%s\n", n.Name, n.URL, n.PID, state, n.Number, n.Lag, n.Version)
	}
	fmt.Fprintln(w, "\nCELL\tOWNER\tEPOCH\tNUMBER\tLAG\tLEADER OF THE LOG")
	for _, c := range s.Cells {
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%s\n", c.Cell, c.Owner, c.Epoch, c.Number, c.Lag, c.Leader)
	}
	return w.Flush()
}
