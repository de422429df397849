// Package topic is the state machine of the topics and subscriptions of one shard.
//
// It is pure. A command takes the time and everything random (ids, tokens, incarnations) as
// input, checks all of it, and only then changes the state and appends the same change to a
// mutation.Batch; a command that fails has changed nothing. Loading the records written by the
// mutations gives the same state again. A State is not safe for concurrent use.
//
// A subscription is found through its topic: a topic has its subscriptions in the order of
// their ids, which is the order of a fan-out and of pages.
//
// Messages are not kept here. A subscription's Incarnation identifies the backlog of its
// deliveries.
package topic
