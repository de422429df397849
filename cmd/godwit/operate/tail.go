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
	Endpoint string `default:"http://127.0.0.1:4566" type:"endpoint" placeholder:"URL" help:"The server (${default})."`
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

// pauses between attempts at a stream: the first, and the longest.
const (
	shortPause = time.Second
	longPause  = 10 * time.Second
)

// Run prints until it is interrupted. The server ends a stream after some minutes, and with a
// restart; then it goes on where that ended.
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
	f := following{tail: t, form: form}
	pause := shortPause
	for {
		err := f.follow(ctx, s)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was interrupted
		case err != nil && (!f.began || !isPassing(err)):
			return err
		case err == nil:
			pause = shortPause
		case pause == shortPause && s.Err != nil: // once for each interruption
			_, _ = fmt.Fprintf(s.Err, "godwit: %s; trying again\n", Clean(err.Error()))
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil
		case <-again.C:
		}
		if err != nil {
			pause = min(2*pause, longPause)
		}
	}
}

// passing is the error of a server that does not answer for now.
type passing struct{ error }

func isPassing(err error) bool {
	var p passing
	return errors.As(err, &p)
}

// following are the streams of a tail, one after the other.
type following struct {
	tail  *Tail
	form  url.Values
	began bool   // a stream has
	last  string // the id of the last event
}

// follow prints a stream until it ends.
func (f *following) follow(ctx context.Context, s Streams) error {
	asking, err := signed.Client(0)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(f.tail.Endpoint, "/")+"/_godwit/v1/tail?"+f.form.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	if f.last != "" {
		req.Header.Set("Last-Event-ID", f.last)
	}
	resp, err := asking.Do(req)
	if err != nil {
		return passing{fmt.Errorf("the server cannot be asked (--endpoint): %w", err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return passing{err}
		}
		err = refused(req.URL.String(), resp.StatusCode, text)
		if resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests {
			err = passing{err}
		}
		return err
	}
	f.began = true
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	event, data, id := "", "", f.last
	for lines.Scan() {
		line := lines.Text()
		switch name, value, _ := strings.Cut(line, ": "); {
		case line != "": // an event that ends without an empty line came in part only
			switch name {
			case "event":
				event = value
			case "data":
				data = value
			case "id":
				id = value
			}
			continue
		case event == "gone":
			return errGone
		case data != "":
			if err := f.tail.print(s.Out, event, data); err != nil {
				return err
			}
		}
		event, data, f.last = "", "", id
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("the server's answer cannot be read: %w", err)
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
