package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
)

// cut keeps a tab from streams of the server.
func (b *tab) cut(path string) {
	b.t.Helper()
	b.run(command(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: b.s.url + "/_godwit/v1/" + path + "*", Block: true}}}))
}

// hold keeps the answers of a path of the API that come from now on from the page, until it calls
// window.held[n].
func (b *tab) hold(path string) {
	b.t.Helper()
	b.run(script(`window.held = []; const ask = window.fetch; window.fetch = async (at, ...rest) => {
		const answer = await ask(at, ...rest);
		if (!at.includes("/v1/` + path + `?")) return answer;
		const text = await answer.text();
		await new Promise((go) => window.held.push(go));
		return new Response(text);
	}`))
}

// hide has the page take itself for one that nobody looks at, or for one that somebody does.
func (b *tab) hide(on bool) {
	b.t.Helper()
	b.run(script(fmt.Sprintf(`Object.defineProperty(document, "hidden", {configurable: true, get: () => %v}); document.dispatchEvent(new Event("visibilitychange"))`, on)))
}

// A list asks again when the server reports that something has changed, and not on the chance; a
// page that nobody looks at asks for nothing, and catches up when somebody does.
func TestQuiet(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"first"}`)
	b := s.open(t)
	b.visit("queues")
	eventually(t, "a stream is open", func() bool { return b.asked("/v1/events?commits=true") > 0 })
	s.sqs("CreateQueue", `{"QueueName":"second"}`)
	b.shows("second")
	if n := b.asked("/v1/queues?"); n > 5 {
		t.Errorf("beside the stream the page has asked %d times", n)
	}

	b.hide(true)
	asked := b.asked("/")
	other := s.open(t) // without the stream it asks every few seconds, and so shows how time goes
	other.cut("events")
	other.visit("queues")
	s.sqs("CreateQueue", `{"QueueName":"third"}`)
	other.shows("third")
	s.sqs("CreateQueue", `{"QueueName":"fourth"}`)
	other.shows("fourth")
	if n := b.asked("/") - asked; n > 0 {
		t.Errorf("a page that nobody looks at has asked %d times", n)
	}
	b.hide(false)
	b.shows("fourth")
}

// The progress of jobs comes by events.
func TestJobsLive(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"fulfilment"}`)
	for range 3 {
		s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/fulfilment","MessageBody":"hello"}`, s.url, account))
	}
	b := s.open(t)
	b.visit("jobs")
	eventually(t, "a stream is open", func() bool { return b.asked("/v1/events?jobs=true") > 0 })
	b.shows("There are no jobs.")
	s.own("/_godwit/v1/jobs", `{"kind":"delete","arn":"arn:aws:sqs:us-east-1:`+account+`:fulfilment"}`)
	b.until("its end is shown", `document.querySelector("tbody tr")?.textContent.includes("completed")`)
	if n := b.asked("/v1/jobs?"); n > 3 {
		t.Errorf("beside the stream the page has asked %d times", n)
	}
}

// What an event tells while an older answer is on its way stays shown when that has come.
func TestEventBeforeAnswer(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"fulfilment"}`)
	b := s.open(t)
	b.visit("jobs")
	eventually(t, "a stream is open", func() bool { return b.asked("/v1/events?jobs=true") > 0 })
	b.shows("There are no jobs.")
	b.hold("jobs")
	b.hide(false) // so it is asked again
	b.until("an answer is on its way", "window.held.length === 1")
	s.own("/_godwit/v1/jobs", `{"kind":"delete","arn":"arn:aws:sqs:us-east-1:`+account+`:fulfilment"}`)
	const done = `!!document.querySelector("tbody tr")?.textContent.includes("completed")`
	b.until("its end is shown", done)
	b.run(script("window.held[0]()"))
	value[bool](b, "new Promise((r) => setTimeout(() => r(true), 50))")
	if !b.is(done) {
		t.Error("the older answer took it away")
	}
}

// What was published is shown with whoever took it, as it comes, too, and filters are tried on it.
func TestPublishes(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"cancelled"}`)
	topic := s.sns("CreateTopic", "Name", "orders")
	s.sns("Subscribe", "TopicArn", topic, "Protocol", "sqs", "Endpoint", "arn:aws:sqs:us-east-1:"+account+":cancelled", "ReturnSubscriptionArn", "true",
		"Attributes.entry.1.key", "FilterPolicy", "Attributes.entry.1.value", `{"status":["cancelled"]}`)
	publish := func(status, body string) {
		s.sns("Publish", "TopicArn", topic, "Message", body, "MessageAttributes.entry.1.Name", "status",
			"MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", status)
	}
	publish("confirmed", "the first order")
	b := s.open(t)
	b.visit("topic", "arn", topic)
	if strings.Contains(value[string](b, `document.body.innerText`), "the first order") {
		t.Error("it is shown before anybody asks to see it")
	}
	b.press("Look")
	b.shows("the first order")
	b.shows("taken by 0 of 1 subscriptions")
	b.run(script(`document.querySelector(".message").open = true`))
	b.shows("its filter policy does not fit the attributes")

	b.press("Follow live")
	b.shows("the first order")
	eventually(t, "a stream is open", func() bool { return b.asked("/v1/tail?") > 0 })
	publish("cancelled", "the second order")
	b.shows("the second order")
	b.shows("taken by 1 of 1 subscriptions")
	if n := b.asked("/v1/publishes?"); n > 3 {
		t.Errorf("beside the stream the page has asked %d times", n)
	}
	b.press("Hold")
	publish("cancelled", "the third order")
	b.press("Go on")
	b.shows("the third order")

	queue := "arn:aws:sqs:us-east-1:" + account + ":cancelled"
	b.visit("queue", "arn", queue)
	b.press("Follow live")
	b.shows("Nothing has come yet.")
	eventually(t, "the stream has begun", func() bool { return b.asked("bodyBytes=0") > 0 })
	s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/cancelled","MessageBody":"by hand"}`, s.url, account))
	b.shows("by hand")

	cut := s.open(t)
	cut.cut("tail")
	cut.visit("tail", "arn", topic)
	publish("cancelled", "the fourth order")
	cut.shows("the fourth order")

	b.visit("filter", "topic", topic)
	b.shows("4 of 4 come through")
	b.fill("Filter policy", `{"status":["confirmed"]}`)
	b.shows("1 of 4 come through")
}

// The end of a session that nobody is at is announced, and whoever is there keeps it.
func TestSessionEnds(t *testing.T) {
	s := start(t, "--enforce")
	b := s.open(t)
	b.run(command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `{
		const ask = window.fetch;
		let used = false, end;
		window.fetch = async (at, how) => {
			used ||= at.endsWith("/session/use");
			const answer = await ask(at, how);
			if (used || !at.endsWith("/ui/session") || how?.method !== "GET") return answer;
			const said = await answer.json();
			end ??= new Date(Date.parse(said.now) + 90_000).toISOString();
			return new Response(JSON.stringify({...said, expiresAt: end}));
		};
	}`}))
	b.visit("queues")
	b.fill("Access key", rootKey)
	b.fill("Secret access key", rootSecret)
	b.press("Sign in")
	b.shows("You are signed out at")
	b.press("Stay signed in")
	b.until("it is not announced any more", `!document.body.innerText.includes("You are signed out at")`)
	if b.asked("/ui/session/use") == 0 {
		t.Error("the server was not told")
	}
	b.shows("There are no queues.")
}

// In development the clock is moved by a slider, and things fail on purpose.
func TestClockAndFaults(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	s.sqs("CreateQueue", `{"QueueName":"fulfilment"}`)
	b := s.open(t)
	b.visit("clock")
	now := func() string { return value[string](b, `document.querySelector(".facts time").dateTime`) }
	before := now()
	b.run(script(`{const slider = document.querySelector("input[type=range]"); slider.value = 4; slider.dispatchEvent(new Event("input", {bubbles: true}))}`))
	b.shows("Move forward by 1 h")
	b.press("Move 1 h")
	b.shows("timers ran.")
	b.until("it is an hour later", fmt.Sprintf(`Date.parse(document.querySelector(".facts time").dateTime) - Date.parse(%s) >= 3600_000`, quote(before)))

	b.fill("ARN;", "arn:aws:sqs:us-east-1:"+account+":fulfilment")
	b.press("Make it fail")
	b.until("it is listed", `document.querySelector("tbody tr")?.textContent.includes("unavailable")`)
	if !strings.Contains(s.get("/_godwit/faults"), "fulfilment") {
		t.Error("it does not fail")
	}
	b.press("End it")
	b.shows("Nothing is made to fail.")

	// A name that may be misspelled is said to be of nothing.
	b.fill("ARN;", "arn:aws:sqs:us-east-1:"+account+":fulfillment")
	b.press("Make it fail")
	b.shows("There is no such resource: the fault is in force once there is.")
	b.press("End it")
	b.shows("Nothing is made to fail.")

	// All of it is gone once the account is named.
	b.press("Reset")
	b.fill("Type "+account, account)
	b.press("Delete everything")
	b.shows("Deleted: 1 queues.")
	b.visit("queues")
	b.shows("There are no queues.")
}
