package admin

import (
	"net/http"
	"sync"
)

// RotateRoot answers POST without a body: the data is under a new root key when it
// answers with {"kept"}, the file that the old one stays in. One rotation is made at a
// time. Without a rotate, which a server has whose root key protects nothing, it is
// refused (409).
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
