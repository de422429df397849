package sdk_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/sigv4"
)

// The tests' servers verify signatures. They know every access key: a number of 12
// digits is the root's key of that account, and what is not of the form of a key of IAM
// the root's of 000000000000.
// What the SDK's clients sign goes as it is; requests that are written by hand are signed
// on their way.

// secretOf is the secret of an access key of the tests. Functions are given that of their
// account's.
func secretOf(accessKey string) string {
	switch {
	case isAccount(accessKey):
		return "godwit-secret"
	case accessKey == "test":
		return "secret"
	default:
		return "secret of " + accessKey
	}
}

func isAccount(s string) bool {
	return len(s) == len(account) && strings.Trim(s, "0123456789") == ""
}

// testKeys knows the tests' access keys.
func testKeys(accessKey, sessionToken string) (sigv4.Credential, error) {
	if strings.HasPrefix(accessKey, "AKIA") || strings.HasPrefix(accessKey, "ASIA") {
		return sigv4.Credential{}, sigv4.ErrUnknownKey // it would be the server's own
	}
	who := &caller.Caller{Kind: caller.Root, Account: account, AccessKey: accessKey}
	if isAccount(accessKey) {
		who.Account = accessKey
	}
	who.ID, who.ARN = who.Account, "arn:aws:iam::"+who.Account+":root"
	credential := sigv4.Credential{Secret: secretOf(accessKey), Caller: who}
	if sessionToken != "" {
		return credential, sigv4.ErrToken
	}
	return credential, nil
}

// signingPair is the same for all servers, since to make one costs more than most tests.
var signingPair = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// withTestKeys builds a server that knows them.
func withTestKeys(ctx context.Context, deps server.Deps) (server.Parts, error) {
	deps.Keys, deps.World.SigningPair = testKeys, signingPair
	return server.Assemble(ctx, deps)
}

// open has a server take any credentials, as development does.
func open(c *config.Config) { c.Enforce = false }

// startOpen runs a server that takes any credentials, and none. Tests of what a handler
// refuses by itself use it where authorisation would refuse before it.
func startOpen(t *testing.T) (endpoint string) { return startWith(t, open) }

// enforcing are the addresses (host:port) of servers that verify signatures.
var enforcing sync.Map

// signing is the transport of all requests.
type signing struct{ http.RoundTripper }

// unsigned is a mark in the context of a request that goes without a signature.
type unsigned struct{}

// withoutSignature lets a request that is written by hand go as it is.
func withoutSignature(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), unsigned{}, true))
}

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	_, enforces := enforcing.Load(r.URL.Host)
	if enforces && r.Header.Get("Authorization") == "" && r.Context().Value(unsigned{}) == nil && !strings.Contains(r.URL.RawQuery, "X-Amz-Signature=") {
		var err error
		if r, err = signed(r, "test", time.Now()); err != nil {
			return nil, err
		}
	}
	return s.RoundTripper.RoundTrip(r)
}

// signed is a request with a signature.
func signed(r *http.Request, accessKey string, at time.Time) (*http.Request, error) {
	r, body, err := withBody(r)
	if err != nil {
		return nil, err
	}
	of := region
	if labels := strings.Split(r.Host, "."); len(labels) > 2 && strings.Count(labels[1], "-") == 2 {
		of = labels[1] // the endpoint is this region's
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretOf(accessKey)}, r, hex.EncodeToString(sum[:]), serviceOf(r, body), of, at)
	return r, err
}

// withBody is a copy of a request, and its body.
func withBody(r *http.Request) (*http.Request, []byte, error) {
	c := r.Clone(r.Context())
	if r.Body == nil {
		return c, nil, nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a request's body: %w", err)
	}
	c.Body = io.NopCloser(bytes.NewReader(body))
	c.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c, body, nil
}

// isOwn says that a request is for none of AWS's services, but for Godwit.
func isOwn(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/_godwit") || r.URL.Path == "/metrics"
}

// serviceOf is the service that a request is for, as its scope has it.
func serviceOf(r *http.Request, body []byte) string {
	if isOwn(r) {
		return "godwit"
	}
	target, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	form, _ := url.ParseQuery(string(body))
	known := map[string]string{
		"AmazonSQS": "sqs", "Logs_20140328": "logs", "GraniteServiceVersion20100801": "monitoring", "TrentService": "kms", "Firehose_20150804": "firehose",
		"2012-11-05": "sqs", "2010-03-31": "sns", "2010-08-01": "monitoring", "2010-05-08": "iam", "2011-06-15": "sts", "2010-05-15": "cloudformation",
	}
	for _, name := range []string{target, form.Get("Version"), r.URL.Query().Get("Version")} {
		if service := known[name]; service != "" {
			return service
		}
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/service/Granite"):
		return "monitoring"
	case strings.HasPrefix(r.URL.Path, "/20"):
		return "lambda"
	default:
		return "sqs"
	}
}
