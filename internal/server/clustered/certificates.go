package clustered

import (
	"context"
	"errors"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/server/clustered/roster"
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
