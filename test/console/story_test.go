package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// It is three in the morning, and a customer's web hook gets nothing. Whoever is on call finds
// out why, keeps it from getting worse, and makes it right: with a mouse, or by keyboard alone.
func TestThreeInTheMorning(t *testing.T) {
	t.Run("mouse", func(t *testing.T) { threeInTheMorning(t, false) })
	t.Run("keyboard", func(t *testing.T) { threeInTheMorning(t, true) })
}

func threeInTheMorning(t *testing.T, keyboard bool) {
	s := start(t, "--clock", "virtual", "--jitter", "0", "--enforce")
	s.enforced = true
	sh := openShop(t, s, "the database of the shop is out of order", "shop")
	for i := range 6 {
		sh.publish(fmt.Sprintf(`{"order":%d}`, i))
	}
	sh.advance("5m") // three retries, 20 s apart, were not enough
	sh.publish(`{"order":"late"}`)
	b := s.open(t)
	b.keyboard = keyboard
	b.visit("")
	b.fill("Access key", rootKey)
	b.fill("Secret access key", rootSecret)
	b.press("Sign in")

	// The overview says what is wrong, and leads there.
	b.shows("An endpoint fails")
	b.shows("Dead letters")
	if !keyboard {
		b.picture("overview")
	}
	b.press("orders:")

	// Its last answer, and the schedule ahead of what still waits.
	b.shows("503")
	b.shows("3 to come")
	b.until("the schedule is drawn", `document.querySelectorAll("svg .next").length === 3 && document.querySelector("svg .made")`)
	if !keyboard {
		b.picture("subscription")
	}

	// Nothing more is to be used up until it is mended.
	b.press("Pause deliveries")
	b.shows("Resume deliveries")
	b.shows("paused")

	// Six have died, all of the same cause. Looking at them changes nothing.
	b.press("Dead letters")
	b.shows("Why they died")
	b.until("the six have one cause", `document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody td.number").textContent === "6"`)
	cause := value[string](b, `document.querySelector("tbody button").textContent`)
	b.press(cause)
	b.shows("Dead letters of this cause")
	b.press("Show messages")
	b.until("they are listed", `document.querySelectorAll(".message").length === 6`)
	if !keyboard {
		b.picture("dead-letters")
	}

	// A policy that tries for longer: simulated first, then saved.
	b.press("Policy simulator")
	b.visit("subscription", "arn", sh.subscription)
	b.press("Delivery policy")
	b.shows("60 of 3,600 seconds")
	b.fill("Retries in all", "50")
	b.shows("16 min 40 s")
	if !keyboard {
		b.picture("policy")
	}
	b.press("Save policy")
	b.shows("Saved.")

	// The shop is back. The order that still waits is tried first.
	sh.hook.mend()
	b.press("Back")
	b.press("Resume deliveries")
	b.shows("Pause deliveries")
	b.press("Retry now")
	eventually(t, "the late order arrives", func() bool { return sh.hook.taken() == 1 })

	// Then one that died, to the web hook itself, and the rest at a rate.
	b.press("Dead letters")
	b.shows("Why they died")
	b.press("Show messages")
	b.until("they are listed", `document.querySelectorAll(".message").length === 6`)
	b.press("select message")
	b.press("Preview the 1 selected")
	b.press("Redrive 1")
	arrived := func(n int) func() bool {
		return func() bool {
			sh.advance("1s") // the rate is by the server's clock
			return sh.hook.taken() == n
		}
	}
	eventually(t, "one arrives", arrived(2))
	b.until("five are left", `document.querySelector("tbody td.number")?.textContent === "5"`)
	b.press(cause)
	b.shows("Dead letters of this cause")
	b.fill("At most a second", "2")
	b.press("Preview all of this cause")
	b.shows("5 dead letters. That takes")
	b.press("Redrive 5")
	b.until("it is under way", `document.querySelectorAll(".job").length === 2`)
	if !keyboard {
		b.picture("redrive")
	}
	eventually(t, "all orders arrive", arrived(7))
	b.until("it is done", `[...document.querySelectorAll(".job")].every((e) => e.textContent.includes("completed"))`)
	b.shows("No dead letters")
	b.press("Overview")
	b.until("nothing needs a person any more", `document.body.innerText.includes("Nothing. No endpoint fails")`)
}

// What is asked for as soon as a cause is chosen stays, though the page's effects, which wait for
// a frame, come after the answer.
func TestAnswerBeforeFrame(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, "out of order", "shop")
	sh.publish(`{"order":1}`)
	sh.advance("5m")
	b := s.open(t)
	b.visit("dead-letters", "queue", sh.dead)
	b.until("it has a cause", `document.querySelectorAll("tbody td.number").length`)
	b.run(script(`window.frames = []; window.requestAnimationFrame = (f) => window.frames.push(f);
		const later = window.setTimeout; window.setTimeout = (f, after, ...rest) => after < 1000 ? window.frames.push(f) : later(f, after, ...rest)`))
	b.run(script(`document.querySelector("tbody button").click()`))
	b.shows("Dead letters of this cause")
	b.press("Show messages")
	const listed = `document.querySelectorAll(".message").length === 1`
	b.until("it is listed", listed)
	b.run(script(`window.frames.splice(0).forEach((f) => f())`))
	value[bool](b, "new Promise((r) => later(() => r(true), 50))") // for the effects, which the frames only schedule
	if !b.is(listed) {
		t.Error("the frame took it away")
	}
}

// What was just typed is looked for, though the address does not have it yet; and what is listed
// is the answer to the latest look, whichever comes last.
func TestLookAtOnce(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"fulfilment"}`)
	send := func(body string) {
		s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/fulfilment","MessageBody":%q}`, s.url, account, body))
	}
	send("one order")
	send("another")
	b := s.open(t)
	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":fulfilment")
	listed := func(n int) string { return fmt.Sprintf(`document.querySelectorAll(".message").length === %d`, n) }
	b.press("Look")
	b.until("both are listed", listed(2))
	b.run(script(`const later = window.setTimeout; window.setTimeout = (f, after, ...rest) => after === 250 ? 0 : later(f, after, ...rest)`)) // the pause after typing never ends
	b.fill("Body or attributes contain", "order"+kb.Enter)
	b.until("one is listed", listed(1))
	if n := b.asked("search=order"); n != 1 {
		t.Errorf("it was looked for %d times", n)
	}

	b.hold("messages")
	b.press("Look")
	b.until("the first answer is there", "window.held.length === 1")
	send("a second order")
	b.press("Look")
	b.until("the second answer is there", "window.held.length === 2")
	b.run(script("window.held[1]()"))
	b.until("both orders are listed", listed(2))
	b.run(script("window.held[0]()"))
	value[bool](b, "new Promise((r) => later(() => r(true), 50))")
	if !b.is(listed(2)) {
		t.Error("the answer to the earlier look is listed")
	}
}

// What was typed on a page is of no concern to the one that is gone back to, though the browser
// tells of the change when it takes the field away.
func TestLeaveField(t *testing.T) {
	s := start(t)
	b := s.open(t)
	b.visit("topics")
	b.press("Queues")
	b.fill("Name contains", "orders")
	b.until("it is in the address", `location.search.includes("orders")`)
	b.run(script("history.back()"))
	b.until("the page before is shown", `document.querySelector("h1")?.textContent === "Topics"`)
	if b.is("location.search") {
		t.Error("its address has what was typed")
	}
}

// Messages are looked at as they are, and saved so that a spreadsheet takes nothing for a
// formula.
func TestHostileMessages(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"fulfilment"}`)
	body, err := json.Marshal(map[string]any{
		"QueueUrl": s.url + "/" + account + "/fulfilment", "MessageBody": plain,
		"MessageAttributes": map[string]any{"evil": map[string]string{"DataType": "String", "StringValue": plain}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.sqs("SendMessage", string(body))
	b := s.open(t)
	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":fulfilment")
	b.press("Look")
	b.shows("<script>alert(1)</script>")
	for _, unseen := range []string{"U+202E", "U+E0041", "U+3164"} {
		b.shows(unseen)
	}
	// The table that is saved, as the browser would write it.
	table := b.saved(`[...document.querySelectorAll("button")].find((e) => e.textContent === "Save as table")`)
	if formula.MatchString(table) {
		t.Errorf("a spreadsheet would take a cell for a formula:\n%s", table)
	}
	if !strings.Contains(table, "'=cmd|") {
		t.Error("the body is not in the table")
	}
}

// mend has the web hook take what comes.
func (h *hook) mend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status, h.says = http.StatusOK, "thanks"
}

func (h *hook) taken() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}
