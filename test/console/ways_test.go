package console_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
)

// A function's page says what it reads and leads there, to its logs, its metrics and its place
// in the topology.
func TestFunction(t *testing.T) {
	s := start(t)
	sh := openShop(t, s, "out of order", "shop")
	sh.furnish("takes parcels", "takes parcels")
	b := s.open(t)
	b.visit("functions")
	b.press("shop")
	b.shows("takes parcels")
	b.shows("events that wait")
	b.until("what it reads is listed", `[...document.querySelectorAll("tbody tr")].some((e) => e.textContent.includes("parcels"))`)
	b.until("its variables are named, without values", `document.querySelector("main").innerText.includes("KEY") && !document.documentElement.outerHTML.includes(`+quote(password)+`)`)
	b.press("Logs")
	b.until("its log group is open", `new URLSearchParams(location.search).get("arn") === `+quote(sh.logs))
	b.shows("takes parcels")
	b.visit("function", "arn", sh.function)
	b.press("Topology")
	b.until("it is drawn with its queue", `[...document.querySelectorAll("svg .strong")].map((e) => e.textContent).sort().join() === "parcels,shop"`)
	b.visit("function", "arn", sh.function)
	b.press("parcels")
	b.until("the queue's page is open", `document.querySelector("h1")?.textContent === "parcels"`)
	b.shows("read by functions")
}

// What is chosen in the topology has its path lit, in the address, too, so that a link shows
// somebody else the same; what one points at lights its own meanwhile.
func TestTopologyPath(t *testing.T) {
	s := start(t)
	sh := openShop(t, s, "out of order", "shop")
	s.sqs("CreateQueue", `{"QueueName":"aside"}`)
	aside := s.sns("CreateTopic", "Name", "others")
	s.sns("Subscribe", "TopicArn", aside, "Protocol", "sqs", "Endpoint", "arn:aws:sqs:us-east-1:"+account+":aside", "ReturnSubscriptionArn", "true")
	const lit = `[...document.querySelectorAll("svg > a:not(.dim) .strong, svg > g:not(.dim) > .node + .strong")].map((e) => e.textContent).sort().join()`
	const rows = `document.querySelectorAll("tbody tr").length`
	b := s.open(t)
	b.visit("topology")
	b.until("all is lit", lit+`.includes("others") && `+lit+`.includes("orders")`)
	all := value[int](b, rows)
	b.run(script(`{const of = [...document.querySelectorAll("label")].find((l) => l.textContent === "Path of").control; of.value = ` + quote(aside) + `; of.dispatchEvent(new Event("change", {bubbles: true}))}`))
	b.until("its path is lit alone", lit+` === "aside,others"`)
	b.until("and listed alone", rows+` === 1`)
	b.until("it is in the address", `new URLSearchParams(location.search).get("path") === `+quote(aside))
	b.run(script(`document.querySelector('svg a[href*="queue?"][href*="fulfilment"]').dispatchEvent(new Event("focus"))`))
	b.until("what has the focus is lit meanwhile", lit+`.includes("fulfilment") && !`+lit+`.includes("aside")`)

	other := s.open(t)
	other.visit("topology", "path", sh.topic)
	other.until("the same is lit by its address", lit+`.includes("fulfilment") && `+lit+`.includes("orders-dead") && !`+lit+`.includes("aside")`)
	if n := value[int](other, rows); n != all-1 {
		t.Errorf("%d links of %d are listed", n, all)
	}
}

// What was sent in base64 is shown as it was sent, as text and as bytes.
func TestBase64(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"celery"}`)
	for _, body := range []string{`{"task":"add","args":[1,2]}`, "\x1f\x8b\x08\x00\xff\xfe binary"} {
		s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/celery","MessageBody":%q}`, s.url, account, base64.StdEncoding.EncodeToString([]byte(body))))
	}
	b := s.open(t)
	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":celery")
	b.press("Look")
	b.until("both are listed", `document.querySelectorAll(".message").length === 2`)
	b.run(script(`document.querySelectorAll("details").forEach((e) => { e.open = true; })`))
	b.shows("eyJ0YXNrIjoiYWRk")
	b.run(script(`[...document.querySelectorAll("button")].filter((e) => e.textContent === "What the base64 is of").forEach((e) => e.click())`))
	b.until("one is JSON", `[...document.querySelectorAll("pre")].some((e) => e.textContent.includes('"task": "add"'))`)
	b.until("the other is bytes", `[...document.querySelectorAll("pre")].some((e) => e.textContent.includes("000000  1f 8b 08 00 ff fe 20 62"))`)
	b.press("What the base64 is of")
	b.shows("eyJ0YXNrIjoiYWRk")
}

// A source is paused and resumed on its page.
func TestSources(t *testing.T) {
	s := start(t, "--ingest-listen", freeAddress(t))
	sh := openShop(t, s, "out of order", "shop")
	sh.furnish("late", "late")
	b := s.open(t)
	b.visit("sources")
	b.press("shop")
	b.shows("/in/shop")
	b.press("Take no posts")
	b.shows("who posts is told to come again")
	if said := s.get("/_godwit/v1/source?name=shop"); !strings.Contains(said, `"paused":true`) {
		t.Error(said)
	}
	other := s.open(t)
	other.visit("")
	other.shows("it is paused, and takes no posts")
	other.press("Show it")
	other.shows("/in/shop")
	b.press("Take posts again")
	b.shows("It takes posts again.")
	if said := s.get("/_godwit/v1/source?name=shop"); !strings.Contains(said, `"paused":false`) {
		t.Error(said)
	}
	b.press(sh.queue)
	b.until("its queue's page is open", `document.querySelector("h1")?.textContent === "fulfilment"`)
	b.visit("tail")
	b.press("fulfilment")
	b.shows("Nothing has come yet.")

	// Without its target it refuses what is posted, and its page says so.
	s.sqs("DeleteQueue", `{"QueueUrl":"`+s.url+`/`+account+`/fulfilment"}`)
	b.visit("sources")
	b.until("it has no target", `document.querySelector("tbody tr")?.textContent.includes("no target")`)
	b.press("shop")
	b.shows("its target does not exist")
}

// What is loaded once it is needed is asked for once; if it cannot be had, the page says so,
// and the focus is on what is shown as with any page.
func TestSeldom(t *testing.T) {
	s := start(t)
	b := s.open(t)
	b.visit("")
	if n := b.asked("/assets/seldom-") + b.asked("/assets/uPlot"); n > 0 {
		t.Errorf("%d files are loaded that the overview does not need", n)
	}
	b.press("Settings")
	b.until("the page has the focus", `document.activeElement.tagName === "H1" && document.activeElement.textContent === "Settings"`)
	b.press("Identity")
	b.until("the page has the focus", `document.activeElement.tagName === "H1" && document.activeElement.textContent === "Identity"`)
	if n := b.asked("/assets/seldom-"); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
	cut := s.open(t)
	cut.run(command(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: s.url + "/_godwit/ui/assets/seldom-*", Block: true}}}))
	cut.visit("queues")
	cut.press("Settings")
	cut.shows("This page could not be loaded.")
	cut.run(command(network.SetBlockedURLs, network.SetBlockedURLsParams{}))
	cut.press("Load it again")
	cut.shows("This browser")
}
