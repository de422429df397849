package clustered

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An answer is given once it is confirmed, and not at all if it is not.
func TestConfirming(t *testing.T) {
	deposed := errors.New("another is the owner")
	for _, c := range []struct {
		name    string
		target  string
		status  int // 0: none is set
		err     error
		want    int
		confirm bool
	}{
		{"a read", "AmazonSQS.ReceiveMessage", 200, nil, 200, true},
		{"without a status", "AmazonSQS.ReceiveMessage", 0, nil, 200, true},
		{"a read by who was replaced", "AmazonSQS.ReceiveMessage", 200, deposed, 503, true},
		{"a send", "AmazonSQS.SendMessage", 200, deposed, 200, false},
		{"a send without a status", "AmazonSQS.SendMessage", 0, deposed, 200, false},
		{"a refused send", "AmazonSQS.SendMessage", 400, nil, 400, true},
		{"a send refused by who was replaced", "AmazonSQS.SendMessage", 400, deposed, 503, true},
		{"a delete by who was replaced", "AmazonSQS.DeleteMessage", 200, deposed, 503, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.Header.Set("X-Amz-Target", c.target)
			asked := 0
			out := httptest.NewRecorder()
			w := &confirming{ResponseWriter: out, request: r, commits: commits(r), confirm: func() error { asked++; return c.err }}
			w.Header().Set("X-Secret", "of an old owner")
			if c.status != 0 {
				w.WriteHeader(c.status)
			}
			for range 2 {
				if _, err := io.WriteString(w, "answer"); err != nil {
					t.Error(err)
				}
			}
			if out.Code != c.want || asked > 1 || (asked == 1) != c.confirm {
				t.Errorf("status %d, asked %d times", out.Code, asked)
			}
			if refused := c.want == 503; refused == (out.Body.String() == "answeranswer") || refused == (out.Header().Get("X-Secret") != "") {
				t.Errorf("%v %q", out.Header(), out.Body)
			}
		})
	}
}

// A body that is small is there for another try; one that cannot be read, or is large, is
// the handler's to read.
func TestKeep(t *testing.T) {
	request := func(body io.Reader, length int64) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		r.ContentLength = length
		return r
	}
	r := request(strings.NewReader("body"), 4)
	if body, whole := keep(r); string(body) != "body" || !whole {
		t.Errorf("kept %q, %v", body, whole)
	}
	if text, err := io.ReadAll(r.Body); string(text) != "body" || err != nil {
		t.Errorf("the handler reads %q, %v", text, err)
	}
	r = request(strings.NewReader("cut"), 10)
	if _, whole := keep(r); whole {
		t.Error("half a body is kept")
	}
	if text, err := io.ReadAll(r.Body); string(text) != "cut" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the handler reads %q, %v", text, err)
	}
	for _, length := range []int64{-1, replayable + 1} {
		if _, whole := keep(request(strings.NewReader("x"), length)); whole {
			t.Errorf("a body of length %d is kept", length)
		}
	}
}
