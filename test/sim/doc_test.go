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
// has crashed runs on unseen until it stops, and another one starts on the copy.
//
// A sync can fail: of the log, of a table or the manifest as a memtable is flushed, of the
// directory, or of a file beside. The kernel then takes the pages for written, so that a
// later sync is no proof of them: they can be read until the machine restarts, and are
// gone then, or were written all the same. The process ends where the store gives up; what
// was answered up to there counts. In a bubble it goes on, unseen, with a store in memory.
// Where Pebble would panic over the failure, which nothing survives, the process ends
// without hearing of it.
//
// Beside messages the clients write, remove and read things of every service (registers),
// put records into delivery streams, encrypt and decrypt, write log lines and publish to a
// reader of mails.
//
// The ledger notes what was asked, answered and seen by endpoints, and knows of each
// message what must be so. Where an answer never came, it allows either.
package sim
