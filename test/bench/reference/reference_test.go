package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

type client struct {
	t   *testing.T
	url string
}

func serve(t *testing.T, h http.Handler) client {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return client{t, server.URL}
}

// call returns the answer's text, after its status unless that is 200.
func (c client) call(action, body string) string {
	c.t.Helper()
	request, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Error(err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprint(answer.StatusCode, " ", string(text))
	}
	return string(text)
}

func (c client) queue() string {
	var out struct {
		QueueURL string `json:"QueueUrl"`
	}
	if err := json.Unmarshal([]byte(c.call("CreateQueue", `{"QueueName":"q"}`)), &out); err != nil {
		c.t.Fatal(err)
	}
	return `"QueueUrl":"` + out.QueueURL + `"`
}

func (c client) receive(queue, rest string) (out received) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.call("ReceiveMessage", "{"+queue+rest+"}")), &out); err != nil {
		c.t.Error(err)
	}
	return out
}

const helloMD5 = "5d41402abc4b2a76b9719d911017c592"

func TestDurableWritesBeforeItAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	log := newCommitLog(file)
	defer log.close()
	c := serve(t, durable{log})
	queue := c.queue()
	if got, want := c.call("SendMessage", `{`+queue+`,"MessageBody":"hello"}`), `{"MD5OfMessageBody":"`+helloMD5+`","MessageId":"`+fixedID+`"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			mine := fmt.Sprintf("hello %d", i)
			got := c.call("SendMessageBatch", `{`+queue+`,"Entries":[{"Id":"a","MessageBody":"hello"},{"Id":"b","MessageBody":"`+mine+`"}]}`)
			if strings.Count(got, "MD5OfMessageBody") != 2 || !strings.Contains(got, `{"Id":"a","MD5OfMessageBody":"`+helloMD5) {
				t.Error(got)
			}
			if b, _ := os.ReadFile(path); !strings.Contains(string(b), mine) {
				t.Errorf("%q was answered before it was written", mine)
			}
		})
	}
	wg.Wait()
	b, _ := os.ReadFile(path)
	records := 0
	for ; len(b) > 4; records++ {
		n := binary.LittleEndian.Uint32(b)
		if body := string(b[4 : 4+n]); !strings.HasPrefix(body, "hello") {
			t.Fatalf("record %q", body)
		}
		b = b[4+n:]
	}
	if records != 41 {
		t.Errorf("%d records", records)
	}
	for _, bad := range []string{c.call("ReceiveMessage", `{`+queue+`}`), c.call("SendMessage", `{`)} {
		if !strings.HasPrefix(bad, "400 ") {
			t.Error(bad)
		}
	}
}

func TestDurableReportsAFailedWrite(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	log := newCommitLog(file)
	defer log.close()
	file.Close()
	c := serve(t, durable{log})
	if got := c.call("SendMessage", `{"MessageBody":"hello"}`); !strings.HasPrefix(got, "500 ") {
		t.Error(got)
	}
}

func TestMemoryKeepsMessages(t *testing.T) {
	c := serve(t, newMemory())
	queue := c.queue()
	counts := func(want string) {
		t.Helper()
		var out struct{ Attributes map[string]string }
		if err := json.Unmarshal([]byte(c.call("GetQueueAttributes", `{`+queue+`}`)), &out); err != nil {
			t.Fatal(err)
		}
		a := out.Attributes
		if got := a["ApproximateNumberOfMessages"] + " " + a["ApproximateNumberOfMessagesDelayed"] + " " + a["ApproximateNumberOfMessagesNotVisible"]; got != want {
			t.Errorf("%s messages ready, delayed, leased; want %s", got, want)
		}
	}
	c.call("SendMessage", `{`+queue+`,"MessageBody":"hello"}`)
	c.call("SendMessageBatch", `{`+queue+`,"Entries":[{"Id":"a","MessageBody":"two"},{"Id":"b","MessageBody":"late","DelaySeconds":900}]}`)
	counts("2 1 0")

	again := `,"VisibilityTimeout":0,"MessageSystemAttributeNames":["ApproximateReceiveCount"]`
	for i, want := range []string{"hello 1", "two 1", "hello 2"} {
		m := c.receive(queue, again).Messages
		if len(m) != 1 || m[0].Body+" "+m[0].Attributes["ApproximateReceiveCount"] != want {
			t.Errorf("receive %d: %+v, want %s", i, m, want)
		}
	}
	m := c.receive(queue, `,"MaxNumberOfMessages":10`).Messages
	if len(m) != 2 || m[1].MD5OfBody != helloMD5 {
		t.Fatalf("%+v", m)
	}
	counts("0 1 2")
	c.call("DeleteMessage", `{`+queue+`,"ReceiptHandle":"`+m[0].ReceiptHandle+`"}`)
	counts("0 1 1")
	if got := c.call("DeleteMessageBatch", `{`+queue+`,"Entries":[{"Id":"x","ReceiptHandle":"`+m[1].ReceiptHandle+`"}]}`); got != `{"Successful":[{"Id":"x"}]}` {
		t.Error(got)
	}
	counts("0 1 0")

	c.call("DeleteQueue", `{`+queue+`}`)
	if got := c.call("SendMessage", `{`+queue+`,"MessageBody":"hello"}`); !strings.Contains(got, "QueueDoesNotExist") {
		t.Error(got)
	}
}

func TestMemoryWakesALongPoll(t *testing.T) {
	memory := newMemory()
	c := serve(t, memory)
	queue := c.queue()
	if m := c.receive(queue, ``).Messages; len(m) != 0 {
		t.Errorf("%+v from an empty queue", m)
	}
	woken := make(chan received)
	began := time.Now()
	go func() { woken <- c.receive(queue, `,"WaitTimeSeconds":20`) }()
	for waiting := 0; waiting == 0; {
		for _, q := range memory.queues {
			q.mu.Lock()
			waiting = len(q.waiting)
			q.mu.Unlock()
		}
	}
	c.call("SendMessage", `{`+queue+`,"MessageBody":"hello"}`)
	if m := (<-woken).Messages; len(m) != 1 || m[0].Body != "hello" {
		t.Errorf("woken with %+v", m)
	}
	if took := time.Since(began); took >= 20*time.Second {
		t.Errorf("after %s", took)
	}
	if m := c.receive(queue, `,"WaitTimeSeconds":1`).Messages; len(m) != 0 {
		t.Errorf("%+v after the wait", m)
	}
}
