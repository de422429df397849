package server

import (
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/server/deploying"
	"godwit.dev/godwit/internal/server/drifting"
	"godwit.dev/godwit/internal/server/operating"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/wire"
)

// deploy has the steps of stacks taken, first those that were under way when the process
// before ended.
func deploy(deps Deps, s *state, answers *wire.Handler, gate *operating.Gate) {
	acting := &roles.Service{Sessions: s.sessions, Principal: "cloudformation.amazonaws.com", Session: "AWSCloudFormation"}
	var worker stacks.Worker = &deploying.Worker{Options: deploying.Options{
		Within: answers.Within, Acting: acting.Acting, URL: s.url, Stacks: s.stacks, Operating: gate.Within, Holds: s.stacks.Holds,
		Sources: sources.New(sources.Options{Module: s.sources, Account: deps.Config.Account}),
	}}
	if wrap := deps.World.Deploying; wrap != nil {
		worker = wrap(worker)
	}
	s.stacks.SetReader(&drifting.Reader{Options: drifting.Options{Within: answers.Within, URL: s.url}})
	deps.hold.Begin(func() { s.stacks.Start(worker) })
}
