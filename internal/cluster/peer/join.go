package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/ca"
)

// Paths for requests of certificates: with a token, and with a valid certificate.
const (
	joinPath  = "/join"
	renewPath = "/renew"
)

// Bounds of these requests.
const (
	joinTime = 10 * time.Second
	maxJoin  = 64 << 10 // bytes of a request or an answer
)

// asking is a request for a certificate.
type asking struct {
	Token   string `json:"token,omitempty"`
	Node    string `json:"node"`
	Request []byte `json:"request"` // PKCS #10
}

// join admits a node with a token.
func (n *Network) join(w http.ResponseWriter, r *http.Request) {
	n.sign(w, r, func(a *ca.Authority, q *asking) error { return a.Redeem(q.Token, q.Node, clock.System.Now()) })
}

// renew issues a new certificate of a peer's own name.
func (n *Network) renew(w http.ResponseWriter, r *http.Request, name string) {
	n.sign(w, r, func(_ *ca.Authority, q *asking) error {
		if q.Node != name {
			return ca.ErrUntrusted
		}
		return nil
	})
}

func (n *Network) sign(w http.ResponseWriter, r *http.Request, allowed func(*ca.Authority, *asking) error) {
	var q asking
	if r.Method != http.MethodPost || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJoin)).Decode(&q) != nil {
		http.Error(w, "a question for a certificate is POSTed", http.StatusBadRequest)
		return
	}
	authority, err := ca.Open(n.identity.Dir())
	if err != nil {
		http.Error(w, "the cluster's authority is not here: ask the node where it was made", http.StatusNotFound)
		return
	}
	if err := allowed(authority, &q); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	signed, err := authority.Sign(q.Request, q.Node, clock.System.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write(signed)
}

func ask(ctx context.Context, client *http.Client, url string, q *asking) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxJoin))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
	}
	return text, nil
}

// Join requests a certificate for a node from the node at an address, and keeps it in a
// directory. A valid token is used up. again: what is in the directory is replaced.
// Errors: ca.ErrMade, ca.ErrUntrusted.
func Join(ctx context.Context, address, dir, node, token string, again bool) error {
	if !again {
		if err := ca.CheckNew(dir); err != nil {
			return err
		}
	}
	config, err := ca.Joining(token, clock.System.Now)
	if err != nil {
		return err
	}
	r, err := ca.NewRequest()
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport(config)}
	defer client.CloseIdleConnections()
	signed, err := ask(ctx, client, "https://"+address+joinPath, &asking{token, node, r.DER})
	if err != nil {
		return fmt.Errorf("the node at %s: %w", address, err)
	}
	return r.Joined(dir, node, token, signed, clock.System.Now)
}

// KeepGood reads the node's certificate again if its file has changed, and renews it if that is
// due. It closes connections of others whose certificates have expired.
func (n *Network) KeepGood(ctx context.Context, addresses []string) error {
	n.identity.CloseUntrusted()
	if err := n.identity.Reload(); err != nil {
		return err
	}
	if _, renew := n.identity.Expires(); !renew {
		return nil
	}
	return n.Renew(ctx, addresses)
}

// Renew replaces the node's certificate: by the authority, if it is on this node, or else by the
// peer that has it, among those at some addresses.
func (n *Network) Renew(ctx context.Context, addresses []string) error {
	node, dir := n.identity.Node(), n.identity.Dir()
	authority, err := ca.Open(dir)
	if err == nil {
		if err := authority.Renew(node, clock.System.Now()); err != nil {
			return err
		}
		return n.identity.Reload()
	}
	if len(addresses) == 0 {
		return fmt.Errorf("the certificate cannot be renewed: %w", err)
	}
	r, err := ca.NewRequest()
	if err != nil {
		return err
	}
	failures := errors.New("the certificate cannot be renewed")
	for _, address := range addresses {
		signed, err := ask(ctx, n.Client(), n.URL(address)+renewPath, &asking{Node: node, Request: r.DER})
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", address, err))
			continue
		}
		if err := r.Keep(dir, signed); err != nil {
			return err
		}
		return n.identity.Reload()
	}
	return failures
}
