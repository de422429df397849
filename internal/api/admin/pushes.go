package admin

import (
	"net/http"
	"strconv"

	pushsender "godwit.dev/godwit/internal/deliver/push"
)

// PushOutbox keeps the push messages that development does not send: *pushsender.Outbox.
type PushOutbox interface {
	List(endpoint string, most int) ([]pushsender.Kept, error)
}

// ListPushes answers GET ?endpoint=ARN&limit=N with the newest push messages of an outbox.
// box is nil where all are sent (404).
func ListPushes(box PushOutbox) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if box == nil {
			writeError(w, http.StatusNotFound, "there is no outbox: push messages go to their platforms")
			return
		}
		query := r.URL.Query()
		most := outboxPage
		if text := query.Get("limit"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > maxOutboxPage {
				writeError(w, http.StatusBadRequest, "limit: want a number from 1 to "+strconv.Itoa(maxOutboxPage))
				return
			}
			most = n
		}
		kept, err := box.List(query.Get("endpoint"), most)
		if err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"pushes": kept})
	})
}
