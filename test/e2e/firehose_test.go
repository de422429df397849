package e2e_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// firehose calls an operation of Firehose. out may be nil. An error answer is a *refusal.
func (c client) firehose(ctx context.Context, operation string, in, out any) error {
	return c.json(ctx, firehoseJSON, operation, in, out)
}

// lines counts the lines of all files below a directory. Each file has to be whole.
func lines(t *testing.T, dir string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing has been written there
		}
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && (len(text) == 0 || text[len(text)-1] != '\n') {
			t.Errorf("%s is not whole", path)
		}
		for line := range strings.Lines(string(text)) {
			counts[strings.TrimSpace(line)]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// TestFirehoseKill9 kills the server while clients put records, and finds each that was
// acknowledged in the files, once, in files that are whole.
func TestFirehoseKill9(t *testing.T) {
	t.Parallel()
	addr, data := freeAddress(t), filepath.Join(t.TempDir(), "data")
	p := startAt(t, addr, data)
	if err := p.firehose(t.Context(), "CreateDeliveryStream", object{"DeliveryStreamName": "orders", "ExtendedS3DestinationConfiguration": object{
		"RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake", "BufferingHints": object{"SizeInMBs": 1, "IntervalInSeconds": 0},
	}}, nil); err != nil {
		t.Fatal(err)
	}
	const writers, batch, rounds = 4, 20, 4
	padding := strings.Repeat("x", 5000)
	var sent [writers]int
	var mu sync.Mutex
	kept := map[string]bool{} // what was acknowledged
	for range rounds {
		var clients sync.WaitGroup
		before := len(kept)
		ctx, cancel := context.WithCancel(t.Context())
		for w := range writers {
			clients.Go(func() {
				for {
					var records []object
					var names []string
					for range batch {
						name := fmt.Sprintf("%d-%d-%s", w, sent[w], padding)
						sent[w]++
						names = append(names, name)
						records = append(records, object{"Data": base64.StdEncoding.EncodeToString([]byte(name + "\n"))})
					}
					var out struct{ FailedPutCount int }
					if p.firehose(ctx, "PutRecordBatch", object{"DeliveryStreamName": "orders", "Records": records}, &out) != nil {
						return
					}
					if out.FailedPutCount > 0 {
						continue
					}
					mu.Lock()
					for _, name := range names {
						kept[name] = true
					}
					mu.Unlock()
				}
			})
		}
		pass(ctx, 400*time.Millisecond)
		eventually(t, "records are acknowledged", func() (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(kept) > before, nil
		})
		p.kill()
		cancel()
		clients.Wait()
		p = startAt(t, addr, data)
	}
	missing := ""
	for begin := time.Now(); time.Since(begin) < 2*testTimeout; pass(t.Context(), 20*time.Millisecond) {
		found := lines(t, filepath.Join(data, "firehose", "lake"))
		missing = ""
		for name := range kept {
			if found[name] == 0 {
				missing = name
				break
			}
		}
		if missing != "" {
			continue
		}
		for name, n := range found {
			if n != 1 {
				t.Errorf("%.20s is there %d times", name, n)
			}
		}
		break
	}
	if missing != "" {
		t.Fatalf("of %d records that were acknowledged, %.20s is in no file", len(kept), missing)
	}
}
