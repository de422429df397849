package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const account = "000000000000"

// hostile is what an attacker may write wherever text goes: markup that runs, colours of a
// terminal, letters that turn what follows, a formula.
const hostile = "=cmd|' /C calc'!A0 <script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)> javascript:alert(4) \x1b[31mred\x1b[0m \u202eflipped\u202c שלום \u200bend"

// plain is the part of it that any XML can carry.
const plain = "=cmd|' /C calc'!A0 <script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)> \u202eflipped\u202c \U000e0041\u3164hidden שלום end"

// shop is what the tests look at: a topic whose web hook fails, with a dead-letter queue, and
// a queue that works.
type shop struct {
	*server
	hook                       *hook
	topic, subscription, feeds string // ARNs
	queue, dead, alarm, logs   string
	function                   string
	queueURL                   string
}

func openShop(t *testing.T, s *server, says, tag string) *shop {
	t.Helper()
	sh := &shop{server: s, hook: startHook(t, says)}
	arn := "arn:aws:sqs:us-east-1:" + account + ":"
	sh.queue, sh.dead = arn+"fulfilment", arn+"orders-dead"
	sh.queueURL = s.url + "/" + account + "/fulfilment"
	tags, err := json.Marshal(map[string]string{"team": tag})
	if err != nil {
		t.Fatal(err)
	}
	s.sqs("CreateQueue", `{"QueueName":"orders-dead","tags":`+string(tags)+`}`)
	s.sqs("CreateQueue", fmt.Sprintf(`{"QueueName":"fulfilment","Attributes":{"RedrivePolicy":%q}}`, fmt.Sprintf(`{"deadLetterTargetArn":"%s","maxReceiveCount":"3"}`, sh.dead)))
	sh.topic = s.sns("CreateTopic", "Name", "orders", "Tags.member.1.Key", "team", "Tags.member.1.Value", "shop")
	sh.feeds = s.sns("Subscribe", "TopicArn", sh.topic, "Protocol", "sqs", "Endpoint", sh.queue, "ReturnSubscriptionArn", "true")
	sh.subscription = s.sns("Subscribe", "TopicArn", sh.topic, "Protocol", "http", "Endpoint", sh.hook.url, "ReturnSubscriptionArn", "true",
		"Attributes.entry.1.key", "RedrivePolicy", "Attributes.entry.1.value", fmt.Sprintf(`{"deadLetterTargetArn":"%s"}`, sh.dead),
		"Attributes.entry.2.key", "DeliveryPolicy", "Attributes.entry.2.value", `{"healthyRetryPolicy":{"numRetries":3,"minDelayTarget":20,"maxDelayTarget":20,"numMinDelayRetries":0,"numMaxDelayRetries":0,"numNoDelayRetries":0,"backoffFunction":"linear"}}`)
	eventually(t, "the subscription is confirmed", func() bool {
		return strings.Contains(s.post("/", "application/x-www-form-urlencoded", "", "Action=GetSubscriptionAttributes&SubscriptionArn="+strings.ReplaceAll(sh.subscription, ":", "%3A")), "<key>PendingConfirmation</key><value>false</value>") ||
			strings.Contains(strings.Join(strings.Fields(s.post("/", "application/x-www-form-urlencoded", "", "Action=GetSubscriptionAttributes&SubscriptionArn="+strings.ReplaceAll(sh.subscription, ":", "%3A"))), ""), "<key>PendingConfirmation</key><value>false</value>")
	})
	return sh
}

// pages are all pages of the console, with what they are about.
func (sh *shop) pages() [][]string {
	return [][]string{
		{""},
		{"queues"},
		{"queue", "arn", sh.queue},
		{"topics"},
		{"topic", "arn", sh.topic},
		{"subscriptions"},
		{"subscription", "arn", sh.subscription},
		{"dead-letters"},
		{"dead-letters", "queue", sh.dead},
		{"jobs"},
		{"policy"},
		{"policy", "subscription", sh.subscription},
		{"policy", "topic", sh.topic},
		{"filter", "topic", sh.topic},
		{"filter", "subscription", sh.subscription},
		{"functions"},
		{"function", "arn", sh.function},
		{"sources"},
		{"source", "name", "shop"},
		{"topology"},
		{"topology", "root", sh.topic},
		{"metrics"},
		{"metrics", "arn", sh.queue},
		{"alarms"},
		{"alarm", "arn", sh.alarm},
		{"logs"},
		{"logs", "arn", sh.logs},
		{"tail"},
		{"tail", "arn", sh.logs},
		{"tail", "arn", sh.topic},
		{"tail", "arn", sh.queue},
		{"clock"},
		{"identity"},
		{"settings"},
		{"no-such-page"},
	}
}

// furnish adds what there is besides: an alarm, a log group, a user with a key, a role, a
// function that reads a queue, and a source, with names and texts of somebody's, and with secrets.
func (sh *shop) furnish(name, text string) {
	sh.t.Helper()
	name = strings.ReplaceAll(name, "\x1b", "") // names have no controls
	ascii := regexp.MustCompile(`[^ -~]`).ReplaceAllString(name, "")
	sh.alarm = "arn:aws:cloudwatch:us-east-1:" + account + ":alarm:" + name
	sh.logs = "arn:aws:logs:us-east-1:" + account + ":log-group:/aws/lambda/shop"
	sh.function = "arn:aws:lambda:us-east-1:" + account + ":function:shop"
	const target = "GraniteServiceVersion20100801."
	ask := func(path, kind, target, service string, in any) string {
		sh.t.Helper()
		body, err := json.Marshal(in)
		if err != nil {
			sh.t.Fatal(err)
		}
		return sh.request(path, kind, target, string(body), service)
	}
	call := func(target string, in any) {
		sh.t.Helper()
		body, err := json.Marshal(in)
		if err != nil {
			sh.t.Fatal(err)
		}
		sh.post("/", "application/x-amz-json-1.1", target, string(body))
	}
	call(target+"PutMetricAlarm", map[string]any{
		"AlarmName": name, "AlarmDescription": text, "Namespace": "AWS/SQS", "MetricName": "ApproximateAgeOfOldestMessage", "Statistic": "Maximum", "Period": 60, "EvaluationPeriods": 1,
		"Threshold": 300, "ComparisonOperator": "GreaterThanThreshold", "Dimensions": []map[string]string{{"Name": "QueueName", "Value": "fulfilment"}},
	})
	call(target+"SetAlarmState", map[string]any{"AlarmName": name, "StateValue": "ALARM", "StateReason": text})
	stream := strings.NewReplacer(":", "", "*", "").Replace(name)
	call("Logs_20140328.CreateLogGroup", map[string]any{"logGroupName": "/aws/lambda/shop"})
	call("Logs_20140328.CreateLogStream", map[string]any{"logGroupName": "/aws/lambda/shop", "logStreamName": stream})
	var clock struct {
		Now time.Time `json:"now"`
	}
	if err := json.Unmarshal([]byte(sh.get("/_godwit/clock")), &clock); err != nil {
		sh.t.Fatal(err)
	}
	call("Logs_20140328.PutLogEvents", map[string]any{"logGroupName": "/aws/lambda/shop", "logStreamName": stream, "logEvents": []map[string]any{{"timestamp": clock.Now.UnixMilli(), "message": text}}})
	iam := func(action string, pairs ...string) {
		form := url.Values{"Action": {action}, "Version": {"2010-05-08"}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		sh.t.Helper()
		sh.request("/", "application/x-www-form-urlencoded", "", form.Encode(), "iam")
	}
	iam("CreateUser", "UserName", "ann")
	iam("CreateAccessKey", "UserName", "ann")
	iam("CreateRole", "RoleName", "shop", "Description", ascii, "AssumeRolePolicyDocument", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`)
	sh.sqs("CreateQueue", `{"QueueName":"parcels"}`)
	ask("/2015-03-31/functions", "application/json", "", "lambda", map[string]any{ // a remote one, which needs no sandbox
		"FunctionName": "shop", "Role": "arn:aws:iam::" + account + ":role/shop", "PackageType": "Image", "Code": map[string]string{"ImageUri": "https://shop:" + password + "@127.0.0.1:1/"},
		"Description": name, "Environment": map[string]any{"Variables": map[string]string{"KEY": password}},
	})
	ask("/2015-03-31/event-source-mappings", "application/json", "", "lambda", map[string]any{"FunctionName": "shop", "EventSourceArn": "arn:aws:sqs:us-east-1:" + account + ":parcels"})
	ask("/_godwit/v1/sources", "application/json", "", "sqs", map[string]any{
		"name": "shop", "target": sh.queue, "verification": map[string]string{"kind": "hmac", "header": "X-Shop-Signature", "prefix": ascii[:4]}, "secrets": []string{password + " of the source"},
		"mapping": map[string]any{"message": "/data", "attributes": map[string]string{"status": "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)}},
	})
}

func (sh *shop) publish(body string) {
	sh.sns("Publish", "TopicArn", sh.topic, "Message", body, "Subject", "an order",
		"MessageAttributes.entry.1.Name", "status", "MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", "confirmed")
}

// advance moves the virtual clock.
func (sh *shop) advance(by string) { sh.own("/_godwit/clock", `{"advance":"`+by+`"}`) }

// What an empty server shows reports what to do next, on every page.
func TestEmptyServer(t *testing.T) {
	s := start(t)
	b := s.open(t)
	for _, name := range []string{"queues", "topics", "subscriptions", "functions", "sources", "dead-letters", "jobs", "filter", "metrics", "alarms", "logs", "tail", "identity", "topology"} {
		b.visit(name)
		b.until(name+" says that it is empty", `document.querySelector(".empty")`)
	}
	// These have something to show on any server.
	for name, shows := range map[string]string{"clock": "Nothing is made to fail.", "settings": "ingest-listen", "policy": "60 of 3,600 seconds"} {
		b.visit(name)
		b.shows(shows)
		if b.is(`document.querySelector(".trouble")`) {
			t.Errorf("%s: %s", name, value[string](b, `document.querySelector(".trouble").innerText`))
		}
	}
	// And what a link leads to may be gone.
	arn := func(service, rest string) string { return "arn:aws:" + service + ":us-east-1:" + account + ":" + rest }
	for _, page := range [][]string{
		{"queue", "arn", arn("sqs", "gone")},
		{"topic", "arn", arn("sns", "gone")},
		{"subscription", "arn", arn("sns", "gone:5be8f5b2-9f5c-4b4e-8f1a-5e7d5e2d2c11")},
		{"function", "arn", arn("lambda", "function:gone")},
		{"alarm", "arn", arn("cloudwatch", "alarm:gone")},
		{"source", "name", "gone"},
		{"dead-letters", "queue", arn("sqs", "gone")},
	} {
		b.visit(page[0], page[1:]...)
		b.shows("It may have been deleted")
	}
	b.visit("")
	b.shows("create-queue")
	b.picture("empty")
}

// Nothing that strangers write becomes markup, runs, hides or turns: on no page, and not in a
// table that is saved. What an address keeps secret is not shown either.
func TestHostileText(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, hostile, "=HYPERLINK(1) @evil")
	s.sns("Subscribe", "TopicArn", sh.topic, "Protocol", "https", "Endpoint", "https://shop:"+password+"@127.0.0.1:1/hook", "ReturnSubscriptionArn", "true")
	for range 3 {
		sh.publish(plain)
	}
	body, err := json.Marshal(map[string]any{
		"QueueUrl": sh.queueURL, "MessageBody": plain,
		"MessageAttributes": map[string]any{"evil": map[string]string{"DataType": "String", "StringValue": plain}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.sqs("SendMessage", string(body))
	s.sns("SetTopicAttributes", "TopicArn", sh.topic, "AttributeName", "DisplayName", "AttributeValue", "=1+1 <script>alert(5)</script>")
	sh.advance("10m") // the web hook's become dead letters
	sh.furnish(hostile, hostile)
	s.own("/_godwit/v1/jobs", fmt.Sprintf(`{"kind":"delete","arn":%q,"where":{"search":%s}}`, sh.dead, quote(plain+" of nobody")))
	s.sns("Subscribe", "TopicArn", sh.topic, "Protocol", "https", "Endpoint", "https://127.0.0.1:1/<script>alert(8)</script>?=1+1|", "ReturnSubscriptionArn", "true")
	for _, kind := range []string{"Subscription", "Unsubscribe"} {
		s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":%q,"MessageBody":%s}`, sh.queueURL, quote(fmt.Sprintf(`{"Type" : "%sConfirmation", "Token" : "%s", "SubscribeURL" : "https://sns/?Action=ConfirmSubscription&TopicArn=t&Token=%[2]s"}`, kind, token))))
	}
	b := s.open(t)
	check := func(what string) {
		t.Helper()
		if b.is(`document.querySelector("main script, main img, main svg[onload], main [onerror]")`) {
			t.Errorf("%s: text became markup", what)
		}
		if b.is(`/[\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.innerText)`) {
			t.Errorf("%s: what turns or colours text is passed on", what)
		}
		for _, secret := range []string{password, token} {
			if b.is(`document.documentElement.outerHTML.includes("` + secret + `")`) {
				t.Errorf("%s: %s is shown", what, secret)
			}
		}
	}
	for _, page := range sh.pages() {
		what := strings.Join(page, " ")
		b.visit(page[0], page[1:]...)
		b.run(script(`document.querySelectorAll("details").forEach((e) => { e.open = true; })`))
		switch page[0] {
		case "queue", "topic":
			b.press("Look")
			b.until("messages are listed", `document.querySelector(".message")`)
		case "dead-letters":
			if len(page) > 1 {
				b.press("Show messages")
				b.until("messages are listed", `document.querySelector(".message")`)
			}
		case "tail", "logs":
			if len(page) > 1 && page[2] != sh.queue {
				b.until("lines or messages are shown", `document.querySelector(".log, .message")`)
			}
		}
		b.run(script(`document.querySelectorAll("details").forEach((e) => { e.open = true; })`))
		check(what)
		for i := range value[int](b, `[...document.querySelectorAll("main button")].filter((e) => e.textContent === "Save as table").length`) {
			table := b.saved(fmt.Sprintf(`[...document.querySelectorAll("main button")].filter((e) => e.textContent === "Save as table")[%d]`, i))
			if formula.MatchString(table) {
				t.Errorf("%s: a spreadsheet takes a cell for a formula:\n%s", what, table)
			}
			if strings.Contains(table, token) || strings.Contains(table, password) {
				t.Errorf("%s: a secret is in the table:\n%s", what, table)
			}
		}
	}
	// What is not on a page proves nothing there.
	for _, there := range [][]string{
		{"<script>alert(1)</script>", "alarm", "arn", sh.alarm},
		{"<script>alert(1)</script>", "alarms"},
		{"<script>alert(1)</script>", "function", "arn", sh.function},
		{"U+202E", "logs", "arn", sh.logs},
		{"U+202Eflipped", "source", "name", "shop"},
		{"of nobody", "jobs"},
		{"<script>alert(1)</script>", "identity"},
		{"ConfirmSubscription", "queue", "arn", sh.queue},
		{"alert(8)", "subscriptions"},
	} {
		b.visit(there[1], there[2:]...)
		if there[1] == "queue" {
			b.press("Look")
		}
		b.shows(there[0])
	}
	// A table that cannot be checked because it is not there proves nothing.
	b.visit("logs", "arn", sh.logs)
	if table := b.saved(`[...document.querySelectorAll("main button")].find((e) => e.textContent === "Save as table")`); !strings.Contains(table, "'=cmd|") {
		t.Errorf("the line is not in the table:\n%s", table)
	}
}

// password is one that must not be shown, and token one that confirms a subscription.
const (
	password = "s3cret-canary"
	token    = "2336412f37fb687f5d51e6e2425e90ccc7f0"
)

// formula is a cell, at the beginning of a line or after another one, that a spreadsheet
// calculates.
var formula = regexp.MustCompile(`(?m)(^|",)"?[=+@|%-]`)

// axe finds nothing on any page: light and dark, on a screen and on a phone, busy and empty.
func TestAccessible(t *testing.T) {
	source := axe(t)
	s := start(t, "--clock", "virtual", "--jitter", "0")
	b := s.open(t)
	for _, name := range []string{"", "queues", "topics", "subscriptions", "functions", "sources", "topology", "dead-letters", "jobs", "policy", "filter", "metrics", "alarms", "logs", "tail", "clock", "identity", "settings"} {
		b.visit(name)
		b.accessible(source, "empty "+name)
	}
	sh := openShop(t, s, "out of order", "shop")
	sh.furnish("late", "late")
	for range 3 {
		sh.publish(`{"order":1}`)
	}
	sh.advance("10m")
	sh.publish(`{"order":2}`)
	for _, page := range sh.pages() {
		name := strings.Join(page, " ")
		b.size(1280, 900)
		b.dark(false)
		b.visit(page[0], page[1:]...)
		b.accessible(source, name)
		b.dark(true)
		b.accessible(source, "dark "+name)
		b.size(400, 800)
		b.accessible(source, "phone "+name)
		if b.is(`document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s: one has to scroll sideways on a phone", name)
		}
	}
}

// Everything can be reached without a mouse: here the way to a paused subscription.
func TestKeyboard(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, "out of order", "shop")
	b := s.open(t)
	b.visit("")
	b.tabTo("Skip to the content")
	b.tabTo("Subscriptions")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until("the page has the focus", `document.activeElement.tagName === "H1" && document.activeElement.textContent === "Subscriptions"`)
	b.shows(sh.hook.url)
	b.tabTo(sh.hook.url)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.shows("Pause deliveries")
	b.tabTo("Pause deliveries")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.shows("Resume deliveries")
	b.run(script("history.back()"))
	b.until("the list is back", `document.querySelector("h1")?.textContent === "Subscriptions"`)
	b.until("it is listed as paused", `[...document.querySelectorAll("tbody td")].some((cell) => cell.textContent.endsWith("paused"))`)
}

// Where one has to sign in nothing is shown before, and nothing afterwards.
func TestSignIn(t *testing.T) {
	s := start(t, "--enforce")
	b := s.open(t)
	b.visit("queues")
	b.shows("Sign in to Godwit")
	b.fill("Access key", rootKey)
	b.fill("Secret access key", "not this one")
	b.press("Sign in")
	b.until("it is refused", `document.querySelector("[role=alert]")`)
	b.picture("sign-in")
	b.fill("Secret access key", rootSecret)
	b.press("Sign in")
	b.shows("There are no queues.")
	b.shows("Signed in as")
	if b.is(`document.cookie`) {
		t.Error("a script can read the cookie")
	}
	b.visit("topics")
	b.shows("There are no topics.")
	b.press("Sign out")
	b.shows("Sign in to Godwit")
	b.visit("topics")
	b.shows("Sign in to Godwit")
}
