package server

import (
	"crypto/tls"

	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/server/streaming"
)

// startStreams starts the delivery of delivery streams.
func startStreams(deps Deps, s *state, trust *tls.Config) error {
	acting := &roles.Service{Sessions: s.sessions, Principal: "firehose.amazonaws.com", Session: "AWSFirehose"}
	return s.deliveryStreams.Start(streaming.Options{
		Config: deps.Config, Clock: deps.Clock, Logger: deps.Log, Trust: trust, Own: deps.ownPorts(), Connections: deps.Limits.outgoing, Dial: deps.World.Dial,
		Log: roles.ServiceLogs{Logs: s.logs, Service: acting}.Put, Metrics: s.monitoring.Streams(), Fault: s.engine.Injected, Assumable: acting.Assumable, Owned: deps.owned, Begin: deps.hold.Begin,
	})
}
