package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// It is three in the morning, and a customer's web hook gets nothing. Whoever is on call finds
// out why, keeps it from getting worse, and makes it right.
func TestThreeInTheMorning(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	s.needs("messages/redrive")
	sh := openShop(t, s, "the database of the shop is out of order", "shop")
	for i := range 6 {
		sh.publish(fmt.Sprintf(`{"order":%d}`, i))
	}
	sh.advance("5m") // three retries, 20 s apart, were not enough
	sh.publish(`{"order":"late"}`)
	b := s.open(t)

	// The overview says what is wrong, and leads there.
	b.visit("")
	b.shows("An endpoint fails")
	b.shows("Dead letters")
	b.picture("overview")
	b.visit("topology")
	b.until("the picture has the web hook", `[...document.querySelectorAll("svg text")].some((e) => e.textContent.startsWith("http://127"))`)
	b.picture("topology")
	b.visit("")
	b.press("orders:")

	// Its last answer, and the schedule ahead of what still waits.
	b.shows("503")
	b.shows("3 to come")
	b.until("the schedule is drawn", `document.querySelectorAll("svg .next").length === 3 && document.querySelector("svg .made")`)
	b.picture("subscription")

	// Nothing more is to be used up until it is mended.
	b.press("Pause deliveries")
	b.shows("Resume deliveries")
	b.shows("paused")

	// Six have died, all of the same cause. Looking at them changes nothing.
	b.press("Dead letters")
	b.shows("Why they died")
	b.until("the six have one cause", `document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody td.number").textContent === "6"`)
	b.run(script(`document.querySelector("tbody button").click()`))
	b.shows("Dead letters of this cause")
	b.press("Show messages")
	b.until("they are listed", `document.querySelectorAll(".message").length === 6`)
	b.picture("dead-letters")

	// A policy that tries for longer: simulated first, then saved.
	b.visit("policy", "subscription", sh.subscription)
	b.shows("60 of 3,600 seconds")
	b.fill("Retries in all", "50")
	b.shows("16 min 40 s")
	b.picture("policy")
	b.press("Save policy")
	b.shows("Saved.")

	// The shop is back. The order that still waits is tried first.
	sh.hook.mend()
	b.visit("subscription", "arn", sh.subscription)
	b.press("Resume deliveries")
	b.shows("Pause deliveries")
	b.press("Retry now")
	eventually(t, "the late order arrives", func() bool { return sh.hook.taken() == 1 })

	// Then one that died, to the web hook itself, and the rest at a rate.
	b.visit("dead-letters", "queue", sh.dead)
	b.press("Show messages")
	b.until("they are listed", `document.querySelectorAll(".message").length === 6`)
	b.run(script(`document.querySelector(".messages input").click()`))
	b.press("Preview the 1 selected")
	b.press("Redrive 1")
	eventually(t, "one arrives", func() bool { return sh.hook.taken() == 2 })
	b.until("five are left", `document.querySelector("tbody td.number")?.textContent === "5"`)
	b.run(script(`document.querySelector("tbody button").click()`))
	b.press("Preview all of this cause")
	b.shows("5 dead letters")
	b.press("Redrive 5")
	b.until("it is done", `document.querySelector(".job")?.textContent.includes("completed")`)
	b.picture("redrive")
	eventually(t, "all orders arrive", func() bool { return sh.hook.taken() == 7 })
	b.press("Look again")
	b.shows("No dead letters")
	b.visit("")
	b.until("nothing needs a person any more", `document.body.innerText.includes("Nothing. No endpoint fails")`)
}

// Messages are looked at as they are, and saved so that a spreadsheet takes nothing for a
// formula.
func TestHostileMessages(t *testing.T) {
	s := start(t)
	s.needs("messages")
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
	b.picture("messages")

	// The table that is saved, as the browser would write it.
	b.run(script(`window.saved = []; URL.createObjectURL = (blob) => { window.saved.push(blob); return "data:,"; }; HTMLAnchorElement.prototype.click = () => {}`))
	b.run(script(`[...document.querySelectorAll("button")].find((e) => e.textContent === "Save as table").dispatchEvent(new MouseEvent("click", {bubbles: true}))`))
	b.until("a table was saved", "window.saved.length")
	b.run(script(`window.saved[0].text().then((text) => { window.table = text; })`))
	b.until("it can be read", "window.table")
	if b.is(`/(^|,)"?[=+@-]/m.test(window.table)`) {
		t.Error("a spreadsheet would take a cell for a formula")
	}
	if !b.is(`window.table.includes("'=cmd|")`) {
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

// needs skips the test if the server's operator API has no such path: the console does not
// show then what the test is about.
func (s *server) needs(path string) {
	s.t.Helper()
	resp, err := http.Get(s.url + "/_godwit/v1/openapi.json")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var document struct {
		Paths map[string]any `json:"paths"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&document); err != nil {
		s.t.Fatal(err)
	}
	if document.Paths["/_godwit/v1/"+path] == nil {
		s.t.Skip("the server's API has no " + path)
	}
}
