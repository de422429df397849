package roles

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/invoke/async"
	"godwit.dev/godwit/internal/invoke/eventsource"
	"godwit.dev/godwit/internal/shard"
)

// Functions is the engine for those who define functions: it refuses what could not work
// because of a function's role.
type Functions struct {
	*shard.Engine

	Sessions *Sessions
	Acting   invoke.Acting
	// Failing says why a mapping cannot read its queue; nil: it can, or nobody knows.
	Failing func(a arn.ARN) error
}

// errInvalid refuses a parameter, in AWS's words.
func errInvalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}

// checkRole refuses a role that Lambda may not assume, or that may not send dead letters.
func (f *Functions) checkRole(ctx context.Context, fn arn.ARN, config *function.Config) error {
	if err := f.Sessions.Assumable(fn, config.Role); err != nil {
		return errInvalid("%s", refusal.Text(err))
	}
	if config.DeadLetter.IsZero() {
		return nil
	}
	t := &function.Target{Function: fn, Name: nameOf(fn), Role: config.Role}
	_, action, err := f.Acting.May(ctx, t, config.DeadLetter, async.Action(config.DeadLetter))
	if err != nil && action != "" {
		return errInvalid("The provided execution role does not have permissions to call %s on %s", bare(action), strings.ToUpper(config.DeadLetter.Service))
	}
	return err
}

// bare is an action without its service.
func bare(action string) string {
	_, name, _ := strings.Cut(action, ":")
	return name
}

func nameOf(fn arn.ARN) string {
	_, name, _ := strings.Cut(fn.Resource, ":")
	return name
}

// CreateFunction creates a function whose role Lambda may assume.
func (f *Functions) CreateFunction(ctx context.Context, cmd function.Create, zip []byte) (shard.FunctionInfo, error) {
	if err := f.checkRole(ctx, cmd.ARN, &cmd.Config); err != nil {
		return shard.FunctionInfo{}, err
	}
	return f.Engine.CreateFunction(ctx, cmd, zip)
}

// UpdateFunctionConfiguration gives a function another role only if Lambda may assume it.
func (f *Functions) UpdateFunctionConfiguration(ctx context.Context, cmd function.Update) (shard.FunctionInfo, error) {
	if before, err := f.FunctionInfo(ctx, cmd.ARN, ""); err == nil { // what fails here fails again
		config := *before.Config
		if err := cmd.Change(&config); err == nil && (config.Role != before.Config.Role || config.DeadLetter != before.Config.DeadLetter) {
			if err := f.checkRole(ctx, cmd.ARN, &config); err != nil {
				return shard.FunctionInfo{}, err
			}
		}
	}
	return f.Engine.UpdateFunctionConfiguration(ctx, cmd)
}

// SetEventInvoke has what came of events handed over only to whom the role may send it.
func (f *Functions) SetEventInvoke(ctx context.Context, cmd function.SetEventInvoke) (function.EventInvoke, error) {
	t, err := f.Function(ctx, cmd.Function, cmd.Qualifier)
	if err != nil || f.Acting == nil {
		return f.Engine.SetEventInvoke(ctx, cmd)
	}
	for i, to := range []*string{cmd.Change.OnSuccess, cmd.Change.OnFailure} {
		if to == nil || *to == "" {
			continue
		}
		dest, err := arn.Parse(*to)
		if err != nil || async.Action(dest) == "" {
			continue // it is refused for what it is
		}
		if _, action, err := f.Acting.May(ctx, &t, dest, async.Action(dest)); err != nil {
			if action == "" {
				return function.EventInvoke{}, err
			}
			config := "onSuccess=OnSuccess(destination=" + *to + "), onFailure=null"
			if i == 1 {
				config = "onSuccess=null, onFailure=OnFailure(destination=" + *to + ")"
			}
			return function.EventInvoke{}, errInvalid("The provided destination config DestinationConfig(%s) is invalid: "+
				"The function's execution role does not have permissions to call %s on %s", config, bare(action), *to)
		}
	}
	return f.Engine.SetEventInvoke(ctx, cmd)
}

// checkPolling refuses a function whose role may not read a queue. One that is not there is
// refused for that.
func (f *Functions) checkPolling(ctx context.Context, fn, queue arn.ARN) error {
	whole, qualifier, _ := fn.SplitFunction()
	t, err := f.Function(ctx, whole, qualifier)
	if err != nil {
		return nil //nolint:nilerr // the engine says so
	}
	_, err = eventsource.May(ctx, f.Acting, &t, queue)
	if fault.KindOf(err) == fault.AccessDenied {
		return errInvalid("%s", refusal.Text(err))
	}
	return err // nil, or why it was not found out
}

// CreateMapping maps a queue to a function whose role may read it.
func (f *Functions) CreateMapping(ctx context.Context, m mapping.Mapping) (mapping.Mapping, error) {
	if err := f.checkPolling(ctx, m.Function, m.Queue); err != nil {
		return mapping.Mapping{}, err
	}
	return f.Engine.CreateMapping(ctx, m)
}

// UpdateMapping gives a mapping another function only if that one's role may read the
// queue.
func (f *Functions) UpdateMapping(ctx context.Context, a arn.ARN, edit func(mapping.Mapping) (mapping.Update, error)) (mapping.Mapping, error) {
	if before, err := f.Engine.Mapping(ctx, a); err == nil { // what fails here fails again
		if to, err := edit(before); err == nil && !to.Function.IsZero() {
			if err := f.checkPolling(ctx, to.Function, before.Queue); err != nil {
				return mapping.Mapping{}, err
			}
		}
	}
	return f.Engine.UpdateMapping(ctx, a, edit)
}

// Mapping reports a mapping, and of what keeps it from its queue.
func (f *Functions) Mapping(ctx context.Context, a arn.ARN) (mapping.Mapping, error) {
	m, err := f.Engine.Mapping(ctx, a)
	f.judge(&m)
	return m, err
}

// Mappings reports all mappings.
func (f *Functions) Mappings(ctx context.Context) ([]mapping.Mapping, error) {
	all, err := f.Engine.Mappings(ctx)
	for i := range all {
		f.judge(&all[i])
	}
	return slices.Clip(all), err
}

func (f *Functions) judge(m *mapping.Mapping) {
	if err := f.Failing(m.ARN); err != nil && m.Active() {
		m.Result = "PROBLEM: " + refusal.Text(err)
	}
}
