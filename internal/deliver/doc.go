// Package deliver makes the deliveries that topics owe their subscriptions: what is
// leased of a backlog it sends, and decides by the retry policy what comes next.
// Package consume leases, shares out and concludes. Senders for the protocols are in
// the subfolders.
//
// A delivery that has failed for good has a cause, which its backlog keeps until the
// dead-letter queue has taken the message.
package deliver
