package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// How log events lie: all streams of one group are written side by side.
const (
	logStreams  = 1000
	logBatch    = 100 // events of a put, of one stream
	logSpan     = 48 * time.Hour
	logRare     = 10_000 // one event of so many is an error
	logPage     = 100    // events of a page of one stream
	logNamed    = 10     // streams that a search names
	logSearched = 100_000
	logReads    = 20_000 // events that are read from streams
	logGroup    = "bench"

	logsTimes   = 1.15 // of the CPU of the same on a tenth of the events
	logsMemory  = 300.0
	logsRestart = 3.0
)

func logsOperation(name string) *operation {
	return &operation{service: "logs", contentType: "application/x-amz-json-1.1", target: "Logs_20140328." + name}
}

var (
	createLogGroup     = logsOperation("CreateLogGroup")
	createLogStream    = logsOperation("CreateLogStream")
	putLogEvents       = logsOperation("PutLogEvents")
	getLogEvents       = logsOperation("GetLogEvents")
	filterLogEvents    = logsOperation("FilterLogEvents")
	describeLogStreams = logsOperation("DescribeLogStreams")
	putRetention       = logsOperation("PutRetentionPolicy")
)

// diary is a server with a log group.
type diary struct {
	*bench
	s     *server
	n     int       // events
	start time.Time // of the first
	next  atomic.Int64
	fill  sample
	empty float64 // MB on disk, before
	disk  float64 // MB beyond that
	full  float64 // MB resident
}

// runLogs fills one log group, and one with a tenth of the events, and measures
// what it costs to write, to read, to search, to start and to forget.
func runLogs(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	servers, stop, err := startAll(ctx, []spec{specs[0], specs[0]}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	few := &diary{bench: b, s: servers[0], n: max(b.logEvents/10, logBatch)}
	many := &diary{bench: b, s: servers[1], n: b.logEvents}
	for _, d := range []*diary{few, many} {
		if err := d.write(ctx); err != nil {
			return err
		}
	}
	if err := b.logOperations(ctx, few, many); err != nil {
		return err
	}
	return many.keep(ctx, specs[0])
}

// write fills the group.
func (d *diary) write(ctx context.Context) error {
	c := newConn(d.s.host)
	defer c.close()
	d.empty = dirSize(d.s.dir)
	if err := d.group(c); err != nil {
		return err
	}
	d.start = time.Now().Add(-logSpan)
	var err error
	if d.fill, err = d.put(ctx, d.n); err != nil {
		return err
	}
	d.note("logs", "fill", fmt.Sprint(d.n), 0, d.fill, nil)
	if _, err := d.settleDown(ctx, d.s); err != nil {
		return err
	}
	d.full, _ = memory(d.s.pid)
	d.disk = dirSize(d.s.dir) - d.empty
	return nil
}

func (d *diary) group(c *conn) error {
	if _, err := c.do(createLogGroup, []byte(`{"logGroupName":"`+logGroup+`"}`)); err != nil {
		return err
	}
	for i := range logStreams {
		if _, err := c.do(createLogStream, []byte(fmt.Sprintf(`{"logGroupName":"%s","logStreamName":"%s"}`, logGroup, logStream(i)))); err != nil {
			return err
		}
	}
	return nil
}

func logStream(i int) string { return fmt.Sprintf("host-%04d", i%logStreams) }

// at is the time of an event. More than n come now, a millisecond apart.
func (d *diary) at(event int) int64 {
	if event > d.n {
		return d.at(d.n) + int64(event-d.n)
	}
	return d.start.Add(time.Duration(float64(logSpan) * float64(event) / float64(d.n))).UnixMilli()
}

// put adds events to the streams in turn, in the order of their times.
func (d *diary) put(ctx context.Context, n int) (sample, error) {
	all, release := conns(d.s, probeConns)
	defer release()
	end := d.next.Load() + int64(n)
	steps := make([]step, len(all))
	for i, c := range all {
		var body []byte
		steps[i] = func() (work, error) {
			behind := d.next.Add(logBatch)
			if behind > end {
				d.next.Add(-logBatch)
				return work{}, errDone
			}
			first := int(behind) - logBatch
			body = fmt.Appendf(body[:0], `{"logGroupName":"%s","logStreamName":"%s","logEvents":[`, logGroup, logStream(first/logBatch))
			for e := first; e < int(behind); e++ {
				level := "INFO"
				if e%logRare == 0 {
					level = "ERROR"
				}
				body = fmt.Appendf(body, `{"timestamp":%d,"message":"%s request=%016x path=/orders/%d/items status=200 took=%dms user=u-%d region=eu-west-1"},`,
					d.at(e), level, uint64(e)*0x9e3779b97f4a7c15, e%977, e%89, e%10_007)
			}
			body = append(body[:len(body)-1], `]}`...)
			_, err := c.do(putLogEvents, body)
			return work{messages: logBatch}, err
		}
	}
	return measure(ctx, d.s, 0, phaseWithin, steps)
}

// logOperation is something done to a group; it counts events, or calls.
type logOperation struct {
	name, unit string
	do         func(context.Context, *diary) (sample, error)
}

var logOperations = []logOperation{
	{"PutLogEvents, 100 events", "event", func(ctx context.Context, d *diary) (sample, error) { return d.put(ctx, logReads) }},
	{"GetLogEvents, the latest 100", "event", func(ctx context.Context, d *diary) (sample, error) { return d.read(ctx, false) }},
	{"GetLogEvents, from the head in pages of 100", "event", func(ctx context.Context, d *diary) (sample, error) { return d.read(ctx, true) }},
	{"FilterLogEvents, a rare word in a time", "event searched", func(ctx context.Context, d *diary) (sample, error) { return d.search(ctx, false) }},
	{"FilterLogEvents, the same in 10 streams", "event searched", func(ctx context.Context, d *diary) (sample, error) { return d.search(ctx, true) }},
	{"DescribeLogStreams by LastEventTime", "call", func(ctx context.Context, d *diary) (sample, error) { return d.list(ctx) }},
}

func (b *bench) logOperations(ctx context.Context, few, many *diary) error {
	t := &table{
		title:  "Logs: operations",
		note:   fmt.Sprintf("One group of %d streams, over %s, with %d events and with %d, on two servers. CPU in µs.", logStreams, logSpan, few.n, many.n),
		header: []string{"operation", "of an", "few µs", "many µs", "× few", "many /s", "p50 ms", "p99 ms"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, o := range logOperations {
		var contenders []contender
		for _, d := range []*diary{few, many} {
			contenders = append(contenders, contender{fmt.Sprintf("%d events", d.n), d.s, func(ctx context.Context) (sample, map[string]float64, error) {
				out, err := o.do(ctx, d)
				return out, nil, err
			}})
		}
		results, err := b.contest(ctx, "logs", o.name, b.rounds, contenders)
		if err != nil {
			return err
		}
		less, more := results[0], results[1]
		times := ratio(more.ServerCPU, less.ServerCPU)
		t.add(o.name, o.unit, figure(less.ServerCPU), figure(more.ServerCPU), figure(times), figure(more.Throughput), figure(more.P50), figure(more.P99))
		b.judge(times > 0 && times <= logsTimes, figure(times)+" ×", "%s: at most %.2f × the CPU of a tenth of the events", o.name, logsTimes)
	}
	return nil
}

// logAnswer is what is needed of answers.
type logAnswer struct {
	Events           []json.RawMessage
	NextToken        string
	NextForwardToken string
}

// read reads events of streams: the latest page of each, or all pages of some.
func (d *diary) read(ctx context.Context, pages bool) (sample, error) {
	all, release := conns(d.s, probeConns)
	defer release()
	var left, stream atomic.Int64
	left.Store(logReads)
	steps := make([]step, len(all))
	for i, c := range all {
		token, name := "", ""
		steps[i] = func() (work, error) {
			if left.Load() <= 0 {
				return work{}, errDone
			}
			if token == "" {
				name = logStream(int(stream.Add(1)) * 7)
			}
			body := fmt.Appendf(nil, `{"logGroupName":"%s","logStreamName":"%s","limit":%d,"startFromHead":%v`, logGroup, name, logPage, pages)
			if token != "" {
				body = fmt.Appendf(body, `,"nextToken":"%s"`, token)
			}
			answer, err := c.do(getLogEvents, append(body, '}'))
			if err != nil {
				return work{}, err
			}
			n := bytes.Count(answer, []byte(`"ingestionTime"`))
			left.Add(-int64(n))
			token = ""
			if pages && n == logPage {
				var out logAnswer
				if err := json.Unmarshal(answer, &out); err != nil {
					return work{}, err
				}
				token = out.NextForwardToken
			}
			return work{messages: n}, nil
		}
	}
	return measure(ctx, d.s, 0, phaseWithin, steps)
}

// search looks for what is rare, in a time of as many events: of all streams, or of
// some.
func (d *diary) search(ctx context.Context, named bool) (sample, error) {
	share := min(1, logSearched/float64(d.n))
	which := ""
	if named {
		share = min(1, share*logStreams/logNamed)
		var names []string
		for i := range logNamed {
			names = append(names, logStream(i*97))
		}
		text, err := json.Marshal(names)
		if err != nil {
			return sample{}, err
		}
		which = `,"logStreamNames":` + string(text)
	}
	searched := int(share * float64(d.n))
	from := d.at(int(0.4 * (1 - share) * float64(d.n)))
	to := from + int64(share*float64(logSpan.Milliseconds()))
	if named {
		searched = searched * logNamed / logStreams
	}
	c := newConn(d.s.host)
	defer c.close()
	token, over := "", false
	out, err := measure(ctx, d.s, 0, phaseWithin, []step{func() (work, error) {
		if over {
			return work{}, errDone
		}
		body := fmt.Appendf(nil, `{"logGroupName":"%s","startTime":%d,"endTime":%d,"filterPattern":"ERROR"%s`, logGroup, from, to, which)
		if token != "" {
			body = fmt.Appendf(body, `,"nextToken":"%s"`, token)
		}
		answer, err := c.do(filterLogEvents, append(body, '}'))
		if err != nil {
			return work{}, err
		}
		var page logAnswer
		if err := json.Unmarshal(answer, &page); err != nil {
			return work{}, err
		}
		token, over = page.NextToken, page.NextToken == ""
		if over {
			return work{messages: searched}, nil
		}
		return work{}, nil
	}})
	return out, err
}

// list lists the streams that were written to last.
func (d *diary) list(ctx context.Context) (sample, error) {
	c := newConn(d.s.host)
	defer c.close()
	left := 200
	return measure(ctx, d.s, 0, phaseWithin, []step{func() (work, error) {
		if left == 0 {
			return work{}, errDone
		}
		left--
		_, err := c.do(describeLogStreams, []byte(`{"logGroupName":"`+logGroup+`","orderBy":"LastEventTime","descending":true}`))
		return work{messages: 1}, err
	}})
}

// keep starts the server again, sets a retention, and fills another that may keep
// only a part.
func (d *diary) keep(ctx context.Context, sp spec) error {
	stored := &table{
		title: "Logs: memory, disk and time",
		note: fmt.Sprintf("%d events of about 110 bytes, put on %d connections in batches of %d. Retention: the call that makes half of the events expire, "+
			"and the server's CPU time and disk in the %s from then on. Bounded: another server, which may keep a quarter of that.", d.n, probeConns, logBatch, d.purged),
		header: []string{"", "events", "put /s", "put µs", "RSS MB", "peak", "disk MB", "bytes/event", "serving s", "killed s", "retention ms", "CPU s", "disk MB after"},
	}
	d.report.tables = append(d.report.tables, stored)
	row := func(what string, more ...string) {
		stored.add(append([]string{
			what, strconv.Itoa(d.n), figure(d.fill.Throughput), figure(d.fill.ServerCPU), figure(d.full), figure(d.fill.Peak), figure(d.disk),
			figure(d.disk * 1e6 / float64(d.n)),
		}, more...)...)
	}
	var ready [2]time.Duration
	for i, killed := range []bool{false, true} {
		if err := forget(d.s.dir); err != nil {
			return err
		}
		if err := d.s.restart(ctx, killed); err != nil {
			return err
		}
		ready[i] = d.s.readyIn
	}
	if _, err := d.settleDown(ctx, d.s); err != nil {
		return err
	}
	c := newConn(d.s.host)
	defer c.close()
	begin, began := readUsage(d.s.pid), time.Now()
	if _, err := c.do(putRetention, []byte(`{"logGroupName":"`+logGroup+`","retentionInDays":1}`)); err != nil {
		return err
	}
	took := time.Since(began)
	if err := pause(ctx, d.purged); err != nil { // the disk is tidied up some time later
		return err
	}
	cpu := readUsage(d.s.pid).server - begin.server
	after := dirSize(d.s.dir) - d.empty
	row("all", figure(ready[0].Seconds()), figure(ready[1].Seconds()), figure(milliseconds(took)), figure(cpu.Seconds()), figure(after))
	d.judge(d.full < logsMemory, figure(d.full)+" MB", "%d log events: under %.0f MB resident", d.n, logsMemory)
	d.judge(max(ready[0], ready[1]).Seconds() < logsRestart, fmt.Sprintf("%s s, %s after kill -9", figure(ready[0].Seconds()), figure(ready[1].Seconds())),
		"%d log events: serving again in under %.0f s", d.n, logsRestart)

	d.judge(after <= 0.6*d.disk, fmt.Sprintf("%s of %s MB", figure(after), figure(d.disk)), "%s after half of the events expired: at most 0.6 of the disk", d.purged)
	bound := int64(d.n) * 200 / 4
	sp.argv = append(slices.Clip(sp.argv), "--logs-max-bytes", strconv.FormatInt(bound, 10))
	servers, stop, err := startAll(ctx, []spec{sp}, d.dir)
	if err != nil {
		return err
	}
	defer stop()
	free := d.fill
	d = &diary{bench: d.bench, s: servers[0], n: d.n}
	if err := d.write(ctx); err != nil {
		return err
	}
	row("bounded")
	times := ratio(d.fill.ServerCPU, free.ServerCPU)
	d.judge(times > 0 && times <= logsTimes, figure(times)+" ×", "PutLogEvents that push out the oldest: at most %.2f × the CPU of others", logsTimes)
	return nil
}
