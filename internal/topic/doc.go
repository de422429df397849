// Package topic is the state machine of topics and subscriptions: all those
// of one shard.
//
// It is pure. A command takes the time and everything random (ids, tokens,
// incarnations) as input, checks all of it, and only then changes the state
// and appends the same change to a mutation.Batch; a command that fails has
// changed nothing. Loading the records that the mutations leave behind gives
// the same state again. A State belongs to one goroutine.
//
// A subscription is found through its topic: a topic holds its subscriptions
// in the order of their ids, which is the order of a fan-out and of pages.
//
// Messages are not kept here. A subscription's Incarnation names the backlog
// that holds its deliveries.
package topic
