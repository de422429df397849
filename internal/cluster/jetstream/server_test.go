package jetstream

import (
	"cmp"
	"net/url"
	"slices"
	"testing"
)

// The engine sorts the routes in force when its settings are reloaded, which is a write that
// its connections would race with, unless there is nothing to sort.
func TestRoutesAreSorted(t *testing.T) {
	urls := routeURLs([]string{"n9:1", "n10:1", "a:2", "a:10"}, url.UserPassword("user", "p"))
	if len(urls) != 4 || !slices.IsSortedFunc(urls, func(a, b *url.URL) int { return cmp.Compare(a.String(), b.String()) }) {
		t.Errorf("the routes are %v", urls)
	}
}

// A node whose part of the logs has stopped, as on a full disk, says so, and one that is closed
// does not.
func TestStopped(t *testing.T) {
	s, err := Start(t.Context(), Options{Node: "a", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Stopped() {
		t.Error("it has stopped from the start")
	}
	s.server.ShutdownJetStream() // what the engine does where a write fails for want of space
	if !s.Stopped() {
		t.Error("it has not stopped")
	}
	s.Close()
	if s.Stopped() {
		t.Error("a closed one has stopped")
	}
}
