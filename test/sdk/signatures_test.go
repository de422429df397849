package sdk_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/fxamacker/cbor/v2"

	"godwit.dev/godwit/internal/config"
)

const (
	rootKey    = "AKIAROOTROOTROOTROOT"
	rootSecret = "root/secret+of+the+account/000000000000"
)

// enforce has a server verify signatures, by the root's access key alone.
func enforce(c *config.Config) {
	c.Enforce, c.Root = true, config.Root{AccessKeyID: rootKey, Secret: rootSecret}
}

// asRoot signs with the root's access key.
func asRoot(o *sqs.Options) {
	o.Credentials = credentials.NewStaticCredentialsProvider(rootKey, rootSecret, "")
}

// The SDK's signatures are taken, and others are not.
func TestEnforcedSignatures(t *testing.T) {
	endpoint := startBuilt(t, nil, enforce)
	c := client(endpoint)
	must(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")}, asRoot))(t)
	for name, tc := range map[string]struct {
		key, secret, token string
		code, text         string
	}{
		"another key":         {"AKIDEXAMPLE", rootSecret, "", "InvalidClientTokenId", "The security token included in the request is invalid."},
		"another secret":      {rootKey, "secret", "", "SignatureDoesNotMatch", mismatched},
		"a token it has not":  {rootKey, rootSecret, "token", "InvalidClientTokenId", "The security token included in the request is invalid."},
		"both":                {rootKey, "secret", "token", "SignatureDoesNotMatch", mismatched},
		"an account's number": {account, "secret", "", "InvalidClientTokenId", "The security token included in the request is invalid."},
	} {
		// A client of its own: the SDK keeps what it derives from a secret by the key's name.
		_, err := client(endpoint).ListQueues(t.Context(), nil, func(o *sqs.Options) {
			o.Credentials = credentials.NewStaticCredentialsProvider(tc.key, tc.secret, tc.token)
		})
		t.Log(name)
		refused(t, err, tc.code, 403, tc.text)
	}
	unsigned := do(t, withoutSignature(newJSON(t, endpoint, "ListQueues", "{}")))
	equal(t, "unsigned", `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`, unsigned.Body)
	equal(t, "unsigned, status", 403, unsigned.Status)
}

const mismatched = "The request signature we calculated does not match the signature you provided. " +
	"Check your AWS Secret Access Key and signing method. Consult the service documentation for details."

// protocolCall is a harmless call in one of the protocols, and how it refuses.
type protocolCall struct {
	name   string
	make   func(t *testing.T, endpoint string) *http.Request
	status map[string]int // by the code of Query, where it is not what is usual
	// refusal makes an answer's body of Query's code, JSON's type and a text.
	refusal func(code, kind, text string) string
}

func xmlWith(namespace, head, detail string) func(code, kind, text string) string {
	return func(code, _, text string) string {
		return head + `<ErrorResponse xmlns="` + namespace + `"><Error><Type>Sender</Type><Code>` + code + "</Code><Message>" + text +
			"</Message>" + detail + "</Error><RequestId>ID</RequestId></ErrorResponse>"
	}
}

func jsonWith(prefix string) func(code, kind, text string) string {
	return func(_, kind, text string) string {
		return `{"__type":"` + prefix + kind + `","message":"` + text + `"}`
	}
}

// protocolCalls are one for each protocol of each service.
func protocolCalls() []protocolCall {
	bad := map[string]int{"": 400}
	return []protocolCall{
		{"SQS, JSON", func(t *testing.T, e string) *http.Request {
			return newJSON(t, e, "CreateQueue", `{"QueueName":"made"}`)
		}, nil, jsonWith(coralNS)},
		{"SQS, Query", func(t *testing.T, e string) *http.Request {
			return newForm(t, e, "2012-11-05", "CreateQueue", "QueueName", "made")
		}, nil, xmlWith("http://queue.amazonaws.com/doc/2012-11-05/", `<?xml version="1.0"?>`, "<Detail/>")},
		{"SNS, Query", func(t *testing.T, e string) *http.Request {
			return newForm(t, e, "2010-03-31", "CreateTopic", "Name", "made")
		}, nil, xmlWith("http://sns.amazonaws.com/doc/2010-03-31/", "", "")},
		{
			"CloudWatch, Query", func(t *testing.T, e string) *http.Request { return newForm(t, e, "2010-08-01", "ListMetrics") }, nil,
			xmlWith("http://monitoring.amazonaws.com/doc/2010-08-01/", "", ""),
		},
		{"CloudWatch, JSON", func(t *testing.T, e string) *http.Request {
			r := newJSON(t, e, "", "{}")
			r.Header.Set("X-Amz-Target", "GraniteServiceVersion20100801.ListMetrics")
			return r
		}, bad, jsonWith(coralNS)},
		{
			"IAM, Query", func(t *testing.T, e string) *http.Request { return newForm(t, e, "2010-05-08", "ListUsers") }, nil,
			xmlWith("https://iam.amazonaws.com/doc/2010-05-08/", "", ""),
		},
		{
			"STS, Query", func(t *testing.T, e string) *http.Request { return newForm(t, e, "2011-06-15", "GetCallerIdentity") }, nil,
			xmlWith("https://sts.amazonaws.com/doc/2011-06-15/", "", ""),
		},
		{
			"CloudFormation, Query", func(t *testing.T, e string) *http.Request { return newForm(t, e, "2010-05-15", "ListStacks") }, nil,
			xmlWith("http://cloudformation.amazonaws.com/doc/2010-05-15/", "", ""),
		},
		{"Firehose, JSON", func(t *testing.T, e string) *http.Request {
			r := newJSON(t, e, "", "{}")
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			r.Header.Set("X-Amz-Target", "Firehose_20150804.ListDeliveryStreams")
			return r
		}, bad, jsonWith("")},
		{"CloudWatch Logs, JSON", func(t *testing.T, e string) *http.Request {
			r := newJSON(t, e, "", "{}")
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			r.Header.Set("X-Amz-Target", "Logs_20140328.DescribeLogGroups")
			return r
		}, bad, jsonWith("")},
		{"KMS, JSON", func(t *testing.T, e string) *http.Request {
			r := newJSON(t, e, "", "{}")
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			r.Header.Set("X-Amz-Target", "TrentService.ListKeys")
			return r
		}, bad, jsonWith("")},
		{"Lambda, REST", func(t *testing.T, e string) *http.Request {
			r := newJSON(t, e+"/2015-03-31/functions", "", "")
			r.Method = http.MethodGet
			r.Header.Del("X-Amz-Target")
			return r
		}, nil, func(_, _, text string) string { return `{"message":"` + text + `"}` }},
	}
}

const coralNS = "com.amazon.coral.service#"

// newForm is an operation as a form. The parameters are pairs of name and value.
func newForm(t *testing.T, endpoint, version, operation string, parameters ...string) *http.Request {
	t.Helper()
	form := url.Values{"Action": {operation}, "Version": {version}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/", strings.NewReader(form.Encode())))(t)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

// Every protocol has its own form of each refusal.
func TestRefusedSignatures(t *testing.T) {
	endpoint := start(t)
	basic := func(at time.Time) string { return at.UTC().Format("20060102T150405Z") }
	for _, call := range protocolCalls() {
		t.Run(call.name, func(t *testing.T) {
			service := serviceOf(must2(withBody(call.make(t, endpoint)))(t))
			other := "sqs"
			if service == other {
				other = "sns"
			}
			signedAt := func(at time.Time) *http.Request { return must(signed(call.make(t, endpoint), "test", at))(t) }
			for name, tc := range map[string]struct {
				request    *http.Request
				code, kind string
				status     int
				text       string
			}{
				"unsigned": {
					withoutSignature(call.make(t, endpoint)), "MissingAuthenticationToken", "MissingAuthenticationTokenException", 403,
					"Request is missing Authentication Token",
				},
				"another secret": {edited(signedAt(time.Now()), "Credential=test/", "Credential=tess/"), "SignatureDoesNotMatch", "InvalidSignatureException", 403, mismatched},
				"a token":        {tokened(signedAt(time.Now())), "InvalidClientTokenId", "UnrecognizedClientException", 403, "The security token included in the request is invalid."},
				"incomplete": {
					edited(signedAt(time.Now()), ", Signature=", ", Signed="), "IncompleteSignature", "IncompleteSignatureException", 400,
					"Authorization header requires 'Signature' parameter. (Hashed with SHA-256 and encoded with Base64) Authorization=HASH",
				},
				"another region": {
					edited(signedAt(time.Now()), "/us-east-1/", "/nowhere/"), "SignatureDoesNotMatch", "InvalidSignatureException", 403,
					"Credential should be scoped to a valid region, not 'nowhere'. ",
				},
				"another service": {
					edited(signedAt(time.Now()), "/"+service+"/", "/"+other+"/"), "SignatureDoesNotMatch", "InvalidSignatureException", 403,
					"Credential should be scoped to correct service: '" + service + "'. ",
				},
			} {
				r := do(t, tc.request)
				body := hashes.ReplaceAllString(withoutIDs(r.Body), "Authorization=HASH")
				status := tc.status
				if always, ok := call.status[""]; ok {
					status = always
				}
				equal(t, name, fmt.Sprint(status, " ", call.refusal(tc.code, tc.kind, tc.text)), fmt.Sprint(r.Status, " ", body))
				if kind := r.Header.Get("x-amzn-ErrorType"); service == "lambda" && kind != tc.kind {
					t.Errorf("%s: x-amzn-ErrorType is %q", name, kind)
				}
			}

			// A clock that is wrong. The times in the texts are the server's own.
			for _, off := range []time.Duration{-24 * time.Hour, -16 * time.Minute, 16 * time.Minute, 24 * time.Hour} {
				at := time.Now().Add(off)
				r := do(t, signedAt(at))
				want := "Signature expired: " + basic(at) + " is now earlier than "
				if off > 0 {
					want = "Signature not yet current: " + basic(at) + " is still later than "
				}
				if r.Status != 403 && r.Status != call.status[""] || !strings.Contains(r.Body, want) || !strings.Contains(r.Body, " 15 min.)") {
					t.Errorf("%s off: %d %s", off, r.Status, r.Body)
				}
			}
			for _, off := range []time.Duration{-14 * time.Minute, 14 * time.Minute} {
				if r := do(t, signedAt(time.Now().Add(off))); r.Status != http.StatusOK {
					t.Errorf("%s off: %d %s", off, r.Status, r.Body)
				}
			}
		})
	}
}

var hashes = regexp.MustCompile(`Authorization=[A-Za-z0-9+/]{43}=`)

// edited changes the Authorization header of a signed request.
func edited(r *http.Request, before, after string) *http.Request {
	r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), before, after, 1))
	return r
}

// tokened adds a session's token to a signed request. It is not among what is signed.
func tokened(r *http.Request) *http.Request {
	r.Header.Set("X-Amz-Security-Token", "token")
	return r
}

func must2[A, B any](a A, b B, err error) func(t *testing.T) (A, B) {
	return func(t *testing.T) (A, B) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
}

// Whatever is changed of a signed request on its way, it does nothing.
func TestChangedRequests(t *testing.T) {
	endpoint := start(t)
	c := client(endpoint)
	q := createQueue(t, c, "q")
	flip := func(s string, i int) string { return s[:i] + string(s[i]^1) + s[i+1:] }
	send := `{"QueueUrl":"` + q + `","MessageBody":"body"}`
	for name, change := range map[string]func(r *http.Request, body []byte) []byte{
		"method": func(r *http.Request, b []byte) []byte { r.Method = http.MethodPut; return b },
		"path":   func(r *http.Request, b []byte) []byte { r.URL.Path = "/000000000000/q"; return b },
		"query":  func(r *http.Request, b []byte) []byte { r.URL.RawQuery = "a=b"; return b },
		"body":   func(_ *http.Request, b []byte) []byte { return []byte(strings.Replace(string(b), "body", "bodx", 1)) },
		"target": func(r *http.Request, b []byte) []byte {
			r.Header.Set("X-Amz-Target", "AmazonSQS.DeleteQueue")
			return b
		},
		"type": func(r *http.Request, b []byte) []byte {
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			return b
		},
		"host": func(r *http.Request, b []byte) []byte { r.Host = "localhost"; return b },
		"date": func(r *http.Request, b []byte) []byte {
			r.Header.Set("X-Amz-Date", flip(r.Header.Get("X-Amz-Date"), len("20060102T15040")))
			return b
		},
		"signature": func(r *http.Request, b []byte) []byte {
			text := r.Header.Get("Authorization")
			r.Header.Set("Authorization", flip(text, len(text)-1))
			return b
		},
		"digest": func(r *http.Request, b []byte) []byte {
			r.Header.Set("X-Amz-Content-Sha256", strings.Repeat("0", 64))
			return b
		},
		"in chunks": func(r *http.Request, b []byte) []byte {
			r.Header.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
			return append(append([]byte("2c;chunk-signature="+strings.Repeat("0", 64)+"\r\n"), b...), "\r\n0\r\n\r\n"...)
		},
		"unsigned payload": func(r *http.Request, b []byte) []byte {
			r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
			return b
		},
		"a key": func(r *http.Request, b []byte) []byte { edited(r, "=test/", "=111122223333/"); return b },
		"a region": func(r *http.Request, b []byte) []byte {
			edited(r, "/us-east-1/", "/us-east-2/")
			return b
		},
	} {
		r, body, err := withBody(must(signed(newJSON(t, endpoint, "SendMessage", send), "test", time.Now()))(t))
		if err != nil {
			t.Fatal(err)
		}
		body = change(r, body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		got := do(t, r)
		equal(t, name, "403 "+jsonWith(coralNS)("", "InvalidSignatureException", mismatched), fmt.Sprint(got.Status, " ", got.Body))
	}
	equal(t, "messages", "0", attributesOf(t, c, q, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
	if r := do(t, must(signed(newJSON(t, endpoint, "SendMessage", send), "test", time.Now()))(t)); r.Status != http.StatusOK {
		t.Errorf("unchanged: %d %s", r.Status, r.Body)
	}
}

// Chunks and trailers as S3 takes them are refused, not read as a body.
func TestChunkedUploadsAreRefused(t *testing.T) {
	endpoint := start(t)
	for _, payload := range []string{"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"} {
		body := "2;chunk-signature=" + strings.Repeat("0", 64) + "\r\n{}\r\n0;chunk-signature=" + strings.Repeat("0", 64) + "\r\n\r\n"
		r := newJSON(t, endpoint, "ListQueues", body)
		r.Header.Set("X-Amz-Content-Sha256", payload)
		r.Header.Set("Content-Encoding", "aws-chunked")
		r.Header.Set("X-Amz-Decoded-Content-Length", "2")
		if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: "test", SecretAccessKey: secretOf("test")}, r, payload, "sqs", region, time.Now()); err != nil {
			t.Fatal(err)
		}
		got := do(t, r)
		equal(t, payload, "403 "+jsonWith(coralNS)("", "InvalidSignatureException", mismatched), fmt.Sprint(got.Status, " ", got.Body))
	}
}

// Presigned requests are good for as long as they say, and for nothing else.
func TestPresigned(t *testing.T) {
	endpoint := start(t)
	q := createQueue(t, client(endpoint), "q")
	presign := func(at time.Time, expires, body string) string {
		r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, q+"?Action=SendMessage&Version=2012-11-05&MessageBody=a%20b%2Bc&X-Amz-Expires="+expires, nil))(t)
		sum := sha256.Sum256([]byte(body))
		link, _, err := v4.NewSigner().PresignHTTP(t.Context(), aws.Credentials{AccessKeyID: "test", SecretAccessKey: secretOf("test")}, r, hex.EncodeToString(sum[:]), "sqs", region, at)
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	link := presign(time.Now(), "60", "")
	for name, tc := range map[string]struct {
		link   string
		header []string
		status int
		text   string
	}{
		"as it is":       {link, nil, 200, "<MD5OfMessageBody>"},
		"a day old":      {presign(time.Now().Add(-24*time.Hour), "90000", ""), nil, 200, "<MD5OfMessageBody>"},
		"too old":        {presign(time.Now().Add(-24*time.Hour), "3600", ""), nil, 403, "Signature expired: "},
		"for too long":   {presign(time.Now(), "604801", ""), nil, 400, "X-Amz-Expires must be less than a week"},
		"for no time":    {presign(time.Now(), "0", ""), nil, 403, "Request has expired"},
		"for less":       {presign(time.Now(), "-1", ""), nil, 400, "X-Amz-Expires must be non-negative"},
		"not yet":        {presign(time.Now().Add(time.Hour), "60", ""), nil, 403, "Signature not yet current: "},
		"another body":   {strings.Replace(link, "a%20b", "a%20c", 1), nil, 403, "<Code>SignatureDoesNotMatch</Code>"},
		"another action": {strings.Replace(link, "SendMessage", "PurgeQueue", 1), nil, 403, "<Code>SignatureDoesNotMatch</Code>"},
		"another path":   {strings.Replace(link, "/q?", "/p?", 1), nil, 403, "<Code>SignatureDoesNotMatch</Code>"},
		"something more": {link + "&DelaySeconds=1", nil, 403, "<Code>SignatureDoesNotMatch</Code>"},
		"a longer life":  {strings.Replace(link, "Expires=60", "Expires=61", 1), nil, 403, "<Code>SignatureDoesNotMatch</Code>"},
		"signed twice":   {link, []string{"Authorization", "AWS4-HMAC-SHA256 x"}, 403, "Found both"},
	} {
		r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, tc.link, nil))(t)
		for i := 0; i < len(tc.header); i += 2 {
			r.Header.Set(tc.header[i], tc.header[i+1])
		}
		if got := do(t, r); got.Status != tc.status || !strings.Contains(got.Body, tc.text) {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
	}
	equal(t, "messages", "2", attributesOf(t, client(endpoint), q, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])
}

// Who has signed decides what a request may be behind: a name that nobody has listed,
// and a GET from another machine.
func TestSignedRequestsPassTheGuard(t *testing.T) {
	endpoint := start(t)
	get := func(host, key string, header ...string) response {
		r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/?Action=ListQueues&Version=2012-11-05", nil))(t)
		r.Host = host
		if key != "" {
			r = must(signed(r, key, time.Now()))(t)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return do(t, withoutSignature(r))
	}
	forwarded := []string{"X-Forwarded-For", "192.0.2.1"}
	for name, tc := range map[string]struct {
		got    response
		status int
		text   string
	}{
		"a name that is not listed":       {get("queues.example.com", "test"), 200, "<ListQueuesResponse"},
		"the same, unsigned":              {get("queues.example.com", ""), 403, "--allowed-hosts"},
		"the same, of a page":             {get("queues.example.com", "test", "Origin", "http://evil.example"), 403, "--allowed-hosts"},
		"the same, with a bad signature":  {get("queues.example.com", "test", "X-Amz-Date", time.Now().UTC().Add(time.Minute).Format("20060102T150405Z")), 403, "SignatureDoesNotMatch"},
		"the same, with an old one":       {get("queues.example.com", "test", "X-Amz-Date", "20260101T000000Z"), 403, "--allowed-hosts"},
		"from another machine":            {get("localhost", "test", forwarded...), 200, "<ListQueuesResponse"},
		"from another machine, unsigned":  {get("localhost", "", forwarded...), 403, "--allow-unsigned-get"},
		"a page, and a signature of it":   {get("localhost", "test", "Referer", "http://evil.example/"), 403, "--cors-origins"},
		"unsigned, from this machine":     {get("localhost", ""), 403, "MissingAuthenticationToken"},
		"another name than was signed":    {renamed(t, endpoint, "evil.example"), 403, "InvalidSignatureException"},
		"the admin API under such a name": {ownPath(t, endpoint), 403, "--allowed-hosts"},
	} {
		if tc.got.Status != tc.status || !strings.Contains(tc.got.Body, tc.text) {
			t.Errorf("%s: %d %s", name, tc.got.Status, tc.got.Body)
		}
	}
}

// renamed sends a request to another name than that for which it was signed.
func renamed(t *testing.T, endpoint, host string) response {
	t.Helper()
	r := must(signed(newJSON(t, endpoint, "ListQueues", "{}"), "test", time.Now()))(t)
	r.Host = host
	return do(t, r)
}

func ownPath(t *testing.T, endpoint string) response {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/_godwit/deliveries", nil))(t)
	r.Host = "queues.example.com"
	return do(t, must(signed(r, "test", time.Now()))(t))
}

// What AWS takes without a signature is taken, and with a wrong one it is not.
func TestUnsignedActions(t *testing.T) {
	endpoint := start(t)
	topic := createTopic(t, topicsClient(endpoint), "orders")
	for _, action := range []string{"ConfirmSubscription", "Unsubscribe"} {
		call := func() *http.Request {
			return newForm(t, endpoint, "2010-03-31", action, "TopicArn", topic, "Token", "abc123", "SubscriptionArn", topic+":5f1d5e0c-0000-4000-8000-000000000000")
		}
		if r := do(t, withoutSignature(call())); r.Status == http.StatusForbidden {
			t.Errorf("%s, unsigned: %d %s", action, r.Status, r.Body)
		}
		if r := do(t, edited(must(signed(call(), "test", time.Now()))(t), "=test/", "=tess/")); r.Status != http.StatusForbidden {
			t.Errorf("%s, with a wrong signature: %d %s", action, r.Status, r.Body)
		}
	}
	for _, path := range []string{"/_godwit/health", "/_godwit/ready"} {
		if r := do(t, withoutSignature(must(http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+path, nil))(t))); r.Status != http.StatusOK {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	// An unknown action is not told of to strangers.
	if r := do(t, withoutSignature(newForm(t, endpoint, "2010-03-31", "Nothing"))); r.Status != http.StatusForbidden || !strings.Contains(r.Body, "MissingAuthenticationToken") {
		t.Errorf("an unknown action, unsigned: %d %s", r.Status, r.Body)
	}
}

// CBOR has the form of JSON's refusals.
func TestRefusedSignatureInCBOR(t *testing.T) {
	endpoint := start(t)
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/service/GraniteServiceVersion20100801/operation/ListMetrics", strings.NewReader("\xa0")))(t)
	r.Header.Set("Smithy-Protocol", "rpc-v2-cbor")
	r.Header.Set("Content-Type", "application/cbor")
	got := do(t, withoutSignature(r))
	var out map[string]any
	if err := cbor.Unmarshal([]byte(got.Body), &out); err != nil {
		t.Fatal(err)
	}
	equal(t, "unsigned", map[string]any{"__type": coralNS + "MissingAuthenticationTokenException", "message": "Request is missing Authentication Token"}, out)
	equal(t, "status", 400, got.Status)
}

// A stranger's large upload is refused by its head: nothing of it is read.
func TestUploadsOfStrangers(t *testing.T) {
	endpoint := start(t)
	for name, authorization := range map[string]string{
		"unsigned": "",
		"an old signature": "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/lambda/aws4_request, SignedHeaders=host, Signature=" +
			strings.Repeat("0", 64) + "\r\nX-Amz-Date: 20260101T000000Z\r\n",
	} {
		c := must((&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(endpoint, "http://")))(t)
		defer c.Close()
		_, err := io.WriteString(c, "POST /2015-03-31/functions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+authorization+"Content-Length: 60000000\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		answer := must(http.ReadResponse(bufio.NewReader(c), nil))(t)
		if answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
}
