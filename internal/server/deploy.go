package server

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/server/deploying"
	"godwit.dev/godwit/internal/server/deploying/step"
	"godwit.dev/godwit/internal/server/drifting"
	"godwit.dev/godwit/internal/server/operating"
	"godwit.dev/godwit/internal/server/roles"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/wire"
)

// may refuses actions that are not operations, if the caller has no permission; nil if IAM is
// not enforced.
func may(deps Deps, s *state) func(ctx context.Context, who *caller.Caller, via, region string, need *authorize.Need) error {
	if !deps.Config.Enforce {
		return nil
	}
	return func(ctx context.Context, who *caller.Caller, via, region string, need *authorize.Need) error {
		result, err := s.authorizer.Decide(ctx, need, &authorize.Context{Caller: who, Region: region, Now: deps.Clock.Now().UnixMilli(), Via: via})
		if err == nil && !result.Allowed() {
			err = api.Denied(who, need, &result)
		}
		return err
	}
}

// asCloudFormation is who CloudFormation is in a role.
func asCloudFormation(s *state) func(stack arn.ARN, role string) (*caller.Caller, error) {
	return (&roles.Service{Sessions: s.sessions, Principal: authorize.CloudFormation, Session: "AWSCloudFormation"}).Acting
}

// deploy begins to execute the steps of stacks, first those that were in progress when the last
// process ended.
func deploy(deps Deps, s *state, answers *wire.Handler, gate *operating.Gate) {
	var worker stacks.Worker = &deploying.Worker{Options: step.Options{
		Within: answers.Within, Acting: asCloudFormation(s), URL: s.url, Stacks: s.stacks, Operating: gate.Within, Holds: s.stacks.Holds, May: may(deps, s),
		Giving: s.stacks.Giving, Taking: s.stacks.Taking, Creates: s.stacks.Creates, Beside: s.stacks.Beside, TopicCreated: s.engine.TopicCreated, Sources: sources.New(sources.Options{Module: s.sources, Account: deps.Config.Account}),
	}}
	if wrap := deps.World.Deploying; wrap != nil {
		worker = wrap(worker)
	}
	s.stacks.SetReader(&drifting.Reader{Options: drifting.Options{Within: answers.Within, URL: s.url}})
	deps.hold.Begin(func() { s.stacks.Start(worker) })
}
