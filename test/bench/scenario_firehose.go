package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"
)

// How records are put, and what is demanded of them.
const (
	hoseBatch   = 500 // records of a put
	hoseSize    = 1024
	hoseConns   = 4
	hoseBodies  = 16 // that differ
	hoseBucket  = "bench"
	hosePerSec  = 50_000.0
	hosePatient = time.Minute // until the last record is delivered
)

func hoseOperation(name string) *operation {
	return &operation{service: "firehose", contentType: "application/x-amz-json-1.1", target: "Firehose_20150804." + name}
}

var (
	createHose = hoseOperation("CreateDeliveryStream")
	putRecords = hoseOperation("PutRecordBatch")
)

// runFirehose puts records of 1 KiB in batches of 500 into a stream whose objects are
// files, and ends with the last record in a file.
func runFirehose(ctx context.Context, b *bench) error {
	t := &table{
		title: "Delivery streams",
		note: fmt.Sprintf("PutRecordBatch of %d records of %d bytes on %d connections, into a stream that is delivered to files, 16 MiB or a second at a time; "+
			"until the last record is in a file that is there whole. CPU in µs a record, of what was put.", hoseBatch, hoseSize, hoseConns),
		header: []string{"server", "records", "delivered /s", "put /s", "CPU µs", "p50 ms", "p99 ms", "peak MB"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, sp := range b.of(subject) {
		if err := b.hose(ctx, t, sp); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) hose(ctx context.Context, t *table, sp spec) error {
	servers, stop, err := startAll(ctx, []spec{sp}, b.dir)
	if err != nil {
		return err
	}
	defer stop()
	s := servers[0]
	all, release := conns(s, hoseConns)
	defer release()
	if _, err := all[0].do(createHose, []byte(`{"DeliveryStreamName":"bench","ExtendedS3DestinationConfiguration":{`+
		`"RoleARN":"arn:aws:iam::000000000000:role/r","BucketARN":"arn:aws:s3:::`+hoseBucket+`",`+
		`"BufferingHints":{"SizeInMBs":16,"IntervalInSeconds":1}}}`)); err != nil {
		return err
	}
	bodies := hoseRecords()
	var left atomic.Int64
	left.Store(int64(b.hoseRecords / hoseBatch))
	steps := make([]step, len(all))
	for i, c := range all {
		n := i
		steps[i] = func() (work, error) {
			if left.Add(-1) < 0 {
				return work{}, errDone
			}
			n++
			answer, err := c.do(putRecords, bodies[n%len(bodies)])
			if err == nil && !bytes.HasPrefix(answer, []byte(`{"FailedPutCount":0,`)) {
				err = fmt.Errorf("records were refused: %.200s", answer)
			}
			return work{messages: hoseBatch}, err
		}
	}
	began := time.Now()
	out, err := measure(ctx, s, 0, phaseWithin, steps)
	if err != nil {
		return err
	}
	records := b.hoseRecords / hoseBatch * hoseBatch
	files := filepath.Join(s.dir, "firehose", hoseBucket)
	for want := float64(records*hoseSize) / 1e6; dirSize(files) < want-1e-6; {
		if time.Since(began) > phaseWithin+hosePatient {
			return fmt.Errorf("of %s MB only %s are delivered", figure(want), figure(dirSize(files)))
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	rate := float64(records) / time.Since(began).Seconds()
	b.note("firehose", "PutRecordBatch", fmt.Sprint(hoseBatch), 0, out, nil)
	t.add(s.name, fmt.Sprint(records), figure(rate), figure(out.Throughput), figure(out.ServerCPU), figure(out.P50), figure(out.P99), figure(out.Peak))
	b.judge(rate >= hosePerSec, figure(rate)+" /s", "records of 1 KiB to a directory: at least %.0f/s", hosePerSec)
	return nil
}

// hoseRecords are bodies of requests, of records that do not compress well.
func hoseRecords() (bodies [][]byte) {
	rng := rand.New(rand.NewPCG(3, hoseSize))
	for range hoseBodies {
		body := []byte(`{"DeliveryStreamName":"bench","Records":[`)
		data := make([]byte, hoseSize)
		for r := range hoseBatch {
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			if r > 0 {
				body = append(body, ',')
			}
			body = append(body, `{"Data":"`...)
			body = base64.StdEncoding.AppendEncode(body, data)
			body = append(body, `"}`...)
		}
		bodies = append(bodies, append(body, `]}`...))
	}
	return bodies
}
