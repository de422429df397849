package server

import (
	"context"
	"crypto/tls"
	"slices"

	"godwit.dev/godwit/internal/deliver"
	firehosesender "godwit.dev/godwit/internal/deliver/firehose"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/eventsource"
	"godwit.dev/godwit/internal/invoke/process"
	"godwit.dev/godwit/internal/invoke/process/network"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/server/senders"
	"godwit.dev/godwit/internal/topic"
)

// running has the parts that startBackground has started: senders, and the pool of functions.
type running struct {
	trust     *tls.Config // certificates accepted of hosts; nil: the system's
	sockets   *network.Network
	pool      *invoke.Pool
	processes *process.Runner
	senders   *senders.Senders
	operator  *deliver.Operator
	pollers   *eventsource.Pollers
}

// startBackground starts the background parts: functions, deliveries, alarms, mappings.
func startBackground(deps Deps, s *state) (r *running, err error) {
	r = &running{}
	if err := r.runFunctions(deps, s); err != nil {
		return nil, err
	}
	s.prometheus.Ask(s.engine, r.pool, r.sockets, s.logs, s.jobs, s.sources.Exists)
	acting := s.sessions.Acting(s.authorizer)
	runEvents(deps, s, r.pool, acting)
	if r.trust, err = senders.Trust(deps.Config.EndpointCA); err != nil {
		return nil, err
	}
	if err := r.deliver(deps, s); err != nil {
		return nil, err
	}
	if err := s.monitoring.Start(s.engine, s.sessions.Alarms(s.authorizer)); err != nil {
		return nil, err
	}
	deps.hold.Begin(func() { s.forwarder.Start(forwardingTo(deps, s)) })
	r.pollers, err = startPollers(deps, s.engine, r.pool, acting)
	return r, err
}

// deliver makes the senders of all protocols, and begins deliveries.
func (r *running) deliver(deps Deps, s *state) (err error) {
	r.senders, err = senders.Open(senders.Options{
		Config: deps.Config, Clock: deps.Clock, Engine: s.engine, Ledger: s.texts, Receipt: s.prometheus.TextReceipt,
		Ended: s.events.Delivery, PublicURL: s.url, Trust: r.trust, Own: deps.ownPorts(),
		Connections: deps.Limits.outgoing, Dial: deps.World.Dial, Mails: deps.World.Mails,
	})
	if err != nil {
		return err
	}
	deps.OnStop("endpoints' connections", func(context.Context) error {
		r.senders.Close()
		return nil
	})
	if err := startStreams(deps, s, r.trust); err != nil {
		return err
	}
	r.senders.ByProtocol[topic.Firehose] = firehosesender.New(s.deliveryStreams, &roles.Service{
		Sessions: s.sessions, Principal: "sns.amazonaws.com", Session: "SNS", Authorizer: s.authorizer,
	})
	dispatcher := deliver.New(deliver.Options{
		Engine: deliveries{s.engine, deps.owned}, Clock: deps.Clock, Logger: deps.Log, Tracer: deps.tracer, Senders: r.senders.ByProtocol,
		Events:    append(slices.Clip(s.events), r.senders.Texts.Book), // it has recorded the receipts that it reports
		PublicURL: s.url, Signer: s.envelopes.keys.NewSigner(),
		Jitter: deps.Jitter, JitterShare: deps.Config.Jitter,
		HostLimit: deps.Config.EndpointConcurrency, Limit: deps.Config.DeliveryConcurrency,
	})
	deps.OnStop("deliveries", dispatcher.Stop)
	deps.hold.Begin(func() { s.engine.SetConsumer("sns", dispatcher) })
	r.operator = deliver.NewOperator(dispatcher, s.engine)
	return nil
}
