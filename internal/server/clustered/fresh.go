package clustered

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"godwit.dev/godwit/internal/cluster/replog"
	"godwit.dev/godwit/internal/durable"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Names in a node's directory.
const (
	logDir    = "log"
	freshFile = "log-is-new" // exists until the node's part of the log has caught up
)

// freshTime is the interval of checks whether a new part of the log may begin, and whether it
// has caught up.
const freshTime = 200 * time.Millisecond

// awaitPlace returns once the node's part of the log may begin. An empty part may be that of a
// lost disk, whose acknowledged records only one other node may have: together with the third
// node, which may lag behind, it must not form a majority. So it begins when all other nodes
// are up, and have caught up, or are empty, too. It fails with the end of ctx, and with errors
// of the disk.
func (p *part) awaitPlace(ctx context.Context) error {
	marker := filepath.Join(p.cfg.Data, freshFile)
	_, err := os.Stat(filepath.Join(p.cfg.Data, logDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = durable.Replace(marker, nil)
	case err == nil:
		if _, err = os.Stat(marker); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("the node's directory: %w", err)
	}
	p.fresh.Store(true)
	if p.members.joins {
		return nil // this node has acknowledged nothing
	}
	for reported := ""; ; {
		if m := p.learn(ctx); m != nil { // a lost disk does not know the list of nodes
			if err := p.adopt(ctx, m); err != nil {
				return err
			}
		}
		var others []status.Node
		for _, peer := range p.others() {
			s, err := p.ask(ctx, peer)
			if err != nil || len(s.Nodes) != 1 {
				s.Nodes = []status.Node{{Name: peer.Name, State: status.Unreachable}}
			}
			others = append(others, s.Nodes[0])
		}
		why := unready(others)
		if why == "" {
			return nil
		}
		if why != reported {
			p.log.Info("the node's part of the log is empty, and waits for all others", "reason", why)
			reported = why
		}
		if !pause(ctx, freshTime) {
			return context.Cause(ctx)
		}
	}
}

// unready is why an empty part of the log may not begin; empty: it may.
func unready(others []status.Node) (why string) {
	fresh := 0
	for _, n := range others {
		switch {
		case n.State == status.Unreachable:
			return "node " + n.Name + " is not reached"
		case n.Fresh:
			fresh++
		}
	}
	if fresh == len(others) {
		return "" // the log itself is new
	}
	most := uint64(0)
	for _, n := range others {
		most = max(most, n.Number)
	}
	for _, n := range others {
		switch {
		case n.Fresh:
			return "node " + n.Name + " has an empty log as well, and others have not"
		case n.State != status.Serving && n.State != status.Following && n.State != status.Leaving, n.LogStopped, n.Number+status.SuccessorLag < most:
			return "node " + n.Name + " does not have all yet"
		}
	}
	return ""
}

// noteWhole notes when the node's part of the log has caught up.
func (p *part) noteWhole(ctx context.Context) {
	log, ok := p.record.(replog.Replicated)
	for p.fresh.Load() {
		has, err := !ok, error(nil)
		if ok {
			has, err = log.CaughtUp(ctx)
		}
		if err == nil && has {
			err = os.Remove(filepath.Join(p.cfg.Data, freshFile))
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				p.fresh.Store(false)
				return
			}
			p.log.Warn("the node's part of the log has all, and that cannot be noted", "reason", err)
		}
		if !pause(ctx, freshTime) {
			return
		}
	}
}
