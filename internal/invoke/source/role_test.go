package source

import (
	"testing"

	"godwit.dev/godwit/internal/fault"
)

// A queue in which nothing was found can be read, for all that is known; but not where the key of what
// is in it is out of use, as that is hidden for a while after it was found.
func TestFoundNothing(t *testing.T) {
	for kind, kept := range map[fault.Kind]bool{
		fault.KMSDisabled: true, fault.KMSInvalidState: true, fault.KMSNotFound: true,
		fault.KMSAccessDenied: false, fault.AccessDenied: false,
	} {
		p := &poller{}
		p.setFailing(fault.New(kind, "why"))
		if p.failing == nil {
			t.Errorf("%v is not told", kind)
		}
		if p.foundNothing(); (p.failing != nil) != kept {
			t.Errorf("behind an empty receive, of %v is told: %v", kind, p.failing)
		}
		if p.setFailing(nil); p.failing != nil {
			t.Errorf("behind a batch, of %v is told: %v", kind, p.failing)
		}
	}
}
