package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// sealingTarget is how many times the CPU of a send in clear one with SSE-SQS may cost.
const sealingTarget = 1.25

// accessKey is what requests to a server of production are signed with.
type accessKey struct {
	ID     string `json:"accessKeyId"`
	Secret string `json:"secretAccessKey"`
}

// runSealing sends to a queue with SSE-SQS and to one without, in turn, on one server of
// production: there alone the setting means anything.
func runSealing(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	sp, key, err := b.production(ctx, specs[0])
	if err != nil {
		return err
	}
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	t := &table{
		title:  "Sealing",
		note:   "Sends to a queue with SSE-SQS (sse) and to one without (clear) on one server of godwit serve, which verifies and authorises each.",
		header: []string{"batch", "conns", "queue", "CPU µs/msg", "× clear", "msg/s", "p50 ms", "p99 ms"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, batch := range b.batches {
		width := b.connections[0]
		label := fmt.Sprintf("batch %d conns %d", batch, width)
		window := func(sse bool) func(context.Context) (sample, map[string]float64, error) {
			return func(ctx context.Context) (sample, map[string]float64, error) {
				one, err := b.sealedWindow(ctx, servers[0], key, from, batch, width, sse)
				return one, nil, err
			}
		}
		results, err := b.contest(ctx, "sealing", label, b.rounds, []contender{
			{"sse", servers[0], window(true)}, {"clear", servers[0], window(false)},
		})
		if err != nil {
			return err
		}
		sse, plain := results[0], results[1]
		t.addLoads(batch, width, results, plain)
		times := ratio(sse.ServerCPU, plain.ServerCPU)
		b.judge(times > 0 && times <= sealingTarget, fmt.Sprintf("%s × (%s against %s µs)", figure(times), figure(sse.ServerCPU), figure(plain.ServerCPU)),
			"a send with SSE-SQS, %s: at most %.4g × the CPU of one without", label, sealingTarget)
	}
	return nil
}

// production says how to start a server as godwit serve, with a root key of its own, and
// gives the root user's access key.
func (b *bench) production(ctx context.Context, sp spec) (spec, accessKey, error) {
	dir, err := os.MkdirTemp(b.dir, "init-")
	if err != nil {
		return spec{}, accessKey{}, err
	}
	printed, err := exec.CommandContext(ctx, sp.argv[0], "init", "--dir", dir, "-o", "json").Output()
	if err != nil {
		return spec{}, accessKey{}, fmt.Errorf("init: %w", err)
	}
	var key accessKey
	if err := json.Unmarshal(printed, &key); err != nil {
		return spec{}, accessKey{}, err
	}
	sp.argv = append([]string{sp.argv[0], "serve", "--config", filepath.Join(dir, "godwit.yaml")}, sp.argv[1:]...)
	return sp, key, nil
}

func (b *bench) sealedWindow(ctx context.Context, s *server, key accessKey, from texts, batch, width int, sse bool) (sample, error) {
	all, release := conns(s, width)
	defer release()
	for _, c := range all {
		signs := c.signers[sendMessage.service]
		signs.accessKey, signs.secret = key.ID, key.Secret
	}
	url, err := makeQueue(all[0], b.newName(), "SqsManagedSseEnabled", strconv.FormatBool(sse))
	if err != nil {
		return sample{}, err
	}
	steps := make([]step, 0, width)
	for i, c := range all {
		q := openQueue(c, url, uint64(i))
		steps = append(steps, func() (work, error) { return work{messages: batch}, q.send(from, batch, 0) })
	}
	out, err := measure(ctx, s, b.warm, b.window, steps)
	if err != nil {
		return sample{}, err
	}
	return out, dropQueue(all[0], url)
}
