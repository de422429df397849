package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"time"
)

// The targets of the operator's API on a deep queue.
const (
	peekPage   = 100  // messages of a page
	peekTarget = 50.0 // ms, the slowest of peekPages
	peekPages  = 20
	// searchMore is how much more memory a search, a preview or a job may take at its peak
	// than the server had before, in MB: what a look reads, and what the cache of the store
	// may fill with.
	searchMore = 150.0
	searchMost = 1_000_000 // messages that are searched and redriven
)

// runOperator looks at a deep queue as an operator does: pages of messages, a search through
// all bodies, the preview of a job and the job itself.
func runOperator(ctx context.Context, b *bench) error {
	from := newTexts(b.depthSize, b.escapes)
	t := &table{
		title: "Operator",
		note: fmt.Sprintf("A queue of a fresh server with messages of %d bytes, sent in batches of %d. Pages of %d messages, %d of them, the first and those behind it; "+
			"a search for a text that no body has, a preview and a redrive of up to %d of them to another queue. Memory in MB resident, before and at the peak.",
			b.depthSize, maxBatch, peekPage, peekPages, searchMost),
		header: []string{"messages", "what", "ms a call, median", "slowest", "calls", "s in all", "MB before", "peak"},
	}
	b.report.tables = append(b.report.tables, t)
	depths := []int{min(b.depth, searchMost)}
	if b.depth > searchMost {
		depths = append(depths, b.depth)
	}
	for _, n := range depths {
		err := b.alone(ctx, func(s *server) error {
			urls, err := b.makeQueues(s, 2)
			if err != nil {
				return err
			}
			d := &target{bench: b, s: s, url: urls[0], from: from}
			if _, err := d.send(ctx, n, maxBatch, 0); err != nil {
				return err
			}
			if _, err := d.settleDown(ctx, s); err != nil {
				return err
			}
			return (&operating{b, s, t, n, arnOf(urls[0]), arnOf(urls[1])}).run(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func arnOf(queueURL string) string {
	return "arn:aws:sqs:us-east-1:000000000000:" + path.Base(queueURL)
}

// operating is one depth.
type operating struct {
	*bench
	s         *server
	table     *table
	n         int
	arn, back string
}

func (o *operating) run(ctx context.Context) error {
	slowest, err := o.row(ctx, "peek", func(cursor string) (page, error) {
		return o.get(ctx, "messages", url.Values{"arn": {o.arn}, "limit": {fmt.Sprint(peekPage)}, "cursor": {cursor}})
	}, peekPages)
	if err != nil {
		return err
	}
	o.judge(slowest.slowest > 0 && slowest.slowest <= peekTarget, figure(slowest.slowest)+" ms", "a page of %d messages out of %d: at most %.0f ms", peekPage, o.n, peekTarget)
	if o.n > searchMost {
		return nil
	}
	for _, part := range []struct {
		name string
		ask  func(cursor string) (page, error)
	}{
		{"search", func(cursor string) (page, error) {
			return o.get(ctx, "messages", url.Values{"arn": {o.arn}, "search": {"no body has this text"}, "cursor": {cursor}})
		}},
		{"preview", func(cursor string) (page, error) {
			body := map[string]any{"kind": "redrive", "arn": o.arn, "to": o.back, "cursor": cursor}
			if cursor == "" {
				delete(body, "cursor")
			}
			return o.post(ctx, "jobs/preview", body)
		}},
	} {
		took, err := o.row(ctx, part.name, part.ask, 1<<30)
		if err != nil {
			return err
		}
		o.judge(took.more <= searchMore, figure(took.more)+" MB", "%s of %d messages: at most %.0f MB more", part.name, o.n, searchMore)
	}
	return o.redrive(ctx)
}

// page is an answer that has one behind it or not.
type page struct {
	Next    *string
	Matches int

	// Of a job.
	ID, State, Error string
	Done             int
}

// took is what calls took.
type took struct{ slowest, more float64 }

// row makes calls, from page to page, and writes down what they took.
func (o *operating) row(ctx context.Context, what string, ask func(cursor string) (page, error), most int) (out took, err error) {
	resetPeak(o.s.pid)
	before, _ := memory(o.s.pid)
	var calls []float64
	matches := 0
	began := time.Now()
	for cursor := ""; len(calls) < most; {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		at := time.Now()
		p, err := ask(cursor)
		if err != nil {
			return out, err
		}
		calls = append(calls, milliseconds(time.Since(at)))
		if matches += p.Matches; p.Next == nil {
			break
		}
		cursor = *p.Next
	}
	whole := time.Since(began)
	_, peak := memory(o.s.pid)
	if what == "preview" && matches != o.n {
		return out, fmt.Errorf("the preview counts %d of %d", matches, o.n)
	}
	out = took{slices.Max(calls), max(peak-before, 0)}
	o.table.add(fmt.Sprint(o.n), what, figure(median(calls)), figure(out.slowest), fmt.Sprint(len(calls)), figure(whole.Seconds()), figure(before), figure(peak))
	return out, nil
}

// redrive has a job move all messages.
func (o *operating) redrive(ctx context.Context) error {
	resetPeak(o.s.pid)
	before, _ := memory(o.s.pid)
	began := time.Now()
	job, err := o.post(ctx, "jobs", map[string]any{"kind": "redrive", "arn": o.arn, "to": o.back})
	for err == nil && job.State == "running" {
		if err = pause(ctx, 50*time.Millisecond); err == nil {
			job, err = o.get(ctx, "job", url.Values{"id": {job.ID}})
		}
	}
	if err != nil {
		return err
	}
	whole := time.Since(began)
	_, peak := memory(o.s.pid)
	if job.State != "completed" || job.Done != o.n {
		return fmt.Errorf("the redrive is %s after %d of %d: %s", job.State, job.Done, o.n, job.Error)
	}
	o.table.add(fmt.Sprint(o.n), "redrive", unknown, unknown, "1", figure(whole.Seconds()), figure(before), figure(peak))
	o.judge(peak-before <= searchMore, figure(max(peak-before, 0))+" MB", "a redrive of %d messages: at most %.0f MB more", o.n, searchMore)
	return nil
}

func (o *operating) get(ctx context.Context, path string, form url.Values) (page, error) {
	if form.Get("cursor") == "" {
		form.Del("cursor")
	}
	return o.ask(ctx, http.MethodGet, path+"?"+form.Encode(), nil)
}

func (o *operating) post(ctx context.Context, path string, body map[string]any) (page, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return page{}, err
	}
	return o.ask(ctx, http.MethodPost, path, text)
}

func (o *operating) ask(ctx context.Context, method, path string, body []byte) (p page, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+o.s.host+"/_godwit/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return p, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", path, text)
	}
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(text, &p)
}
