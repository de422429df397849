package server

import (
	"crypto/tls"

	"godwit.dev/godwit/internal/server/forwarding"
	"godwit.dev/godwit/internal/server/ids"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/server/streaming"
)

// forwardingTo are the destinations of subscription filters.
func forwardingTo(deps Deps, s *state) *forwarding.Destinations {
	return &forwarding.Destinations{
		Functions: s.engine, Streams: s.deliveryStreams, Clock: deps.Clock, NewID: ids.New,
		Roles: &roles.Service{Sessions: s.sessions, Principal: "logs.amazonaws.com", Session: "CloudWatchLogs", Authorizer: s.authorizer},
	}
}

// startStreams starts the delivery of delivery streams.
func startStreams(deps Deps, s *state, trust *tls.Config) error {
	acting := &roles.Service{Sessions: s.sessions, Principal: "firehose.amazonaws.com", Session: "AWSFirehose"}
	return s.deliveryStreams.Start(streaming.Options{
		Config: deps.Config, Clock: deps.Clock, Logger: deps.Log, Trust: trust, Own: deps.ownPorts(), Connections: deps.Limits.outgoing, Dial: deps.World.Dial,
		Log: roles.ServiceLogs{Logs: s.logs, Service: acting}.Put, Metrics: s.monitoring.Streams(), Fault: s.engine.Injected, Assumable: acting.Assumable, Owned: deps.owned, Begin: deps.hold.Begin,
	})
}
