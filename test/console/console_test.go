package console_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
	queue, dead                string
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
		{"policy"},
		{"policy", "subscription", sh.subscription},
		{"policy", "topic", sh.topic},
		{"filter", "topic", sh.topic},
		{"filter", "subscription", sh.subscription},
		{"functions"},
		{"topology"},
		{"topology", "root", sh.topic},
		{"metrics"},
		{"metrics", "arn", sh.queue},
		{"alarms"},
		{"logs"},
		{"clock"},
		{"settings"},
		{"no-such-page"},
	}
}

func (sh *shop) publish(body string) {
	sh.sns("Publish", "TopicArn", sh.topic, "Message", body, "Subject", "an order",
		"MessageAttributes.entry.1.Name", "status", "MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", "confirmed")
}

// advance moves the virtual clock.
func (sh *shop) advance(by string) { sh.own("/_godwit/clock", `{"advance":"`+by+`"}`) }

// What an empty server shows tells what to do next, on every page.
func TestEmptyServer(t *testing.T) {
	s := start(t)
	b := s.open(t)
	for _, name := range []string{"queues", "topics", "subscriptions", "functions", "alarms", "logs", "topology"} {
		b.visit(name)
		b.until(name+" says that it is empty", `document.querySelector(".empty")`)
	}
	b.visit("")
	b.shows("create-queue")
	b.picture("empty")
}

// Nothing that strangers write becomes markup, runs, hides or turns: on no page, and not in a
// table that is saved.
func TestHostileText(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, hostile, "=HYPERLINK(1) @evil")
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
	sh.advance("10m") // the web hook's become dead letters
	b := s.open(t)
	for _, page := range sh.pages() {
		b.visit(page[0], page[1:]...)
		if b.is(`document.querySelector("main script, main img, main svg[onload], main [onerror]")`) {
			t.Errorf("%v: text became markup", page)
		}
		if b.is(`/[\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.innerText)`) {
			t.Errorf("%v: what turns or colours text is passed on", page)
		}
	}
}

// axe finds nothing on any page: light and dark, on a screen and on a phone, busy and empty.
func TestAccessible(t *testing.T) {
	source := axe(t)
	s := start(t, "--clock", "virtual", "--jitter", "0")
	b := s.open(t)
	for _, name := range []string{"", "queues", "topics", "subscriptions", "functions", "topology", "alarms", "logs"} {
		b.visit(name)
		b.accessible(source, "empty "+name)
	}
	sh := openShop(t, s, "out of order", "shop")
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
	b.shows("paused")
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
