package e2e_test

import (
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestPostsOverTLS: where the server has a certificate sources take posts by TLS alone, with
// the certificate that the files have now.
func TestPostsOverTLS(t *testing.T) {
	t.Parallel()
	p, a, dir := initialise(t), newAuthority(t), t.TempDir()
	cert, key := a.files(t, dir)
	addr, posts := freeAddress(t), freeAddress(t)
	s := p.serve(t, addr, a.trust(), "--tls-cert", cert, "--tls-key", key, "--ingest-listen", posts)
	c := p.sqs(s, p.SecretAccessKey)
	queue, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	authority, source := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "source.yaml")
	for path, text := range map[string]string{
		authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})),
		source:    "name: shop\ntarget: " + queueARN("orders") + "\nverification: {kind: api-key}\nsecrets: [a key of some length]\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put := exec.Command(binary, "sources", "put", source, "--yes", "--endpoint", s.base)
	put.Env = append(os.Environ(), "AWS_CA_BUNDLE="+authority, "AWS_REGION="+region, "AWS_ACCESS_KEY_ID="+p.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+p.SecretAccessKey)
	if out, err := put.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	post := func(url string, client *http.Client) (status int, serial string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/in/shop", strings.NewReader(`{"order":7}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Api-Key", "a key of some length")
		answer, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		if answer.TLS != nil {
			serial = answer.TLS.PeerCertificates[0].SerialNumber.String()
		}
		return answer.StatusCode, serial, nil
	}
	fresh := func() *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: a.trust(), DisableKeepAlives: true}}
	}
	status, first, err := post("https://"+posts, fresh())
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("a post by TLS: %d, %v", status, err)
	}
	if status, _, err := post("http://"+posts, fresh()); err == nil && status == http.StatusAccepted {
		t.Error("a post in clear is taken")
	}
	got, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10})
	if err != nil || len(got.Messages) != 1 || *got.Messages[0].Body != `{"order":7}` {
		t.Errorf("the queue has %+v, %v", got, err)
	}

	a.files(t, dir)
	eventually(t, "another certificate for posts", func() (bool, error) {
		status, serial, err := post("https://"+posts, fresh())
		return err == nil && status == http.StatusAccepted && serial != first, err
	})
}
