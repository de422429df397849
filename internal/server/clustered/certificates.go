package clustered

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// The interval at which the node's certificate is checked for renewal, by itself or by others:
// while the authority is being replaced the nodes get theirs at the same time.
const (
	renewTime    = time.Minute
	outdatedTime = time.Second
)

// renew keeps the node's certificate valid until it is stopped.
func (p *part) renew(ctx context.Context) (stop func()) {
	if p.node.Identity == "" {
		return func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	go func() {
		for {
			var others []string
			for _, peer := range p.others() {
				others = append(others, peer.Address)
			}
			if err := p.net.KeepGood(ctx, others); err != nil && ctx.Err() == nil {
				p.log.Warn("the node's certificate", "reason", err)
			}
			wait := renewTime
			if p.net.Identity().Outdated() {
				wait = outdatedTime
			}
			over, cancel := clock.After(clock.System, wait)
			select {
			case <-over:
			case <-p.outdated:
			case <-ctx.Done():
			}
			cancel()
			if ctx.Err() != nil {
				return
			}
		}
	}()
	return stop
}

// trust makes the node trust the authority's certificates in the log. dropped: it trusts one
// less than before.
func (p *part) trust(m *roster.List) (changed, dropped bool, err error) {
	if m.Roots == "" || !p.net.Secured() {
		return false, false, nil
	}
	changed, dropped, err = p.net.Identity().Trust([]byte(m.Roots), []byte(m.Vouchers))
	switch {
	case errors.Is(err, ca.ErrUntrusted): // another authority than the log's admitted it
		p.log.Warn("the cluster's authority", "reason", err)
		err = nil
	case changed:
		p.log.Info("the cluster's authority", "trusted", p.net.Identity().Trusts())
		select {
		case p.outdated <- struct{}{}:
		default:
		}
	}
	return changed, dropped, err
}

// trustAll makes all nodes trust other certificates of the authority.
func (g *changing) trustAll(ctx context.Context, roots, vouchers string) error {
	if err := g.net.Identity().MayTrust([]byte(roots), []byte(vouchers)); err != nil {
		return err
	}
	if g.m.Roots != roots {
		replicas, err := g.replicas(ctx)
		if err != nil {
			return err
		}
		m := g.m.Next()
		m.Roots, m.Vouchers = roots, vouchers
		if err := g.set(ctx, m, len(replicas)); err != nil {
			return err
		}
	}
	return g.awaitLearned(ctx)
}

// RotateCA replaces the cluster's authority, whose key is in a.Dir: all nodes trust both, then
// get certificates of the new one, then trust only that. It continues an interrupted rotation.
// without are nodes that are not waited for: if one does not answer, it must be admitted again.
// Errors: those of the directory; of a node that does not complete a step.
func (a *Asking) RotateCA(ctx context.Context, without []string, line func(string)) error {
	rotation, err := ca.BeginRotation(a.Dir, clock.System.Now())
	if err != nil {
		return fmt.Errorf("the authority is not in %s: %w", a.Dir, err)
	}
	both, swapped, alone, err := rotation.Steps()
	if err != nil {
		return err
	}
	if slices.Contains(without, a.Node) {
		return fmt.Errorf("--without: node %s is where the authority is, and signs", a.Node)
	}
	next := rotation.Next()
	for n, step := range [...]struct {
		roots []byte
		tell  string
		done  func(*status.Certificate) bool
	}{
		{both, "the nodes trust the next authority, too.", func(c *status.Certificate) bool { return slices.Contains(c.Trusts, next) }},
		{swapped, "the nodes have certificates of the next authority.", func(c *status.Certificate) bool { return c.Authority == next }},
		{alone, "the nodes trust the next authority alone.", func(c *status.Certificate) bool { return len(c.Trusts) == 1 && c.Trusts[0] == next }},
	} {
		// A repeated command does not undo completed steps.
		err := a.allHave(ctx, without, 0, step.done)
		if err != nil {
			err = a.change(ctx, change{Roots: string(step.roots), Vouchers: string(rotation.Voucher())}, line)
			if err == nil {
				err = a.allHave(ctx, without, rotateTime, step.done)
			}
		}
		if err != nil {
			return err
		}
		if roots, err := ca.ReadRoots(a.Dir); err != nil || !slices.Contains(roots.Fingerprints(), next) {
			return errors.Join(err, fmt.Errorf("node %s runs with another --cluster-dir than %s, which has the authority", a.Node, a.Dir))
		}
		line(fmt.Sprintf("Step %d of 3: %s", n+1, step.tell))
	}
	return rotation.Finish()
}

// rotateTime bounds a step of a rotation.
const rotateTime = 30 * time.Second

// allHave waits until the certificates of all nodes are as required. It checks once at least.
func (a *Asking) allHave(ctx context.Context, without []string, limit time.Duration, done func(*status.Certificate) bool) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := a.lacking(ctx, without, done)
		if err == nil || !pause(waiting, changeLook) {
			return err
		}
	}
}

// lacking describes the nodes whose certificates are not as required.
func (a *Asking) lacking(ctx context.Context, without []string, done func(*status.Certificate) bool) error {
	all, err := a.all(ctx)
	if err != nil {
		return err
	}
	s, err := all.Status(ctx)
	if err != nil {
		return err
	}
	var lacks []string
	for _, n := range s.Nodes {
		switch {
		case slices.Contains(without, n.Name):
		case n.State == status.Unreachable:
			lacks = append(lacks, "node "+n.Name+" does not answer")
		case n.Certificate == nil:
			lacks = append(lacks, "node "+n.Name+" does not tell what it trusts, and is of an older version")
		case !done(n.Certificate):
			lacks = append(lacks, "node "+n.Name+" is not through with this step")
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%s: start what is down, and give the command again; one that is gone for long may be left out (--without)", strings.Join(lacks, "; "))
}
