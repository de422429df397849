package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/server/backup"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/server/rootkey"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/test/sdkhttp"
)

const region = "us-east-1"

// world is a server on a disk, and clients of it.
type world struct {
	*testing.T
	data, endpoint string
	queues         *sqs.Client
	topics         *sns.Client
	stop           func()
}

func settings(data string) config.Config {
	return config.Config{
		Listen: "127.0.0.1:0", Store: config.PebbleStore, Clock: config.SystemClock, Data: data, Region: region, Account: "000000000000",
		AllowPrivateEndpoints: true, JitterSeed: 1, EndpointConcurrency: 50, DeliveryConcurrency: 500,
		FunctionIsolation: config.IsolationNone, FunctionNetwork: "none",
	}
}

// start runs a server until stop, or the end of the test.
func start(t *testing.T, data string, change ...func(*config.Config)) *world {
	t.Helper()
	cfg := settings(data)
	for _, f := range change {
		f(&cfg)
	}
	s := server.New(cfg, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})), nil)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	w := &world{T: t, data: data, endpoint: "http://" + s.Addr().String(), stop: stop}
	clients := aws.Config{Region: region, BaseEndpoint: &w.endpoint, RetryMaxAttempts: 1, HTTPClient: sdkhttp.Of(http.DefaultClient), Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	w.queues, w.topics = sqs.NewFromConfig(clients), sns.NewFromConfig(clients)
	return w
}

// must takes a result that comes with an error.
func must[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (w *world) queue(name string) (url string) {
	w.Helper()
	return *must(w.queues.CreateQueue(w.Context(), &sqs.CreateQueueInput{QueueName: &name}))(w).QueueUrl
}

func (w *world) send(url, body string) {
	w.Helper()
	must(w.queues.SendMessage(w.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}))(w)
}

// receive takes all that is visible.
func (w *world) receive(url string) (bodies, handles []string) {
	w.Helper()
	for {
		out := must(w.queues.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, VisibilityTimeout: 3600}))(w)
		if len(out.Messages) == 0 {
			slices.Sort(bodies)
			return bodies, handles
		}
		for _, m := range out.Messages {
			bodies, handles = append(bodies, *m.Body), append(handles, *m.ReceiptHandle)
		}
	}
}

// url is that of a queue at another server.
func (w *world) url(of string) string { return w.endpoint + of[strings.Index(of, "/000000000000/"):] }

func (w *world) making(dir string) *backup.Making {
	return &backup.Making{Endpoint: w.endpoint, Client: http.DefaultClient, Dir: dir, Stdout: io.Discard}
}

// backUp makes a backup.
func (w *world) backUp() (dir string) {
	w.Helper()
	dir = filepath.Join(w.TempDir(), "backup")
	m, whole, err := w.making(dir).Run(w.Context())
	if err != nil || !whole {
		w.Fatalf("no backup: %v, whole: %v", err, whole)
	}
	if len(m.Files) == 0 || m.RootKey == "" || m.Version != config.Version {
		w.Errorf("the backup is %+v", m)
	}
	return dir
}

func (w *world) rootKey() string { return filepath.Join(w.data, bootstrap.DevRootKey) }

// restored makes a data directory of a backup.
func restored(t *testing.T, dir, key string, change ...func(*backup.Restoring)) (data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "restored")
	r := &backup.Restoring{Dir: dir, Data: data, RootKey: key, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(r)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return data
}

func checked(t *testing.T, dir string) (ok bool, text string) {
	t.Helper()
	var b bytes.Buffer
	ok, err := backup.Check(t.Context(), dir, &b)
	if err != nil {
		t.Fatal(err)
	}
	return ok, b.String()
}

// What was acknowledged before a backup began is in it, while others continue sending; of what
// was sent meanwhile each is there once, or not. A receipt handle of before is of no use.
func TestRestoreUnderLoad(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	url := w.queue("orders")
	w.send(url, "in flight")
	_, handles := w.receive(url)
	for i := range 50 {
		w.send(url, fmt.Sprintf("before %02d", i))
	}
	on := make(chan struct{})
	began := sync.OnceFunc(func() { close(on) })
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for n := range 4 {
		senders.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				body := fmt.Sprintf("during %d/%d", n, i)
				if _, err := w.queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err == nil {
					began()
				}
			}
		})
	}
	<-on
	dir := w.backUp()
	cancel()
	senders.Wait()
	if ok, text := checked(t, dir); !ok {
		t.Error(text)
	}
	w.stop()

	to := start(t, restored(t, dir, w.rootKey()))
	bodies, _ := to.receive(to.url(url))
	var before []string
	seen := map[string]bool{}
	for _, body := range bodies {
		if seen[body] {
			t.Errorf("%q comes twice", body)
		}
		seen[body] = true
		if strings.HasPrefix(body, "before") {
			before = append(before, body)
		}
	}
	if len(before) != 50 || seen["in flight"] {
		t.Errorf("of 50 messages %d are there; the one in flight: %v", len(before), seen["in flight"])
	}
	_, err := to.queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(to.url(url)), ReceiptHandle: &handles[0]})
	if err == nil || !strings.Contains(err.Error(), "ReceiptHandleIsInvalid") {
		t.Errorf("a handle of before: %v", err)
	}
}

// records are those of a store.
func records(t *testing.T, data string) map[string]string {
	t.Helper()
	st := must(pebble.Open(filepath.Join(data, recovery.StoreName), pebble.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
	it := must(st.Iter(nil, nil))(t)
	all := map[string]string{}
	for it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	if err := errors.Join(it.Close(), st.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// A restored store is that of the source, key for key, but for the key of receipt handles
// and the epochs.
func TestRestoredKeyForKey(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	url := w.queue("orders")
	topic := *must(w.topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("t")}))(t).TopicArn
	must(w.topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:us-east-1:000000000000:orders")}))(t)
	for i := range 20 {
		w.send(url, fmt.Sprintf("%d %s", i, strings.Repeat("x", 5000)))
		must(w.topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
	}
	w.receive(url)
	dir := w.backUp()
	w.stop()
	want, got := records(t, w.data), records(t, restored(t, dir, w.rootKey()))
	differ := map[string]int{}
	for key, value := range want {
		if other, ok := got[key]; !ok || other != value {
			differ[kindOf(key)]++
		}
		delete(got, key)
	}
	for key := range got {
		differ["new: "+kindOf(key)]++
	}
	if differ[keyspace.Table[keyspace.KindHandleKey].Name] != 1 || differ[keyspace.Table[keyspace.KindStreamState].Name] < 2 || len(differ) != 2 {
		t.Errorf("there differ %v", differ)
	}
}

func kindOf(key string) string {
	k, err := keyspace.Parse([]byte(key))
	if err != nil {
		return fmt.Sprintf("%x", key)
	}
	return k.Kind().Name
}

// A byte that has changed in any file of a backup is found, as is a file that is missing,
// cut short or one too many; and nothing is restored of it.
func TestEveryFile(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	url := w.queue("orders")
	for range 30 {
		w.send(url, strings.Repeat("x", 2000))
	}
	dir := w.backUp()
	w.stop()
	if ok, text := checked(t, dir); !ok {
		t.Fatal(text)
	}
	var files []string
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "LOCK" {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(files) < 6 {
		t.Fatalf("there are only %v", files)
	}
	damaged := func(path, what string) {
		t.Helper()
		if ok, text := checked(t, dir); ok || text == "" {
			t.Errorf("%s %s is not found: %s", path, what, text)
		}
	}
	for _, path := range files {
		was := must(os.ReadFile(path))(t)
		write := func(content []byte) {
			t.Helper()
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, at := range []int{0, len(was) / 3, len(was) / 2, len(was) - 1} {
			if at < 0 || at >= len(was) {
				continue
			}
			changed := bytes.Clone(was)
			changed[at] ^= 1 << (at % 8)
			write(changed)
			damaged(path, fmt.Sprintf("with byte %d changed", at))
		}
		write(append(bytes.Clone(was), 0))
		damaged(path, "with a byte more")
		if len(was) > 0 {
			write(was[:len(was)-1])
			damaged(path, "cut short")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		damaged(path, "removed")
		data := filepath.Join(t.TempDir(), "new")
		err := (&backup.Restoring{Dir: dir, Data: data, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)}).Run(t.Context())
		if err == nil {
			t.Errorf("without %s it is restored", path)
		}
		if left := must(os.ReadDir(data))(t); len(left) > 0 {
			t.Errorf("without %s there is %v", path, left)
		}
		write(was)
	}
	extra := filepath.Join(dir, recovery.StoreName, "extra")
	if err := os.WriteFile(extra, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged(extra, "which is none of it")
	if err := os.Remove(extra); err != nil {
		t.Fatal(err)
	}
	if ok, text := checked(t, dir); !ok {
		t.Errorf("as it was: %s", text)
	}
}

// cutting ends the connection at some request.
type cutting struct{ left atomic.Int64 }

var errCut = errors.New("cut off")

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.left.Add(-1) < 0 {
		return nil, errCut
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A backup that was cut off at any request is none, and continues where it was, or begins again
// where the server does not offer its snapshot any more.
func TestCutOff(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	w := start(t, data)
	url := w.queue("orders")
	w.send(url, "hello")
	for requests := int64(0); ; requests++ {
		dir := filepath.Join(t.TempDir(), "backup")
		cut := &cutting{}
		cut.left.Store(requests)
		m := w.making(dir)
		m.Client = &http.Client{Transport: cut}
		if _, _, err := m.Run(t.Context()); err == nil {
			if requests < 5 {
				t.Errorf("it takes %d requests", requests)
			}
			break
		} else if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		none := backup.ErrIncomplete
		if !backup.Is(dir) { // it was cut off before anything came
			none = backup.ErrNone
		}
		if _, err := backup.Read(dir); !errors.Is(err, none) {
			t.Fatalf("what was cut off: %v", err)
		}
		if err := (&backup.Restoring{Dir: dir, Data: filepath.Join(t.TempDir(), "x"), Stdout: io.Discard}).Run(t.Context()); !errors.Is(err, none) {
			t.Fatalf("what was cut off is restored: %v", err)
		}
		if requests%3 == 1 {
			w.stop()
			w = start(t, data)
			w.send(w.url(url), "hello")
		}
		m = w.making(dir)
		if _, whole, err := m.Run(t.Context()); err != nil || !whole {
			t.Fatalf("after request %d it does not go on: %v", requests, err)
		}
		if ok, text := checked(t, dir); !ok {
			t.Fatal(text)
		}
		if _, _, err := m.Run(t.Context()); !errors.Is(err, backup.ErrNotEmpty) {
			t.Errorf("over a whole backup: %v", err)
		}
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.making(other).Run(t.Context()); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("into a directory with files: %v", err)
	}
	if err := (&backup.Restoring{Dir: other, Data: filepath.Join(t.TempDir(), "x"), Stdout: io.Discard}).Run(t.Context()); !errors.Is(err, backup.ErrNone) || !strings.Contains(err.Error(), other) {
		t.Errorf("of a directory that has no backup: %v", err)
	}
}

// No server starts on a backup, which it would change, nor on a file; the refusal says what to do.
func TestServeABackup(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	w.send(w.queue("orders"), "hello")
	dir, key := w.backUp(), w.rootKey()
	w.stop()
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, filepath.Base(key)) // where somebody may put it who was told that it lacks
	if err := os.WriteFile(inside, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{dir: "godwit restore " + dir, key: "is a file"} {
		err := server.New(settings(data), slog.New(slog.DiscardHandler), nil).Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", data, err)
		}
	}
	if err := os.Remove(inside); err != nil {
		t.Fatal(err)
	}
	if ok, text := checked(t, dir); !ok {
		t.Error(text)
	}
}

// No server starts from a restore that was cut off, which can be made again.
func TestRestoreCutOff(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	url := w.queue("orders")
	w.send(url, "hello")
	dir := w.backUp()
	w.stop()
	data := filepath.Join(t.TempDir(), "restored")
	for files := 1; ; files++ {
		ctx, cancel := context.WithCancel(t.Context())
		left := files
		r := backup.Restoring{Dir: dir, Data: data, RootKey: w.rootKey(), Paused: true, Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler), Progress: func(int64, int64) {
			if left--; left == 0 {
				cancel()
			}
		}}
		err := r.Run(ctx)
		cancel()
		if err == nil {
			break
		}
		if s := server.New(settings(data), slog.New(slog.DiscardHandler), nil); !errors.Is(s.Start(t.Context()), recovery.ErrRestoring) {
			t.Fatal("a server starts from half a restore")
		}
	}
	if err := (&backup.Restoring{Dir: dir, Data: data, Stdout: io.Discard}).Run(t.Context()); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("over what is there: %v", err)
	}
	to := start(t, data)
	if bodies, _ := to.receive(to.url(url)); !slices.Equal(bodies, []string{"hello"}) {
		t.Errorf("there is %v", bodies)
	}
}

// What is restored with another root key than the one at hand is refused before anything is
// written.
func TestWrongRootKey(t *testing.T) {
	w := start(t, filepath.Join(t.TempDir(), "data"))
	dir := w.backUp()
	other := filepath.Join(t.TempDir(), "root.key")
	if err := bootstrap.WriteRootKey(other, seal.NewRoot()); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "new")
	var told bytes.Buffer
	err := (&backup.Restoring{Dir: dir, Data: data, RootKey: other, Stdout: &told}).Run(t.Context())
	if !errors.Is(err, seal.ErrWrongRoot) {
		t.Errorf("another key: %v", err)
	}
	if left := must(os.ReadDir(data))(t); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
	root := must(bootstrap.ReadRootKey(w.rootKey()))(t)
	if !strings.Contains(told.String(), root.ID()) {
		t.Errorf("it does not say which key is needed: %s", told.String())
	}

	// The key of a backup of before a rotation is beside the one of today, and what to do is told.
	former := other + "." + root.ID()
	if err := bootstrap.WriteRootKey(former, root); err != nil {
		t.Fatal(err)
	}
	err = (&backup.Restoring{Dir: dir, Data: data, RootKey: other, Stdout: &told}).Run(t.Context())
	if !errors.Is(err, seal.ErrWrongRoot) || !strings.Contains(err.Error(), "--root-key "+former) || !strings.Contains(err.Error(), "rotate-root --dir DIR --from "+former) {
		t.Errorf("a rotated key: %v", err)
	}
	told.Reset()
	err = (&backup.Restoring{Dir: dir, Data: data, RootKey: former, Stdout: &told, Logger: slog.New(slog.DiscardHandler)}).Run(t.Context())
	if err != nil || !strings.Contains(told.String(), "rotate-root --dir DIR --from "+former) {
		t.Errorf("with the former key: %v: %s", err, told.String())
	}
	err = rootkey.Check(config.Config{Data: data, RootKey: other})
	if !errors.Is(err, seal.ErrWrongRoot) || !strings.Contains(err.Error(), "rotate-root --dir DIR --from "+former) {
		t.Errorf("a start with the key of today: %v", err)
	}
}

// A server that is restored with --paused delivers what it owes when it is told to, and not
// before, however much time passes.
func TestPaused(t *testing.T) {
	var failing atomic.Bool
	failing.Store(true)
	links, tried := make(chan string, 1), make(chan struct{}, 100)
	var delivered atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-amz-sns-message-type") == "SubscriptionConfirmation" {
			var c struct{ SubscribeURL string }
			_ = json.NewDecoder(r.Body).Decode(&c)
			links <- c.SubscribeURL
			return
		}
		if failing.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
		} else {
			delivered.Add(1)
		}
		tried <- struct{}{}
	}))
	defer hook.Close()
	w := start(t, filepath.Join(t.TempDir(), "data"))
	topic := *must(w.topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("t")}))(t).TopicArn
	must(w.topics.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("http"), Endpoint: &hook.URL}))(t)
	must(http.Get(<-links))(t).Body.Close()
	must(w.topics.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
	<-tried
	dir := w.backUp()
	w.stop()

	data := restored(t, dir, w.rootKey(), func(r *backup.Restoring) { r.Paused = true })
	failing.Store(false)
	virtual := func(c *config.Config) { c.Clock = config.VirtualClock }
	for round := range 2 { // it stays so over a restart
		to := start(t, data, virtual)
		if !strings.Contains(to.ask(http.MethodGet, "v1/delivering", ""), `"held":true`) {
			t.Error("it is not held")
		}
		to.ask(http.MethodPost, "clock", `{"advance":"10m"}`)
		if n := delivered.Load(); n != 0 {
			t.Fatalf("%d deliveries in round %d, before they were let", n, round)
		}
		if round == 1 {
			if answer := to.ask(http.MethodPost, "v1/delivering/begin", "{}"); !strings.Contains(answer, `"changed":true`) {
				t.Error(answer)
			}
			<-tried
			if n := delivered.Load(); n != 1 {
				t.Errorf("%d deliveries once they were let", n)
			}
		}
		to.stop()
	}
	to := start(t, data, virtual)
	if !strings.Contains(to.ask(http.MethodGet, "v1/delivering", ""), `"held":false`) {
		t.Error("after a restart it is held again")
	}
}

// ask asks for what is Godwit's own.
func (w *world) ask(method, path, body string) string {
	w.Helper()
	req := must(http.NewRequestWithContext(w.Context(), method, w.endpoint+"/_godwit/"+path, strings.NewReader(body)))(w)
	answer := must(http.DefaultClient.Do(req))(w)
	defer answer.Body.Close()
	text := string(must(io.ReadAll(answer.Body))(w))
	if answer.StatusCode != http.StatusOK {
		w.Fatalf("%s %s: %s %s", method, path, answer.Status, text)
	}
	return text
}

// What a backup of strangers names is a file below it: neither a link that leads elsewhere, nor
// what has no end.
func TestNoFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("x"))
	of := func(name string, size int, make func(path string) error) (dir string) {
		t.Helper()
		dir = t.TempDir()
		store := filepath.Join(dir, recovery.StoreName)
		text := fmt.Appendf(nil, `{"format":1,"files":[{"name":%q,"size":%d,"sha256":"%x"}]}`, name, size, sum)
		whole := sha256.Sum256(text)
		if err := errors.Join(os.Mkdir(store, 0o700), make(filepath.Join(store, "x")), os.WriteFile(filepath.Join(dir, "backup.json"), text, 0o600),
			os.WriteFile(filepath.Join(dir, "backup.sha256"), fmt.Appendf(nil, "%x  backup.json\n", whole), 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	plain := func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }
	if ok, text := checkedOnly(t, of("x", 1, plain)); !ok {
		t.Errorf("a file: %s", text)
	}
	for what, dir := range map[string]string{
		"a link":                of("x", 1, func(path string) error { return os.Symlink(secret, path) }),
		"a link of directories": of("x/secret", 1, func(path string) error { return os.Symlink(filepath.Dir(secret), path) }),
		"a pipe":                of("x", 1, func(path string) error { return syscall.Mkfifo(path, 0o600) }),
		"no end":                of("x", 1, func(path string) error { return os.Symlink("/dev/zero", path) }),
		"less than nothing":     of("x", -1, plain),
		"elsewhere":             of("../x", 1, plain),
	} {
		if ok, _ := checkedOnly(t, dir); ok {
			t.Errorf("%s is taken", what)
		}
		data := filepath.Join(t.TempDir(), "new")
		if err := (&backup.Restoring{Dir: dir, Data: data, Stdout: io.Discard}).Run(t.Context()); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if left := must(os.ReadDir(data))(t); len(left) > 0 {
			t.Errorf("%s leaves %v", what, left)
		}
	}
}

// checkedOnly holds a backup against its manifest, without opening what is in it.
func checkedOnly(t *testing.T, dir string) (ok bool, text string) {
	t.Helper()
	_, err := backup.Verify(t.Context(), dir, nil)
	return err == nil, fmt.Sprint(err)
}
