package shard_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/test/soak"
)

// TestReopenAfterEveryCommand runs the same random history with and without
// closing and opening the engine after every command: the answers are equal. The
// engine is closed in an orderly way; what a crash leaves is for crash_test.go.
func TestReopenAfterEveryCommand(t *testing.T) {
	for _, seed := range soak.Seeds(t, soak.Rounds(t, soak.Size(1, 4), 50)) {
		steps := soak.Size(40, 150)
		plain := runHistory(t, seed, steps, false, shard.Options{})
		reopened := runHistory(t, seed, steps, true, shard.Options{})
		compareTranscripts(t, seed, plain, reopened)
	}
}

// TestTwoStepTransfersAreEqual runs the same random history with transfers in
// one commit and in two steps: the answers are equal.
func TestTwoStepTransfersAreEqual(t *testing.T) {
	for _, seed := range soak.Seeds(t, soak.Rounds(t, soak.Size(1, 4), 50)) {
		compareTranscripts(t, seed, runHistory(t, seed, 200, false, shard.Options{}), runHistory(t, seed, 200, false, shard.Options{TwoStep: true}))
	}
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// TestEncryptedIsEqual runs the same random history with topics' messages encrypted and
// in clear: the answers are equal, but for the ids of messages, which are drawn in another
// order. What was published is nowhere in the store.
func TestEncryptedIsEqual(t *testing.T) {
	steps := soak.Size(40, 100)
	for _, seed := range soak.Seeds(t, soak.Rounds(t, soak.Size(1, 4), 50)) {
		for _, reopen := range []bool{false, true} {
			plain := runHistory(t, seed, steps, false, shard.Options{})
			encrypted := runHistory(t, seed, steps, reopen, shard.Options{Encryption: shardtest.Encryption{}})
			for _, lines := range [][]string{plain, encrypted} {
				for i := range lines {
					lines[i] = uuids.ReplaceAllString(lines[i], "(id)")
				}
			}
			compareTranscripts(t, seed, plain, encrypted)
		}
	}
}

func runHistory(t *testing.T, seed uint64, steps int, reopen bool, o shard.Options) []string {
	c := clock.NewVirtual(shardtest.Start)
	s := shardtest.NewStore(t)
	defer s.Close()
	script := shardtest.NewScript(t, seed, c)
	o.Clock, o.NewID, o.Render = c, script.NextID, script.Pump.Render
	o.Journal = shardtest.JournalOf(t, s, func(sealed []byte) {
		if o.Encryption != nil && (bytes.Contains(sealed, []byte("published ")) || bytes.Contains(sealed, []byte("in order "))) {
			t.Errorf("seed %d: a commit has in clear what was published: %q", seed, sealed)
		}
	})
	e := shardtest.Open(t, o)
	script.Attach(e)
	script.Setup()
	for range steps {
		script.Step()
		if reopen {
			e.Close()
			e = shardtest.Open(t, o)
			script.Attach(e)
			script.RunDue()
		}
	}
	e.Close()
	return script.Out
}

func compareTranscripts(t *testing.T, seed uint64, a, b []string) {
	t.Helper()
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("seed %d: at line %d\n%s\nwant\n%s\nafter\n%s", seed, i, b[i], a[i], strings.Join(a[max(0, i-12):i], "\n"))
		}
	}
	if len(a) != len(b) {
		t.Fatalf("seed %d: %d lines, want %d", seed, len(b), len(a))
	}
}
