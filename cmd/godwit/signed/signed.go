// Package signed signs requests to a server's operator API, with the access key that AWS's own
// tools would use.
package signed

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"godwit.dev/godwit/internal/clock"
)

// service is the service in the scope of requests to the operator API.
const service = "godwit"

// Key is an access key, and the region that requests are signed for.
type Key struct {
	ID, Secret, SessionToken, Region string
}

// Find finds the access key of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN) or else of the profile AWS_PROFILE, or default, in
// AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials. ok is false if there is none, and err
// reports a named profile that does not exist, or is incomplete.
func Find() (k Key, ok bool, err error) {
	k = Key{
		ID: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
	}
	if k.ID != "" && k.Secret != "" {
		return k, true, nil
	}
	home, _ := os.UserHomeDir() // without one there is no such file
	path := cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials"))
	named := os.Getenv("AWS_PROFILE")
	text, err := os.ReadFile(path) //nolint:gosec // as AWS's tools do
	if err != nil && (named != "" || !errors.Is(err, fs.ErrNotExist)) {
		return k, false, fmt.Errorf("the access keys in %s cannot be read: %w", path, err)
	}
	profile := cmp.Or(named, "default")
	values := section(string(text), profile)
	k.ID, k.Secret, k.SessionToken = values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"]
	if k.ID != "" && k.Secret != "" {
		return k, true, nil
	}
	if named != "" {
		return k, false, fmt.Errorf("%s has no access key of the profile %s (AWS_PROFILE)", path, profile)
	}
	return k, false, nil
}

// section reads a section of an INI file.
func section(text, name string) map[string]string {
	values, within := map[string]string{}, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			within = strings.TrimSpace(strings.Trim(line, "[]")) == name
		case within:
			key, value, _ := strings.Cut(line, "=")
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return values
}

// Client is an HTTP client whose requests are signed with the access key of Find, or unsigned
// without one. timeout bounds each request; 0: no bound. Accepted certificates are those of
// Plain.
func Client(timeout time.Duration) (*http.Client, error) {
	c, err := Plain(timeout)
	if err != nil {
		return nil, err
	}
	k, ok, err := Find()
	if err != nil || !ok {
		return c, err
	}
	c.Transport = &transport{k, c.Transport}
	return c, nil
}

// Plain is an HTTP client whose requests are not signed. It accepts certificates of the
// authorities in AWS_CA_BUNDLE, a file of PEM, and of no others if that is set; else the
// system's.
func Plain(timeout time.Duration) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	trust, err := Trust()
	if err != nil {
		return nil, err
	}
	if trust != nil {
		t.TLSClientConfig = trust
	}
	return &http.Client{Timeout: timeout, Transport: t}, nil
}

// Trust has the authorities in AWS_CA_BUNDLE; nil: it is not set.
func Trust() (*tls.Config, error) {
	path := os.Getenv("AWS_CA_BUNDLE")
	if path == "" {
		return nil, nil //nolint:nilnil // as it says
	}
	text, err := os.ReadFile(path) //nolint:gosec // as AWS's tools do
	if err != nil {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %s has no certificate in PEM", path)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// transport signs requests.
type transport struct {
	key  Key
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	sum := sha256.Sum256(body)
	who := aws.Credentials{AccessKeyID: t.key.ID, SecretAccessKey: t.key.Secret, SessionToken: t.key.SessionToken}
	if err := v4.NewSigner().SignHTTP(r.Context(), who, r, hex.EncodeToString(sum[:]), service, t.key.Region, clock.System.Now()); err != nil {
		return nil, fmt.Errorf("a request cannot be signed: %w", err)
	}
	return t.next.RoundTrip(r)
}
