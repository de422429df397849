package clustered

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/cluster/snapshot"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/space"
)

// copyAgain is how long is waited before another node is asked for a copy of its store.
const copyAgain = time.Second

// copied is how far a copy of another node's store has come, in bytes.
type copied struct{ done, all int64 }

// openStore opens the replica's store. What it cannot be opened for that a copy of another
// node's mends is store.ErrDamaged.
func (p *part) openStore() (st *pebble.Store, guard *space.Guard, err error) {
	installed, err := snapshot.Install(p.cfg.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("a copied store cannot be put in place: %w", err)
	}
	if installed {
		p.log.Info("a copy of another node's store is in place")
	}
	if why := snapshot.Condemned(p.cfg.Data); why != "" {
		return nil, nil, fmt.Errorf("%w: %s", store.ErrDamaged, why)
	}
	guard, err = space.Open(p.cfg.Data, space.Options{Logger: p.log})
	if err != nil {
		return nil, nil, err
	}
	st, err = pebble.Open(filepath.Join(p.cfg.Data, "store"), pebble.Options{Logger: p.log, OnDiskFull: guard.Release})
	if err == nil {
		return st, guard, nil
	}
	guard.Close()
	if errors.Is(err, pebble.ErrDamaged) || errors.Is(err, pebble.ErrLoss) {
		err = fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return nil, nil, err
}

// reseed brings a copy of another node's store, which the next openStore puts in place. It
// fails only with the end of ctx.
func (p *part) reseed(ctx context.Context) error {
	p.copied.Store(&copied{})
	defer p.copied.Store(nil)
	for {
		err := p.copyOnce(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		p.log.Warn("no other node's store could be copied yet", "reason", err)
		if !pause(ctx, copyAgain) {
			return nil
		}
	}
}

var errNoSource = errors.New("no node answers that has a store from which the log goes on")

func (p *part) copyOnce(ctx context.Context) error {
	first, _, err := p.record.Ends(ctx)
	if err != nil {
		return err
	}
	from, ok := p.copyFrom(ctx, first)
	if !ok {
		return fmt.Errorf("%w: it begins at %d", errNoSource, first)
	}
	p.log.Info("the store of another node is copied", "from", from.Name)
	fetch := snapshot.Fetch{
		Data: p.cfg.Data, Source: from.Name, URL: p.net.URL(from.Address), Client: p.net.Client(), Verify: p.verify,
		Progress: func(done, all int64) { p.copied.Store(&copied{done, all}) },
	}
	return fetch.Run(ctx)
}

// copyFrom chooses the node whose store is copied: one that does not serve, where there is
// one, and of these the first.
func (p *part) copyFrom(ctx context.Context, first uint64) (Peer, bool) {
	type candidate struct {
		peer   Peer
		serves bool
	}
	var all []candidate
	for _, peer := range p.node.Peers {
		if peer.Name == p.node.Name {
			continue
		}
		s, err := p.ask(ctx, peer)
		if err != nil || len(s.Nodes) != 1 || s.Nodes[0].Needs == 0 || s.Nodes[0].Durable+1 < first {
			continue
		}
		all = append(all, candidate{peer, s.Nodes[0].State == serving})
	}
	if len(all) == 0 {
		return Peer{}, false
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(asInt(a.serves), asInt(b.serves)) })
	return all[0].peer, true
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// verify reads a copy through.
func (p *part) verify(dir string) error {
	unfit := func(err error) error { return fmt.Errorf("%w: %w", snapshot.ErrUnfit, err) }
	st, err := pebble.Open(dir, pebble.Options{Logger: p.log, Fatal: func(error) {}}) // a failure is that of a call
	if err != nil {
		return unfit(err)
	}
	err = readThrough(st)
	if err = errors.Join(err, st.Close()); err != nil {
		return unfit(err)
	}
	return nil
}

func readThrough(st *pebble.Store) error {
	value, ok, err := st.Get(nil, record.Key(cell))
	if err == nil && !ok {
		err = errors.New("it does not say how far it has come")
	}
	if err == nil {
		_, err = record.DecodeFence(value)
	}
	if err != nil {
		return err
	}
	it, err := st.Iter(nil, nil)
	if err != nil {
		return err
	}
	for it.Next() {
		_ = it.Value() // what is kept apart from its key is read by this
	}
	return errors.Join(it.Close(), st.Damage())
}
