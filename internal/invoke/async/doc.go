// Package async runs functions with the events that wait in their queues, and
// decides what comes next: another attempt, or the end, of which a dead-letter
// queue and a destination receive it. Package consume leases, shares out and concludes.
//
// A process that ends before an event is concluded has decided nothing, and the
// engine gives the event out again: a function may run twice with an event, and an
// end may be reported twice, but none is lost. How an event has ended, and who has
// received that, is kept with it until all have.
package async
