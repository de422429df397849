package sdk_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
)

// page is a request as a browser sends it for a web page. The headers are pairs of
// name and value; Host is one of them.
type page struct {
	method, path, body string
	header             []string
}

// send sends it, and what the browser says of itself with all of them.
func (p page) send(t *testing.T, endpoint string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), p.method, endpoint+p.path, strings.NewReader(p.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
	for i := 0; i < len(p.header); i += 2 {
		if req.Header.Add(p.header[i], p.header[i+1]); p.header[i] == "Host" {
			req.Host = p.header[i+1]
		}
	}
	return do(t, req)
}

// What a page of another site can have a browser send changes nothing.
func TestAttacksByWebPages(t *testing.T) {
	const evil, form, text = "http://evil.example", "application/x-www-form-urlencoded", "text/plain;charset=UTF-8"
	const queue = "/000000000000/work"
	deleteQueue := "Action=DeleteQueue&QueueUrl=" + url.QueryEscape("http://localhost"+queue)
	zip := base64.StdEncoding.EncodeToString(zipOf(t, "bootstrap", "#!/bin/sh"))
	function, err := json.Marshal(map[string]any{
		"FunctionName": "evil", "Role": roleARN, "Handler": "x", "Runtime": "provided.al2023", "Code": map[string]string{"ZipFile": zip},
	})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := startOpen(t)
	queues, functions := client(endpoint), functionsClient(endpoint)
	fault := `{"arn":"arn:aws:sqs:` + region + `:` + account + `:*","fault":"denied"}`

	for name, attack := range map[string]struct {
		page
		flag, form string // what the answer says, and how it begins
	}{
		"a function, by fetch": {page{
			"POST", "/2015-03-31/functions", string(function),
			[]string{"Content-Type", text, "Origin", evil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
		}, "--cors-origins", `{"Type":"User","message":"`},
		"a function, by an older browser": {page{
			"POST", "/2015-03-31/functions", string(function),
			[]string{"Content-Type", text, "Origin", evil},
		}, "--cors-origins", `{"Type":"User","message":"`},
		"a function, from a sandboxed frame": {page{
			"POST", "/2015-03-31/functions", string(function),
			[]string{"Content-Type", text, "Origin", "null"},
		}, "--cors-origins", `{"Type":"User",`},
		"a function, from another port": {page{
			"POST", "/2015-03-31/functions", string(function),
			[]string{"Content-Type", text, "Origin", "http://127.0.0.1:3000"},
		}, "--cors-origins", `{"Type":"User",`},
		"a function, from a site nearby": {page{
			"POST", "/2015-03-31/functions", string(function),
			[]string{"Content-Type", text, "Sec-Fetch-Site", "same-site"},
		}, "--cors-origins", `{"Type":"User",`},
		"a function, rebound": {page{
			"POST", "/2015-03-31/functions", string(function),
			[]string{"Content-Type", "application/json", "Host", "evil.example", "Origin", evil, "Sec-Fetch-Site", "same-origin"},
		}, "--allowed-hosts", `{"Type":"User",`},
		"a form": {page{
			"POST", "/", deleteQueue,
			[]string{"Content-Type", form, "Origin", evil, "Referer", evil + "/"},
		}, "--cors-origins", `<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>`},
		"a form without a referrer": {page{
			"POST", queue, "Action=DeleteQueue",
			[]string{"Content-Type", form, "Origin", "null"},
		}, "--cors-origins", "<?xml"},
		"a form, as its Referer tells": {page{
			"POST", "/", deleteQueue,
			[]string{"Content-Type", form, "Referer", evil + "/"},
		}, "--cors-origins", "<?xml"},
		"a form, as Sec-Fetch-Site tells": {page{
			"POST", "/", deleteQueue,
			[]string{"Content-Type", form, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"},
		}, "--cors-origins", "<?xml"},
		"a form that is signed": {page{
			"POST", "/?" + deleteQueue, "",
			[]string{"Content-Type", form, "Origin", evil, "Authorization", authorization},
		}, "--cors-origins", "<?xml"},
		"an image": {page{
			"GET", "/?" + deleteQueue, "",
			[]string{"Referer", evil + "/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
		}, "--cors-origins", "<?xml"},
		"an image, as its Referer tells":          {page{"GET", queue + "?Action=DeleteQueue", "", []string{"Referer", evil + "/"}}, "--cors-origins", "<?xml"},
		"an image, as Sec-Fetch-Site tells":       {page{"GET", queue + "?%41ction=DeleteQueue", "", []string{"Sec-Fetch-Site", "same-site"}}, "--cors-origins", "<?xml"},
		"an image in a page of the same machine":  {page{"GET", queue + "?Action=DeleteQueue", "", []string{"Referer", "http://localhost:8080/"}}, "--cors-origins", "<?xml"},
		"an image that poses as a confirmation":   {page{"GET", queue + "?Action=ConfirmSubscription&Action=DeleteQueue&Token=x", "", []string{"Sec-Fetch-Site", "cross-site"}}, "--cors-origins", "<?xml"},
		"an image, rebound":                       {page{"GET", queue + "?Action=DeleteQueue", "", []string{"Host", "evil.example", "Sec-Fetch-Site", "same-origin"}}, "--allowed-hosts", "<?xml"},
		"an image behind a proxy":                 {page{"GET", queue + "?Action=DeleteQueue", "", []string{"X-Forwarded-For", "192.0.2.1"}}, "--allow-unsigned-get", "<?xml"},
		"a link":                                  {page{"GET", queue + "?Action=DeleteQueue", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}}, "--cors-origins", "<?xml"},
		"a fetch as JSON that is not asked about": {page{"POST", "/", `{"QueueUrl":"http://x` + queue + `"}`, []string{"X-Amz-Target", "AmazonSQS.DeleteQueue", "Origin", evil}}, "--cors-origins", `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"`},
		"a rebound fetch":                         {page{"POST", "/", `{"QueueUrl":"http://x` + queue + `"}`, []string{"X-Amz-Target", "AmazonSQS.DeleteQueue", "Host", "evil.example:4566", "Sec-Fetch-Site", "same-origin"}}, "--allowed-hosts", `{"__type":`},
		"the rebound admin API":                   {page{"POST", "/_godwit/faults", fault, []string{"Host", "evil.example", "Origin", evil, "Sec-Fetch-Site", "same-origin"}}, "--allowed-hosts", `{"error":"`},
		"the rebound admin API, with a subdomain": {page{"POST", "/_godwit/faults", fault, []string{"Host", "localhost.evil.example"}}, "--allowed-hosts", `{"error":"`},
		"the admin API":                           {page{"POST", "/_godwit/faults", fault, []string{"Content-Type", text, "Origin", evil}}, "--cors-origins", `{"error":"`},
		"the admin API, from a sandboxed frame":   {page{"POST", "/_godwit/faults", fault, []string{"Content-Type", text, "Origin", "null"}}, "--cors-origins", `{"error":"`},
		"the admin API, by its Referer":           {page{"POST", "/_godwit/faults", fault, []string{"Content-Type", text, "Referer", evil}}, "--cors-origins", `{"error":"`},
		"the path of the admin API, hidden":       {page{"POST", "/%5fgodwit/faults", fault, []string{"Host", "evil.example"}}, "--allowed-hosts", `{"error":"`},
		"another method by a header":              {page{"GET", "/_godwit/faults", fault, []string{"X-Http-Method-Override", "POST", "Origin", evil}}, "--cors-origins", `{"error":"`},
		"the alarm of a metric, in CBOR": {page{
			"POST", "/service/GraniteServiceVersion20100801/operation/DeleteAlarms", "\xa0",
			[]string{"Content-Type", text, "Origin", evil},
		}, "--cors-origins", "\xbff__typex.com.amazon.coral.service#AccessDeniedExceptiongmessagex"},
		"log groups": {page{
			"POST", "/", `{"logGroupName":"g"}`,
			[]string{"X-Amz-Target", "Logs_20140328.DeleteLogGroup", "Origin", evil},
		}, "--cors-origins", `{"__type":"com.amazon.coral.service#AccessDeniedException","message":`},
	} {
		t.Run(name, func(t *testing.T) {
			queueURL := createQueue(t, queues, "work")
			got := attack.send(t, endpoint)
			if got.Status != http.StatusForbidden || !strings.Contains(got.Body, attack.flag) || !strings.HasPrefix(got.Body, attack.form) {
				t.Errorf("it was answered %d %.400q; want 403, %s, in the form %s", got.Status, got.Body, attack.flag, attack.form)
			}
			if _, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: aws.String("x")}); err != nil {
				t.Errorf("the queue does not work any more: %v", err)
			}
			_, err := functions.GetFunction(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String("evil")})
			if err == nil {
				t.Error("there is a function")
			}
		})
	}
}

// authorization is that of a signed request. Nobody verifies it yet.
const authorization = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=00"

// A page of another site reads nothing either, and cannot have profiles made.
func TestReadsByWebPages(t *testing.T) {
	endpoint := startOpen(t)
	for _, path := range []string{"/_godwit/health", "/_godwit/deliveries?subscription=x", "/metrics", "/2015-03-31/functions"} {
		for _, header := range [][]string{
			{"Origin", "http://evil.example"},
			{"Origin", "null"},
			{"Host", "evil.example"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"},
			{"Origin", "http://evil.example", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="},
		} {
			if got := (page{"GET", path, "", header}).send(t, endpoint); got.Status != http.StatusForbidden || got.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("GET %s %v: %d %v %q", path, header, got.Status, got.Header, got.Body)
			}
		}
		// Somebody follows a link, or types the address.
		for _, site := range []string{"cross-site", "same-site", "same-origin", "none"} {
			header := []string{"Referer", "https://wiki.example/", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
			if got := (page{"GET", path, "", header}).send(t, endpoint); got.Status == http.StatusForbidden {
				t.Errorf("GET %s %v: %d %q", path, header, got.Status, got.Body)
			}
		}
	}
}

// The names by which the server is reached in containers, clusters and on the
// machine itself work, with every protocol.
func TestNamesOfTheServer(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) {
		c.Enforce = false

		c.PublicURL = "https://Messages.example.com:8443/aws"
		c.AllowedHosts = []string{"godwit.example.net", "*.preview.example.net"}
	})
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{
		"127.0.0.1:" + u.Port(), "localhost", "LOCALHOST:4566", "localhost.:4566", "sqs.us-east-1.localhost:4566", "[::1]:4566", "10.1.2.3", "[fd00::7]",
		"godwit", "my_project_godwit_1:4566", "host.docker.internal:4566", "godwit.default.svc:4566", "godwit.default.svc.cluster.local.:4566",
		"messages.example.com:8443", "sqs.eu-west-1.messages.example.com", "Godwit.example.net", "pr-7.preview.example.net:80",
	} {
		rename := named{host}
		in := &sqs.CreateQueueInput{QueueName: aws.String("work")}
		made, err := client(endpoint).CreateQueue(t.Context(), in, func(o *sqs.Options) { o.HTTPClient = rename })
		if err != nil {
			t.Errorf("%s: SQS: %v", host, err)
		} else {
			path := "/000000000000/work"
			if strings.HasPrefix(host, "sqs.eu-west-1.") { // which is not the region that is asked
				path = "/queue/us-east-1" + path
			}
			equal(t, "the queue's URL", "http://"+host+path, aws.ToString(made.QueueUrl))
		}
		if _, err := topicsClient(endpoint).ListTopics(t.Context(), nil, func(o *sns.Options) { o.HTTPClient = rename }); err != nil {
			t.Errorf("%s: SNS: %v", host, err)
		}
		if _, err := metricsClient(endpoint).ListMetrics(t.Context(), nil, func(o *cloudwatch.Options) { o.HTTPClient = rename }); err != nil {
			t.Errorf("%s: CloudWatch: %v", host, err)
		}
		if _, err := functionsClient(endpoint).ListFunctions(t.Context(), nil, func(o *lambda.Options) { o.HTTPClient = rename }); err != nil {
			t.Errorf("%s: Lambda: %v", host, err)
		}
		if got := (page{"GET", "/_godwit/ready", "", []string{"Host", host}}).send(t, endpoint); got.Status != http.StatusOK {
			t.Errorf("%s: ready: %d %s", host, got.Status, got.Body)
		}
	}
	for _, host := range []string{"example.com", "evilmessages.example.com", "x.godwit.example.net", "preview.example.net", "sqs.us-east-1.amazonaws.com", "8.8.8.8.evil.example"} {
		_, err := client(endpoint).ListQueues(t.Context(), nil, func(o *sqs.Options) { o.HTTPClient = named{host} })
		refused(t, err, "AccessDenied", 403, "The host "+host+" is not known to be this server's. If it is, allow it with --allowed-hosts.")
	}
}

// named sends requests with another Host than the address that they go to.
type named struct{ host string }

func (n named) Do(req *http.Request) (*http.Response, error) {
	req.Host = n.host
	return eager.Do(req)
}

// What people type, and links in messages.
func TestRequestsOfPeople(t *testing.T) {
	endpoint := startOpen(t)
	c := topicsClient(endpoint)
	topic := createTopic(t, c, "orders")
	link := "/?Action=ConfirmSubscription&TopicArn=" + topic + "&Token="
	elsewhere := []string{"Referer", "https://mail.example/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for name, p := range map[string]page{
		"curl":                      {"GET", "/?Action=ListQueues", "", nil},
		"curl, a clock":             {"POST", "/_godwit/clock", `{"advance":"1s"}`, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"curl, a form":              {"POST", "/", "Action=ListQueues", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"the address bar":           {"GET", "/?Action=ListQueues", "", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}},
		"a page of the server":      {"POST", "/_godwit/clock", `{"advance":"1s"}`, []string{"Origin", endpoint, "Referer", endpoint + "/_godwit/ui/", "Sec-Fetch-Site", "same-origin"}},
		"an unsubscribe link":       {"GET", "/?Action=Unsubscribe&SubscriptionArn=" + topic + ":5f1d5e0c-0000-4000-8000-000000000000", "", elsewhere},
		"an unsubscribe link, bare": {"GET", "/?Action=Unsubscribe&SubscriptionArn=" + topic + ":5f1d5e0c-0000-4000-8000-000000000000", "", []string{"X-Forwarded-For", "192.0.2.1"}},
	} {
		if got := p.send(t, endpoint); got.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
	}
	for _, header := range [][]string{elsewhere, {"X-Forwarded-For", "192.0.2.1"}, {"Origin", "https://mail.example"}} {
		h := newHook(t)
		must(c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("http"), Endpoint: aws.String(h.URL)}))(t)
		token, _ := verified(t, h.next(t).Body, "SubscriptionConfirmation", "1")["Token"].(string)
		if got := (page{"GET", link + token, "", header}).send(t, endpoint); got.Status != http.StatusOK {
			t.Errorf("confirming, %v: %d %s", header, got.Status, got.Body)
		}
	}
}

// What is refused is counted, by its reason.
func TestRefusalsAreCounted(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) {
		c.Enforce = false
		c.Prometheus, c.AllowUnsignedGet = true, true
	})
	for path, header := range map[string][]string{
		"/":                     {"Host", "evil.example"},
		"/_godwit/ready":        {"Host", "evil.example"},
		"/2015-03-31/functions": {"Origin", "http://evil.example"},
	} {
		(page{"GET", path, "", header}).send(t, endpoint)
	}
	// Nothing says where this one comes from, which is allowed here.
	unsigned := page{"GET", "/?Action=ListQueues", "", []string{"X-Forwarded-For", "192.0.2.1"}}.send(t, endpoint)
	equal(t, "the status of an unsigned GET", http.StatusOK, unsigned.Status)
	scraped := fetch(t, endpoint+"/metrics").Body
	for _, line := range []string{
		`godwit_requests_refused_total{reason="host"} 2`, `godwit_requests_refused_total{reason="origin"} 1`,
		`godwit_requests_refused_total{reason="site"} 0`, `godwit_requests_refused_total{reason="referer"} 0`, `godwit_requests_refused_total{reason="unsigned"} 0`,
		`godwit_requests_total{code="AccessDenied",operation="ListFunctions",service="lambda"} 1`,
	} {
		if !strings.Contains(scraped, "\n"+line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

// Pages of an origin that the operator lists use the API as programs do.
func TestCORS(t *testing.T) {
	const app = "http://localhost:5173"
	endpoint := startWith(t, func(c *config.Config) {
		c.Enforce = false
		c.CORSOrigins = []string{"https://app.example", app}
	})
	asked := "amz-sdk-invocation-id,amz-sdk-request,authorization,content-type,x-amz-date,x-amz-target,x-amz-user-agent"
	preflight := page{"OPTIONS", "/", "", []string{
		"Origin", app, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked, "Access-Control-Request-Private-Network", "true",
		"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors",
	}}
	got := preflight.send(t, endpoint)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": app, "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE", "Access-Control-Allow-Headers": asked,
		"Access-Control-Allow-Private-Network": "true", "Access-Control-Allow-Credentials": "", "Access-Control-Max-Age": "600",
	} {
		equal(t, name, want, got.Header.Get(name))
	}
	equal(t, "the preflight's answer", response{Status: http.StatusNoContent, Header: got.Header}, got)
	if !strings.Contains(got.Header.Get("Vary"), "Origin") {
		t.Errorf("Vary: %q", got.Header.Get("Vary"))
	}

	call := page{"POST", "/", `{"QueueName":"x"}`, []string{
		"Origin", app, "Referer", app + "/", "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "X-Amz-Target", "AmazonSQS.GetQueueUrl",
	}}
	got = call.send(t, endpoint)
	equal(t, "status", 400, got.Status) // there is no such queue
	equal(t, "the origin that may read it", app, got.Header.Get("Access-Control-Allow-Origin"))
	equal(t, "Vary", "Origin", got.Header.Get("Vary"))
	for _, name := range []string{"x-amzn-RequestId", "x-amzn-query-error", "Date"} {
		if got.Header.Get(name) == "" || !strings.Contains(got.Header.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("the page does not see %s: %v", name, got.Header)
		}
	}

	for _, origin := range []string{"http://localhost:5174", "http://app.example", "https://app.example.evil.example", "null", "https://app.example, " + app} {
		for _, p := range []page{call, preflight} {
			p.header = append([]string{"Origin", origin}, p.header[2:]...)
			if got := p.send(t, endpoint); got.Status != http.StatusForbidden || got.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s from %s: %d %v", p.method, origin, got.Status, got.Header)
			}
		}
	}
	plain := page{"POST", "/", "Action=ListQueues", []string{"Content-Type", "application/x-www-form-urlencoded"}}.send(t, endpoint)
	equal(t, "the status of a program's request", http.StatusOK, plain.Status)
	equal(t, "of a program, the origin that may read it", "", plain.Header.Get("Access-Control-Allow-Origin"))
	equal(t, "of a program, Vary", "Origin", plain.Header.Get("Vary"))
	if got := (page{call.method, call.path, call.body, append([]string{"Host", "evil.example"}, call.header...)}).send(t, endpoint); got.Status != http.StatusForbidden {
		t.Errorf("a rebound name with a listed origin: %d", got.Status)
	}
}
