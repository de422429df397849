package shard

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/policy"
)

var _ authorize.Resources = (*Engine)(nil)

// PolicyOf is the policy of a queue, a topic, a function, version or alias, or a version of a layer; nil if it has
// none, or does not exist.
func (e *Engine) PolicyOf(ctx context.Context, a arn.ARN) *policy.Policy {
	switch a.Service {
	case "sqs":
		return e.QueuePolicy(ctx, a)
	case "sns":
		return e.TopicPolicy(ctx, a)
	case "lambda":
		if _, _, ok := a.SplitLayer(); ok {
			return e.CompiledLayerPolicy(ctx, a)
		}
		return e.CompiledFunctionPolicy(ctx, a)
	default:
		return nil
	}
}

// HasTopicOrApplication reports whether a topic, or a platform application, exists, for statistics:
// it does not wait until what it reports is durable.
func (e *Engine) HasTopicOrApplication(a arn.ARN) bool {
	return e.HasTopic(a) || e.HasApplication(a)
}

// Exists reports whether a queue, a topic, a platform application or a function exists, also one
// that a fault is injected into.
func (e *Engine) Exists(ctx context.Context, a arn.ARN) bool {
	var err error
	switch a.Service {
	case "sqs":
		_, err = e.QueueConfig(ctx, a)
	case "lambda":
		_, err = e.FunctionInfo(ctx, a, "")
	default:
		return e.HasTopicOrApplication(a)
	}
	kind := fault.KindOf(err)
	return kind != fault.QueueDoesNotExist && kind != fault.ResourceNotFound
}

// TagsOf are the tags of a queue, a topic or a function.
func (e *Engine) TagsOf(ctx context.Context, a arn.ARN) (tags map[string]string) {
	switch a.Service {
	case "sqs":
		tags, _ = e.QueueTags(ctx, a) // a queue that does not exist has none
	case "sns":
		tags, _ = e.TopicTags(ctx, a)
	case "lambda":
		if name, _, ok := a.SplitFunction(); ok {
			tags, _ = e.FunctionTags(ctx, name)
		}
	}
	return tags
}
