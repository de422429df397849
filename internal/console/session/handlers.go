package session

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
)

// Path is where a browser reads its session, and opens one by a signed request. EndPath ends
// it, and usePath reports user activity.
const (
	Path    = "/_godwit/ui/session"
	EndPath = Path + "/end"
	usePath = Path + "/use"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 4 << 10

// standing is the answer of Path.
type standing struct {
	// Required says that requests need a session or a signature.
	Required  bool       `json:"required"`
	User      string     `json:"user,omitempty"`
	CSRF      string     `json:"csrf,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Provider is the name of the identity provider, and ProviderPath the path to sign in
	// there; empty: there is none.
	Provider     string `json:"provider,omitempty"`
	ProviderPath string `json:"providerPath,omitempty"`
	// The scope of the signature of the request that opens a session.
	Region string     `json:"region,omitempty"`
	Now    *time.Time `json:"now,omitempty"`
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
}

// Refuse answers a request without a valid session, or not from the console's page: 401 or
// 403.
func Refuse(w http.ResponseWriter, err error) {
	status, code := http.StatusForbidden, "Forbidden"
	if errors.Is(err, ErrNone) || errors.Is(err, ErrOver) {
		status, code = http.StatusUnauthorized, "Unauthenticated"
	}
	answer(w, status, map[string]string{"error": err.Error(), "code": code})
}

// Unneeded answers that no session is required.
func Unneeded() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + Path: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, standing{}) }),
	}
}

// SignIn configures how users sign in.
type SignIn struct {
	// Region is the region in the signature of the request that opens a session.
	Region string
	// Signed verifies the signature of that request, and that its caller may use the console.
	Signed func(w http.ResponseWriter, r *http.Request) (*caller.Caller, error)
	// Provider is the name of an identity provider, and ProviderPath the path to sign in
	// there; empty: there is none.
	Provider, ProviderPath string
}

// answer answers with the state of the request's session.
func (s *Sessions) answer(w http.ResponseWriter, r *http.Request, out standing) {
	out.Required = true
	if st, ok := s.Standing(r); ok {
		out.User, out.CSRF, out.ExpiresAt = st.User, st.CSRF, &st.ExpiresAt
	}
	answer(w, http.StatusOK, out)
}

// Handlers are the handlers that read, open, use and end a session, by patterns of
// http.ServeMux.
func (s *Sessions) Handlers(in SignIn) map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + Path: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := clock.System.Now() // signatures use the machine's time
			s.answer(w, r, standing{Region: in.Region, Now: &now, Provider: in.Provider, ProviderPath: in.ProviderPath})
		}),
		"POST " + usePath: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := s.Use(r); err != nil {
				Refuse(w, err)
				return
			}
			now := clock.System.Now()
			s.answer(w, r, standing{Now: &now})
		}),
		"POST " + Path: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, err := in.Signed(w, r)
			if err != nil {
				answer(w, http.StatusForbidden, map[string]string{"error": err.Error(), "code": "Forbidden"})
				return
			}
			s.Open(w, r, who)
			answer(w, http.StatusOK, standing{Required: true, User: who.ARN})
		}),
		"POST " + EndPath: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var request struct {
				Everywhere bool `json:"everywhere"`
			}
			text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			if err == nil && len(text) > 0 {
				err = json.Unmarshal(text, &request)
			}
			if err != nil {
				answer(w, http.StatusBadRequest, map[string]string{"error": "the body cannot be read", "code": "BadRequest"})
				return
			}
			if err := s.End(w, r, request.Everywhere); err != nil {
				Refuse(w, err)
				return
			}
			answer(w, http.StatusOK, standing{Required: true})
		}),
	}
}
