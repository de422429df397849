package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
)

// lines is a sink that keeps what it is given.
type lines struct {
	all []string
	err error
}

func (l *lines) Write(_ time.Time, line []byte) error {
	l.all = append(l.all, string(line))
	return l.err
}

func (l *lines) last(t *testing.T) (record map[string]any) {
	t.Helper()
	if len(l.all) == 0 {
		t.Fatal("nothing was written")
	}
	if err := json.Unmarshal([]byte(l.all[len(l.all)-1]), &record); err != nil {
		t.Fatal(err)
	}
	return record
}

func newTrail(sink audit.Sink, data bool) *audit.Trail {
	return audit.New(audit.Options{Sinks: []audit.Sink{sink}, Data: data, Logger: slog.New(slog.DiscardHandler), NewID: func() string { return "id" }})
}

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func call(operation string, who *caller.Caller) *api.Call {
	return &api.Call{
		RequestID: "r", Service: "sqs", Operation: operation, Region: "eu-west-1", Account: "123456789012", AccessKey: "AKIAX",
		Caller: who, RemoteAddr: "192.0.2.1:55", Time: at,
		Header: http.Header{"User-Agent": {"sdk"}, "Authorization": {"AWS4-HMAC-SHA256 Signature=canary"}, "X-Amz-Security-Token": {"canary"}},
	}
}

// input has what must be reported and what must not.
type input struct {
	QueueUrl    string
	MessageBody string
	Attributes  map[string]string
	Environment *struct{ Variables map[string]string }
	MaxResults  *int
	AlarmNames  []string
}

func TestRecord(t *testing.T) {
	sink := &lines{}
	trail := newTrail(sink, false)
	role := &caller.Caller{
		Kind: caller.Session, Account: "123456789012", ARN: "arn:aws:sts::123456789012:assumed-role/r/s", ID: "AROAX:s", Name: "s",
		Role: "arn:aws:iam::123456789012:role/r", RoleID: "AROAX", AccessKey: "ASIAX", Issued: at,
	}
	trail.Call(call("GetQueueAttributes", role), &input{QueueUrl: "https://h/1/q", MessageBody: "canary", Attributes: map[string]string{"a": "canary"}, AlarmNames: []string{"a"}}, audit.Outcome{Status: 200})
	want := map[string]any{
		"eventVersion": "1.11", "eventTime": "2026-05-04T03:02:01Z", "eventSource": "sqs.amazonaws.com", "eventName": "GetQueueAttributes",
		"awsRegion": "eu-west-1", "sourceIPAddress": "192.0.2.1", "userAgent": "sdk", "requestID": "r", "eventID": "id",
		"readOnly": true, "eventType": "AwsApiCall", "managementEvent": true, "recipientAccountId": "123456789012", "eventCategory": "Management",
		"requestParameters": map[string]any{"queueUrl": "https://h/1/q", "alarmNames": []any{"a"}}, "responseElements": nil,
		"userIdentity": map[string]any{
			"type": "AssumedRole", "principalId": "AROAX:s", "arn": "arn:aws:sts::123456789012:assumed-role/r/s", "accountId": "123456789012", "accessKeyId": "ASIAX",
			"sessionContext": map[string]any{
				"sessionIssuer": map[string]any{"type": "Role", "principalId": "AROAX", "arn": "arn:aws:iam::123456789012:role/r", "accountId": "123456789012"},
				"attributes":    map[string]any{"creationDate": "2026-05-04T03:02:01Z"},
			},
		},
	}
	if d := cmp.Diff(want, sink.last(t)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	federated := *role
	federated.Provider = "arn:aws:iam::123456789012:oidc-provider/id.example.com"
	federated.Claims = map[string][]string{"id.example.com:sub": {"u-1"}, "id.example.com:aud": {"godwit"}, "id.example.com:email": {"canary"}}
	trail.Call(call("GetQueueAttributes", &federated), nil, audit.Outcome{Status: 200})
	want = map[string]any{"federatedProvider": federated.Provider, "attributes": map[string]any{"id.example.com:sub": "u-1", "id.example.com:aud": "godwit"}}
	if d := cmp.Diff(want, sink.last(t)["userIdentity"].(map[string]any)["sessionContext"].(map[string]any)["webIdFederationData"]); d != "" {
		t.Errorf("of an identity provider (-want +got):\n%s", d)
	}

	trail.Call(call("DeleteQueue", nil), nil, audit.Outcome{Status: http.StatusForbidden, Code: "SignatureDoesNotMatch", Message: "why"})
	r := sink.last(t)
	if r["errorCode"] != "SignatureDoesNotMatch" || r["errorMessage"] != "why" || r["readOnly"] != false ||
		r["userIdentity"].(map[string]any)["type"] != "Unknown" || r["userIdentity"].(map[string]any)["accessKeyId"] != "AKIAX" {
		t.Errorf("refused: %v", r)
	}
	for _, code := range []string{"AccessDeniedException", "KMS.AccessDeniedException", "KMSAccessDenied"} {
		trail.Call(call("Decrypt", role), nil, audit.Outcome{Status: http.StatusBadRequest, Code: code, Message: "may not: " + code})
		if r = sink.last(t); r["errorMessage"] != "may not: "+code {
			t.Errorf("denied with status 400: %v", r)
		}
	}
	trail.Call(call("SetQueueAttributes", role), nil, audit.Outcome{Status: http.StatusBadRequest, Code: "InvalidParameterValue", Message: "canary"})
	if strings.Contains(strings.Join(sink.all, ""), "canary") {
		t.Errorf("a secret was written: %s", sink.all)
	}
}

func TestDataEventsOnRequest(t *testing.T) {
	sink := &lines{}
	newTrail(sink, false).Call(call("SendMessage", &caller.Caller{Kind: caller.Root}), nil, audit.Outcome{Status: 200})
	if len(sink.all) != 0 {
		t.Error("a data event was written")
	}
	newTrail(sink, true).Call(call("SendMessage", &caller.Caller{Kind: caller.Root}), &input{QueueUrl: "q", MessageBody: "canary"}, audit.Outcome{Status: 200})
	if r := sink.last(t); r["eventCategory"] != "Data" || r["managementEvent"] != false || strings.Contains(sink.all[0], "canary") {
		t.Errorf("%v", r)
	}
}

func TestOperators(t *testing.T) {
	sink := &lines{}
	r, err := http.NewRequest(http.MethodPost, "http://h/_godwit/faults?secret=canary", nil)
	if err != nil {
		t.Fatal(err)
	}
	newTrail(sink, false).Operator(r, nil, at, "eu-west-1", errors.New("no"))
	if got := sink.last(t); got["eventName"] != "POST /_godwit/faults" || got["errorCode"] != "AccessDenied" || strings.Contains(sink.all[0], "canary") {
		t.Errorf("%v", got)
	}
}

func TestFailureIsReported(t *testing.T) {
	sink := &lines{err: errors.New("disk full")}
	trail := newTrail(sink, false)
	trail.Call(call("DeleteQueue", nil), nil, audit.Outcome{Status: 200})
	if err := trail.Failing(); err == nil {
		t.Error("nothing is told")
	}
	sink.err = nil
	trail.Call(call("DeleteQueue", nil), nil, audit.Outcome{Status: 200})
	if err := trail.Failing(); err != nil {
		t.Error(err)
	}
	var none *audit.Trail
	none.Call(call("DeleteQueue", nil), nil, audit.Outcome{})
	if none.Failing() != nil {
		t.Error("no trail fails")
	}
}

// A file that was moved away is made again, and is its owner's alone.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f, err := audit.OpenFile(path, audit.Bounds{}, clock.NewVirtual(at))
	if err != nil {
		t.Fatal(err)
	}
	write := func(line string) {
		t.Helper()
		if err := f.Write(at, []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	write("a")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write("b")
	write("c")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: "b\nc\n", path + ".1": "a\n"} {
		text, err := os.ReadFile(name)
		if err != nil || string(text) != want {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := f.Write(at, []byte("d")); err == nil {
		t.Error("a closed file was written")
	}
}

// Lines that come together share a sync, which comes within a second of the first; a file
// that is moved away or closed is synced before it is let go; a sync that fails is reported.
func TestFileIsSynced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	machine := clock.NewVirtual(at)
	f, err := audit.OpenFile(path, audit.Bounds{}, machine)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	syncs := 0
	var failure error
	audit.SetSync(f, func(*os.File) error {
		mu.Lock()
		defer mu.Unlock()
		syncs++
		return failure
	})
	check := func(what string, want int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if syncs != want {
			t.Errorf("%s: %d syncs, want %d", what, syncs, want)
		}
	}
	advance := func(d time.Duration) {
		t.Helper()
		if _, err := machine.Advance(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	write := func() {
		t.Helper()
		if err := f.Write(at, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	write()
	advance(audit.SyncWithin - 1)
	write()
	check("before its time", 0)
	advance(1)
	check("two lines", 1)
	advance(time.Hour)
	check("nothing was written", 1)

	write()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write()
	check("moved away", 2)
	failure = errors.New("disk gone")
	advance(audit.SyncWithin)
	trail := newTrail(f, false)
	if err := trail.Failing(); !errors.Is(err, failure) {
		t.Errorf("told: %v", err)
	}
	failure = nil
	write()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	check("closed", 4)
}

// A file that is cut short, as by logrotate's copytruncate, continues from its beginning.
func TestFileIsCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f, err := audit.OpenFile(path, audit.Bounds{}, clock.NewVirtual(at))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Write(at, []byte("before")), os.Truncate(path, 0), f.Write(at, []byte("after")), f.Close()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "after\n" {
		t.Errorf("%q %v", text, err)
	}
}

// A file that is full takes the first place among those that are kept; the oldest goes, a
// line is never cut, and what was cut short by others is measured again.
// A line that a full disk has cut short does not spoil the one after it.
func TestFileGoesOnAfterAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte("{}\n{\"cut\":"), 0o600); err != nil { // by a process that has ended
		t.Fatal(err)
	}
	f, err := audit.OpenFile(path, audit.Bounds{}, clock.NewVirtual(at))
	if err != nil {
		t.Fatal(err)
	}
	full := false
	audit.SetWrite(f, func(file *os.File, line []byte) (int, error) {
		if !full {
			return file.Write(line)
		}
		n, err := file.Write(line[:len(line)/2])
		return n, errors.Join(err, errors.New("no space"))
	})
	write := func(text string, want bool) {
		if err := f.Write(at, []byte(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	write("first", true)
	full = true
	write("lost", false)
	write("lost, too", false)
	full = false
	write("second", true)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = audit.OpenFile(path, audit.Bounds{}, clock.NewVirtual(at)); err != nil {
		t.Fatal(err)
	}
	if write("third", true); f.Close() != nil {
		t.Error("it cannot be closed")
	}
	text, err := os.ReadFile(path)
	if want := "{}\n{\"cut\":\nfirst\nsecond\nthird\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
}

func TestFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	open := func(bounds audit.Bounds) *audit.File {
		t.Helper()
		f, err := audit.OpenFile(path, bounds, clock.NewVirtual(at))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	write := func(f *audit.File, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if err := f.Write(at, []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(want map[string]string) {
		t.Helper()
		got := map[string]string{}
		for _, entry := range must(os.ReadDir(dir))(t) {
			got[strings.TrimPrefix(entry.Name(), "audit.log")] = string(must(os.ReadFile(filepath.Join(dir, entry.Name())))(t))
		}
		if !maps.Equal(got, want) {
			t.Errorf("there is %q, want %q", got, want)
		}
	}
	f := open(audit.Bounds{MaxBytes: 6, Keep: 2})
	write(f, "aa", "bb", "cc", "a line of its own", "dd")
	check(map[string]string{"": "dd\n", ".1": "a line of its own\n", ".2": "cc\n"})
	if err := errors.Join(f.Close(), os.Remove(path+".1")); err != nil {
		t.Fatal(err)
	}
	f = open(audit.Bounds{MaxBytes: 6, Keep: 2}) // what is there counts, and a gap is filled
	write(f, "ee", "ff")
	check(map[string]string{"": "ff\n", ".1": "dd\nee\n", ".2": "cc\n"})
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	write(f, "gg", "hh")
	check(map[string]string{"": "gg\nhh\n", ".1": "dd\nee\n", ".2": "cc\n"})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(audit.Bounds{MaxBytes: 6})
	write(f, "ii")
	check(map[string]string{"": "ii\n", ".1": "dd\nee\n", ".2": "cc\n"})

	// Where it cannot be put away it continues, and says so.
	if err := errors.Join(f.Close(), os.Remove(path+".1"), os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	f = open(audit.Bounds{MaxBytes: 6, Keep: 1})
	write(f, "jj", "kk")
	if text := must(os.ReadFile(path))(t); string(text) != "ii\njj\nkk\n" || f.Failing() == nil {
		t.Errorf("%q, and told: %v", text, f.Failing())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Lines of several goroutines are all there, whole, in the files that are kept.
func TestFileIsBoundedTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f, err := audit.OpenFile(path, audit.Bounds{MaxBytes: 500, Keep: 1000}, clock.NewVirtual(at))
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 100
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range each {
				if err := f.Write(at, fmt.Appendf(nil, "%d:%d", w, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, name := range must(filepath.Glob(path + "*"))(t) {
		text := must(os.ReadFile(name))(t)
		if len(text) > 500 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for line := range strings.Lines(string(text)) {
			lines[line]++
		}
	}
	for w := range writers {
		for n := range each {
			if line := fmt.Sprintf("%d:%d\n", w, n); lines[line] != 1 {
				t.Errorf("%q is there %d times", line, lines[line])
			}
		}
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
