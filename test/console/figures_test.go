package console_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The figures of docs/console.md. They need the machine for themselves:
//
//	cd test/console && GODWIT_PROGRAMS=1 GODWIT_FIGURES=1 go test -run Figures -v .

// figure runs what is only run to be measured.
func figure(t *testing.T) {
	t.Helper()
	if os.Getenv("GODWIT_FIGURES") == "" {
		t.Skip("measures: set GODWIT_FIGURES=1, with nothing else on the machine")
	}
}

// How long it takes from a page's address to the first thing that one sees, and to its
// content, in a browser that has nothing of it yet.
func TestFiguresFirstPicture(t *testing.T) {
	figure(t)
	s := start(t)
	openShop(t, s, "out of order", "shop")
	for i := range 5 {
		b := s.open(t)
		b.visit("")
		painted := value[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		content := value[float64](b, `Math.max(...performance.getEntriesByType("resource").filter((e) => e.name.includes("/v1/overview")).map((e) => e.responseEnd))`)
		t.Logf("%d: first picture after %.0f ms, the overview's answer after %.0f ms", i, painted, content)
	}
}

// What the server spends on twenty screens that show the overview, each by a stream of
// events, while a message a second is published.
func TestFiguresTwentyScreens(t *testing.T) {
	figure(t)
	const screens, lasts = 20, 30 * time.Second
	s := start(t)
	sh := openShop(t, s, "out of order", "shop")
	sh.hook.mend()
	spent := func() time.Duration {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		return time.Duration(user+system) * 10 * time.Millisecond // ticks of 100 a second
	}
	measured := func() float64 {
		before := spent()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for range int(lasts / time.Second) {
			<-tick.C
			sh.publish("hello")
		}
		return 100 * float64(spent()-before) / float64(lasts)
	}
	without := measured()
	events := 0
	heard := make(chan struct{}, 1000)
	for range screens {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/_godwit/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "event:") {
					heard <- struct{}{}
				}
			}
		}()
	}
	with := measured()
	for len(heard) > 0 {
		<-heard
		events++
	}
	t.Logf("%d screens: %.2f %% of a core, without them %.2f %%, in %v; %d events", screens, with, without, lasts, events)
}
