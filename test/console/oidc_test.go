package console_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The one client that the provider knows, and the name and the password of its user.
const (
	oidcClient   = "godwit"
	oidcSecret   = "the client's secret"
	oidcUser     = "test-user@127.0.0.1"
	oidcPassword = "verysecure"
)

// provide runs an OpenID Connect provider with a page to sign in at, for a console at an
// address.
func provide(t *testing.T, console string) (issuer string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer = "http://" + l.Addr().String()
	storage.RegisterClients(storage.WebClient(oidcClient, oidcSecret, console+"/_godwit/ui/oidc/callback"))
	provider := exampleop.SetupServer(issuer, storage.NewStorage(storage.NewUserStore(issuer)), slog.New(slog.DiscardHandler), false, op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	srv := &http.Server{Handler: provider}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return issuer
}

// asRoot asks a server that verifies who calls, as its root user.
func (s *server) asRoot(service, path, kind, target, body string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	digest := sha256.Sum256([]byte(body))
	key := aws.Credentials{AccessKeyID: rootKey, SecretAccessKey: rootSecret}
	if err := v4.NewSigner().SignHTTP(context.Background(), key, r, hex.EncodeToString(digest[:]), service, "us-east-1", time.Now()); err != nil {
		s.t.Fatal(err)
	}
	return s.do(r)
}

// iam carries out an action of IAM as the root user.
func (s *server) iam(action string, pairs ...string) {
	s.t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2010-05-08"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	s.asRoot("iam", "/", "application/x-www-form-urlencoded", "", form.Encode())
}

// Whom an identity provider vouches for has the role that the settings name for them, and
// what that may do; nobody else is let in.
func TestSignInAtProvider(t *testing.T) {
	if missing != "" {
		t.Skip(missing)
	}
	address := freeAddress(t)
	issuer := provide(t, "http://"+address)
	secret := file(t, oidcSecret+"\n")
	s := start(t, "--enforce", "--listen", address, "--public-url", "http://"+address, "--console-oidc-issuer", issuer, "--console-oidc-client", oidcClient,
		"--console-oidc-secret-file", secret, "--console-oidc-roles", "sub=nobody=others,email=test-user@zitadel.ch=watchers")
	const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	b := s.open(t)
	b.also = issuer
	at := func() {
		b.press("Sign in with")
		b.until("the provider asks for a password", `document.querySelector("input[name=password]")`)
		b.fill("Username", oidcUser)
		b.fill("Password", oidcPassword)
		b.run(script(`document.querySelector("form").submit()`))
	}

	// There is no such role yet.
	b.visit("queues")
	b.shows("Sign in with " + strings.TrimPrefix(issuer, "http://"))
	at()
	b.shows("Nobody has given you a role on this server.")

	s.iam("CreateRole", "RoleName", "watchers", "AssumeRolePolicyDocument", trust)
	s.iam("PutRolePolicy", "RoleName", "watchers", "PolicyName", "look", "PolicyDocument", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"godwit:Read","Resource":"*"}]}`)
	s.asRoot("sqs", "/", "application/x-www-form-urlencoded", "", "Action=CreateQueue&Version=2012-11-05&QueueName=fulfilment")
	b.visit("queues", "search", "ful")
	at()
	b.shows("Signed in as arn:aws:sts::" + account + ":assumed-role/watchers/test-user@zitadel.ch")
	b.until("the page that was asked for is shown", `location.search === "?search=ful" && document.body.innerText.includes("fulfilment")`)
	if b.is(`document.cookie`) {
		t.Error("a script can read the cookie")
	}

	// They may look, and do no more.
	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":fulfilment")
	b.press("Look")
	b.shows("is not authorized to perform: godwit:PeekMessages")

	// What happens to the role holds at once.
	s.iam("PutRolePolicy", "RoleName", "watchers", "PolicyName", "look", "PolicyDocument", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["godwit:Read","godwit:PeekMessages"],"Resource":"*"}]}`)
	b.press("Look")
	b.shows("No message is like that.")
	s.iam("DeleteRolePolicy", "RoleName", "watchers", "PolicyName", "look")
	s.iam("DeleteRole", "RoleName", "watchers")
	b.shows("Sign in to Godwit")
}

// Signing out everywhere ends the sessions in other browsers, too.
func TestSignOutEverywhere(t *testing.T) {
	s := start(t, "--enforce")
	sign := func() *tab {
		b := s.open(t)
		b.visit("")
		b.fill("Access key", rootKey)
		b.fill("Secret access key", rootSecret)
		b.press("Sign in")
		b.shows("Signed in as")
		return b
	}
	one, other := sign(), sign()
	one.expect = "End all sessions"
	one.press("Sign out everywhere")
	one.shows("Sign in to Godwit")
	other.shows("Sign in to Godwit")
	other.visit("queues")
	other.shows("Sign in to Godwit")
	if bytes.Contains([]byte(value[string](other, "document.body.innerText")), []byte("There are no queues")) {
		t.Error("the queues are shown")
	}
}
