package signing

import (
	"encoding/hex"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/deliver/envelope"
)

// Serve answers requests for certificates, and passes all others to next. Certificates are
// public: requests for them need no signature.
func (k *Keys) Serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, envelope.CertificatePrefix)
		if ok {
			name, ok = strings.CutSuffix(name, envelope.CertificateSuffix)
		}
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		k.serve(w, r, name)
	})
}

func (k *Keys) serve(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "a certificate can be fetched only", http.StatusMethodNotAllowed)
		return
	}
	var found *key
	if id, err := hex.DecodeString(name); err == nil && len(id) == 16 {
		found, _ = k.find([16]byte(id))
	}
	if found != nil {
		select {
		case <-found.ready:
		case <-r.Context().Done():
			return
		}
	}
	if found == nil || found.pem == nil {
		http.Error(w, "there is no such certificate", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-pem-file")
	// The content of a path never changes.
	h.Set("Cache-Control", "public, max-age=86400, immutable")
	_, _ = w.Write(found.pem)
}
