package admin

import (
	"context"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
)

// Downloads returns the code of functions by the tokens of links.
type Downloads interface {
	Download(ctx context.Context, token string, now time.Time) ([]byte, error)
}

// FunctionCode answers with the zip of the parameter token: 403 for an invalid or expired
// token, 404 if the code no longer exists.
func FunctionCode(d Downloads, clk clock.Clock) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		zip, err := d.Download(r.Context(), r.URL.Query().Get("token"), clk.Now())
		switch {
		case fault.KindOf(err) == fault.AccessDenied:
			writeError(w, http.StatusForbidden, refusal.Text(err))
		case fault.KindOf(err) == fault.ResourceNotFound:
			writeError(w, http.StatusNotFound, refusal.Text(err))
		case err != nil:
			writeError(w, http.StatusInternalServerError, "the code cannot be read")
		default:
			w.Header().Set("Content-Type", "application/zip")
			_, _ = w.Write(zip)
		}
	})
}
