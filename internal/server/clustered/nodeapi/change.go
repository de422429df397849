package nodeapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// ErrLost reports a change whose progress ended before the change, as its node ended or does not
// own the state any more. Asked for again, it goes on where it stands.
var ErrLost = errors.New("the node that changes the nodes ended, or does not own the state any more")

// String is what the change does.
func (c *Change) String() string {
	switch {
	case c.Add != "":
		name, _, _ := strings.Cut(c.Add, "=")
		return "node " + name + " is being added"
	case c.Remove != "":
		return "node " + c.Remove + " is being removed"
	}
	return "the authority is being replaced"
}

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
// progress. It returns when the change has ended; it waits for as long as the node does. Errors: a
// Refusal, with which nothing has begun; those that NotSent reports; ErrLost.
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
		if ctx.Err() != nil || Refused(err) || NotSent(err) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return refused(answer)
	}
	lines := bufio.NewScanner(answer.Body)
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
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(ErrLost, lines.Err())
}
