package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
)

// Each page has a picture in the documentation.
func TestPictures(t *testing.T) {
	if os.Getenv("GODWIT_SCREENSHOTS") == "" {
		t.Skip("makes pictures: make pictures")
	}
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, "the database of the shop is out of order", "shop")
	for i := range 6 {
		sh.publish(fmt.Sprintf(`{"order":%d,"customer":"C-%d","total":%d.90}`, i, 4711+i, 12*i))
	}
	sh.advance("5m")
	sh.publish(`{"order":"late"}`)
	sh.furnish("Threshold Crossed: 1 datapoint [341.0] was greater than the threshold (300.0).")
	b := s.open(t)
	b.size(1280, 800)
	for _, page := range sh.pages() {
		name := page[0]
		if name == "dead-letters" && len(page) == 1 { // the workbench has that name
			name = "dead-letter-queues"
		}
		if page[len(page)-1] == sh.topic && name == "tail" {
			name = "tail-of-a-topic"
		} else if len(page) > 1 && name != "queue" && name != "topic" && name != "alarm" {
			name += "-of-one"
		}
		switch {
		case name == "tail-of-one" && page[2] == sh.queue:
			continue // it has nothing at first
		case name == "", name == "no-such-page", strings.HasPrefix(name, "subscription-"), strings.HasPrefix(name, "dead-letters-"), strings.HasPrefix(name, "policy"):
			continue // the story has pictures of these
		case name == "filter-of-one" && page[1] != "topic", name == "filter":
			continue
		}
		b.visit(page[0], page[1:]...)
		if page[0] == "queue" {
			b.press("Look")
			b.until("messages are listed", `document.querySelector(".message")`)
			b.run(script(`document.querySelector(".message").open = true; document.querySelector(".messages").scrollIntoView()`))
		}
		if page[0] == "topic" {
			b.press("Look")
			b.until("what was published is listed", `document.querySelector(".message")`)
			b.run(script(`document.querySelector(".message").open = true; document.querySelector(".messages").scrollIntoView()`))
		}
		if page[0] == "tail" && len(page) > 1 {
			b.until("lines or messages are shown", `document.querySelector(".log, .message")`)
		}
		b.picture(name)
	}
}

// With ten thousand queues pages have no more rows than they had, and say that there are more.
func TestManyQueues(t *testing.T) {
	const all = 10_000
	s := start(t)
	var wg sync.WaitGroup
	names := make(chan int)
	for range 16 {
		wg.Go(func() {
			for n := range names {
				r, err := http.NewRequest(http.MethodPost, s.url+"/", strings.NewReader(fmt.Sprintf("Action=CreateQueue&Version=2012-11-05&QueueName=queue-%05d", n)))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			}
		})
	}
	for n := range all {
		names <- n
	}
	close(names)
	wg.Wait()
	const queue = "queue-09999"
	s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/%s","MessageBody":"hello"}`, s.url, account, queue))
	b := s.open(t)
	b.visit("")
	b.shows("10,000")
	b.visit("queues")
	if n := value[int](b, `document.querySelectorAll("tbody tr").length`); n != 100 {
		t.Errorf("%d rows", n)
	}
	b.press("Next page")
	b.shows("queue-00100")
	b.press("First page")
	b.shows("queue-00000")
	b.fill("Name contains", "09999")
	b.until("it is found", `document.querySelectorAll("tbody tr").length === 1`)
	b.visit("queues", "sort", "messages")
	b.until("the one with a message is first", `document.querySelector("tbody tr")?.textContent.includes("queue-09999")`)
	arn := "arn:aws:sqs:us-east-1:" + account + ":" + queue
	for _, page := range [][]string{
		{""},
		{"queues"},
		{"queue", "arn", arn},
		{"topics"},
		{"subscriptions"},
		{"functions"},
		{"sources"},
		{"topology"},
		{"topology", "root", arn},
		{"dead-letters"},
		{"dead-letters", "queue", arn},
		{"jobs"},
		{"policy"},
		{"filter"},
		{"metrics"},
		{"metrics", "arn", arn},
		{"alarms"},
		{"logs"},
		{"tail"},
		{"clock"},
		{"identity"},
		{"settings"},
	} {
		b.visit(page[0], page[1:]...)
		b.until("the page stays small", `document.querySelectorAll("*").length < 10000`)
		if b.is(`document.querySelector(".trouble")`) && page[0] != "topology" { // which says that there is more
			t.Errorf("%v: %s", page, value[string](b, `document.querySelector(".trouble").innerText`))
		}
	}
}

// Whatever a body is, it is shown, and the page stays usable: a MiB, bytes, text from right to
// left, JSON and almost JSON.
func TestBodies(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"fulfilment"}`)
	big := `{"text":"` + strings.Repeat("0123456789abcdef", 1<<16-16) + `"}`
	bodies := []string{big, "שלום עולם — مرحبا بالعالم", `{"a":[1,2,{"b":null}]}`, `{"a":`, "line\nline\r\n\ttab", strings.Repeat("𝄞", 1000)}
	for _, text := range bodies {
		body, err := json.Marshal(map[string]any{
			"QueueUrl": s.url + "/" + account + "/fulfilment", "MessageBody": text,
			"MessageAttributes": map[string]any{"bytes": map[string]string{"DataType": "Binary", "BinaryValue": "AAECA//+"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == len(big) { // an attribute counts, too
			body = fmt.Appendf(nil, `{"QueueUrl":"%s/%s/fulfilment","MessageBody":%s}`, s.url, account, quote(text))
		}
		s.sqs("SendMessage", string(body))
	}
	b := s.open(t)
	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":fulfilment")
	b.press("Look")
	b.until("all are listed", fmt.Sprintf(`document.querySelectorAll(".message").length === %d`, len(bodies)))
	b.run(script(`document.querySelectorAll("details").forEach((e) => { e.open = true; })`))
	b.shows("שלום עולם")
	b.until("it is written from the right", `[...document.querySelectorAll("pre")].some((e) => e.textContent.includes("שלום") && getComputedStyle(e).direction === "rtl")`)
	b.shows("only its beginning")
	if n := value[int](b, `document.body.innerText.length`); n > 100_000 {
		t.Errorf("the page has %d characters at first", n)
	}
	b.press("Load the whole body")
	b.press("Show all")
	b.until("all of it is shown", fmt.Sprintf(`[...document.querySelectorAll("pre")].some((e) => e.textContent.length >= %d)`, len(big)))
}

// Changes come by themselves; where the stream of them is cut, pages ask.
func TestLive(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"fulfilment"}`)
	send := func() {
		s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/fulfilment","MessageBody":"hello"}`, s.url, account))
	}
	const visible = `[...document.querySelectorAll(".tiles > div")].find((e) => e.textContent.includes("visible"))?.querySelector("dd").textContent`
	b := s.open(t)
	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":fulfilment")
	eventually(t, "a stream is open", func() bool { return b.asked("/v1/events?arn=") > 0 })
	send()
	b.until("it is seen", visible+` === "1"`)
	if n := b.asked("/v1/queue?"); n > 3 {
		t.Errorf("beside the stream the page has asked %d times", n)
	}

	cut := s.open(t)
	cut.run(command(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: s.url + "/_godwit/v1/events*", Block: true}}}))
	cut.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":fulfilment")
	send()
	cut.until("it is seen", visible+` === "2"`)
	send()
	cut.until("it is seen, too", visible+` === "3"`)
}
