package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// logs calls an operation of CloudWatch Logs. out may be nil. An error answer is a
// *refusal.
func (c client) logs(ctx context.Context, operation string, in, out any) error {
	return c.json(ctx, logsJSON, operation, in, out)
}

func (c client) mustLogs(t *testing.T, operation string, in, out any) {
	t.Helper()
	if err := c.logs(t.Context(), operation, in, out); err != nil {
		t.Fatal(err)
	}
}

// messages reads all events of a stream, from the first.
func (c client) messages(t *testing.T, group, stream string) (all []string) {
	t.Helper()
	token := ""
	for {
		in := object{"logGroupName": group, "logStreamName": stream, "startFromHead": true}
		if token != "" {
			in["nextToken"] = token
		}
		var out struct {
			Events           []struct{ Message string }
			NextForwardToken string
		}
		c.mustLogs(t, "GetLogEvents", in, &out)
		for _, e := range out.Events {
			all = append(all, e.Message)
		}
		if out.NextForwardToken == token {
			return all
		}
		token = out.NextForwardToken
	}
}

// TestLogsKill9 kills the server while clients put log events, and finds every
// acknowledged one again, once and in its order.
func TestLogsKill9(t *testing.T) {
	t.Parallel()
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	p := startAt(t, addr, data)
	p.mustLogs(t, "CreateLogGroup", object{"logGroupName": "app"}, nil)
	const writers = 4
	for w := range writers {
		p.mustLogs(t, "CreateLogStream", object{"logGroupName": "app", "logStreamName": fmt.Sprint(w)}, nil)
	}
	var sent, kept [writers]int // how many were begun, and acknowledged
	for range 3 {
		var clients sync.WaitGroup
		var puts atomic.Int64 // of the first writer
		ctx, cancel := context.WithCancel(t.Context())
		for w := range writers {
			clients.Go(func() {
				for {
					var events []object
					for range 3 {
						events = append(events, object{"timestamp": time.Now().UnixMilli(), "message": fmt.Sprint(sent[w])})
						sent[w]++
					}
					if p.logs(ctx, "PutLogEvents", object{"logGroupName": "app", "logStreamName": fmt.Sprint(w), "logEvents": events}, nil) != nil {
						return
					}
					kept[w] = sent[w]
					if w == 0 {
						puts.Add(1)
					}
				}
			})
		}
		pass(ctx, 500*time.Millisecond)
		eventually(t, "there is load", func() (bool, error) { return puts.Load() >= 4, nil })
		p.kill()
		cancel()
		clients.Wait()
		p = startAt(t, addr, data)
		for w := range writers {
			all := p.messages(t, "app", fmt.Sprint(w))
			// What was under way may be there, or not, as a whole; what is new continues
			// behind it.
			if len(all) < kept[w] || len(all) > sent[w] || len(all)%3 != 0 {
				t.Fatalf("%d events of stream %d, acknowledged %d, sent %d", len(all), w, kept[w], sent[w])
			}
			for i, message := range all {
				if message != fmt.Sprint(i) {
					t.Fatalf("event %d of stream %d is %s", i, w, message)
				}
			}
			sent[w], kept[w] = len(all), len(all)
		}
	}
	if kept[0] < 30 {
		t.Errorf("there was hardly any load: %d events", kept[0])
	}
}

// TestLogsRetention: what is past its retention goes as the clock moves, also if
// the server was killed in between.
func TestLogsRetention(t *testing.T) {
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	p := startAt(t, addr, data, "--clock", "virtual")
	p.mustLogs(t, "CreateLogGroup", object{"logGroupName": "app"}, nil)
	p.mustLogs(t, "CreateLogStream", object{"logGroupName": "app", "logStreamName": "s"}, nil)
	p.mustLogs(t, "PutRetentionPolicy", object{"logGroupName": "app", "retentionInDays": 3}, nil)
	put := func(message string) {
		p.mustLogs(t, "PutLogEvents", object{"logGroupName": "app", "logStreamName": "s", "logEvents": []object{
			{"timestamp": p.advance(t, "0s").Now.UnixMilli(), "message": message},
		}}, nil)
	}
	stored := func() int {
		var out struct{ LogGroups []struct{ StoredBytes int } }
		p.mustLogs(t, "DescribeLogGroups", object{}, &out)
		return out.LogGroups[0].StoredBytes
	}
	put("first")
	p.advance(t, "48h")
	put("second")
	if got := p.messages(t, "app", "s"); len(got) != 2 {
		t.Errorf("after two days: %q", got)
	}
	p.advance(t, "25h")
	if got := p.messages(t, "app", "s"); len(got) != 1 || got[0] != "second" {
		t.Errorf("after three days: %q", got)
	}
	p.advance(t, "2h")
	if n := stored(); n != len("second")+26 {
		t.Errorf("%d bytes are kept", n)
	}
	before := p.advance(t, "0s").Now.Truncate(time.Millisecond) // as events tell it
	put("third")
	p.kill()
	p = startAt(t, addr, data, "--clock", "virtual")
	if now := p.advance(t, "0s").Now; now.Before(before) {
		t.Errorf("the clock begins at %s, before the last event of %s", now, before)
	}
	p.advance(t, "74h")
	if got, n := p.messages(t, "app", "s"), stored(); len(got) != 0 || n != 0 {
		t.Errorf("in the end: %q, %d bytes", got, n)
	}
}
