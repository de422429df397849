package clustered

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/wire"
)

// A request that this node comes to own while it waits is read by its handler alone.
func TestUnpaced(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	own := r.Body
	paced(httptest.NewRecorder(), r, wire.Pace{Window: time.Second, Rate: 1, Whole: time.Minute})
	if r.Body == own {
		t.Fatal("the body has no bound")
	}
	unpaced(r)
	if r.Body != own {
		t.Errorf("the body is a %T", r.Body)
	}
	unpaced(r)
	if r.Body != own {
		t.Errorf("without a bound, the body is a %T", r.Body)
	}
}
