package nodeapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Change is a request to add a node, to remove one, or to make all trust other certificates of
// the cluster's authority.
type Change struct {
	Add    string `json:"add,omitempty"` // NAME=HOST:PORT
	Remove string `json:"remove,omitempty"`
	// See roster.List.
	Roots    string `json:"roots,omitempty"`
	Vouchers string `json:"vouchers,omitempty"`
}

// maxChange bounds a request, in bytes.
const maxChange = 16 << 10

// The last line of the progress of a change, and what that begins with where it has failed.
const (
	doneLine     = "done"
	failedPrefix = "error: "
)

// ErrNotOwner reports a node that does not own the state, and so has not begun a change.
var ErrNotOwner = errors.New("the node does not own the state")

// ReadChange reads a change from a request; ok is false if it has none, or several.
func ReadChange(w http.ResponseWriter, r *http.Request) (c Change, ok bool) {
	if r.Method != http.MethodPost || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxChange)).Decode(&c) != nil {
		return c, false
	}
	n := 0
	for _, text := range [...]string{c.Add, c.Remove, c.Roots} {
		if text != "" {
			n++
		}
	}
	return c, n == 1
}

// Tell writes a line of the progress of a change.
func Tell(w http.ResponseWriter, line string) {
	_, _ = fmt.Fprintln(w, strings.ReplaceAll(line, "\n", "; "))
	_ = http.NewResponseController(w).Flush()
}

// TellEnd writes the last line: err is why the change has failed, if not nil.
func TellEnd(w http.ResponseWriter, err error) {
	if err != nil {
		Tell(w, failedPrefix+err.Error())
		return
	}
	Tell(w, doneLine)
}

// Change has the node, which owns the state, carry out a change, and passes on each line of its
// progress, until its end. Errors: ErrNotOwner.
func (n Node) Change(ctx context.Context, c Change, line func(string)) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL+NodesPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := n.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
		return follow(answer.Body, line)
	case http.StatusServiceUnavailable: // nothing has begun
		return fmt.Errorf("%w: %w", ErrNotOwner, refused(answer))
	}
	return refused(answer)
}

// follow reads the progress of a change.
func follow(body io.Reader, line func(string)) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		text := lines.Text()
		if text == doneLine {
			return nil
		}
		if reason, failed := strings.CutPrefix(text, failedPrefix); failed {
			return errors.New(reason)
		}
		line(text)
	}
	return errors.Join(errors.New("the node that changes the nodes ended, or another one owns the state now: ask again, and it goes on"), lines.Err())
}
