// Package deliver makes the deliveries of topics to subscriptions: it sends the leased
// messages of a backlog, and decides by the retry policy what follows. Package consume leases
// the messages, schedules the attempts and concludes them. Subpackages are senders for the
// protocols.
//
// A permanently failed delivery has a cause, which its backlog stores until the message is in
// the dead-letter queue.
package deliver
