package jetstream

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"godwit.dev/godwit/internal/cluster/replog"
)

// MaxNodes is how many nodes may keep a log.
const MaxNodes = server.StreamMaxReplicas

// nodesKey is the key of Nodes in the metadata of a stream.
const nodesKey = "godwit.nodes"

// Users of the connections that the process makes to its own server. The user of the system
// account may remove nodes.
const (
	logUser    = "log"
	systemUser = "system"
	systemName = "$SYS"
)

// users sets up users for the process's own connections, with a secret of this start.
func users(o *server.Options) (secret string) {
	secret = rand.Text()
	system := server.NewAccount(systemName)
	o.Accounts, o.SystemAccount = []*server.Account{system}, systemName
	o.Users = []*server.User{{Username: logUser, Password: secret}, {Username: systemUser, Password: secret, Account: system}}
	return secret
}

// Nodes is the text that SetNodes has stored in the log's metadata; empty: none yet.
func (l *Log) Nodes(ctx context.Context) (text string, err error) {
	info, err := l.info(ctx)
	if err != nil {
		return "", err
	}
	return info.Config.Metadata[nodesKey], nil
}

// SetNodes stores a text in the log's metadata, and sets the log's number of replicas to nodes.
// Only one call may be under way in the cluster. After an error it may have taken effect.
func (l *Log) SetNodes(ctx context.Context, text string, nodes int) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	info, err := l.stream.Info(ctx)
	if err == nil {
		config := info.Config
		config.Metadata = map[string]string{nodesKey: text}
		config.Replicas = nodes
		_, err = l.js.UpdateStream(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	return nil
}

// changeTime bounds a change of the log's replicas.
const changeTime = 5 * time.Second

// Replicas are the nodes with a replica of the log; caughtUp are those whose replica is current.
func (l *Log) Replicas(ctx context.Context) (all, caughtUp []string, err error) {
	info, err := l.info(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case info.Cluster == nil || info.Cluster.Leader == "":
		return nil, nil, replog.ErrUnavailable
	}
	all, caughtUp = []string{info.Cluster.Leader}, []string{info.Cluster.Leader}
	for _, r := range info.Cluster.Replicas {
		all = append(all, r.Name)
		if r.Current && !r.Offline {
			caughtUp = append(caughtUp, r.Name)
		}
	}
	return all, caughtUp, nil
}

// Forget removes a node for good: it is not counted for majorities any more. It has no effect
// for an unknown node. The node must have been prevented from connecting before.
func (s *Server) Forget(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	question, err := json.Marshal(server.JSApiMetaServerRemoveRequest{Peer: peerID(node)})
	if err != nil {
		return err
	}
	var said server.JSApiMetaServerRemoveResponse
	answer, err := s.askSystem(ctx, server.JSApiRemoveServer, question, &said)
	switch {
	case err != nil:
		return err
	case said.Error == nil && said.Success:
		return nil
	case said.Error != nil && said.Error.ErrCode == uint16(server.JSClusterServerNotMemberErr):
		return nil
	}
	return fmt.Errorf("%w: %s", replog.ErrUnavailable, answer)
}

// LeadsMeta reports that this node is JetStream's meta leader, which is needed to make a reader
// of a log.
func (s *Server) LeadsMeta() bool { return s.server.JetStreamIsLeader() }

// TransferMeta makes another node the meta leader, if this one is. Errors: ErrUnavailable, the
// context's.
func (s *Server) TransferMeta(ctx context.Context) error {
	if !s.LeadsMeta() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	var said server.JSApiLeaderStepDownResponse
	answer, err := s.askSystem(ctx, server.JSApiLeaderStepDown, nil, &said)
	if err == nil && !said.Success {
		err = fmt.Errorf("%w: %s", replog.ErrUnavailable, answer)
	}
	return err
}

// askSystem sends a request that needs the system account, and decodes the answer.
func (s *Server) askSystem(ctx context.Context, subject string, question []byte, to any) (answer []byte, err error) {
	conn, err := nats.Connect("", nats.InProcessServer(s.server), nats.UserInfo(systemUser, s.secret))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	defer conn.Close()
	m, err := conn.RequestWithContext(ctx, subject, question)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", replog.ErrUnavailable, err)
	}
	return m.Data, json.Unmarshal(m.Data, to)
}

// peerID is JetStream's ID of a node. It is computed here, as the server does not know a node that
// it has not met since its start.
func peerID(node string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(node))
	id := sum[:8]
	for i := range id {
		id[i] = digits[int(id[i])%len(digits)]
	}
	return string(id)
}

// SetRoutes sets the addresses of the nodes that the server connects to, and closes its outgoing
// connections to others. It does not close incoming ones: ca.Identity.CloseUntrusted does that.
func (s *Server) SetRoutes(addresses []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(addresses, s.routes) {
		return nil
	}
	if err := s.route(s.options.Cluster.TLSConfig, addresses); err != nil {
		return err
	}
	s.routes = slices.Clone(addresses)
	return nil
}

// SetTLS sets the TLS configuration of further outgoing connections. The existing ones stay.
func (s *Server) SetTLS(config *tls.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.route(config, s.routes)
}

// Reconnect sets the TLS configuration of outgoing connections. The existing ones are closed and
// made again, one node after the other.
func (s *Server) Reconnect(ctx context.Context, config *tls.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.route(config, s.routes); err != nil {
		return err
	}
	for _, address := range s.routes {
		others := slices.DeleteFunc(slices.Clone(s.routes), func(a string) bool { return a == address })
		if err := errors.Join(s.route(config, others), s.route(config, s.routes)); err != nil {
			return err
		}
		if err := pause(ctx, reconnectTime); err != nil {
			return err
		}
	}
	return nil
}

// reconnectTime is the pause for connections to one node to be made again, before those to the next
// one are closed.
const reconnectTime = 500 * time.Millisecond

// route sets the addresses that the server connects to.
func (s *Server) route(config *tls.Config, addresses []string) error {
	if len(s.routes) == 0 {
		return errors.New("a log of one node has no routes")
	}
	options := s.options.Clone()
	options.Cluster.TLSConfig, options.Routes = config, routeURLs(addresses, s.user)
	if err := s.server.ReloadOptions(options); err != nil {
		return fmt.Errorf("the routes of the replicated log: %w", err)
	}
	s.options = options
	return nil
}
