package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tab is a tab of the browser, with cookies of its own. What it must never see fails the
// test: an error, a dialog, a request to anywhere but the server, something that the
// Content-Security-Policy stopped.
type tab struct {
	t   *testing.T
	s   *server
	ctx context.Context

	keyboard bool   // everything is pressed by keys alone
	also     string // the beginning of other addresses that may be asked
	expect   string // the beginning of the text of a dialog that may come

	mu       sync.Mutex
	wrong    []string
	requests []string // addresses
}

func (s *server) open(t *testing.T) *tab {
	t.Helper()
	b := &tab{t: t, s: s}
	var end context.CancelFunc
	b.ctx, end = chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.see))
	t.Cleanup(func() {
		end()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, wrong := range b.wrong {
			t.Error(wrong)
		}
	})
	if err := chromedp.Do(b.ctx, command(network.Enable, network.EnableParams{}), command(cdplog.Enable, cdp.Empty{}), command(page.Enable, page.EnableParams{}), command(runtime.Enable, cdp.Empty{})); err != nil {
		t.Fatal(err)
	}
	b.size(1280, 900)
	return b
}

// step is what a tab is asked to do.
type step = chromedp.Action[chromedp.Void]

// command is a step that is one command of the browser.
func command[P, R any](c cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// script is a step that runs in the page.
func script(text string) step { return chromedp.Evaluate[chromedp.Void](text) }

// see takes down what must not be.
func (b *tab) see(event any) {
	wrong := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		wrong = "an exception: " + e.ExceptionDetails.Text
	case *cdplog.EventEntryAdded:
		// An answer that refuses is what some pages are about.
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork || strings.Contains(e.Entry.Text, "Content Security Policy") {
			wrong = "logged: " + e.Entry.Text
		}
	case *page.EventJavascriptDialogOpening:
		if b.expect == "" || !strings.HasPrefix(e.Message, b.expect) {
			wrong = "a dialog: " + e.Message
		}
		go func() {
			_ = chromedp.Do(b.ctx, command(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}))
		}() // it must not block the page
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests = append(b.requests, e.Request.URL)
		b.mu.Unlock()
		if at := e.Request.URL; !strings.HasPrefix(at, b.s.url+"/") && (b.also == "" || !strings.HasPrefix(at, b.also+"/")) && !strings.HasPrefix(at, "data:") && !strings.HasPrefix(at, "blob:"+b.s.url) {
			wrong = "a request to " + at
		}
	}
	if wrong == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, wrong)
}

// asked counts the requests so far to addresses with a text in them.
func (b *tab) asked(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.requests {
		if strings.Contains(at, text) {
			n++
		}
	}
	return n
}

func (b *tab) run(steps ...step) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.run(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600}))
}

func (b *tab) dark(on bool) {
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// visit opens a page of the console, by its name and parameters, and waits until it is there.
func (b *tab) visit(name string, pairs ...string) {
	b.t.Helper()
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	at := b.s.url + "/_godwit/ui/" + name
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	b.run(chromedp.Navigate(at))
	b.until("page "+name, `document.querySelector("h1") && !document.querySelector("[aria-busy=true]")`)
}

// value evaluates an expression in the page, and waits for it if it is a promise.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// is evaluates a condition in the page.
func (b *tab) is(condition string) bool {
	b.t.Helper()
	return value[bool](b, "Boolean("+condition+")")
}

func (b *tab) until(what, condition string) {
	b.t.Helper()
	last := false
	defer func() {
		if !last {
			b.t.Logf("the page at %s:\n%s", value[string](b, "location.href"), value[string](b, "document.visibilityState + '\\n' + document.body?.innerText"))
		}
	}()
	eventually(b.t, what, func() bool {
		last = b.is(condition)
		return last
	})
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // strings can be written
	return string(quoted)
}

// shows waits until the page's content shows a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until("the page shows "+text, fmt.Sprintf(`document.body?.innerText.includes(%s)`, quote(text)))
}

// control is an expression for a control or a link by the beginning of its text or label.
func control(text string) string {
	return fmt.Sprintf(`[":is(main, .notices)", ".menu"].flatMap((e) => [...document.querySelectorAll(e + " :is(button, a, summary, input[aria-label])")]).find((e) => !e.disabled && ((e.textContent || "").trim().startsWith(%[1]s) || (e.getAttribute("aria-label") || "").startsWith(%[1]s)) && e.checkVisibility())`, quote(text))
}

// press presses a control or follows a link, once it can be.
func (b *tab) press(text string) {
	b.t.Helper()
	b.until("there is "+text, control(text))
	if !b.keyboard {
		b.run(script(control(text) + ".click()"))
		return
	}
	key := kb.Enter
	if b.is(control(text) + `.type === "checkbox"`) {
		key = " "
	}
	b.run(script("window.target = " + control(text)))
	for range 300 {
		if b.is("document.activeElement === window.target") {
			b.run(chromedp.KeyEvent(key))
			return
		}
		if b.is("!window.target?.isConnected") { // the page was renewed
			b.run(script("window.target = " + control(text)))
		}
		b.run(chromedp.KeyEvent(kb.Tab))
	}
	b.t.Fatalf("Tab never comes to %s", text)
}

// fill types into the field with a label.
func (b *tab) fill(label, text string) {
	b.t.Helper()
	field := fmt.Sprintf(`[...document.querySelectorAll("label")].find((l) => l.textContent.startsWith(%s))?.control`, quote(label))
	b.until("there is a field "+label, field)
	b.until("it can be typed into", `(!`+field+`.closest("dialog") || `+field+`.closest("dialog").open)`) // a dialog opens a moment after it is there
	b.run(script(field+".focus(), "+field+".select?.()"), chromedp.KeyEvent(text))
}

// tabTo moves the focus by the Tab key until a control has it.
func (b *tab) tabTo(text string) {
	b.t.Helper()
	for range 200 {
		b.run(chromedp.KeyEvent(kb.Tab))
		if b.is(fmt.Sprintf(`((document.activeElement.textContent || "").trim()).startsWith(%s)`, quote(text))) {
			return
		}
	}
	b.t.Fatalf("Tab never comes to %s", text)
}

// saved is the text of the file that a button has the browser keep.
func (b *tab) saved(button string) string {
	b.t.Helper()
	b.run(script(`window.saved = []; window.table = ""; URL.createObjectURL = (blob) => { window.saved.push(blob); return "data:,"; };
		HTMLAnchorElement.prototype.click = () => {}; (` + button + `).dispatchEvent(new MouseEvent("click", {bubbles: true}))`))
	b.until("a file was saved", "window.saved.length")
	return value[string](b, `window.saved[0].text()`)
}

// picture keeps a picture for the documentation, if pictures are to be made.
func (b *tab) picture(name string) {
	b.t.Helper()
	if os.Getenv("GODWIT_SCREENSHOTS") == "" {
		return
	}
	const most = 60_000 // bytes, of a picture
	var image []byte
	for quality := int64(75); image == nil || len(image) > most; quality -= 15 {
		if image = b.capture(quality); quality < 20 {
			break
		}
	}
	dir := filepath.Join("..", "..", "docs", "console")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".webp"), image, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) capture(quality int64) []byte {
	b.t.Helper()
	image, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		taken, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
		return taken.Data, err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return image
}
