package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"godwit.dev/godwit/cmd/godwit/signed"
)

// Tail prints the events of a queue, a topic or a log group.
type Tail struct {
	Endpoint string `default:"http://127.0.0.1:4566" placeholder:"URL" help:"The server (${default})."`
	Output   string `short:"o" enum:"text,json" default:"text" help:"How to print: ${enum} (${default}); json has a line for each."`
	Queue    string `arg:"" help:"Name of a queue, or ARN of a queue, a topic or a log group."`
	Search   string `env:"-" placeholder:"TEXT" help:"Of a queue or a topic: only what has it in the body or an attribute."`
	Pattern  string `env:"-" placeholder:"PATTERN" help:"Of a log group: only what a filter pattern of CloudWatch Logs lets through."`
}

// maxEvent bounds an event of a stream, in bytes.
const maxEvent = 64 << 20

// errGone is the error of a tail of a resource that does not exist any more, or without
// permission.
var errGone = errors.New("there is nothing more to see: it was deleted, or the right to see it was taken away")

// Run prints until it is interrupted. The server ends a stream after some minutes; then another
// is requested.
func (t *Tail) Run(s Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := Connection{Endpoint: t.Endpoint}
	resource, err := c.client().arn(ctx, "sqs", t.Queue)
	if err != nil {
		return err
	}
	form := url.Values{"arn": {resource}}
	for name, value := range map[string]string{"search": t.Search, "pattern": t.Pattern} {
		if value != "" {
			form.Set(name, value)
		}
	}
	for {
		err := t.follow(ctx, s, form)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was interrupted
		case err != nil:
			return err
		}
		again := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil
		case <-again.C:
		}
	}
}

// follow prints a stream until it ends.
func (t *Tail) follow(ctx context.Context, s Streams, form url.Values) error {
	asking, err := signed.Client(0)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(t.Endpoint, "/")+"/_godwit/v1/tail?"+form.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := asking.Do(req)
	if err != nil {
		return fmt.Errorf("the server cannot be asked (--endpoint): %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return err
		}
		return refused(req.URL.String(), resp.StatusCode, text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	event := ""
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		}
		text, ok := strings.CutPrefix(line, "data: ")
		switch {
		case !ok:
		case event == "gone":
			return errGone
		default:
			if err := t.print(s.Out, event, text); err != nil {
				return err
			}
		}
	}
	return nil // an interrupted stream is requested again
}

// print prints each part of an event on a line of its own.
func (t *Tail) print(w io.Writer, event, text string) error {
	decoded := object{}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		return fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	all, _ := decoded[event].([]any)
	for _, one := range all {
		row, _ := one.(object)
		var line string
		if t.Output == "json" {
			var b bytes.Buffer
			if err := json.NewEncoder(&b).Encode(row); err != nil {
				return err
			}
			line = string(escape(b.Bytes()))
		} else {
			line = described(event, row) + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// described is an event, on a line.
func described(event string, row object) string {
	members := map[string][]string{
		"messages": {"sentAt", "messageId", "body"}, "publishes": {"publishedAt", "messageId", "body"}, "lines": {"at", "stream", "message"},
	}[event]
	words := make([]string, len(members))
	for i, name := range members {
		words[i] = Clean(strings.TrimRight(written(row[name]), "\n"))
	}
	if refused := written(row["refused"]); refused != "–" {
		words = append(words, Clean(refused))
	}
	return strings.Join(words, "  ")
}
