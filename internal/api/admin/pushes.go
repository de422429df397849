package admin

import (
	"net/http"

	pushsender "godwit.dev/godwit/internal/deliver/push"
)

// PushOutbox has the push messages that development does not send; *pushsender.Outbox
// implements it.
type PushOutbox interface {
	List(endpoint string, limit int) ([]pushsender.Kept, error)
}

// ListPushes answers GET ?endpoint=ARN&limit=N with the newest push messages of an outbox. A
// nil box, of a server that sends all of them, is 404.
func ListPushes(box PushOutbox) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if box == nil {
			writeError(w, http.StatusNotFound, "there is no outbox: push messages go to their platforms")
			return
		}
		most, ok := limitOf(w, r)
		if !ok {
			return
		}
		kept, err := box.List(r.URL.Query().Get("endpoint"), most)
		if err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"pushes": kept})
	})
}
