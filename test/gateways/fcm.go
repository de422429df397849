package gateways

import (
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// FCM stands in for Google's service, and for the place that gives tokens for it. Source:
// the reference of FCM's HTTP v1 API, and using OAuth 2.0 for server to server applications.
type FCM struct {
	gateway
	accounts map[string]*rsa.PublicKey // by addresses
	given    map[string]bool           // access tokens
	asked    int
}

// Project is the only one that it knows.
const Project = "godwit-test"

// NewFCM starts one for as long as the test runs.
func NewFCM(t testing.TB) *FCM {
	f := &FCM{accounts: map[string]*rsa.PublicKey{}, given: map[string]bool{}}
	f.start(t, f.serve)
	return f
}

// Account makes a service account, as the file that Google gives for it.
func (f *FCM) Account() string {
	key, text := NewRSAKey()
	f.mu.Lock()
	defer f.mu.Unlock()
	email := fmt.Sprintf("sender-%d@%s.iam.gserviceaccount.com", len(f.accounts), Project)
	f.accounts[email] = &key.PublicKey
	return string(jsonOf(map[string]string{
		"type": "service_account", "project_id": Project, "private_key_id": "key-1", "private_key": text,
		"client_email": email, "client_id": "1", "token_uri": f.URL + "/token",
	}))
}

// Revoke forgets all access tokens.
func (f *FCM) Revoke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.given)
}

// Asked is how often a token was asked for.
func (f *FCM) Asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *FCM) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if r.URL.Path == "/token" {
		f.give(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var envelope struct {
		Message struct {
			Token string `json:"token"`
		} `json:"message"`
	}
	_ = json.Unmarshal(body, &envelope)
	got := Received{Token: envelope.Message.Token, Header: r.Header.Clone(), Body: body, Proto: r.Proto, Remote: r.RemoteAddr}
	if f.scripted(w, r, &got) {
		return
	}
	status, code, text := f.judge(r, body)
	got.Status = status
	f.note(got)
	w.WriteHeader(status)
	if status == http.StatusOK {
		f.mu.Lock()
		n := len(f.received)
		f.mu.Unlock()
		_, _ = w.Write(jsonOf(map[string]string{"name": fmt.Sprintf("projects/%s/messages/%d", Project, n)}))
		return
	}
	_, _ = w.Write([]byte(FCMError(status, code, "", text)))
}

// FCMError is the body of an answer that is no success. code is FCM's own; empty: there is
// none.
func FCMError(status int, name, code, text string) string {
	e := map[string]any{"code": status, "status": name, "message": text}
	if code != "" {
		e["details"] = []map[string]string{{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}}
	}
	return string(jsonOf(map[string]any{"error": e}))
}

func (f *FCM) give(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked++
	f.mu.Unlock()
	refuse := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(jsonOf(map[string]string{"error": code}))
	}
	if r.ParseForm() != nil || r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		refuse("unsupported_grant_type")
		return
	}
	parsed, err := jwt.ParseSigned(r.Form.Get("assertion"), []jose.SignatureAlgorithm{jose.RS256})
	var claims struct {
		jwt.Claims
		Scope string `json:"scope"`
	}
	if err != nil || parsed.UnsafeClaimsWithoutVerification(&claims) != nil {
		refuse("invalid_grant")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := f.accounts[claims.Issuer]
	if key == nil || parsed.Claims(key) != nil || !strings.Contains(claims.Scope, "https://www.googleapis.com/auth/") ||
		!claims.Audience.Contains(f.URL+"/token") || claims.Expiry.Time().Before(time.Now()) {
		refuse("invalid_grant")
		return
	}
	token := fmt.Sprintf("ya29.%d", len(f.given)+f.asked)
	f.given[token] = true
	_, _ = w.Write(jsonOf(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3599}))
}

// members are those of a Message of the API.
var members = map[string]bool{
	"name": true, "data": true, "notification": true, "android": true, "webpush": true, "apns": true, "fcm_options": true, "fcmOptions": true,
	"token": true, "topic": true, "condition": true,
}

func (f *FCM) judge(r *http.Request, body []byte) (status int, code, text string) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	f.mu.Lock()
	known := f.given[token]
	f.mu.Unlock()
	if !known {
		return http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials."
	}
	if r.URL.Path != "/v1/projects/"+Project+"/messages:send" || r.Method != http.MethodPost {
		return http.StatusNotFound, "NOT_FOUND", "Requested entity was not found."
	}
	invalid := func(text string) (int, string, string) { return http.StatusBadRequest, "INVALID_ARGUMENT", text }
	var request struct {
		ValidateOnly bool                       `json:"validate_only"`
		ValidateO    bool                       `json:"validateOnly"`
		Message      map[string]json.RawMessage `json:"message"`
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if dec.Decode(&request) != nil || request.Message == nil {
		return invalid("Invalid JSON payload received.")
	}
	targets := 0
	for name := range request.Message {
		if !members[name] {
			return invalid(fmt.Sprintf("Invalid JSON payload received. Unknown name %q at 'message'", name))
		}
		if name == "token" || name == "topic" || name == "condition" {
			targets++
		}
	}
	if targets != 1 {
		return invalid("Recipient of the message is not set.")
	}
	if data, ok := request.Message["data"]; ok {
		var texts map[string]string
		if json.Unmarshal(data, &texts) != nil {
			return invalid("Invalid value at 'message.data'")
		}
	}
	return http.StatusOK, "", ""
}
