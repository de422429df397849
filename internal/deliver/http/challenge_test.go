package httpsender

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"hash"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/deliver"
)

// serveTLS runs an https server, and gives a sender that trusts it.
func serveTLS(t *testing.T, h http.HandlerFunc, change func(*httptest.Server)) (*httptest.Server, *Sender) {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	if change != nil {
		change(server)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return server, newSender(t, Options{AllowPrivate: true, RetryAfter: true, TLS: &tls.Config{RootCAs: roots}})
}

// digestOf checks an Authorization of Digest by the formula of RFC 7616, 3.4.1.
func digestOf(algorithm func() hash.Hash, r *http.Request, user, password string, body []byte) bool {
	h := func(parts ...string) string {
		sum := algorithm()
		sum.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(sum.Sum(nil))
	}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Digest ")
	if !ok {
		return false
	}
	p := map[string]string{}
	for part := range parts(text) {
		name, value, _ := strings.Cut(part, "=")
		p[name] = strings.Trim(value, `"`)
	}
	a2 := []string{r.Method, r.URL.RequestURI()}
	if p["qop"] == "auth-int" {
		a2 = append(a2, h(string(body)))
	}
	want := h(h(user, "a, realm", password), p["nonce"], p["nc"], p["cnonce"], p["qop"], h(a2...))
	if p["qop"] == "" {
		want = h(h(user, "a, realm", password), p["nonce"], h(a2...))
	}
	return p["username"] == user && p["realm"] == "a, realm" && p["nonce"] == "n0nce" && p["opaque"] == "0paque" &&
		p["uri"] == r.URL.RequestURI() && p["response"] == want
}

func TestCredentialsAnswerAChallenge(t *testing.T) {
	const digest = `Digest realm="a, realm", nonce="n0nce", opaque="0paque"`
	basic := func(r *http.Request, _ []byte) bool {
		user, password, _ := r.BasicAuth()
		return user == "u" && password == "p@ss"
	}
	byDigest := func(algorithm func() hash.Hash) func(r *http.Request, body []byte) bool {
		return func(r *http.Request, body []byte) bool { return digestOf(algorithm, r, "u", "p@ss", body) }
	}
	for _, tt := range []struct {
		name, user       string
		challenge        []string
		fits             func(r *http.Request, body []byte) bool
		status, requests int
	}{
		{"Basic", "u:p%40ss@", []string{`Basic realm="x"`}, basic, 200, 2},
		{"Basic, behind what nobody knows", "u:p%40ss@", []string{`Negotiate abc==, NTLM, basic realm="y, z"`}, basic, 200, 2},
		{"Basic, behind a Digest that nobody knows", "u:p%40ss@", []string{digest + `, algorithm=MD5-sess`, `Basic realm="y"`}, basic, 200, 2},
		{"Digest as it was", "u:p%40ss@", []string{digest}, byDigest(md5.New), 200, 2},
		{"Digest", "u:p%40ss@", []string{digest + `, qop="auth", algorithm=MD5`}, byDigest(md5.New), 200, 2},
		{"Digest with SHA-256", "u:p%40ss@", []string{digest + `, qop="auth", algorithm=SHA-256`}, byDigest(sha256.New), 200, 2},
		{"Digest over the body", "u:p%40ss@", []string{digest + `, qop="auth-int", algorithm=SHA-256`}, byDigest(sha256.New), 200, 2},
		{"the first Digest of two", "u:p%40ss@", []string{digest + `, qop="auth", algorithm=SHA-256, ` + digest}, byDigest(sha256.New), 200, 2},
		{"Digest rather than Basic", "u:p%40ss@", []string{`Basic realm="y"`, digest + `, qop="auth"`}, byDigest(md5.New), 200, 2},
		{"wrong for Basic", "u:other@", []string{`Basic realm="x"`}, basic, 401, 2},
		{"wrong for Digest", "u:other@", []string{digest + `, qop="auth"`}, byDigest(md5.New), 401, 2},
		{"none", "", []string{`Basic realm="x"`, digest}, basic, 401, 1},
		{"not asked", "u:p%40ss@", nil, basic, 401, 1},
		{"asked in a quotation", "u:p%40ss@", []string{`Other realm="x, Basic y"`}, basic, 401, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var unasked, requests atomic.Int32
			server, s := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 1 && r.Header.Get("Authorization") != "" {
					unasked.Add(1)
				}
				body, _ := io.ReadAll(r.Body)
				if len(body) > 0 && tt.fits(r, body) {
					return
				}
				for _, challenge := range tt.challenge {
					w.Header().Add("WWW-Authenticate", challenge)
				}
				w.WriteHeader(http.StatusUnauthorized)
			}, nil)
			got := send(t, s, strings.Replace(server.URL, "//", "//"+tt.user, 1)+"/path?q=1", nil)
			if got.Status != tt.status || int(requests.Load()) != tt.requests {
				t.Errorf("%+v after %d requests, want %d after %d", got, requests.Load(), tt.status, tt.requests)
			}
			if unasked.Load() != 0 {
				t.Error("credentials were sent unasked")
			}
		})
	}
}

// TestCredentialsNeedTLS: what a subscription cannot have today, a store of an
// older version may hold.
func TestCredentialsNeedTLS(t *testing.T) {
	var requests, given atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "" {
			given.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	got := send(t, newSender(t, Options{AllowPrivate: true}), strings.Replace(server.URL, "//", "//u:p@", 1), nil)
	if got.Class != deliver.ClientError || requests.Load() != 1 || given.Load() != 0 {
		t.Errorf("%+v after %d requests, %d with credentials", got, requests.Load(), given.Load())
	}
}

func TestChallenges(t *testing.T) {
	for line, want := range map[string][]string{
		"":                         nil,
		",":                        nil,
		"Basic":                    {"Basic"},
		`Basic realm="a"`:          {`Basic realm="a"`},
		`Basic realm="a", x = "b"`: {`Basic realm="a", x = "b"`},
		`Newauth realm="apps", type=1, title="Login to \"apps\", Basic", Basic realm="simple"`: {`Newauth realm="apps", type=1, title="Login to \"apps\", Basic"`, `Basic realm="simple"`},
		`Negotiate abc==, NTLM`: {"Negotiate abc==", "NTLM"},
		`realm="a", Basic`:      {"Basic"},
		`Basic realm="a`:        {`Basic realm="a`},
	} {
		if d := cmp.Diff(want, challenges(http.Header{"Www-Authenticate": {line}})); d != "" {
			t.Errorf("%q (-want +got):\n%s", line, d)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple"`)
	f.Add(`Digest realm="a", nonce="n", qop="auth-int", algorithm=SHA-256, Basic`)
	f.Fuzz(func(t *testing.T, line string) {
		h := http.Header{"Www-Authenticate": {line}}
		for _, c := range challenges(h) {
			if c == "" || !strings.Contains(line, strings.Split(c, ", ")[0]) {
				t.Errorf("challenge %q of %q", c, line)
			}
		}
		if a, ok := authorize(h, url.UserPassword("u", "p"), "/p", []byte("body")); ok == (a == "") || strings.ContainsAny(a, "\r\n") {
			t.Errorf("%q answers %q", a, line)
		}
	})
}

func TestHTTP2(t *testing.T) {
	var connections, other atomic.Int32
	server, s := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			other.Add(1)
		}
		_, _ = io.Copy(w, r.Body)
	}, func(server *httptest.Server) {
		server.EnableHTTP2 = true
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
	})
	for range 10 {
		if got := send(t, s, server.URL, nil); got.Class != deliver.Success {
			t.Fatalf("%+v", got)
		}
	}
	if connections.Load() != 1 || other.Load() != 0 {
		t.Errorf("10 attempts took %d connections, and %d were not over HTTP/2", connections.Load(), other.Load())
	}
	// An endpoint without it is spoken to as it likes.
	server, s = serveTLS(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Proto != "HTTP/1.1" {
			other.Add(1)
		}
	}, nil)
	if got := send(t, s, server.URL, nil); got.Class != deliver.Success || other.Load() != 0 {
		t.Errorf("over HTTP/1.1: %+v", got)
	}
}
