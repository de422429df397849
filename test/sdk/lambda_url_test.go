package sdk_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"godwit.dev/godwit/internal/config"
)

// site is a function behind a URL, which runs in the test.
type site struct {
	*httptest.Server

	mu      sync.Mutex
	event   map[string]any // of the last run
	runs    int
	returns string // what the next runs return
	fails   bool
}

func startSite(t *testing.T) *site {
	s := &site{returns: `{"statusCode":200,"body":"hello"}`}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs++
		s.event = nil
		_ = json.Unmarshal(body, &s.event)
		if s.fails {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
		}
		_, _ = io.WriteString(w, s.returns)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) will(returns string, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returns, s.fails = returns, fails
}

func (s *site) last() (event map[string]any, runs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.event, s.runs
}

// create makes a function of the site.
func (s *site) create(t *testing.T, c *lambda.Client, name string) {
	t.Helper()
	must(c.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: &name, Role: new(roleARN), PackageType: types.PackageTypeImage, Code: &types.FunctionCode{ImageUri: &s.URL}, Publish: true,
	}))(t)
}

// admitAll lets anybody invoke the URL of a function.
func admitAll(t *testing.T, c *lambda.Client, name string, qualifier *string) {
	t.Helper()
	must(c.AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: &name, Qualifier: qualifier, StatementId: new("public"), Principal: new("*"), Action: new("lambda:InvokeFunctionUrl"),
		FunctionUrlAuthType: types.FunctionUrlAuthTypeNone,
	}))(t)
}

// askURL asks a URL; headers are pairs of name and value.
func askURL(t *testing.T, method, url, body string, headers ...string) response {
	t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, from)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	return asIs(t, r)
}

// asIs sends a request without signing it.
func asIs(t *testing.T, r *http.Request) response {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}
}

// A function or an alias has a URL, which is shown, changed and deleted.
func TestFunctionURLs(t *testing.T) {
	endpoint := start(t)
	c, s, ctx := functionsClient(endpoint), startSite(t), t.Context()
	s.create(t, c, "f")
	must(c.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: new("f"), Name: new("live"), FunctionVersion: new("1")}))(t)
	made := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	equal(t, "the ARN", functionARN("f"), *made.FunctionArn)
	equal(t, "the mode", types.InvokeModeBuffered, made.InvokeMode)
	id, ok := strings.CutPrefix(*made.FunctionUrl, endpoint+"/_godwit/function-url/")
	if !ok || len(id) != 33 || id[32] != '/' {
		t.Errorf("the URL is %s", *made.FunctionUrl)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000000Z", *made.CreationTime); err != nil {
		t.Error(err)
	}
	_, err := c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone})
	refused(t, err, "ResourceConflictException", 409, "Failed to create function url config for [functionArn = "+functionARN("f")+"]. Error message:  FunctionUrlConfig exists for this Lambda function")

	cors := &types.Cors{AllowOrigins: []string{"https://a.example"}, AllowMethods: []string{"GET"}, MaxAge: new(int32(60)), AllowCredentials: new(true), AllowHeaders: []string{"x-a"}, ExposeHeaders: []string{"x-b"}}
	alias := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), Qualifier: new("live"), AuthType: types.FunctionUrlAuthTypeAwsIam, Cors: cors, InvokeMode: types.InvokeModeBuffered}))(t)
	equal(t, "the alias's ARN", functionARN("f")+":live", *alias.FunctionArn)
	equal(t, "its Cors", cors, alias.Cors)
	first := must(c.ListFunctionUrlConfigs(ctx, &lambda.ListFunctionUrlConfigsInput{FunctionName: new("f"), MaxItems: new(int32(1))}))(t)
	second := must(c.ListFunctionUrlConfigs(ctx, &lambda.ListFunctionUrlConfigsInput{FunctionName: new("f"), Marker: first.NextMarker}))(t)
	if len(first.FunctionUrlConfigs) != 1 || len(second.FunctionUrlConfigs) != 1 || second.NextMarker != nil {
		t.Fatalf("pages of %d and %d", len(first.FunctionUrlConfigs), len(second.FunctionUrlConfigs))
	}
	equal(t, "the first", *made.FunctionUrl, *first.FunctionUrlConfigs[0].FunctionUrl)
	equal(t, "the second", *alias.FunctionUrl, *second.FunctionUrlConfigs[0].FunctionUrl)

	advance(t, endpoint, "1m")
	changed := must(c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: new("f"), Qualifier: new("live"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	equal(t, "what was not given", cors, changed.Cors)
	if *changed.LastModifiedTime <= *changed.CreationTime {
		t.Errorf("changed at %s, made at %s", *changed.LastModifiedTime, *changed.CreationTime)
	}
	changed = must(c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: new("f"), Qualifier: new("live"), Cors: &types.Cors{}}))(t)
	equal(t, "an empty Cors", (*types.Cors)(nil), changed.Cors)
	shown := must(c.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: new("f"), Qualifier: new("live")}))(t)
	equal(t, "its URL stays", *alias.FunctionUrl, *shown.FunctionUrl)
	equal(t, "its AuthType", types.FunctionUrlAuthTypeNone, shown.AuthType)

	must(c.DeleteAlias(ctx, &lambda.DeleteAliasInput{FunctionName: new("f"), Name: new("live")}))(t)
	equal(t, "an alias's URL without the alias", 404, askURL(t, "GET", *alias.FunctionUrl, "").Status)
	must(c.DeleteFunctionUrlConfig(ctx, &lambda.DeleteFunctionUrlConfigInput{FunctionName: new("f")}))(t)
	equal(t, "a deleted URL", `404 {"Message":null}`, line(askURL(t, "GET", *made.FunctionUrl, "")))
	again := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	if *again.FunctionUrl == *made.FunctionUrl {
		t.Error("a new URL is the old one")
	}
	must(c.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: new("f")}))(t)
	equal(t, "a URL without its function", 404, askURL(t, "GET", *again.FunctionUrl, "").Status)
}

func line(r response) string { return strings.TrimSpace(strconv.Itoa(r.Status) + " " + r.Body) }

func TestFunctionURLRefusals(t *testing.T) {
	endpoint := start(t)
	c, s, ctx := functionsClient(endpoint), startSite(t), t.Context()
	s.create(t, c, "f")
	const gone, nothing = "The resource you requested does not exist.", "Function does not exist"
	for _, of := range []struct {
		name, qualifier *string
	}{{new("f"), new("none")}, {new("none"), nil}} {
		_, err := c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: of.name, Qualifier: of.qualifier, AuthType: types.FunctionUrlAuthTypeNone})
		refused(t, err, "ResourceNotFoundException", 404, nothing)
		_, err = c.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: of.name, Qualifier: of.qualifier})
		refused(t, err, "ResourceNotFoundException", 404, gone)
		_, err = c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: of.name, Qualifier: of.qualifier})
		refused(t, err, "ResourceNotFoundException", 404, gone)
		_, err = c.DeleteFunctionUrlConfig(ctx, &lambda.DeleteFunctionUrlConfigInput{FunctionName: of.name, Qualifier: of.qualifier})
		refused(t, err, "ResourceNotFoundException", 404, gone)
	}
	_, err := c.ListFunctionUrlConfigs(ctx, &lambda.ListFunctionUrlConfigsInput{FunctionName: new("none")})
	refused(t, err, "ResourceNotFoundException", 404, nothing)
	_, err = c.ListFunctionUrlConfigs(ctx, &lambda.ListFunctionUrlConfigsInput{FunctionName: new("f"), Marker: new("x")})
	refused(t, err, "InvalidParameterValueException", 400, "The Marker is not valid.")
	const mode = "Not supported by this version: InvokeMode RESPONSE_STREAM."
	_, err = c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone, InvokeMode: types.InvokeModeResponseStream})
	refused(t, err, "InvalidParameterValueException", 400, mode)
	must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	_, err = c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: new("f"), InvokeMode: types.InvokeModeResponseStream})
	refused(t, err, "InvalidParameterValueException", 400, mode)
	_, err = c.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: new("f:a"), Qualifier: new("b")})
	refused(t, err, "InvalidParameterValueException", 400, "The derived qualifier from the function name does not match the specified qualifier.")
	_, err = c.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: new("f"), Qualifier: new("1")})
	refused(t, err, "ValidationException", 400, `1 validation error detected: Value '1' at 'qualifier' failed to satisfy constraint: Member must satisfy regular expression pattern: ((?!^\d+$)^[0-9a-zA-Z-_]+$)`)
	_, err = c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: "ALL", Cors: &types.Cors{MaxAge: new(int32(86401)), AllowMethods: []string{"OPTIONS"}}})
	if err == nil || !strings.Contains(err.Error(), "3 validation errors detected") {
		t.Errorf("got %v", err)
	}
	for fault, want := range map[string]struct {
		code, text string
		status     int
	}{
		"internal":  {"ServiceException", "We encountered an internal error. Please try again.", 500},
		"throttled": {"TooManyRequestsException", "Rate exceeded.", 429},
	} {
		if r := post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:lambda:`+region+":"+account+`:*","fault":"`+fault+`"}`); r.Status != 200 {
			t.Fatal(r)
		}
		_, err := c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone})
		refused(t, err, want.code, want.status, want.text)
		_, err = c.GetFunctionUrlConfig(ctx, &lambda.GetFunctionUrlConfigInput{FunctionName: new("f")})
		refused(t, err, want.code, want.status, want.text)
		_, err = c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: new("f")})
		refused(t, err, want.code, want.status, want.text)
		_, err = c.DeleteFunctionUrlConfig(ctx, &lambda.DeleteFunctionUrlConfigInput{FunctionName: new("f")})
		refused(t, err, want.code, want.status, want.text)
		_, err = c.ListFunctionUrlConfigs(ctx, &lambda.ListFunctionUrlConfigsInput{FunctionName: new("f")})
		refused(t, err, want.code, want.status, want.text)
	}
}

// A request becomes the event of an invocation, and what is returned the answer.
func TestFunctionURLInvocation(t *testing.T) {
	endpoint := start(t)
	c, s, ctx := functionsClient(endpoint), startSite(t), t.Context()
	s.create(t, c, "f")
	made := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	id := urlID(t, made.FunctionUrl)
	equal(t, "without a permission", `403 {"Message":"Forbidden"}`, line(askURL(t, "GET", *made.FunctionUrl, "")))
	admitAll(t, c, "f", nil)

	host := strings.ToUpper(id[:4]) + id[4:] + ".lambda-url." + region + ".example.com:4566"
	r := askURL(t, "PUT", endpoint+"/_godwit/a%2Fb/?x=1&y=a+b&x=2", `{"a":"<é>"}`, "Host", host, "Content-Type", "application/json",
		"X-Two", "1", "X-Two", "2", "Cookie", "a=1; godwit-session=2", "User-Agent", "tester", "Origin", "https://elsewhere.example")
	equal(t, "the answer", "200 hello", line(r))
	equal(t, "its type", "application/json", r.Header.Get("Content-Type"))
	event, _ := s.last()
	context := event["requestContext"].(map[string]any)
	for name := range map[string]bool{"requestId": true, "time": true, "timeEpoch": true} {
		if context[name] == nil || context[name] == "" {
			t.Errorf("no %s", name)
		}
		delete(context, name)
	}
	headers := event["headers"].(map[string]any)
	for _, name := range []string{"accept-encoding", "content-length", "origin"} {
		delete(headers, name)
	}
	domain := strings.ToLower(strings.TrimSuffix(host, ":4566"))
	equal(t, "the event", map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": "/_godwit/a%2Fb/", "rawQueryString": "x=1&y=a+b&x=2",
		"cookies": []any{"a=1", "godwit-session=2"}, "queryStringParameters": map[string]any{"x": "1,2", "y": "a b"},
		"headers": map[string]any{
			"host": host, "content-type": "application/json", "x-two": "1,2", "user-agent": "tester",
			"x-forwarded-for": "127.0.0.1", "x-forwarded-port": "4566", "x-forwarded-proto": "http",
		},
		"requestContext": map[string]any{
			"accountId": "anonymous", "apiId": id, "domainName": domain, "domainPrefix": id, "routeKey": "$default", "stage": "$default",
			"http": map[string]any{"method": "PUT", "path": "/_godwit/a%2Fb/", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "tester"},
		},
		"body": `{"a":"<é>"}`, "isBase64Encoded": false,
	}, event)

	askURL(t, "POST", *made.FunctionUrl+"p/q", "a=b", "Content-Type", "application/x-www-form-urlencoded", "Cookie", "a=1; godwit-session=2")
	event, _ = s.last()
	equal(t, "the path at a path", any("/p/q"), event["rawPath"])
	equal(t, "the form", []any{"YT1i", true}, []any{event["body"], event["isBase64Encoded"]})
	equal(t, "the cookies at the server's origin", []any{"a=1"}, event["cookies"].([]any))
	askURL(t, "GET", strings.TrimSuffix(*made.FunctionUrl, "/"), "")
	event, _ = s.last()
	equal(t, "the path without a slash", any("/"), event["rawPath"])
	if _, there := event["body"]; there {
		t.Error("there is a body")
	}

	// Nor is a path encoded anew that has what should be encoded.
	for _, target := range []string{"/a%2fb|c", "/a%2Fb/../%7e//[x]\"", "//a//b", "/a%00%ff{}"} {
		for _, at := range []struct{ path, host string }{{"", host}, {strings.TrimSuffix(strings.TrimPrefix(*made.FunctionUrl, endpoint), "/"), "h"}} {
			rawGet(t, endpoint, at.path+target, at.host)
			event, _ = s.last()
			equal(t, "the path "+target+" at "+at.host, any(target), event["rawPath"])
		}
	}

	for _, tc := range []struct {
		returns, want string
		fails         bool
	}{
		{`{"statusCode":201,"body":"made"}`, "201 made", false},
		{`{"statusCode":"202","body":"aGk=","isBase64Encoded":true}`, "202 hi", false},
		{`{"statusCode":200,"body":{"a":1}}`, `200 {"a":1}`, false},
		{`{"statusCode":204}`, "204", false},
		{`{"statusCode":201,"StatusCode":500,"Body":"x","Headers":1}`, "201", false}, // names are exact
		{`{"message":"hi"}`, `200 {"message":"hi"}`, false},
		{`"plain"`, `200 "plain"`, false},
		{`[1,2]`, "200 [1,2]", false},
		{`null`, "200 null", false},
		{`<p>`, "200 <p>", false},
		{`{"statusCode":"x"}`, "502 Internal Server Error", false},
		{`{"statusCode":99}`, "502 Internal Server Error", false},
		{`{"statusCode":200,"body":"?","isBase64Encoded":true}`, "502 Internal Server Error", false},
		{`{"statusCode":200,"headers":{"a b":"c"}}`, "502 Internal Server Error", false},
		{`{"errorMessage":"no"}`, "502 Internal Server Error", true},
	} {
		s.will(tc.returns, tc.fails)
		equal(t, tc.returns, tc.want, line(askURL(t, "GET", *made.FunctionUrl, "")))
	}
	s.will(`{"statusCode":200,"headers":{"content-type":"text/html","x-a":1,"connection":"close","content-length":"9","clear-site-data":"*"},"cookies":["a=1","godwit-session=2","b=3"],"body":"<p>"}`, false)
	r = askURL(t, "GET", *made.FunctionUrl, "")
	equal(t, "headers", []string{"text/html", "1", "3", "", "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"},
		[]string{r.Header.Get("Content-Type"), r.Header.Get("X-A"), r.Header.Get("Content-Length"), r.Header.Get("Clear-Site-Data"), r.Header.Get("Content-Security-Policy")})
	equal(t, "cookies", []string{"a=1", "b=3"}, r.Header.Values("Set-Cookie"))
	r = askURL(t, "GET", endpoint, "", "Host", host)
	equal(t, "cookies of an origin of its own", []string{"a=1", "godwit-session=2", "b=3"}, r.Header.Values("Set-Cookie"))
	equal(t, "no sandbox there", "", r.Header.Get("Content-Security-Policy"))

	_, before := s.last()
	r = askURL(t, "POST", *made.FunctionUrl, strings.Repeat("x", 6<<20+1))
	equal(t, "a large body", `413 {"Message":"Request must be smaller than 6291456 bytes for the InvokeFunction operation"}`, line(r))
	must(c.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{FunctionName: new("f"), ReservedConcurrentExecutions: new(int32(0))}))(t)
	equal(t, "throttled", 429, askURL(t, "GET", *made.FunctionUrl, "").Status)
	if _, after := s.last(); after != before {
		t.Error("it ran")
	}
}

// rawGet sends a GET whose target is as it is given, and reads an answer.
func rawGet(t *testing.T, endpoint, target, host string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatal(err)
	}
}

func urlID(t *testing.T, url *string) string {
	t.Helper()
	_, rest, ok := strings.Cut(*url, "/function-url/")
	if !ok {
		t.Fatalf("the URL is %s", *url)
	}
	return strings.TrimSuffix(rest, "/")
}

// A URL for signed requests lets in who has permission, and tells the function who that is.
func TestFunctionURLSigned(t *testing.T) {
	endpoint := start(t)
	c, s, ctx := functionsClient(endpoint), startSite(t), t.Context()
	s.create(t, c, "f")
	made := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeAwsIam}))(t)
	admitAll(t, c, "f", nil) // counts for NONE only
	equal(t, "unsigned", `403 {"Message":"Forbidden"}`, line(askURL(t, "GET", *made.FunctionUrl, "")))
	who := aws.Credentials{AccessKeyID: "test", SecretAccessKey: secretOf("test")}
	signed := func(who aws.Credentials, service, body string) response {
		r, err := http.NewRequestWithContext(ctx, "POST", *made.FunctionUrl+"x?y=z", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(body))
		if err := v4.NewSigner().SignHTTP(ctx, who, r, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
			t.Fatal(err)
		}
		return asIs(t, r)
	}
	equal(t, "the root", "200 hello", line(signed(who, "lambda", "{}")))
	event, _ := s.last()
	equal(t, "the caller", any(map[string]any{"iam": map[string]any{
		"accessKey": "test", "accountId": account, "callerId": account, "cognitoIdentity": nil, "principalOrgId": nil,
		"userArn": "arn:aws:iam::" + account + ":root", "userId": account,
	}}), event["requestContext"].(map[string]any)["authorizer"])
	equal(t, "the account", any(account), event["requestContext"].(map[string]any)["accountId"])
	if _, there := event["headers"].(map[string]any)["authorization"]; there {
		t.Error("the function has the signature")
	}
	equal(t, "for another service", 403, signed(who, "sqs", "{}").Status)
	wrong := who
	wrong.SecretAccessKey = "wrong"
	equal(t, "with a wrong key", 403, signed(wrong, "lambda", "{}").Status)
	stranger := aws.Credentials{AccessKeyID: "111122223333", SecretAccessKey: secretOf("111122223333")}
	equal(t, "of another account", `403 {"Message":"Forbidden"}`, line(signed(stranger, "lambda", "{}")))
	must(c.AddPermission(ctx, &lambda.AddPermissionInput{
		FunctionName: new("f"), StatementId: new("other"), Principal: new("111122223333"), Action: new("lambda:InvokeFunctionUrl"), FunctionUrlAuthType: types.FunctionUrlAuthTypeAwsIam,
	}))(t)
	equal(t, "of one that is admitted", 200, signed(stranger, "lambda", "{}").Status)
}

// Where signatures are not verified, no permission is needed.
func TestFunctionURLOpen(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.Enforce, c.QueueURLHost = false, "godwit.example" })
	c, s, ctx := functionsClient(endpoint), startSite(t), t.Context()
	s.create(t, c, "f")
	made := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeAwsIam}))(t)
	host, ok := strings.CutPrefix(*made.FunctionUrl, "http://")
	host, _ = strings.CutSuffix(host, "/")
	_, port, _ := strings.Cut(endpoint[len("http://"):], ":")
	if id, rest, _ := strings.Cut(host, "."); !ok || len(id) != 32 || rest != "lambda-url."+region+".godwit.example:"+port {
		t.Fatalf("the URL is %s", *made.FunctionUrl)
	}
	equal(t, "the answer", "200 hello", line(askURL(t, "GET", endpoint, "", "Host", host)))
	event, _ := s.last()
	equal(t, "the account", any(account), event["requestContext"].(map[string]any)["accountId"])
	equal(t, "in another region", 404, askURL(t, "GET", endpoint, "", "Host", strings.Replace(host, region, "eu-west-3", 1)).Status)
}

// The Cors of a URL says what pages of other origins may do with it, and nothing about the rest of the
// server.
func TestFunctionURLCors(t *testing.T) {
	endpoint := start(t)
	c, s, ctx := functionsClient(endpoint), startSite(t), t.Context()
	s.create(t, c, "f")
	admitAll(t, c, "f", nil)
	made := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	const origin, evil = "https://a.example", "https://evil.example"
	ask := func(method, origin string, more ...string) response {
		return askURL(t, method, *made.FunctionUrl, "", append([]string{"Origin", origin, "Sec-Fetch-Site", "cross-site"}, more...)...)
	}
	s.will(`{"statusCode":200,"headers":{"access-control-allow-origin":"https://evil.example"},"body":"own"}`, false)
	r := ask("OPTIONS", evil, "Access-Control-Request-Method", "PUT")
	equal(t, "without a Cors the function answers", "200 own "+evil, line(r)+" "+r.Header.Get("Access-Control-Allow-Origin"))

	must(c.UpdateFunctionUrlConfig(ctx, &lambda.UpdateFunctionUrlConfigInput{FunctionName: new("f"), Cors: &types.Cors{
		AllowOrigins: []string{origin, "https://b.example"}, AllowMethods: []string{"PUT", "GET"}, AllowHeaders: []string{"x-a", "x-b"}, ExposeHeaders: []string{"x-c"},
		MaxAge: new(int32(60)), AllowCredentials: new(true),
	}}))(t)
	_, before := s.last()
	r = ask("OPTIONS", origin, "Access-Control-Request-Method", "PUT")
	equal(t, "a preflight", []string{"200", origin, "PUT,GET", "x-a,x-b", "60", "true", ""}, []string{
		line(r), r.Header.Get("Access-Control-Allow-Origin"), r.Header.Get("Access-Control-Allow-Methods"), r.Header.Get("Access-Control-Allow-Headers"),
		r.Header.Get("Access-Control-Max-Age"), r.Header.Get("Access-Control-Allow-Credentials"), r.Header.Get("Access-Control-Expose-Headers"),
	})
	equal(t, "one of another page", "", ask("OPTIONS", evil, "Access-Control-Request-Method", "PUT").Header.Get("Access-Control-Allow-Origin"))
	equal(t, "one for another method", "", ask("OPTIONS", origin, "Access-Control-Request-Method", "DELETE").Header.Get("Access-Control-Allow-Origin"))
	if _, after := s.last(); after != before {
		t.Error("the function saw a preflight")
	}
	r = ask("GET", origin)
	equal(t, "an answer", []string{"200 own", origin, "x-c", "true", "Origin"}, []string{
		line(r), r.Header.Get("Access-Control-Allow-Origin"),
		r.Header.Get("Access-Control-Expose-Headers"), r.Header.Get("Access-Control-Allow-Credentials"), r.Header.Get("Vary"),
	})
	r = ask("GET", evil)
	equal(t, "one for another page", "200 own ", line(r)+" "+r.Header.Get("Access-Control-Allow-Origin"))

	// What is no function URL stays closed to pages, however much its Host or path looks like one.
	id := urlID(t, made.FunctionUrl)
	for _, tc := range [][2]string{
		{"/_godwit/v1/overview", ""},
		{"/", ""},
		{"/_godwit/function%2Durl/" + id + "/", ""},
		{"/_godwit//function-url/" + id + "/", ""},
		{"/", id + ".lambda-url." + region},
		{"/", "x" + id + ".lambda-url." + region + ".example"},
		{"/", id[1:] + ".lambda-url." + region + ".example"},
		{"/", "a." + id + ".lambda-url." + region + ".example"},
		{"/", id + ".lambda-url.nowhere.example"},
	} {
		headers := []string{"Origin", evil, "Sec-Fetch-Site", "cross-site"}
		if tc[1] != "" {
			headers = append(headers, "Host", tc[1])
		}
		if r := askURL(t, "POST", endpoint+tc[0], "", headers...); r.Status != 403 || r.Body == "own" {
			t.Errorf("%v: %d %s", tc, r.Status, r.Body)
		}
	}
	// And what is one reaches nothing else.
	for _, path := range []string{"/metrics", "/_godwit/health", "/_godwit/clock", "/?Action=ListQueues&Version=2012-11-05", "/2015-03-31/functions"} {
		equal(t, path, "200 own", line(askURL(t, "GET", endpoint+path, "", "Host", id+".lambda-url."+region+".example")))
		equal(t, path+" of no function", 404, askURL(t, "GET", endpoint+path, "", "Host", strings.Repeat("0", 32)+".lambda-url."+region+".example").Status)
	}
}

// A URL outlives the server.
func TestFunctionURLKept(t *testing.T) {
	data := t.TempDir()
	var url string
	s := startSite(t)
	t.Run("before", func(t *testing.T) {
		endpoint := startWith(t, func(c *config.Config) { c.Store, c.Data = config.PebbleStore, data })
		c := functionsClient(endpoint)
		s.create(t, c, "f")
		admitAll(t, c, "f", nil)
		made := must(c.CreateFunctionUrlConfig(context.WithoutCancel(t.Context()), &lambda.CreateFunctionUrlConfigInput{
			FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone, Cors: &types.Cors{AllowOrigins: []string{"*"}},
		}))(t)
		url = strings.TrimPrefix(*made.FunctionUrl, endpoint)
	})
	t.Run("after", func(t *testing.T) {
		endpoint := startWith(t, func(c *config.Config) { c.Store, c.Data = config.PebbleStore, data })
		r := askURL(t, "GET", endpoint+url, "", "Origin", "https://a.example")
		equal(t, "the answer", "200 hello *", line(r)+" "+r.Header.Get("Access-Control-Allow-Origin"))
		shown := must(functionsClient(endpoint).GetFunctionUrlConfig(t.Context(), &lambda.GetFunctionUrlConfigInput{FunctionName: new("f")}))(t)
		equal(t, "its URL", endpoint+url, *shown.FunctionUrl)
	})
}

// The audit log tells who has invoked a function by its URL, and who was refused.
func TestFunctionURLAudited(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	s := startSite(t)
	t.Run("requests", func(t *testing.T) {
		endpoint := startWith(t, func(c *config.Config) { c.AuditLog, c.AuditDataEvents = log, true })
		c := functionsClient(endpoint)
		s.create(t, c, "f")
		made := must(c.CreateFunctionUrlConfig(t.Context(), &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
		equal(t, "refused", 403, askURL(t, "GET", *made.FunctionUrl, "").Status)
		admitAll(t, c, "f", nil)
		equal(t, "admitted", 200, askURL(t, "GET", *made.FunctionUrl, "").Status)
	})
	var got []string
	for record := range strings.Lines(string(must(os.ReadFile(log))(t))) {
		var r struct {
			EventName, ErrorCode string
			RequestParameters    map[string]string
		}
		if err := json.Unmarshal([]byte(record), &r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.EventName, "FunctionUrl") {
			got = append(got, strings.TrimSpace(r.EventName+" "+r.RequestParameters["functionName"]+" "+r.RequestParameters["authType"]+r.ErrorCode))
		}
	}
	equal(t, "records", []string{"CreateFunctionUrlConfig f NONE", "InvokeFunctionUrl " + functionARN("f") + " AccessDeniedException", "InvokeFunctionUrl " + functionARN("f")}, got)
}

// What one permission admits, no other qualifier, action or function of the same name does.
func TestFunctionURLPermissions(t *testing.T) {
	endpoint := start(t)
	c, s, ctx := functionsClient(endpoint), startSite(t), t.Context()
	s.create(t, c, "f")
	must(c.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: new("f"), Name: new("live"), FunctionVersion: new("1")}))(t)
	made := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	alias := must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), Qualifier: new("live"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	both := func() []int {
		return []int{askURL(t, "GET", *made.FunctionUrl, "").Status, askURL(t, "GET", *alias.FunctionUrl, "").Status}
	}
	must(c.AddPermission(ctx, &lambda.AddPermissionInput{
		FunctionName: new("f"), StatementId: new("via"), Principal: new("*"), Action: new("lambda:InvokeFunction"), InvokedViaFunctionUrl: new(true),
	}))(t)
	equal(t, "by InvokeFunction alone", []int{403, 403}, both())
	payload := strings.NewReader("{}")
	r, err := http.NewRequestWithContext(ctx, "POST", endpoint+"/2015-03-31/functions/arn:aws:lambda:"+region+":"+account+":function:f/invocations", payload)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("{}"))
	stranger := aws.Credentials{AccessKeyID: "111122223333", SecretAccessKey: secretOf("111122223333")}
	if err := v4.NewSigner().SignHTTP(ctx, stranger, r, hex.EncodeToString(sum[:]), "lambda", region, time.Now()); err != nil {
		t.Fatal(err)
	}
	equal(t, "Invoke, by who may by URLs", 403, asIs(t, r).Status)
	admitAll(t, c, "f", nil)
	equal(t, "the function is admitted", []int{200, 403}, both())
	admitAll(t, c, "f", new("live"))
	equal(t, "and the alias", []int{200, 200}, both())
	must(c.RemovePermission(ctx, &lambda.RemovePermissionInput{FunctionName: new("f"), StatementId: new("public")}))(t)
	equal(t, "the alias alone", []int{403, 200}, both())

	must(c.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: new("f")}))(t)
	equal(t, "deleted", []int{404, 404}, both())
	s.create(t, c, "f")
	equal(t, "a new function", []int{404, 404}, both())
	made = must(c.CreateFunctionUrlConfig(ctx, &lambda.CreateFunctionUrlConfigInput{FunctionName: new("f"), AuthType: types.FunctionUrlAuthTypeNone}))(t)
	equal(t, "and its URL, without a permission", []int{403, 404}, both())
}
