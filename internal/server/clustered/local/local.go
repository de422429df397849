// Package local runs the nodes of a cluster as processes on one machine, for trials.
package local

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/clustered"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/recovery"
)

// Nodes is the number of nodes: one of them may be down.
const Nodes = 3

// Times between the end of a node's process and its restart.
const (
	restartTime = 200 * time.Millisecond
	restartMost = 5 * time.Second
	steadyTime  = 10 * time.Second // after which an end is not a repeated one
)

// The offsets of a node's ports for its log and for its peers: fixed ones, as they must be free
// whenever a node restarts.
const (
	routesBehind = 10
	peersBehind  = 20
)

// nodeFile is the configuration of a node's process, in its directory.
const nodeFile = "node.json"

// Options of a cluster.
type Options struct {
	Nodes          int
	LogLimit       uint64 // see clustered.Node
	Config         config.Config
	Args           []string // of this process: the nodes' begin with these
	Stdout, Stderr io.Writer
	Logger         *slog.Logger
	Since          time.Time // when this process began
}

// ReadNode reads the configuration that Run writes for a node's process.
func ReadNode(path string) (n clustered.Node, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return n, fmt.Errorf("what the node is cannot be read: %w", err)
	}
	return n, nil
}

type cluster struct{ Options }

// Run runs nodes as separate processes, at the address of the settings and the ports after it,
// and restarts each that ends, until ctx ends. It fails if the settings do not fit, or a node
// cannot be started.
func Run(ctx context.Context, o Options) error {
	l := &cluster{o}
	all, err := l.prepare()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			if err := l.keep(ctx, &all[i]); err != nil {
				cancel(err)
			}
		})
	}
	running.Go(func() { l.banner(ctx, all) })
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// prepare makes the nodes' directories and configurations.
func (l *cluster) prepare() ([]clustered.Node, error) {
	host, text, err := net.SplitHostPort(l.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("--listen: nodes need a port that is given, not %q", text)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--nodes: nodes speak to each other without TLS, on loopback only, and --listen is %s", l.Config.Listen)
	}
	if port+peersBehind+l.Nodes > 1<<16 {
		return nil, fmt.Errorf("--listen: nodes take ports up to %d behind it, and there are none behind %d", peersBehind+l.Nodes-1, port)
	}
	root, err := filepath.Abs(filepath.Join(l.Config.Data, bootstrap.DevRootKey))
	if err != nil {
		return nil, err
	}
	var peers []roster.Peer
	for i := range l.Nodes {
		peers = append(peers, roster.Peer{
			Name: strconv.Itoa(i + 1), URL: "http://" + net.JoinHostPort(host, strconv.Itoa(port+i)),
			Route: net.JoinHostPort("127.0.0.1", strconv.Itoa(port+routesBehind+i)), Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port+peersBehind+i)),
		})
	}
	if err := l.makeRoot(root); err != nil {
		return nil, err
	}
	secret := rand.Text()
	nodes := make([]clustered.Node, l.Nodes)
	for i := range nodes {
		nodes[i] = clustered.Node{Name: peers[i].Name, Peers: peers, Secret: secret, RootKey: root, LogLimit: l.LogLimit}
		dir := l.dir(&nodes[i])
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("the data directory cannot be made (--data): %w", err)
		}
		text, err := json.Marshal(nodes[i])
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, nodeFile), text, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func (l *cluster) dir(n *clustered.Node) string { return filepath.Join(l.Config.Data, n.Name) }

// makeRoot makes the root key that the nodes share, if there is none.
func (l *cluster) makeRoot(path string) error {
	if err := os.MkdirAll(l.Config.Data, 0o700); err != nil {
		return fmt.Errorf("the data directory cannot be made (--data): %w", err)
	}
	if _, err := os.Stat(filepath.Join(l.Config.Data, recovery.StoreName)); err == nil {
		return fmt.Errorf("--data: %s is the data of one node: choose another directory, or run godwit cluster convert --data %s", l.Config.Data, l.Config.Data)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Another one opens nothing of data that is there: a single node's that was converted, or nodes'.
	dirs := []string{l.Config.Data}
	for i := range l.Nodes {
		dirs = append(dirs, filepath.Join(l.Config.Data, strconv.Itoa(i+1)))
	}
	for _, dir := range dirs {
		ids, err := bootstrap.SealedWith(dir)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			return fmt.Errorf("the root key that the data is sealed with is not there: it has the id %s, and was looked for in %s", strings.Join(ids, " or "), path)
		}
	}
	return bootstrap.WriteDevRootKey(path, seal.NewRoot())
}

// keep runs a node's process, again and again. It fails if a restart cannot help.
func (l *cluster) keep(ctx context.Context, n *clustered.Node) error {
	wait := restartTime
	for {
		began := clock.System.Now()
		err := l.runOnce(ctx, n)
		if ctx.Err() != nil {
			return nil
		}
		ran := clock.System.Now().Sub(began)
		var ended *exec.ExitError
		switch {
		case errors.As(err, &ended) && isFinal(ended.ExitCode(), ran):
			return fmt.Errorf("node %s: %w", n.Name, err) // it has logged the reason
		case err != nil && ended == nil:
			return fmt.Errorf("node %s cannot be started: %w", n.Name, err)
		}
		if ran > steadyTime {
			wait = restartTime
		}
		l.Logger.Warn("a node has ended and is started again", "node", n.Name, "reason", err)
		if clock.Wait(ctx, clock.System, wait) != nil {
			return nil
		}
		wait = min(2*wait, restartMost)
	}
}

// isFinal reports whether a process that ends with a status would do so again: 1 is an error that it has
// told, and 2 is wrong settings or files, which it finds at the start. A panic of Go's is 2 as well, at any time.
func isFinal(status int, ran time.Duration) bool {
	return status == 1 || status == 2 && ran <= steadyTime
}

func (l *cluster) runOnce(ctx context.Context, n *clustered.Node) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	address := ""
	for _, p := range n.Peers {
		if p.Name == n.Name {
			address = strings.TrimPrefix(p.URL, "http://")
		}
	}
	dir := l.dir(n)
	// Of repeated flags the last one is effective.
	args := append(append([]string{}, l.Args...), "--listen", address, "--data", dir, "--node-file", filepath.Join(dir, nodeFile))
	cmd := exec.Command(self, args...) //nolint:gosec // the program itself
	alive, err := cmd.StdinPipe()      // its end ends the node when this process ends
	if err != nil {
		return err
	}
	lines, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = alive.Close() })()
	for output := bufio.NewScanner(lines); output.Scan(); {
		fmt.Fprintf(l.Stderr, "%s\n", output.Bytes())
	}
	return cmd.Wait()
}

// banner prints the addresses, once a node serves.
func (l *cluster) banner(ctx context.Context, nodes []clustered.Node) {
	first := nodes[0].Peers[0].URL
	for {
		for _, peer := range nodes[0].Peers {
			s, err := (nodeapi.Node{Client: http.DefaultClient, URL: peer.URL}).Status(ctx)
			if err != nil || s.Owner() == "" {
				continue
			}
			var urls []string
			for _, p := range nodes[0].Peers {
				urls = append(urls, p.URL)
			}
			took := clock.System.Now().Sub(l.Since).Round(time.Millisecond)
			fmt.Fprintf(l.Stdout, "Godwit %s is ready: %d nodes at %s (%s). Any of them answers.\nData:    %s\n"+
				"Status:  godwit cluster status --endpoint %s\n"+
				"AWS CLI: export AWS_ENDPOINT_URL=%s AWS_DEFAULT_REGION=%s AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n",
				config.Version, len(urls), strings.Join(urls, ", "), took, l.Config.Data, first, first, l.Config.Region)
			return
		}
		if clock.Wait(ctx, clock.System, restartTime) != nil {
			return
		}
	}
}
