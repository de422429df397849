package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/test/sdkhttp"
)

// Who signs a request opens a session of the console, in which policies decide as they do
// elsewhere; the page and how the session stands are for anybody, and nothing else is.
func TestConsoleSession(t *testing.T) {
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil)
	root := iam.New(iam.Options{
		Region: region, BaseEndpoint: aws.String(s.base), HTTPClient: sdkhttp.Of(s.http), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, ""),
	})
	if _, err := root.CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("ann")}); err != nil {
		t.Fatal(err)
	}
	made, err := root.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: aws.String("ann")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("ann"), PolicyName: aws.String("read"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"godwit:Read","Resource":"*"}]}`)}); err != nil {
		t.Fatal(err)
	}
	key := aws.Credentials{AccessKeyID: *made.AccessKey.AccessKeyId, SecretAccessKey: *made.AccessKey.SecretAccessKey}

	var cookie *http.Cookie
	var csrf string
	ask := func(method, path string, sign *aws.Credentials) (int, map[string]any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cookie != nil {
			r.AddCookie(cookie)
		}
		r.Header.Set("X-Godwit-CSRF", csrf)
		if sign != nil {
			if err := v4.NewSigner().SignHTTP(t.Context(), *sign, r, emptyHash, "godwit", region, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		for _, c := range answer.Cookies() {
			cookie = c
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]any{}
		if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
			if err := json.Unmarshal(text, &said); err != nil {
				t.Fatalf("%s %s: %s", method, path, text)
			}
		}
		return answer.StatusCode, said
	}
	wants := func(want int, method, path string, sign *aws.Credentials) map[string]any {
		t.Helper()
		status, said := ask(method, path, sign)
		if status != want {
			t.Errorf("%s %s: %d %v, want %d", method, path, status, said, want)
		}
		return said
	}
	const session, queues, retry = "/_godwit/ui/session", "/_godwit/v1/queues", "/_godwit/deliveries/retry"

	wants(http.StatusOK, "GET", "/_godwit/ui/", nil)
	if said := wants(http.StatusOK, "GET", session, nil); said["required"] != true || said["user"] != nil {
		t.Errorf("%v", said)
	}
	wants(http.StatusUnauthorized, "GET", queues, nil)
	wants(http.StatusForbidden, "POST", session, nil)
	wrong := key
	wrong.SecretAccessKey = "guessed"
	wants(http.StatusForbidden, "POST", session, &wrong)
	if cookie != nil {
		t.Fatal("a session without a signature")
	}

	wants(http.StatusOK, "POST", session, &key)
	said := wants(http.StatusOK, "GET", session, nil)
	if user, _ := said["user"].(string); !strings.HasSuffix(user, ":user/ann") {
		t.Errorf("%v", said)
	}
	wants(http.StatusOK, "GET", queues, nil)
	wants(http.StatusForbidden, "POST", retry, nil) // not from the page
	csrf, _ = said["csrf"].(string)
	wants(http.StatusForbidden, "POST", retry, nil) // she may only look
	if _, err := root.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("ann"), PolicyName: aws.String("operate"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"godwit:Operate","Resource":"*"}]}`)}); err != nil {
		t.Fatal(err)
	}
	wants(http.StatusBadRequest, "POST", retry, nil) // she may, and says nothing
	kept := cookie
	wants(http.StatusOK, "POST", session+"/end", nil)
	cookie = kept
	wants(http.StatusUnauthorized, "GET", queues, nil)

	// A key that is taken away ends what it opened.
	cookie = nil
	wants(http.StatusOK, "POST", session, &key)
	wants(http.StatusOK, "GET", queues, nil)
	if _, err := root.DeleteAccessKey(t.Context(), &iam.DeleteAccessKeyInput{UserName: aws.String("ann"), AccessKeyId: made.AccessKey.AccessKeyId}); err != nil {
		t.Fatal(err)
	}
	wants(http.StatusUnauthorized, "GET", queues, nil)
}
