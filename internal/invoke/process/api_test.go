package process

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/limit"
)

// What a process says is read only where it is awaited, once at a time, and within what
// all processes' answers may hold: it cannot fill the server's memory.
func TestAnswersAreHeldOneAtATime(t *testing.T) {
	budget := limit.NewBudget("answers", 4*maxResponse, 0)
	post := startAPI(t, budget)
	for range 8 {
		if _, status := post(runtimePath+"invocation/other/response", maxResponse); status != http.StatusBadRequest {
			t.Fatalf("an answer to nothing: %d before it is there, want %d", status, http.StatusBadRequest)
		}
	}
	first, status := post(runtimePath+"invocation/id/response", maxResponse)
	if status != 0 {
		t.Fatalf("half an answer was answered with %d", status)
	}
	for range 8 {
		if _, status := post(runtimePath+"invocation/id/error", maxResponse); status != http.StatusForbidden {
			t.Fatalf("an answer beside the one that is read: %d, want %d", status, http.StatusForbidden)
		}
	}
	if used := budget.Stats().Used; used == 0 || used > maxResponse {
		t.Errorf("%d bytes are reserved, want those of one answer", used)
	}
	_ = first.Close()
	for over := clock.System.Now().Add(time.Minute); budget.Stats().Used != 0; runtime.Gosched() { // until its end is seen
		if clock.System.Now().After(over) {
			t.Fatalf("%d bytes are still reserved", budget.Stats().Used)
		}
	}
	second, status := post(runtimePath+"invocation/id/response", 2)
	if status == http.StatusForbidden {
		t.Fatal("an answer that broke off cannot be repeated")
	}
	if _, err := second.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if status := statusOf(t, second); status != http.StatusAccepted {
		t.Errorf("the answer, repeated: %d", status)
	}
	if used := budget.Stats().Used; used != 0 {
		t.Errorf("%d bytes stay reserved", used)
	}
}

// startAPI serves a process that has taken a job, whose identifier is id. What it gives
// sends the head of a request, and reports how that is answered; 0: it is not, yet.
func startAPI(t *testing.T, answers *limit.Budget) func(path string, length int) (net.Conn, int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := newAPI(answers)
	go a.serve(l)
	t.Cleanup(a.close)
	a.job = newJob(&invoke.Work{RequestID: "id"}, time.Time{})
	a.job.taken = true
	return func(path string, length int) (net.Conn, int) {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		// A client that waits is told to continue, or is refused: either says that the head
		// has been read.
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, length); err != nil {
			t.Fatal(err)
		}
		if status := statusOf(t, c); status != http.StatusContinue {
			return c, status
		}
		return c, 0
	}
}

func statusOf(t *testing.T, c net.Conn) int {
	t.Helper()
	_ = c.SetReadDeadline(clock.System.Now().Add(time.Minute))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}
