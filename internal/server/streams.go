package server

import (
	"crypto/tls"

	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/server/monitoring"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/server/streaming"
	"godwit.dev/godwit/internal/shard"
)

// startStreams starts the delivery of delivery streams.
func startStreams(deps Deps, deliveryStreams *streaming.Streaming, trust *tls.Config, m *monitoring.Monitoring, groups *logs.Logs, engine *shard.Engine, acting *roles.Service) error {
	o := streaming.Options{
		Config: deps.Config, Clock: deps.Clock, Logger: deps.Log, Trust: trust, Own: deps.ownPorts(), Connections: deps.Limits.outgoing, Dial: deps.World.Dial,
		Log: roles.ServiceLogs{Logs: groups, Service: acting}.Put, Metrics: m.Streams(), Fault: engine.Injected, Assumable: acting.Assumable, Owned: deps.owned, Begin: deps.hold.Begin,
	}
	return deliveryStreams.Start(o)
}
