package sdk_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"godwit.dev/godwit/internal/config"
)

// npm's sns-validator, as it is published, accepts our messages when it is told
// our host. It fetches certificates by https only, and so meets us behind a
// proxy with TLS.
//
// It checks no UnsubscribeConfirmation: it leaves the Token out of what is
// signed, against the developer guide, by which TestSignatures checks those.
func TestPublishedValidatorAccepts(t *testing.T) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no "+tool+" here: ", err)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "verify.js"} {
		text, err := os.ReadFile(filepath.Join("testdata/sns-validator", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}

	var behind http.Handler
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { behind.ServeHTTP(w, r) }))
	defer front.Close()
	endpoint := startWith(t, func(c *config.Config) { c.PublicURL = front.URL })
	behind = proxyTo(t, endpoint)
	authority := filepath.Join(dir, "authority.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}

	c := topicsClient(endpoint)
	topic, h := createTopic(t, c, "orders"), newHook(t)
	var messages, want []string
	for _, version := range []string{"1", "2"} {
		setTopic(t, c, topic, "SignatureVersion", version)
		arn := subscribe(t, c, topic, "http", h.URL)
		confirmation := h.next(t).Body
		token := decode(t, confirmation)["Token"].(string)
		must(c.ConfirmSubscription(t.Context(), &sns.ConfirmSubscriptionInput{TopicArn: &topic, Token: &token}))(t)
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("<\"é\"> & \u2028")}))(t)
		must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("m"), Subject: aws.String("subject")}))(t)
		first, second := h.next(t).Body, h.next(t).Body
		forged := strings.Replace(first, `"Message" : "`, `"Message" : "x`, 1)
		messages = append(messages, confirmation, first, second, forged)
		want = append(want, "ok", "ok", "ok", "The message signature is invalid.")
		must(c.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &arn}))(t)
	}
	var lines bytes.Buffer
	for _, m := range messages {
		if err := json.Compact(&lines, []byte(m)); err != nil {
			t.Fatal(err)
		}
		lines.WriteByte('\n')
	}
	validate := exec.CommandContext(t.Context(), "node", "--no-deprecation", "verify.js", strings.TrimPrefix(front.URL, "https://"))
	validate.Dir, validate.Stdin = dir, &lines
	validate.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+authority)
	out, err := validate.CombinedOutput()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}
	equal(t, "sns-validator", want, strings.Split(strings.TrimSpace(string(out)), "\n"))
}
