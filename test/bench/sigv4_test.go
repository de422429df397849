package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The credentials and the time of AWS's published test suite for Signature
// Version 4.
const (
	suiteKey    = "AKIDEXAMPLE"
	suiteSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

var suiteTime = time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)

func TestSignerAgainstTestSuite(t *testing.T) {
	host := header{"host", "example.amazonaws.com"}
	date := header{"x-amz-date", "20150830T123600Z"}
	form := header{"content-type", "application/x-www-form-urlencoded"}
	for _, c := range []struct {
		name, method, query, body string
		headers                   []header
		want                      string
	}{
		{
			name: "get-vanilla", method: "GET", headers: []header{host, date},
			want: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		{
			name: "post-vanilla", method: "POST", headers: []header{host, date},
			want: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		},
		{
			name: "post-x-www-form-urlencoded", method: "POST", headers: []header{form, host, date}, body: "Param1=value1",
			want: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
		},
		{
			name: "get-vanilla-query-order-key-case", method: "GET", query: "Param1=value1&Param2=value2", headers: []header{host, date},
			want: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &signer{accessKey: suiteKey, secret: suiteSecret, region: "us-east-1", service: "service"}
			var names []string
			for _, h := range c.headers {
				names = append(names, h.name)
			}
			want := "AWS4-HMAC-SHA256 Credential=" + suiteKey + "/20150830/us-east-1/service/aws4_request, SignedHeaders=" +
				strings.Join(names, ";") + ", Signature=" + c.want
			for range 2 { // the second time with the key that the first derived
				if got := string(s.authorize(nil, suiteTime, c.method, "/", c.query, c.headers, []byte(c.body))); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
		})
	}
}

func TestSigningKey(t *testing.T) {
	s := &signer{secret: suiteSecret, region: "us-east-1", service: "iam"}
	const want = "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"
	if got := hex.EncodeToString(s.key("20120215")); got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}

// What a connection sends must be what the SDK's own signer would have signed.
func TestRequestAgainstSDK(t *testing.T) {
	body := []byte(`{"QueueUrl":"http://127.0.0.1:4566/000000000000/q","MessageBody":"hello"}`)
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, op := range []*operation{sendMessage, snsOperation} {
		c := newConn("127.0.0.1:4566")
		for _, when := range []time.Time{at, at.Add(24 * time.Hour)} { // a new day needs a new key
			c.compose(op, when, body)
			head, sent, _ := strings.Cut(string(c.out), "\r\n\r\n")
			if sent != string(body) {
				t.Fatalf("body %q", sent)
			}
			got := map[string]string{}
			request, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:4566/", nil)
			for _, line := range strings.Split(head, "\r\n")[1:] {
				name, value, _ := strings.Cut(line, ": ")
				got[name] = value
				switch name {
				case "Authorization", "User-Agent", "Accept-Encoding", "Host", "Content-Length":
				default:
					request.Header.Set(name, value)
				}
			}
			if got["Content-Length"] != strconv.Itoa(len(body)) {
				t.Errorf("Content-Length %s", got["Content-Length"])
			}
			request.ContentLength = int64(len(body))
			sum := sha256.Sum256(body)
			err := v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"},
				request, hex.EncodeToString(sum[:]), op.service, "us-east-1", when)
			if err != nil {
				t.Fatal(err)
			}
			if want := request.Header.Get("Authorization"); got["Authorization"] != want {
				t.Errorf("%s\ngot  %s\nwant %s", op.name(), got["Authorization"], want)
			}
		}
	}
}
