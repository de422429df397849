// Package async runs functions with the events in their queues, and decides what follows:
// another attempt, or the end, which a dead-letter queue and a destination receive. Package
// consume leases the events, schedules the attempts and concludes them.
//
// After a crash before an event is concluded, the engine leases the event again: a function
// may run twice with an event, and its end may be sent twice, but none is lost. The result of
// an event, and which receivers have it, is stored with the event until all have.
package async
