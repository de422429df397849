package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// text is what a field has, by its label.
func (b *tab) text(label string) string {
	b.t.Helper()
	return value[string](b, fmt.Sprintf(`[...document.querySelectorAll("label")].find((l) => l.textContent.startsWith(%s)).control.value`, quote(label)))
}

// choose takes an option of a list, by its label.
func (b *tab) choose(label, option string) {
	b.t.Helper()
	b.run(script(fmt.Sprintf(`{const of = [...document.querySelectorAll("label")].find((l) => l.textContent.startsWith(%s)).control; of.value = %s; of.dispatchEvent(new Event("change", {bubbles: true}))}`, quote(label), quote(option))))
}

// queues makes as many queues.
func (s *server) queues(n int) {
	s.t.Helper()
	for i := range n {
		s.sqs("CreateQueue", fmt.Sprintf(`{"QueueName":"queue-%03d"}`, i))
	}
}

const focused = `(document.activeElement.tagName + " " + document.activeElement.textContent.trim())`

// When a job has ended, whatever is there yet stays selected and unfolded, and what is being typed
// stays, too, in a dialog as well. What became of the job is told.
func TestSelectionOutlivesJobs(t *testing.T) {
	s := start(t)
	s.sqs("CreateQueue", `{"QueueName":"dead"}`)
	for i := range 4 {
		s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/dead","MessageBody":"order %d"}`, s.url, account, i))
	}
	queue := "arn:aws:sqs:us-east-1:" + account + ":dead"
	var listed struct {
		Messages []struct{ Position string } `json:"messages"`
	}
	if err := json.Unmarshal([]byte(s.get("/_godwit/v1/messages?arn="+url.QueryEscape(queue))), &listed); err != nil || len(listed.Messages) != 4 {
		t.Fatal(listed, err)
	}
	gone := func(n int) {
		t.Helper()
		s.own("/_godwit/v1/jobs", fmt.Sprintf(`{"kind":"delete","arn":%q,"where":{"ids":[%q]}}`, queue, listed.Messages[n].Position))
	}
	const shown, selected = `document.querySelectorAll(".message").length === %d`, `[...document.querySelectorAll(".messages > li")].filter((e) => e.querySelector("input:checked")).map((e) => e.querySelector(".excerpt").textContent).join()`
	b := s.open(t)
	b.visit("dead-letters", "queue", queue)
	b.press("Show messages")
	b.until("all are listed", fmt.Sprintf(shown, 4))
	for i := 1; i < 4; i++ {
		b.run(script(fmt.Sprintf(`document.querySelectorAll(".messages input")[%d].click()`, i)))
		b.until("it is selected", fmt.Sprintf(`document.querySelectorAll(".messages input:checked").length === %d`, i))
	}
	b.run(script(`document.querySelectorAll(".message")[2].open = true`))
	b.fill("Body or attributes contain", "order")
	b.choose("Do", "delete")
	b.press("Preview the 3 selected")
	b.press("Delete 3")
	b.fill("Type dead", "de")

	gone(0)
	b.until("it is not listed any more", fmt.Sprintf(shown, 3))
	b.shows("3 shown, 3 selected")
	b.shows("The job has ended: 1 deleted.")
	if got := value[string](b, selected); got != "order 1,order 2,order 3" {
		t.Errorf("selected are then %q", got)
	}
	if !b.is(`document.querySelectorAll(".message")[1].open`) {
		t.Error("what was unfolded is folded")
	}
	if got := b.text("Body or attributes contain"); got != "order" {
		t.Errorf("what was typed is %q", got)
	}

	gone(3) // which is selected
	b.until("it is not listed any more", fmt.Sprintf(shown, 2))
	if got := value[string](b, selected); got != "order 1,order 2" {
		t.Errorf("selected are then %q", got)
	}
	if !b.is(`document.querySelector("dialog[open] input")?.value === "de"`) {
		t.Fatal("the dialog is gone, or what was typed in it")
	}
	b.fill("Type dead", "dead")
	b.press("delete for good")
	b.shows("No dead letters")
	b.shows("Preview all")
}

// The menu is in reach wherever one is on a page, tells where that is, and is closed without
// following a link.
func TestMenu(t *testing.T) {
	s := start(t)
	s.queues(60)
	b := s.open(t)
	b.size(360, 640)
	b.visit("queues")
	b.run(script(`scrollTo(0, document.documentElement.scrollHeight)`))
	if !b.is(`scrollY > 500`) {
		t.Fatal("there is nothing to scroll")
	}
	const inside = `((e) => { const at = e.getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight; })`
	if !b.is(inside + `(document.querySelector(".menu-button"))`) {
		t.Error("the button of the menu is out of sight")
	}
	const open = `document.querySelector(".menu-button").getAttribute("aria-expanded") === "true"`
	for _, size := range []int64{640, 300} {
		b.size(360, size)
		b.press("Menu")
		b.until("it is open", open)
		b.run(script(`[...document.querySelectorAll(".menu a")].pop().focus()`))
		if !b.is(inside + `(document.activeElement)`) {
			t.Errorf("at a height of %d its last entry is out of sight", size)
		}
		b.run(chromedp.KeyEvent(kb.Escape))
		b.until("Escape closes it", "!("+open+")")
		if got := value[string](b, focused); got != "BUTTON Menu" {
			t.Errorf("the focus is then at %s", got)
		}
	}
	b.run(script(`window.requestAnimationFrame = () => 0; const later = window.setTimeout; window.setTimeout = (f, after, ...rest) => after < 1000 ? 0 : later(f, after, ...rest)`)) // what waits for a frame never comes
	b.press("Menu")
	b.until("it is open", open)
	b.run(script(`document.querySelector("main").dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}))`))
	b.until("a touch outside closes it", "!("+open+")")

	const current = `[...document.querySelectorAll("[aria-current]")].map((e) => e.getAttribute("aria-current") + " " + e.textContent).join()`
	if got := value[string](b, current); got != "page Queues" {
		t.Errorf("the current page is %q", got)
	}
	b.visit("queue", "arn", "arn:aws:sqs:us-east-1:"+account+":queue-000")
	if got := value[string](b, current); got != "true Queues" {
		t.Errorf("the current page is within %q", got)
	}
	b.size(1280, 400)
	b.visit("queues")
	b.run(script(`[...document.querySelectorAll(".menu a")].pop().focus()`))
	if !b.is(inside + `(document.activeElement) && scrollY === 0`) {
		t.Error("on a low screen the end of the menu is at the end of the page only")
	}
}

// A notice is read out each time, leaves the focus where it is, waits while somebody is at it, and
// is closed by Escape; the page can be scrolled out from under it. One of a failure stays.
func TestNotice(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, "out of order", "shop")
	sh.publish(`{"order":1}`)
	b := s.open(t)
	b.visit("subscription", "arn", sh.subscription)
	b.run(script(`window.late = new Map(); const later = window.setTimeout, never = window.clearTimeout;
		window.setTimeout = (f, after, ...rest) => { const id = after >= 8000 && after < 9000 ? Symbol() : later(f, after, ...rest); if (typeof id === "symbol") late.set(id, f); return id; };
		window.clearTimeout = (id) => late.delete(id) || typeof id === "symbol" || never(id)`))
	b.keyboard = true
	b.press("Pause deliveries")
	const said = `document.querySelector(".notices [role=status]").textContent`
	b.until("it is told", said+`.startsWith("Paused:")`)
	b.until("the button is at rest", `document.querySelector(".actions .main").textContent === "Resume deliveries" && !document.querySelector("[aria-busy=true]")`)
	if got := value[string](b, focused); got != "BUTTON Resume deliveries" {
		t.Errorf("the focus is then at %s", got)
	}
	b.until("it will vanish", "late.size === 1")
	b.run(script(`document.querySelector(".notice").dispatchEvent(new MouseEvent("mouseenter"))`))
	b.until("not while somebody points at it", "late.size === 0")
	b.run(script(`document.querySelector(".notice").dispatchEvent(new MouseEvent("mouseleave"))`))
	b.until("but afterwards", "late.size === 1")
	b.hide(true)
	b.until("nor while nobody can see it", "late.size === 0")
	b.hide(false)
	b.until("but afterwards", "late.size === 1")
	if !b.is(`parseFloat(getComputedStyle(document.querySelector("main")).paddingBottom) > document.querySelector(".notice").offsetHeight + 16`) {
		t.Error("it covers the end of the page for good")
	}
	b.run(script(`window.target = document.activeElement; document.querySelector(".notice button").focus()`))
	b.until("nor while it has the focus", "late.size === 0")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until("it is closed", `!document.querySelector(".notice")`)
	if !b.is("document.activeElement === window.target") {
		t.Errorf("the focus is then at %s", value[string](b, focused))
	}
	b.press("Resume deliveries")
	b.until("it is told", said+` === "Deliveries go on."`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until("Escape closes it", `!document.querySelector(".notice")`)

	// The same once more is news.
	b.keyboard = false
	b.press("Retry now")
	b.until("it is told", said+` === "It is tried now."`)
	b.run(script(`window.told = document.querySelector(".notices [role=status]").firstChild`))
	b.press("Retry now")
	b.until("it is told anew", said+` === "It is tried now." && document.querySelector(".notices [role=status]").firstChild !== window.told`)
	b.run(script(`late.forEach((f) => f())`))
	b.until("it vanishes by itself", `!document.querySelector(".notice")`)

	b.cut("subscription/pause")
	b.press("Pause deliveries")
	b.until("a failure is an alert", `document.querySelector(".notices [role=alert]")?.textContent === "The server does not answer."`)
	if b.is("late.size") {
		t.Error("it vanishes before anybody has seen it")
	}
}

// Whoever turns a page or sorts it by keyboard is not thrown back to the beginning of the document,
// and what the page is about is in its title.
func TestFocusStays(t *testing.T) {
	s := start(t)
	s.queues(101)
	s.sqs("CreateQueue", `{"QueueName":"work","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:`+account+`:queue-000\",\"maxReceiveCount\":\"3\"}"}}`)
	b := s.open(t)
	b.keyboard = true
	b.visit("queues")
	b.press("Next page")
	b.until("the second page is shown", `document.querySelector("tbody tr")?.textContent.includes("queue-100")`)
	if got := value[string](b, focused); got != "H1 Queues" {
		t.Errorf("the focus is then at %s", got)
	}
	b.press("messages")
	b.until("they are sorted", `document.querySelector("th[aria-sort]")?.textContent === "messages ↓" || document.querySelector(".empty")`)
	s.sqs("SendMessage", fmt.Sprintf(`{"QueueUrl":"%s/%s/queue-007","MessageBody":"hello"}`, s.url, account))
	b.until("the button has the focus again", focused+` === "BUTTON messages ↓"`)

	b.visit("dead-letters")
	b.press("queue-000")
	b.until("the workbench is open", `document.querySelector("h1")?.textContent === "queue-000"`)
	b.until("its title has the queue", `document.title === "Dead letters queue-000 – Godwit"`)
	b.until("it has the focus", focused+` === "H1 queue-000"`)
}

// Whose button goes with its row is at the heading of the list, and not at the beginning of the document.
func TestFocusAfterRow(t *testing.T) {
	s := start(t, "--clock", "virtual")
	s.sqs("CreateQueue", `{"QueueName":"work"}`)
	b := s.open(t)
	b.keyboard = true
	b.visit("clock")
	b.fill("ARN;", "arn:aws:sqs:us-east-1:"+account+":work")
	b.press("Make it fail")
	b.press("End it")
	b.shows("Nothing is made to fail.")
	b.until("the heading has the focus", focused+` === "H2 Faults on purpose"`)
}

// Plots are drawn anew when the system changes between light and dark, and when somebody chooses.
func TestPlotColours(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, "out of order", "shop")
	sh.publish(`{"order":1}`)
	sh.advance("10m")
	b := s.open(t)
	b.dark(false)
	b.visit("metrics", "arn", sh.queue)
	const axis = `(() => {
		const canvas = document.querySelector(".uplot canvas");
		if (!canvas) return "";
		const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Map();
		for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) {
			const colour = data.slice(at, at + 3).join();
			seen.set(colour, (seen.get(colour) ?? 0) + 1);
		}
		return [...seen].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
	})()`
	b.until("a plot is drawn", axis+` !== ""`)
	light := value[string](b, axis)
	b.dark(true)
	b.until("it is drawn in other colours", axis+` !== "" && `+axis+` !== `+quote(light))
}

// Who goes back is where he was in the list.
func TestGoingBack(t *testing.T) {
	s := start(t)
	s.queues(90)
	b := s.open(t)
	b.visit("queues")
	b.run(script(`document.querySelectorAll("tbody tr")[79].scrollIntoView()`))
	at := value[int](b, "Math.round(scrollY)")
	if at < 500 {
		t.Fatalf("scrolled to %d", at)
	}
	b.press("queue-079")
	b.until("the queue's page is open", `document.querySelector("h1")?.textContent === "queue-079" && scrollY === 0`)
	b.choose("State", "visible") // a filter in its address
	b.run(script("history.back()"))
	b.until("the link has the focus", focused+` === "A queue-079"`)
	if got := value[int](b, "Math.round(scrollY)"); got < at-2 || got > at+2 {
		t.Errorf("scrolled to %d, and %d before", got, at)
	}
}

// Where a session ends while somebody types, the sign-in says so, has the focus, and leads back to
// the page as it was.
func TestSessionEndsWhileTyping(t *testing.T) {
	s := start(t, "--enforce")
	b := s.open(t)
	signIn := func() {
		t.Helper()
		b.fill("Access key", rootKey)
		b.fill("Secret access key", rootSecret)
		b.press("Sign in")
	}
	b.visit("policy")
	if b.is(`document.body.innerText.includes("has ended")`) {
		t.Error("a session has ended that never was")
	}
	signIn()
	b.shows("60 of 3,600 seconds")
	b.until("the page has the focus", focused+` === "H1 A policy of your own"`)
	b.run(command(network.ClearBrowserCookies, cdp.Empty{}))
	b.fill("Retries in all", "9")
	b.shows("Your session has ended.")
	b.until("one can type at once", `document.activeElement.labels?.[0].textContent === "Access key"`)
	signIn()
	b.shows("Retries in all")
	if got := b.text("Retries in all"); got != "9" {
		t.Errorf("what was typed is %s", got)
	}
	b.visit("policy")
	if got := b.text("Retries in all"); got != "3" {
		t.Errorf("a page that is opened anew has %s", got)
	}
}

// A page that asks only once does so again where the server did not answer.
func TestServerComesBack(t *testing.T) {
	s := start(t)
	b := s.open(t)
	b.cut("settings")
	b.visit("settings")
	b.shows("It is asked again every few seconds.")
	b.run(command(network.SetBlockedURLs, network.SetBlockedURLsParams{}))
	b.shows("ingest-listen")
	b.until("nothing is wrong any more", `!document.querySelector(".trouble")`)
	if n := b.asked("/v1/settings"); n > 20 {
		t.Errorf("it has asked %d times", n)
	}
}

// Names without spaces do not widen a page, and a cause can be read on a phone.
func TestNarrow(t *testing.T) {
	s := start(t, "--clock", "virtual", "--jitter", "0")
	sh := openShop(t, s, "out of order", "shop")
	sh.publish(`{"order":1}`)
	sh.advance("10m")
	sh.furnish("late", "late")
	b := s.open(t)
	b.size(320, 640)
	for _, page := range [][]string{{"metrics", "arn", sh.queue}, {"alarm", "arn", sh.alarm}, {"subscription", "arn", sh.subscription}, {"dead-letters", "queue", sh.dead}} {
		b.visit(page[0], page[1:]...)
		if page[0] == "metrics" {
			b.shows("ApproximateAgeOfOldestMessage")
		}
		if n := value[int](b, "document.documentElement.scrollWidth"); n > 320 {
			t.Errorf("%s is %d wide", page[0], n)
		}
	}
	b.until("there is a cause", `document.querySelector("tbody button")`)
	if n := value[int](b, `document.querySelector("tbody td").offsetWidth`); n < 100 {
		t.Errorf("the cause is %d wide", n)
	}
}
