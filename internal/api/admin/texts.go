package admin

import (
	"net/http"
	"strconv"

	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/sms"
)

// TextOutbox has the text messages that development does not send; *smssender.Outbox
// implements it.
type TextOutbox interface {
	List(to string, limit int) ([]smssender.Kept, error)
}

// limitOf reads ?limit=N, from 1 to 1000. If it fails it has written the error, and ok is
// false.
func limitOf(w http.ResponseWriter, r *http.Request) (most int, ok bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return outboxPage, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxOutboxPage {
		writeError(w, http.StatusBadRequest, "limit: want a number from 1 to "+strconv.Itoa(maxOutboxPage))
		return 0, false
	}
	return n, true
}

// ListTexts answers GET ?to=NUMBER&limit=N with the newest text messages of an outbox. A nil
// box, of a server that sends them, is 404.
func ListTexts(box TextOutbox) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if box == nil {
			writeError(w, http.StatusNotFound, "there is no outbox: text messages are sent, or there is nobody who takes them")
			return
		}
		most, ok := limitOf(w, r)
		if !ok {
			return
		}
		kept, err := box.List(r.URL.Query().Get("to"), most)
		if err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"texts": kept})
	})
}

// ReceiveText answers POST {"from", "text"} as a text message that a phone has sent. A nil
// received, as outside development, is forbidden (403); an invalid from is refused (400).
func ReceiveText(received func(from, text string) (optedOut bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if received == nil {
			writeError(w, http.StatusForbidden, "text messages can be made up in godwit dev only")
			return
		}
		var request struct {
			From string `json:"from"`
			Text string `json:"text"`
		}
		if !readJSON(w, r, &request) {
			return
		}
		if _, ok := sms.Number(request.From); !ok {
			writeError(w, http.StatusBadRequest, "from: want a phone number, such as +15551234567")
			return
		}
		writeJSON(w, http.StatusOK, map[string]bool{"optedOut": received(request.From, request.Text)})
	})
}
