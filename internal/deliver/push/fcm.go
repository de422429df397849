package pushsender

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
	oauthjwt "golang.org/x/oauth2/jwt"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/shard"
)

// scope is the OAuth scope of tokens for FCM.
const scope = "https://www.googleapis.com/auth/firebase.messaging"

// FCM sends to Google's service by its HTTP v1 API. It implements Gateway.
type FCM struct {
	url     string // without a final slash
	clients *clients
}

// NewFCM makes a gateway with a URL, such as https://fcm.googleapis.com.
func NewFCM(url string, o Connections) *FCM {
	return &FCM{url: strings.TrimRight(url, "/"), clients: newClients(o)}
}

// Close closes the idle connections.
func (f *FCM) Close() { f.clients.close() }

// serviceAccount is Google's file of a service account.
type serviceAccount struct {
	Type       string `json:"type"`
	Project    string `json:"project_id"`
	Email      string `json:"client_email"`
	PrivateKey string `json:"private_key"`
	KeyID      string `json:"private_key_id"`
	TokenURI   string `json:"token_uri"`
}

// newFCMIdentity parses a service account. The account chooses the URL of its token endpoint,
// so connections to it are checked like those to an endpoint.
func newFCMIdentity(t *shard.PushTarget, o Connections) (*client, error) {
	var a serviceAccount
	if json.Unmarshal([]byte(t.Credentials.Credential), &a) != nil || a.Type != "service_account" || a.Project == "" || a.Email == "" || a.PrivateKey == "" {
		return nil, errCredentials
	}
	if a.TokenURI == "" {
		a.TokenURI = "https://oauth2.googleapis.com/token"
	}
	at, err := url.Parse(a.TokenURI)
	if err != nil || at.Host == "" || at.Scheme != "https" && (at.Scheme != "http" || !o.AllowPrivate) {
		return nil, errCredentials
	}
	c := &client{http: o.client(nil), project: a.Project}
	config := oauthjwt.Config{Email: a.Email, PrivateKey: []byte(a.PrivateKey), PrivateKeyID: a.KeyID, Scopes: []string{scope}, TokenURL: a.TokenURI}
	c.access = &accessToken{config: config, http: c.http, sem: make(chan struct{}, 1)}
	return c, nil
}

// accessToken is the token in an application's requests to FCM.
type accessToken struct {
	config oauthjwt.Config
	http   *http.Client

	sem   chan struct{} // held while the token is checked or fetched; others wait
	token *oauth2.Token
}

// bound adds a context to requests that have none.
type bound struct {
	ctx    context.Context //nolint:containedctx // as it says
	next   http.RoundTripper
	failed error // without an answer
}

// RoundTrip implements http.RoundTripper.
func (b *bound) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r.WithContext(b.ctx))
	b.failed = err
	return response, err
}

var errToken = errors.New("push: an access token that no header can have")

// get returns the token; a new one if it is about to expire or was refused.
func (a *accessToken) get(ctx context.Context) (string, error) {
	select {
	case a.sem <- struct{}{}:
		defer func() { <-a.sem }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if a.token.Valid() {
		return a.token.AccessToken, nil
	}
	client := *a.http
	limited := &bound{ctx: ctx, next: client.Transport}
	client.Transport = limited
	token, err := a.config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &client)).Token()
	if err != nil {
		return "", cmp.Or(limited.failed, err)
	}
	if strings.ContainsFunc(token.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", errToken
	}
	a.token = token
	return token.AccessToken, nil
}

// forget drops a refused token.
func (a *accessToken) forget(text string) {
	a.sem <- struct{}{}
	defer func() { <-a.sem }()
	if a.token != nil && a.token.AccessToken == text {
		a.token = nil
	}
}

// Push implements Gateway.
func (f *FCM) Push(ctx context.Context, n *Notification) (deliver.Outcome, bool) {
	c, err := f.clients.of(n.PushTarget, newFCMIdentity)
	if err != nil {
		return deliver.Outcome{Detail: "the application's credential is no service account of Google's"}, false
	}
	token, err := c.access.get(ctx)
	if err != nil {
		return noToken(ctx, err), false
	}
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}
	answer, err := c.post(ctx, f.url+"/v1/projects/"+url.PathEscape(c.project)+"/messages:send", header, n.Payload)
	if err != nil {
		return deliver.NoAnswer(ctx, err), false
	}
	if answer.status == http.StatusOK {
		var sent struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(answer.body, &sent) // the status decides
		return deliver.Outcome{Class: deliver.Success, Status: answer.status, Provider: deliver.Provider{Message: sent.Name}}, false
	}
	if answer.status == http.StatusUnauthorized {
		c.access.forget(token)
	}
	out, dead := classifyFCM(answer.status, answer.body)
	if out.Class == deliver.ServerError {
		out.RetryAfter = clock.RetryAfter(answer.header, clock.System.Now())
	}
	return out, dead
}

// noToken is the outcome if the token endpoint returned none. Its answer is not reported: it
// may be anything.
func noToken(ctx context.Context, err error) deliver.Outcome {
	out := deliver.Outcome{Detail: "no token was given for the application's service account"}
	if e, ok := asRetrieval(err); ok {
		out.Status = e
		return out
	}
	if network := deliver.NoAnswer(ctx, err); network.Class == deliver.ClientError {
		return network
	}
	return out
}

// fcmError is the body of an error answer.
type fcmError struct {
	Error struct {
		Status  string `json:"status"`
		Message string `json:"message"`
		Details []struct {
			Type       string `json:"@type"`
			Code       string `json:"errorCode"`
			Violations []struct {
				Field string `json:"field"`
			} `json:"fieldViolations"`
		} `json:"details"`
	} `json:"error"`
}

// classifyFCM is the outcome of an error answer of FCM. Source: ErrorCode in the reference of
// FCM's HTTP v1 API.
func classifyFCM(status int, body []byte) (out deliver.Outcome, dead bool) {
	var e fcmError
	_ = json.Unmarshal(body, &e) // without details, only the status counts
	code, ofToken := "", strings.Contains(e.Error.Message, "registration token")
	for _, d := range e.Error.Details {
		if strings.HasSuffix(d.Type, "FcmError") {
			code = word(d.Code)
		}
		for _, v := range d.Violations {
			ofToken = ofToken || v.Field == "message.token"
		}
	}
	reason := code
	if reason == "" {
		reason = word(e.Error.Status)
	}
	out = deliver.Outcome{Class: deliver.ServerError, Status: status, Detail: "FCM: " + said(status, reason), Provider: deliver.Provider{Code: reason}}
	switch status {
	case http.StatusNotFound:
		out.Class, dead = deliver.ClientError, code == "UNREGISTERED"
	case http.StatusForbidden:
		if code == "SENDER_ID_MISMATCH" {
			out.Class, dead = deliver.ClientError, true
		}
	case http.StatusBadRequest:
		out.Class, dead = deliver.ClientError, code == "INVALID_ARGUMENT" && ofToken
	case http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge:
		out.Class = deliver.ClientError
	}
	return out, dead
}
