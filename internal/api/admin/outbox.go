package admin

import (
	"errors"
	"io/fs"
	"net/http"
	"time"

	mailsender "godwit.dev/godwit/internal/deliver/mail"
)

// Outbox has the mails that development does not send; *mailsender.Outbox implements it.
type Outbox interface {
	List(to string, limit int) ([]mailsender.Kept, error)
	Raw(id string) ([]byte, error)
}

// The number of mails in a list: the default, and the most.
const (
	outboxPage    = 100
	maxOutboxPage = 1000
)

// ListOutbox answers GET ?to=ADDRESS&limit=N with the newest mails of an outbox, and ?id=ID
// with the text of one. A nil box, of a server that sends mails, is 404.
func ListOutbox(box Outbox) http.Handler {
	type mail struct {
		ID      string    `json:"id"`
		At      time.Time `json:"at"`
		From    string    `json:"from"`
		To      string    `json:"to"`
		Subject string    `json:"subject"`
		Text    string    `json:"text"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if box == nil {
			writeError(w, http.StatusNotFound, "there is no outbox: mails go to the relay, or are not sent")
			return
		}
		query := r.URL.Query()
		if id := query.Get("id"); id != "" {
			raw, err := box.Raw(id)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				writeError(w, http.StatusNotFound, "there is no such mail")
			case err != nil:
				writeFault(w, err)
			default:
				w.Header().Set("Content-Type", "message/rfc822")
				w.Header().Set("X-Content-Type-Options", "nosniff")
				_, _ = w.Write(raw)
			}
			return
		}
		most, ok := limitOf(w, r)
		if !ok {
			return
		}
		kept, err := box.List(query.Get("to"), most)
		if err != nil {
			writeFault(w, err)
			return
		}
		mails := make([]mail, len(kept))
		for i, k := range kept {
			mails[i] = mail(k)
		}
		writeJSON(w, http.StatusOK, map[string]any{"mails": mails})
	})
}
