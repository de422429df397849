package gateways

import (
	"crypto/ecdsa"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
)

// APNs stands in for Apple's service. Source: sending notification requests to APNs, and
// handling notification responses from APNs, in Apple's documentation.
type APNs struct {
	gateway
	teams map[string]*ecdsa.PublicKey // by team and key id
	// Expired are tokens of providers that it calls expired.
	expired map[string]bool
}

// NewAPNs starts one for as long as the test runs.
func NewAPNs(t testing.TB) *APNs {
	a := &APNs{teams: map[string]*ecdsa.PublicKey{}, expired: map[string]bool{}}
	a.start(t, a.serve)
	return a
}

// Know has the gateway know a team's key.
func (a *APNs) Know(team, id string, key *ecdsa.PublicKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.teams[team+"/"+id] = key
}

// Expire has the gateway call a provider's token expired.
func (a *APNs) Expire(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expired[token] = true
}

func (a *APNs) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	token, _ := strings.CutPrefix(r.URL.Path, "/3/device/")
	got := Received{Token: token, Header: r.Header.Clone(), Body: body, Proto: r.Proto, Remote: r.RemoteAddr}
	if a.scripted(w, r, &got) {
		return
	}
	id := r.Header.Get("apns-id")
	if id == "" {
		id = strings.ToUpper(uuid.NewString())
	}
	w.Header().Set("apns-id", id)
	status, reason := a.judge(r, token, body)
	got.Status = status
	a.note(got)
	w.WriteHeader(status)
	if reason != "" {
		_, _ = w.Write(jsonOf(map[string]string{"reason": reason}))
	}
}

func (a *APNs) judge(r *http.Request, token string, body []byte) (status int, reason string) {
	bad := http.StatusBadRequest
	if !strings.HasPrefix(r.URL.Path, "/3/device/") {
		return http.StatusNotFound, "BadPath"
	}
	if r.Method != http.MethodPost || r.ProtoMajor != 2 {
		return http.StatusMethodNotAllowed, "MethodNotAllowed"
	}
	if reason := a.provider(r); reason != "" {
		return http.StatusForbidden, reason
	}
	if token == "" {
		return bad, "MissingDeviceToken"
	}
	if len(token) < 64 || strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return bad, "BadDeviceToken"
	}
	if r.Header.Get("apns-topic") == "" && len(r.TLS.PeerCertificates) == 0 {
		return bad, "MissingTopic"
	}
	switch r.Header.Get("apns-push-type") {
	case "alert", "background", "location", "voip", "complication", "fileprovider", "mdm", "liveactivity", "pushtotalk", "widgets":
	default:
		return bad, "InvalidPushType"
	}
	if p := r.Header.Get("apns-priority"); p != "" && p != "1" && p != "5" && p != "10" {
		return bad, "BadPriority"
	}
	if r.Header.Get("apns-push-type") == "background" && r.Header.Get("apns-priority") == "10" {
		return bad, "BadPriority"
	}
	if e := r.Header.Get("apns-expiration"); e != "" {
		if n, err := strconv.ParseInt(e, 10, 64); err != nil || n < 0 {
			return bad, "BadExpirationDate"
		}
	}
	if id := r.Header.Get("apns-id"); id != "" {
		if _, err := uuid.Parse(id); err != nil {
			return bad, "BadMessageId"
		}
	}
	if len(r.Header.Get("apns-collapse-id")) > 64 {
		return bad, "BadCollapseId"
	}
	var payload map[string]json.RawMessage
	switch {
	case len(body) == 0:
		return bad, "PayloadEmpty"
	case len(body) > 4096:
		return http.StatusRequestEntityTooLarge, "PayloadTooLarge"
	case json.Unmarshal(body, &payload) != nil:
		return bad, "PayloadEmpty"
	}
	return http.StatusOK, ""
}

// provider says why a provider is refused; empty: it is not.
func (a *APNs) provider(r *http.Request) string {
	const scheme = "bearer "
	text := r.Header.Get("Authorization")
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		if len(r.TLS.PeerCertificates) > 0 {
			return ""
		}
		return "MissingProviderToken"
	}
	text = text[len(scheme):]
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(parsed.Headers) != 1 {
		return "InvalidProviderToken"
	}
	var claims struct {
		Issuer string `json:"iss"`
		Issued int64  `json:"iat"`
	}
	if parsed.UnsafeClaimsWithoutVerification(&claims) != nil {
		return "InvalidProviderToken"
	}
	a.mu.Lock()
	key, expired := a.teams[claims.Issuer+"/"+parsed.Headers[0].KeyID], a.expired[text]
	a.mu.Unlock()
	if key == nil || parsed.Claims(key) != nil {
		return "InvalidProviderToken"
	}
	if age := time.Since(time.Unix(claims.Issued, 0)); expired || age > time.Hour || age < -time.Minute {
		return "ExpiredProviderToken"
	}
	return ""
}
