// Command reference is a pair of deliberately small servers that the benchmark
// measures beside the real one, in the same run, so that its figures can be
// read as multiples of what any server written in Go with net/http and
// encoding/json must spend.
//
// Kind "durable" parses sends, computes the digest of each body and appends
// the bodies to a file, synced by a group commit, before it answers; it cannot
// receive. Kind "memory" keeps a minimal queue in memory and no file. Neither
// checks signatures, limits or policies, and neither is of use for anything else.
package main

import (
	"context"
	"crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run() error {
	kind := flag.String("kind", "memory", "durable or memory")
	listen := flag.String("listen", "127.0.0.1:0", "`address` to listen on")
	data := flag.String("data", "", "`directory` of the durable kind's file")
	flag.Parse()

	var handler http.Handler
	switch *kind {
	case "memory":
		handler = newMemory()
	case "durable":
		file, err := os.OpenFile(filepath.Join(*data, "messages.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		log := newCommitLog(file)
		defer log.close()
		handler = durable{log}
	default:
		return fmt.Errorf("unknown kind %q", *kind)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_godwit/ready", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("POST /", handler)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// request is the union of all requests: encoding/json looks at every member by
// name, as a server must that knows the whole operation.
type request struct {
	QueueUrl                    string
	QueueName                   string
	MessageBody                 string
	DelaySeconds                int64
	ReceiptHandle               string
	MaxNumberOfMessages         int
	WaitTimeSeconds             int64
	VisibilityTimeout           *int64
	MessageSystemAttributeNames []string
	Attributes                  map[string]string
	AttributeNames              []string
	Entries                     []entry
}

type entry struct {
	Id            string
	MessageBody   string
	DelaySeconds  int64
	ReceiptHandle string
}

type sent struct {
	MD5OfMessageBody string
	MessageId        string
}

type sentEntry struct {
	Id               string
	MD5OfMessageBody string
	MessageId        string
}

type batchResult struct {
	Successful []sentEntry
	Failed     []struct{} `json:",omitempty"`
}

// fixedID stands for the message id and the request id, which cost little.
const fixedID = "219f8380-5770-4cc2-8c3e-5c715e145f5e"

func digest(body string) string {
	sum := md5.Sum([]byte(body)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// decode reads a JSON 1.0 request and says which action it asks for.
func decode(r *http.Request) (action string, in *request, err error) {
	buf := make([]byte, 0, max(r.ContentLength, 0)+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", nil, err
		}
	}
	in = new(request)
	return strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."), in, json.Unmarshal(buf, in)
}

func answer(w http.ResponseWriter, status int, out any) {
	body, err := json.Marshal(out)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("X-Amzn-Requestid", fixedID)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func refuse(w http.ResponseWriter, name, message string) {
	answer(w, http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.sqs#" + name, "message": message})
}

// queueURL is the URL of the queue called name at the host that r was sent to.
func queueURL(r *http.Request, name string) string {
	return "http://" + r.Host + "/000000000000/" + name
}
