// Package sim simulates the whole server on the virtual clock: the parts that
// server.Assemble builds, over the real store on a disk in memory, with clients,
// endpoints and functions that are drawn from a seed.
//
// Everything runs in a bubble of testing/synctest on one processor. Domain time is the
// server's virtual clock, which the simulation moves; the machine's time (syncs, time
// limits of attempts) is the bubble's. Requests go to the handler, without a socket: a
// bubble knows nothing of what waits for the kernel. So the same seed gives the same
// history, which TestReplay holds it to.
//
// A crash takes a copy of what the disk would keep: before or behind a batch, or in the
// middle of a sync, with nothing, all or a part of what was not synced. The server that
// has crashed runs on unseen until it stops, and another one starts on the copy. It does
// not see a disk whose sync returns an error, since a process that has to end cannot be
// ended in a bubble: the tests of the store and of test/e2e have that.
//
// Beside messages the clients write, remove and read things of every service (registers),
// put records into delivery streams, encrypt and decrypt, write log lines and publish to a
// reader of mails.
//
// The ledger notes what was asked, answered and seen by endpoints, and knows of each
// message what must be so. Where an answer never came, it allows either.
package sim
