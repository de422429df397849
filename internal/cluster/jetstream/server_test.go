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
