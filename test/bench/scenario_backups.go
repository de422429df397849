package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// backedUp is the server that keeps backups in a bucket.
const backedUp role = "bucket"

const (
	backupTarget = 60.0 // s, what a machine that is lost costs at most
	backupTimes  = 4    // intervals that a measurement lasts
)

// runBackups sends at a rate to a server that keeps backups in a bucket, and to one that does not. How
// much is lost with a machine is what was acknowledged since the moment of the latest backup that has
// arrived: at most that from one such moment to the arrival of the next backup.
func runBackups(ctx context.Context, b *bench) error {
	specs := b.of(subject)
	if len(specs) == 0 {
		return nil
	}
	s3, err := startBucket()
	if err != nil {
		return err
	}
	defer s3.stop()
	to := specs[0]
	to.name, to.role = "bucket", backedUp
	to.argv = append(slices.Clip(to.argv), "--backup-s3", "s3://backups/bench", "--backup-s3-endpoint", "http://"+s3.host, "--backup-interval", b.backup.String())
	servers, stop, err := startAll(ctx, append(slices.Clip(specs[:1]), to), b.dir)
	if err != nil {
		return err
	}
	defer stop()
	from := newTexts(b.size, b.escapes)
	length := backupTimes * b.backup
	t := &table{
		title: "Backups in a bucket",
		note: fmt.Sprintf("One message of %d bytes a request by a schedule for %s, without backups and with one every %s to a stand-in of S3 on the same machine, "+
			"which stores nothing. Lost: at most so much of the latest is lost with the machine, from the moment of a backup until the next has arrived.", b.size, length, b.backup),
		header: []string{"rate", "server", "CPU µs/msg", "p50 ms", "p99 ms", "max ms", "backups", "MB put", "lost s"},
	}
	b.report.tables = append(b.report.tables, t)
	for _, rate := range b.rates {
		label := fmt.Sprintf("rate %d", rate)
		results, err := b.compare(ctx, "backups", label, 1, servers, func(ctx context.Context, s *server) (out sample, more map[string]float64, err error) {
			s3.forget()
			err = b.withQueue(s, func(url string) error {
				all, release := conns(s, openConns)
				defer release()
				sends := make([]func(time.Time) error, len(all))
				for i, c := range all {
					q := openQueue(c, url, uint64(i))
					sends[i] = func(time.Time) error { return q.send(from, 1, 0) }
				}
				out, err = schedule(ctx, s, float64(rate), length, sends)
				return err
			})
			made, put, lost := s3.seen()
			return out, map[string]float64{"backups": float64(made), "put": float64(put) / 1e6, "lost": lost.Seconds()}, err
		})
		if err != nil {
			return err
		}
		for _, x := range results {
			row := []string{label, x.name, figure(x.ServerCPU), figure(x.P50), figure(x.P99), figure(x.Max), unknown, unknown, unknown}
			if x.server.role == backedUp {
				row = append(row[:6], figure(x.more["backups"]), figure(x.more["put"]), figure(x.more["lost"]))
				b.judge(x.more["lost"] > 0 && x.more["lost"] <= backupTarget, figure(x.more["lost"])+" s",
					"backups in a bucket at %d messages a second: a loss of at most %.0f s", rate, backupTarget)
			}
			t.add(row...)
		}
	}
	return nil
}

// standIn stands in for S3: it takes objects and stores none.
type standIn struct {
	host string
	stop func()

	mu     sync.Mutex
	points []arrival
	put    int64 // bytes
}

// arrival is a backup: the moment of which it is, and when it had arrived.
type arrival struct{ of, at time.Time }

// startBucket listens until stop.
func startBucket() (*standIn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &standIn{host: l.Addr().String()}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: requestTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // until it is closed
	}()
	s.stop = func() {
		_ = srv.Close()
		<-done
	}
	return s, nil
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := r.URL.Query()
	switch {
	case r.Method == http.MethodPut:
		s.put += n
		w.Header().Set("ETag", `"0"`)
		text, _, _ := strings.Cut(path.Base(r.URL.Path), "-")
		if of, err := time.Parse("20060102T150405.000Z", text); err == nil {
			s.points = append(s.points, arrival{of, time.Now()})
		}
	case asked.Has("uploads"): // an object in parts begins
		_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`)
	case asked.Has("uploadId"): // and ends
		_, _ = io.WriteString(w, `<CompleteMultipartUploadResult><ETag>"0"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodGet: // it is only listed
		_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	}
}

// forget begins anew, but for the latest backup.
func (s *standIn) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points, s.put = s.points[max(len(s.points)-1, 0):], 0
}

// seen is what has come since: how many backups, how many bytes, and how long the longest time was
// from the moment of one until the next had arrived.
func (s *standIn) seen() (made int, put int64, lost time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.points); i++ {
		lost = max(lost, s.points[i].at.Sub(s.points[i-1].of))
	}
	return max(len(s.points)-1, 0), s.put, lost
}
