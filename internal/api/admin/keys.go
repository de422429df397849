package admin

import (
	"net/http"
	"sync"
)

// RotateRoot answers POST without a body: it rotates the root key, and then answers with
// {"kept"}, the file that has the old one. Only one rotation runs at a time. A nil rotate, of
// a server whose root key protects nothing, is a conflict (409).
func RotateRoot(rotate func() (kept string, err error)) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if rotate == nil {
			writeError(w, http.StatusConflict, "the root key is development's, in the data directory: there is nothing to rotate")
			return
		}
		one.Lock()
		defer one.Unlock()
		kept, err := rotate()
		if err != nil {
			writeError(w, http.StatusInternalServerError, "the root key is not rotated; the old one counts, or the new one if the data is under it already, and to do it again goes on: "+err.Error())
			return
		}
		writeJSON(w, http.StatusOK, struct {
			Kept string `json:"kept"`
		}{kept})
	})
}
