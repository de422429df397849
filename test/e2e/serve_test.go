package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/certs/acme/acmetest"
	"godwit.dev/godwit/test/sdkhttp"
)

// emptyHash is the SHA-256 of nothing.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// production is what godwit init has made.
type production struct {
	dir, settings, data string
	AccessKeyID         string `json:"accessKeyId"`
	SecretAccessKey     string `json:"secretAccessKey"`
}

// initialise runs godwit init.
func initialise(t *testing.T) *production {
	t.Helper()
	p := &production{dir: filepath.Join(t.TempDir(), "prod")}
	p.settings, p.data = filepath.Join(p.dir, "godwit.yaml"), p.dir+"-data"
	out, err := exec.Command(binary, "init", "--dir", p.dir, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, p); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return p
}

// serve starts godwit serve, and waits until it answers.
func (p *production) serve(t *testing.T, addr string, trust *tls.Config, more ...string) *process {
	t.Helper()
	s := launch(t, addr, exec.Command(binary, append([]string{"serve", "--config", p.settings, "--listen", addr}, more...)...))
	if trust != nil {
		s.client = client{
			base: "https://" + addr, hung: new(atomic.Bool),
			http: &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}},
		}
	}
	s.awaitReady(t)
	return s
}

// sqs is a client of AWS's SDK.
func (p *production) sqs(s *process, secret string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: region, BaseEndpoint: aws.String(s.base), HTTPClient: sdkhttp.Of(s.http), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, secret, ""),
	})
}

// authority signs certificates.
type authority struct {
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	serial int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{serial: 1}
	a.key, a.cert = a.issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "a test's"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) issue(t *testing.T, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

// trust is what a client needs.
func (a *authority) trust() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// files writes a new certificate of 127.0.0.1, in which a client's is good too.
func (a *authority) files(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, leaf := a.issue(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePEM(t, key, "PRIVATE KEY", der)
	writePEM(t, cert, "CERTIFICATE", leaf.Raw)
	return cert, key
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestServeWithTLS(t *testing.T) {
	p, a := initialise(t), newAuthority(t)
	dir := t.TempDir()
	cert, key := a.files(t, dir)
	addr := freeAddress(t)
	s := p.serve(t, addr, a.trust(), "--tls-cert", cert, "--tls-key", key)

	c := p.sqs(s, p.SecretAccessKey)
	queue, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://" + addr + "/" + account + "/q"; *queue.QueueUrl != want {
		t.Errorf("the queue is at %s, want %s", *queue.QueueUrl, want)
	}
	if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("hi")}); err != nil {
		t.Fatal(err)
	}
	got, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("%v, %v", got, err)
	}

	// Over HTTP/2 as well.
	r, err := s.http.Get(s.base + "/_godwit/health")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.ProtoMajor != 2 || r.StatusCode != http.StatusOK {
		t.Errorf("%s %s", r.Proto, r.Status)
	}

	// What a proxy might read as two requests is refused, as it is without TLS.
	raw, err := tls.Dial("tcp", addr, a.trust())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := io.WriteString(raw, "POST / HTTP/1.1\r\nHost: "+addr+"\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /_godwit/health HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answers, _ := io.ReadAll(raw) // which may end in a reset, as there was more to read
	if text := string(answers); !strings.HasPrefix(text, "HTTP/1.1 400 ") || strings.Count(text, "HTTP/1.1") != 1 {
		t.Errorf("two lengths are answered %q", answers)
	}

	// A new certificate is taken; one that is broken is reported, and the old one stays.
	serial := func() string {
		conn, err := tls.Dial("tcp", addr, a.trust())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	a.files(t, dir)
	eventually(t, "the new certificate is used", func() (bool, error) { return serial() != before, nil })
	now := serial()
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "health tells of the broken certificate", func() (bool, error) {
		r, err := s.call(t.Context(), http.MethodGet, "/_godwit/health", nil, nil)
		return err == nil && r.status == http.StatusServiceUnavailable && strings.Contains(string(r.body), "the old one still is"), err
	})
	if serial() != now {
		t.Error("the certificate has changed")
	}
	a.files(t, dir)
	eventually(t, "health is well again", func() (bool, error) {
		r, err := s.call(t.Context(), http.MethodGet, "/_godwit/health", nil, nil)
		return err == nil && r.status == http.StatusOK, err
	})
}

func TestServeVerifies(t *testing.T) {
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil)
	_, err := p.sqs(s, strings.Repeat("x", 40)).ListQueues(t.Context(), &sqs.ListQueuesInput{})
	var refused smithy.APIError
	if !errors.As(err, &refused) || !strings.Contains(refused.ErrorCode(), "Signature") {
		t.Errorf("a wrong secret: %v", err)
	}
	if _, err := p.sqs(s, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/_godwit/deliveries", "/metrics", "/_godwit/queue"} {
		if r, err := s.call(t.Context(), http.MethodGet, path, nil, nil); err != nil || r.status != http.StatusForbidden {
			t.Errorf("%s: %d %v", path, r.status, err)
		}
	}
	for _, secret := range []string{p.SecretAccessKey, "wJalr"} {
		if strings.Contains(s.stdout.String()+s.stderr.String(), secret) {
			t.Error("the secret is told")
		}
	}
}

// A certificate is had by ACME, and another one in its place before it expires.
func TestServeByACME(t *testing.T) {
	t.Parallel()
	p := initialise(t)
	addr := freeAddress(t)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	directory, ca, roots := acmetest.Authority(t, acmetest.Ports{TLS: number}, 12)
	const domain = "godwit.example.com"
	trust := &tls.Config{RootCAs: roots, ServerName: domain, MinVersion: tls.VersionTLS12}
	s := p.serve(t, host+":"+port, trust, "--acme-domains", domain, "--acme-directory", directory, "--acme-ca", ca)
	if _, err := p.sqs(s, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Error(err)
	}
	first := ""
	eventually(t, "the certificate is renewed", func() (bool, error) {
		conn, err := tls.Dial("tcp", addr, trust)
		if err != nil {
			return false, err
		}
		defer conn.Close()
		serial := conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
		if first == "" {
			first = serial
		}
		return serial != first, nil
	})
	if r, err := s.call(t.Context(), http.MethodGet, "/_godwit/health", nil, nil); err != nil || r.status != http.StatusOK {
		t.Errorf("health: %d %s %v", r.status, r.body, err)
	}
}

func TestServeClientCertificates(t *testing.T) {
	p, a := initialise(t), newAuthority(t)
	dir := t.TempDir()
	cert, key := a.files(t, dir)
	ca := filepath.Join(dir, "ca.pem")
	writePEM(t, ca, "CERTIFICATE", a.cert.Raw)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	trust := a.trust()
	trust.Certificates = []tls.Certificate{pair}
	s := p.serve(t, freeAddress(t), trust, "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", ca)
	if _, err := p.sqs(s, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Error(err)
	}
	none := &http.Client{Transport: &http.Transport{TLSClientConfig: a.trust()}}
	if r, err := none.Get(s.base + "/_godwit/health"); err == nil {
		r.Body.Close()
		t.Errorf("without a certificate: %s", r.Status)
	}
}

func TestServeOperators(t *testing.T) {
	p := initialise(t)
	operators := freeAddress(t)
	s := p.serve(t, freeAddress(t), nil, "--admin-listen", operators)
	own := newClient(operators)
	for path, want := range map[string]int{
		"/_godwit/health": http.StatusOK, "/_godwit/ready": http.StatusOK, "/metrics": http.StatusOK,
		"/_godwit/deliveries": http.StatusBadRequest, "/": http.StatusNotFound, "/?Action=ListQueues": http.StatusNotFound,
	} {
		if r, err := own.call(t.Context(), http.MethodGet, path, nil, nil); err != nil || r.status != want {
			t.Errorf("%s there: %d %s %v", path, r.status, r.body, err)
		}
	}
	for path, want := range map[string]int{
		"/_godwit/health": http.StatusOK, "/_godwit/ready": http.StatusOK, "/metrics": http.StatusForbidden, "/_godwit/deliveries": http.StatusForbidden,
	} {
		if r, err := s.call(t.Context(), http.MethodGet, path, nil, nil); err != nil || r.status != want {
			t.Errorf("%s at the main port: %d %s %v", path, r.status, r.body, err)
		}
	}
}

// A user is an operator if a policy says so, and only as far as it does.
func TestOperatorsByPolicy(t *testing.T) {
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil)
	root := iam.New(iam.Options{
		Region: region, BaseEndpoint: aws.String(s.base), HTTPClient: sdkhttp.Of(s.http), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, ""),
	})
	name := aws.String("ops")
	if _, err := root.CreateUser(t.Context(), &iam.CreateUserInput{UserName: name}); err != nil {
		t.Fatal(err)
	}
	made, err := root.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: name})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string, key aws.Credentials) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := v4.NewSigner().SignHTTP(t.Context(), key, r, emptyHash, "godwit", region, time.Now()); err != nil {
			t.Fatal(err)
		}
		answer, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	user := aws.Credentials{AccessKeyID: *made.AccessKey.AccessKeyId, SecretAccessKey: *made.AccessKey.SecretAccessKey}
	if status := ask(http.MethodGet, "/metrics", aws.Credentials{AccessKeyID: p.AccessKeyID, SecretAccessKey: p.SecretAccessKey}); status != http.StatusOK {
		t.Errorf("root: %d", status)
	}
	if status := ask(http.MethodGet, "/metrics", user); status != http.StatusForbidden {
		t.Errorf("a user without a policy: %d", status)
	}
	if _, err := root.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: name, PolicyName: aws.String("read"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"godwit:Read","Resource":"*"}]}`)}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/_godwit/clock": http.StatusOK} {
		if status := ask(http.MethodGet, path, user); status != want {
			t.Errorf("%s with a policy: %d", path, status)
		}
	}
	if status := ask(http.MethodPost, "/_godwit/keys/rotate-root", user); status != http.StatusForbidden {
		t.Errorf("what the policy does not allow: %d", status)
	}
}

// TestServeRefuses has everything wrong at once: all of it is named.
func TestServeRefuses(t *testing.T) {
	p := initialise(t)
	root := filepath.Join(p.dir, "root.key")
	for path, mode := range map[string]os.FileMode{p.settings: 0o666, root: 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(p.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "serve", "--config", p.settings, "--listen", "0.0.0.0:0", "--data", p.dir,
		"--admin-listen", "0.0.0.0:1", "--min-transfer-rate", "0", "--function-isolation", "none", "--tls-client-ca", "x",
		"--mail-relay", "smtp://ops@mail.example.com", "--mail-password-file", root, "--sms-smsc", "smpps://ops@sms.example.com", "--sms-password-file", root,
		"--firehose-s3-endpoint", "https://s3.example.com", "--firehose-s3-credentials", filepath.Join(p.dir, "none"))
	cmd.Env = append(os.Environ(), "GODWIT_CLOCK=virtual")
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 2 {
		t.Errorf("%v: %s", err, out)
	}
	for _, want := range []string{
		"--config: .*: chmod go-w .*/godwit.yaml", "--config: .* others can replace what is in it: chmod go-w ", "--root-key: .* chmod 600", "--root-key: .* is in the data directory",
		"--listen: .*--tls-cert.*--allow-plain-http", "--admin-listen: ", "--min-transfer-rate: ", "--function-isolation: ",
		"--tls-client-ca: ", "--clock: GODWIT_CLOCK", "--mail-password-file: .* chmod 600",
		"--sms-password-file: .* chmod 600", "--firehose-s3-credentials: .*no such file",
	} {
		if !regexp.MustCompile("(?m)^  " + want).Match(out) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if entries, err := os.ReadDir(p.dir); err != nil || len(entries) != 3 {
		t.Errorf("%v %v: something was written", entries, err)
	}

	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = exec.CommandContext(ctx, binary, "serve", "--config", empty).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--root-key: there is no root key: godwit init --dir DIR") || !strings.Contains(string(out), "--root-access-key: there is no access key") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestInitKeepsWhatIsThere(t *testing.T) {
	p := initialise(t)
	before, err := os.ReadFile(filepath.Join(p.dir, "root.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.settings, filepath.Join(p.dir, "root.key"), filepath.Join(p.dir, "root-access-key.json")} {
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if out, err := exec.Command(binary, "init", "--dir", p.dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "exists") {
		t.Errorf("%v: %s", err, out)
	}
	if now, err := os.ReadFile(filepath.Join(p.dir, "root.key")); err != nil || string(now) != string(before) {
		t.Error("the root key was replaced")
	}
	if !regexp.MustCompile(`^AKIA[A-Z2-7]{16}$`).MatchString(p.AccessKeyID) || len(p.SecretAccessKey) != 40 {
		t.Errorf("%s, a secret of %d", p.AccessKeyID, len(p.SecretAccessKey))
	}
	for _, name := range []string{"godwit.yaml", "root.key", "root-access-key.json"} {
		if text, err := os.ReadFile(filepath.Join(p.dir, name)); err != nil || strings.Contains(string(text), p.SecretAccessKey) {
			t.Errorf("%s has the secret in clear (%v)", name, err)
		}
	}
}

func TestResetRoot(t *testing.T) {
	p := initialise(t)
	old := *p
	out, err := exec.Command(binary, "keys", "reset-root", "--dir", p.dir, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, p); err != nil || p.AccessKeyID == old.AccessKeyID || p.SecretAccessKey == old.SecretAccessKey {
		t.Fatalf("%v: the key is the same", err)
	}
	s := p.serve(t, freeAddress(t), nil)
	if _, err := p.sqs(s, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Error(err)
	}
	if _, err := old.sqs(s, old.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err == nil {
		t.Error("the old key still counts")
	}
}

// What development has sealed is not served before it is under a root key that protects.
func TestServeRefusesDevelopmentsKey(t *testing.T) {
	p := initialise(t)
	s := startAt(t, freeAddress(t), p.data)
	s.createQueue(t, "kept")
	eventually(t, "the banner tells of the key", func() (bool, error) {
		return strings.Contains(s.stdout.String(), "dev-root.key in it, which protects nothing"), nil
	})
	s.terminate(t)
	s.exit(t)

	dev := filepath.Join(p.data, "dev-root.key")
	out, err := exec.Command(binary, "serve", "--config", p.settings, "--listen", freeAddress(t)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "godwit keys rotate-root --dir DIR --from "+dev) {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(binary, "keys", "rotate-root", "--dir", p.dir, "--from", dev).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(binary, "keys", "rotate-root", "--dir", p.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s = p.serve(t, freeAddress(t), nil)
	queues, err := p.sqs(s, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if err != nil || len(queues.QueueUrls) != 1 {
		t.Errorf("%v %v", queues, err)
	}
}

// A root key that is missing or not the data's is named before anything is written: not a
// byte of the data is another after it.
func TestWrongRootKeyChangesNothing(t *testing.T) {
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil)
	if _, err := p.sqs(s, p.SecretAccessKey).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")}); err != nil {
		t.Fatal(err)
	}
	s.kill()
	before := snapshot(t, p.data)
	other := filepath.Join(t.TempDir(), "other")
	if out, err := exec.Command(binary, "init", "--dir", other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for want, key := range map[string]string{
		"the root key is not the one that the data is sealed with": filepath.Join(other, "root.key"),
		"is not there": filepath.Join(other, "none.key"),
	} {
		cmd := exec.Command(binary, "serve", "--config", p.settings, "--listen", freeAddress(t), "--root-key", key,
			"--root-access-key", filepath.Join(other, "root-access-key.json"))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", key, err, out)
		}
		if d := cmp.Diff(before, snapshot(t, p.data)); d != "" {
			t.Errorf("%s has changed the data (-before +after):\n%s", want, d)
		}
	}
	p.serve(t, freeAddress(t), nil)
}

// snapshot is the files in a directory, by their paths, with digests of what they hold.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A server that runs continues with another root key, and starts with it.
func TestRotationOnline(t *testing.T) {
	p := initialise(t)
	operators := freeAddress(t)
	settings, err := os.OpenFile(p.settings, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = settings.WriteString("admin-listen: " + operators + "\n")
		err = errors.Join(err, settings.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := p.serve(t, freeAddress(t), nil)
	rotate := func() {
		t.Helper()
		old, err := os.ReadFile(filepath.Join(p.dir, "root.key"))
		if err != nil {
			t.Fatal(err)
		}
		wrapped := p.wrapped(t)
		if out, err := exec.Command(binary, "keys", "rotate-root", "--dir", p.dir).CombinedOutput(); err != nil || !strings.Contains(string(out), "root.key.") {
			t.Fatalf("%v: %s", err, out)
		}
		if now, err := os.ReadFile(filepath.Join(p.dir, "root.key")); err != nil || string(now) == string(old) {
			t.Fatalf("%v: the root key is the old one", err)
		}
		// Whoever gets the data from now on cannot do anything with the old one.
		eventually(t, "what the old root key opens is gone", func() (bool, error) {
			found := filesWith(t, p.data, wrapped)
			return len(found) == 0, fmt.Errorf("%.200q", found)
		})
	}
	rotate()
	for range 2 {
		if _, err := p.sqs(s, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
			t.Error(err)
		}
		s.kill()
		s = p.serve(t, freeAddress(t), nil)
	}
	own := newClient(operators)
	if r, err := own.call(t.Context(), http.MethodPost, "/_godwit/faults", nil, []byte("{}")); err != nil || r.status != http.StatusForbidden {
		t.Errorf("faults: %d %s %v", r.status, r.body, err)
	}
	s.terminate(t)
	s.exit(t)
	rotate() // while no server runs
	p.serve(t, freeAddress(t), nil)
}

// wrapped is a key of the store, as the root key has wrapped it.
func (p *production) wrapped(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.data, "sealing-keys"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ Keys []struct{ Key string } }
	if err := json.Unmarshal(text, &record); err != nil || len(record.Keys) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	return record.Keys[0].Key
}

func TestDevEnforces(t *testing.T) {
	p := &production{AccessKeyID: "AKIAQAAAAAAAAAAAAAAA", SecretAccessKey: strings.Repeat("s", 40)}
	addr := freeAddress(t)
	cmd := exec.Command(binary, arguments(addr, filepath.Join(t.TempDir(), "data"), "--enforce")...)
	cmd.Env = append(os.Environ(), "GODWIT_ROOT_ACCESS_KEY_ID="+p.AccessKeyID, "GODWIT_ROOT_SECRET_ACCESS_KEY="+p.SecretAccessKey)
	given := launch(t, addr, cmd)
	given.awaitReady(t)
	drawn := start(t, "--enforce")
	eventually(t, "the banner has a key", func() (bool, error) {
		found := regexp.MustCompile(`AWS_ACCESS_KEY_ID=(\S+) AWS_SECRET_ACCESS_KEY=(\S+)`).FindStringSubmatch(drawn.stdout.String())
		if found == nil {
			return false, nil
		}
		other := &production{AccessKeyID: found[1], SecretAccessKey: found[2]}
		_, err := other.sqs(drawn, other.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{})
		return err == nil, err
	})
	if _, err := p.sqs(given, p.SecretAccessKey).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
		t.Error(err)
	}
	for _, s := range []*process{given, drawn} {
		if _, err := p.sqs(s, "wrong").ListQueues(t.Context(), &sqs.ListQueuesInput{}); err == nil {
			t.Error("a wrong secret was believed")
		}
	}
	if strings.Contains(given.stdout.String()+given.stderr.String(), p.SecretAccessKey) {
		t.Error("the secret that was given is printed")
	}
}

// A signature over Host stands in for the list of hosts, and over a GET for its origin.
func TestServeBelievesSignedHosts(t *testing.T) {
	p := initialise(t)
	addr := freeAddress(t)
	_, port, _ := net.SplitHostPort(addr)
	s := p.serve(t, addr, nil, "--listen", "0.0.0.0:"+port, "--allow-plain-http")
	ask := func(method, host, path string, sign bool) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Host, r.Host = host+":"+port, "evil.example"
		if sign {
			err = v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: p.AccessKeyID, SecretAccessKey: p.SecretAccessKey}, r,
				emptyHash, "sqs", region, time.Now())
			if err != nil {
				t.Fatal(err)
			}
		}
		answer, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	const list = "/?Action=ListQueues&Version=2012-11-05"
	hosts := []string{"127.0.0.1"}
	if other := ownAddress(); other != "" {
		hosts = append(hosts, other)
	} else {
		t.Log("the machine has no address but loopback")
	}
	for _, host := range hosts {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if status := ask(method, host, list, true); status != http.StatusOK {
				t.Errorf("signed %s at %s: %d", method, host, status)
			}
			if status := ask(method, host, list, false); status != http.StatusForbidden {
				t.Errorf("unsigned %s at %s: %d", method, host, status)
			}
		}
		if status := ask(http.MethodGet, host, "/_godwit/queue", true); status != http.StatusForbidden {
			t.Errorf("the operator API at %s: %d", host, status)
		}
	}
}

// ownAddress is one of the machine that is not loopback; empty if there is none.
func ownAddress() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

func TestServeAudits(t *testing.T) {
	p := initialise(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	operators := freeAddress(t)
	s := p.serve(t, freeAddress(t), nil, "--audit-log", path, "--admin-listen", operators)
	own := newClient(operators)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if _, err := own.call(t.Context(), method, "/_godwit/clock", nil, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	c := p.sqs(s, p.SecretAccessKey)
	queue, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("canary")}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.sqs(s, strings.Repeat("x", 40)).DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: queue.QueueUrl}); err == nil {
		t.Fatal("a wrong secret was believed")
	}
	var text []byte
	eventually(t, "there are three records", func() (bool, error) {
		text, err = os.ReadFile(path)
		return strings.Count(string(text), "\n") == 3, err
	})
	for _, want := range []string{
		`"eventName":"POST /_godwit/clock"`, `"eventName":"CreateQueue"`, `"type":"Root"`, `"queueName":"q"`, `"accessKeyId":"` + p.AccessKeyID, `"eventName":"DeleteQueue"`, `"errorCode":"`, `"type":"Unknown"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, secret := range []string{"canary", p.SecretAccessKey, "Signature="} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q in\n%s", secret, text)
		}
	}
}
