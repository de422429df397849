package clustered

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
	"godwit.dev/godwit/internal/cluster/peer"
	"godwit.dev/godwit/internal/server/clustered/roster"
	"godwit.dev/godwit/internal/server/clustered/status"
)

// Asking is a command's access to the nodes of a cluster: at a URL for clients, or, with Dir,
// at their addresses for peers, authenticated by the certificate there.
type Asking struct {
	URL   string
	Dir   string
	Node  string
	Peers []roster.Peer
	// Client sends requests to URL; nil: http.DefaultClient.
	Client *http.Client

	network *peer.Network // nil: that of Dir
}

// reached is the network of the nodes.
func (a *Asking) reached() (*peer.Network, error) {
	if a.network != nil {
		return a.network, nil
	}
	names := []string{a.Node}
	for _, p := range a.Peers {
		names = append(names, p.Name)
	}
	id, err := ca.Load(a.Dir, a.Node, names, clock.System.Now)
	if err != nil {
		return nil, err
	}
	return peer.Secured(id), nil
}

// reach calls f with a client and a URL prefix, for one node after the other, until it
// succeeds.
func (a *Asking) reach(f func(client *http.Client, base string) error) error {
	if a.Dir == "" && a.network == nil {
		return f(cmp.Or(a.Client, http.DefaultClient), a.URL)
	}
	network, err := a.reached()
	if err != nil {
		return err
	}
	defer network.Close()
	failures := errors.New("no node answers")
	for _, p := range a.Peers {
		err := f(network.Client(), network.URL(p.Address))
		if err == nil {
			return nil
		}
		failures = errors.Join(failures, err)
	}
	return failures
}

// Status requests the status of the cluster.
func (a *Asking) Status(ctx context.Context) (s status.Cluster, err error) {
	return s, a.reach(func(client *http.Client, base string) error {
		ctx, cancel := context.WithTimeout(ctx, 4*askTime)
		defer cancel()
		s, err = ask(ctx, client, base+clusterPath)
		return err
	})
}

// StepDown requests that the owner hand over the state.
func (a *Asking) StepDown(ctx context.Context) (h HandedOver, err error) {
	return h, a.reach(func(client *http.Client, base string) error {
		ctx, cancel := context.WithTimeout(ctx, handOverTime)
		defer cancel()
		h, err = askStepDown(ctx, client, base+stepDownPath)
		return err
	})
}

// AwaitOther waits until another node than the given one serves, and returns its name.
func (a *Asking) AwaitOther(ctx context.Context, than string) (name string, err error) {
	for {
		s, err := a.Status(ctx)
		for _, n := range s.Nodes {
			if err == nil && n.State == status.Serving && n.Name != than {
				return n.Name, nil
			}
		}
		if !pause(ctx, 4*quietLook) {
			return "", errors.Join(err, context.Cause(ctx))
		}
	}
}

// refusal is the error in an answer.
func refusal(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, 1000))
	if err != nil {
		return err
	}
	return errors.New(strings.TrimSpace(string(text)))
}
