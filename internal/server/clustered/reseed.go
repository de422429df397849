package clustered

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/storecopy"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/space"
)

// The waiting time before another node is asked for a copy of its store, and without disk
// space: offering a copy costs a node a flush.
const (
	copyAgain  = time.Second
	spaceAgain = 10 * time.Second
)

// copied is the progress of the copy of another node's store, in bytes.
type copied struct{ done, all int64 }

// openStore opens the replica's store, without a log of its own: what a crash takes of it is in the
// replicated log. An error that a copy of another node's store would repair is store.ErrDamaged.
func (p *part) openStore() (st *pebble.Store, guard *space.Guard, err error) {
	installed, err := snapshot.Install(p.cfg.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("a copied store cannot be put in place: %w", err)
	}
	if installed {
		p.log.Info("a copy of another node's store is in place")
	}
	if why := snapshot.Damaged(p.cfg.Data); why != "" {
		return nil, nil, fmt.Errorf("%w: %s", store.ErrDamaged, why)
	}
	guard, err = space.Open(p.cfg.Data, space.Options{Logger: p.log})
	if err != nil {
		return nil, nil, err
	}
	st, err = pebble.Open(filepath.Join(p.cfg.Data, recovery.StoreName), pebble.Options{Logger: p.log, OnDiskFull: guard.Release, NoLog: true})
	if err == nil {
		return st, guard, nil
	}
	guard.Close()
	if errors.Is(err, pebble.ErrDamaged) || errors.Is(err, pebble.ErrLoss) {
		err = fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return nil, nil, err
}

// reseed gets a copy of another node's store, which the next openStore moves into place. It
// gives up only when ctx ends; reason is why the store is unusable.
func (p *part) reseed(ctx context.Context, reason error) {
	p.copied.Store(&copied{})
	defer p.copied.Store(nil)
	lacking := int64(0) // bytes of disk space: no node is asked until they are free
	for {
		var err error
		if lacking > 0 {
			err = p.requireSpace(lacking, reason)
		}
		if err == nil {
			lacking, err = p.copyOnce(ctx, reason)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		p.log.Warn("no other node's store could be copied yet", "reason", err)
		again := copyAgain
		if errors.Is(err, space.ErrNoSpace) {
			again = spaceAgain
		}
		if !pause(ctx, again) {
			return
		}
	}
}

var errNoSource = errors.New("no node answers that has a store from which the log goes on")

// copyOnce makes one attempt; lacking is the missing disk space, in bytes; 0: there was enough.
func (p *part) copyOnce(ctx context.Context, reason error) (lacking int64, err error) {
	log, err := p.record.Extent(ctx)
	if err != nil {
		return 0, err
	}
	from, ok := p.copyFrom(ctx, log.First)
	if !ok {
		return 0, fmt.Errorf("%w: it begins at %d", errNoSource, log.First)
	}
	p.log.Info("the store of another node is copied", "from", from.Name)
	fetch := snapshot.Fetch{
		Data: p.cfg.Data, Source: from.Name, URL: p.net.URL(from.Address), Client: p.net.Client(), Verify: func(dir string) error { return storecopy.Verify(dir, p.log) },
		Progress: func(done, all int64) { p.copied.Store(&copied{done, all}) },
		CheckSpace: func(need int64) error {
			err := p.requireSpace(need, reason)
			if errors.Is(err, space.ErrNoSpace) {
				lacking = need
			}
			return err
		},
	}
	err = fetch.Run(ctx)
	return lacking, err
}

// requireSpace fails if the disk has less than need bytes free for a copy: if the copy filled
// the disk, this node's part of the log would stop as well. A damaged store is removed first if
// that frees enough.
func (p *part) requireSpace(need int64, reason error) error {
	err := space.RequireFree(p.cfg.Data, need)
	if !errors.Is(err, space.ErrNoSpace) || !errors.Is(reason, store.ErrDamaged) {
		return err
	}
	size, failed := snapshot.StoreSize(p.cfg.Data)
	if failed != nil || size == 0 || space.RequireFree(p.cfg.Data, need-size) != nil {
		return errors.Join(err, failed)
	}
	if snapshot.Damaged(p.cfg.Data) == "" {
		if err := snapshot.MarkDamaged(p.cfg.Data, reason); err != nil {
			return err
		}
	}
	if err := snapshot.Discard(p.cfg.Data); err != nil {
		return err
	}
	p.log.Info("the damaged store is removed, to make room for the copy", "data", p.cfg.Data)
	return space.RequireFree(p.cfg.Data, need)
}

// copyFrom chooses the node whose store is copied.
func (p *part) copyFrom(ctx context.Context, first uint64) (roster.Peer, bool) {
	all := storecopy.Candidates(ctx, p.others(), first, p.ask)
	if len(all) == 0 {
		return roster.Peer{}, false
	}
	at := max(slices.IndexFunc(all, func(c storecopy.Candidate) bool { return !c.Full }), 0) // a copy needs space there, too
	return all[at].Peer, true
}

// others are the other nodes.
func (p *part) others() (all []roster.Peer) {
	for _, peer := range p.peers() {
		if peer.Name != p.node.Name {
			all = append(all, peer)
		}
	}
	return all
}

// mayBootstrap reports that all nodes are up, and that none has any state: one of them might
// have been a single node before, and must be copied then.
func (p *part) mayBootstrap(ctx context.Context) bool {
	for _, peer := range p.others() {
		s, err := p.ask(ctx, peer)
		if err != nil || len(s.Nodes) != 1 || s.Nodes[0].Process == "" || s.Nodes[0].Number > 0 {
			p.log.Debug("the cluster begins once all of its nodes are there", "waitsFor", peer.Name)
			return false
		}
	}
	return true
}
