//go:build linux

package e2e_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFirehoseDirectoryFull: what there is no room for on the disk of objects waits, whole,
// until there is; it takes no room there meanwhile, and puts continue.
func TestFirehoseDirectoryFull(t *testing.T) {
	lake := smallDisk(t)
	p := startAt(t, freeAddress(t), filepath.Join(t.TempDir(), "data"), "--firehose-directory", lake)
	if err := p.firehose(t.Context(), "CreateDeliveryStream", object{"DeliveryStreamName": "orders", "ExtendedS3DestinationConfiguration": object{
		"RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake", "BufferingHints": object{"SizeInMBs": 1, "IntervalInSeconds": 0},
	}}, nil); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(lake, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for piece := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(piece)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 300<<10)
	for _, name := range []string{"1", "2", "3", "4"} {
		if err := p.firehose(t.Context(), "PutRecord", object{"DeliveryStreamName": "orders", "Record": object{"Data": base64.StdEncoding.EncodeToString([]byte(name + text + "\n"))}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(testTimeout); !strings.Contains(p.stderr.String(), "Directory.WriteFailed"); pass(t.Context(), 20*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a full disk is not told of:\n%s", p.stderr.String())
		}
	}
	if a, err := p.call(t.Context(), http.MethodGet, "/_godwit/health", nil, nil); err != nil || a.status != http.StatusOK {
		t.Errorf("the server's health: %d, %v", a.status, err)
	}
	if n := len(lines(t, filepath.Join(lake, "lake"))); n != 0 {
		t.Errorf("%d lines are there without room", n)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(testTimeout); ; pass(t.Context(), 50*time.Millisecond) {
		found := lines(t, filepath.Join(lake, "lake"))
		if len(found) == 4 {
			for line, n := range found {
				if n != 1 {
					t.Errorf("%.1s is there %d times", line, n)
				}
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d lines are there", len(found))
		}
	}
	left, err := os.ReadDir(filepath.Join(lake, ".partial"))
	if err != nil || len(left) != 0 {
		t.Errorf("%d files were left unfinished, %v", len(left), err)
	}
}
