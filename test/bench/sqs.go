package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

func sqsOperation(action string) *operation {
	return &operation{service: "sqs", contentType: "application/x-amz-json-1.0", target: "AmazonSQS." + action}
}

var (
	createQueue   = sqsOperation("CreateQueue")
	deleteQueue   = sqsOperation("DeleteQueue")
	getAttributes = sqsOperation("GetQueueAttributes")
	sendMessage   = sqsOperation("SendMessage")
	sendBatch     = sqsOperation("SendMessageBatch")
	receive       = sqsOperation("ReceiveMessage")
	deleteMessage = sqsOperation("DeleteMessage")
	deleteBatch   = sqsOperation("DeleteMessageBatch")
)

const (
	maxBatch   = 10
	fifoSuffix = ".fifo"
)

// text is a message body: as it stands in JSON, and its digest as a server
// must answer it.
type text struct {
	plain, quoted []byte
	md5           []byte // hex
}

// texts are bodies of one size to draw from. They are random, so that a store
// that compresses gains little by it, and many, so that neighbours differ.
type texts []text

const textVariety = 1024

// newTexts makes bodies of size bytes. With escapes every tenth byte is a
// quote, as in a body that is itself JSON.
func newTexts(size int, escapes bool) texts {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	all := make(texts, textVariety)
	for i := range all {
		plain := make([]byte, size)
		for j := range plain {
			plain[j] = alphabet[rng.IntN(len(alphabet))]
			if escapes && j%10 == 0 {
				plain[j] = '"'
			}
		}
		sum := md5.Sum(plain) //nolint:gosec // see the import
		all[i] = text{
			plain:  plain,
			quoted: []byte(strconv.Quote(string(plain))),
			md5:    hex.AppendEncode(nil, sum[:]),
		}
	}
	return all
}

// queue is a connection's view of one queue. It is for one goroutine.
type queue struct {
	c    *conn
	url  []byte // quoted
	rng  *rand.Rand
	body []byte // of the request
	sent []*text
	fifo *fifo // nil: a standard queue
}

// fifo is what a FIFO queue's messages have more.
type fifo struct {
	groups int    // a message goes to a random one of so many
	name   string // of the one group of all messages, if groups is 0
	prefix string // of deduplication ids; no two queue values share it
	sent   uint64
}

func openQueue(c *conn, url string, seed uint64) *queue {
	return &queue{c: c, url: []byte(strconv.Quote(url)), rng: rand.New(rand.NewPCG(2, seed))}
}

// makeQueue creates a queue and returns its URL. Leases last: no message of a
// benchmark comes back by itself. A name that ends as a FIFO queue's is one. more
// are names of attributes, each with its value.
func makeQueue(c *conn, name string, more ...string) (string, error) {
	attributes := map[string]string{"VisibilityTimeout": "3600"}
	for pair := range slices.Chunk(more, 2) {
		attributes[pair[0]] = pair[1]
	}
	if strings.HasSuffix(name, fifoSuffix) {
		attributes["FifoQueue"] = "true"
	}
	body, err := json.Marshal(map[string]any{"QueueName": name, "Attributes": attributes})
	if err != nil {
		return "", err
	}
	answer, err := c.do(createQueue, body)
	if err != nil {
		return "", err
	}
	var out struct {
		QueueURL string `json:"QueueUrl"`
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return "", err
	}
	if out.QueueURL == "" {
		return "", fmt.Errorf("CreateQueue: no QueueUrl in %.200s", answer)
	}
	return out.QueueURL, nil
}

func dropQueue(c *conn, url string) error {
	_, err := c.do(deleteQueue, []byte(`{"QueueUrl":`+strconv.Quote(url)+`}`))
	return err
}

// attributes are those attributes of a queue that the benchmark reads.
type attributes struct {
	arn                        string
	visible, delayed, inFlight int64
}

func (q *queue) attributes() (attributes, error) {
	const names = `["QueueArn","ApproximateNumberOfMessages","ApproximateNumberOfMessagesDelayed","ApproximateNumberOfMessagesNotVisible"]`
	answer, err := q.c.do(getAttributes, []byte(`{"QueueUrl":`+string(q.url)+`,"AttributeNames":`+names+`}`))
	if err != nil {
		return attributes{}, err
	}
	var out struct{ Attributes map[string]string }
	if err := json.Unmarshal(answer, &out); err != nil {
		return attributes{}, err
	}
	a := attributes{arn: out.Attributes["QueueArn"]}
	for name, count := range map[string]*int64{
		"ApproximateNumberOfMessages":           &a.visible,
		"ApproximateNumberOfMessagesDelayed":    &a.delayed,
		"ApproximateNumberOfMessagesNotVisible": &a.inFlight,
	} {
		value, ok := out.Attributes[name]
		if !ok && name != "ApproximateNumberOfMessages" {
			continue // peers need not know it
		}
		if *count, err = strconv.ParseInt(value, 10, 64); err != nil {
			return attributes{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return a, nil
}

// send sends n random texts, delayed by delay seconds, and checks the digests
// in the answer.
func (q *queue) send(from texts, n, delay int) error {
	q.sent = q.sent[:0]
	b := append(append(q.body[:0], `{"QueueUrl":`...), q.url...)
	op := sendMessage
	if n > 1 {
		op = sendBatch
		b = append(b, `,"Entries":[`...)
	}
	for i := range n {
		t := &from[q.rng.IntN(len(from))]
		q.sent = append(q.sent, t)
		switch {
		case n == 1:
			b = append(b, ',')
		case i == 0:
			b = append(append(strconv.AppendInt(append(b, `{"Id":"`...), int64(i), 10), '"'), ',')
		default:
			b = append(append(strconv.AppendInt(append(b, `,{"Id":"`...), int64(i), 10), '"'), ',')
		}
		b = append(append(b, `"MessageBody":`...), t.quoted...)
		if delay > 0 {
			b = strconv.AppendInt(append(b, `,"DelaySeconds":`...), int64(delay), 10)
		}
		if q.fifo != nil {
			b = q.fifo.append(b, q.rng)
		}
		if n > 1 {
			b = append(b, '}')
		}
	}
	if n > 1 {
		b = append(b, ']')
	}
	q.body = append(b, '}')
	answer, err := q.c.do(op, q.body)
	if err != nil {
		return err
	}
	rest := answer
	for _, t := range q.sent { // entries are answered in order
		digest, after, ok := member(rest, "MD5OfMessageBody")
		if !ok || !bytes.Equal(digest, t.md5) {
			return fmt.Errorf("%s: digest %q instead of %q in %.300s", op.target, digest, t.md5, answer)
		}
		rest = after
	}
	return nil
}

// append appends the members of one more message.
func (f *fifo) append(b []byte, rng *rand.Rand) []byte {
	b = append(b, `,"MessageGroupId":"`...)
	if f.groups > 0 {
		b = strconv.AppendInt(append(b, "group-"...), int64(rng.IntN(f.groups)), 10)
	} else {
		b = append(b, f.name...)
	}
	f.sent++
	b = append(append(b, `","MessageDeduplicationId":"`...), f.prefix...)
	return append(strconv.AppendUint(b, f.sent, 10), '"')
}

// got is a received message, as it stands in the answer; valid until the next
// request on the connection.
type got struct {
	receipt  []byte // quoted text, without the quotes
	receives int    // ApproximateReceiveCount, if it was asked for
}

// receive receives up to most messages into dst. Visibility below 0 is the
// queue's own.
func (q *queue) receive(dst []got, most, wait, visibility int) ([]got, error) {
	b := append(append(q.body[:0], `{"QueueUrl":`...), q.url...)
	b = strconv.AppendInt(append(b, `,"MaxNumberOfMessages":`...), int64(most), 10)
	b = strconv.AppendInt(append(b, `,"WaitTimeSeconds":`...), int64(wait), 10)
	if visibility >= 0 {
		b = strconv.AppendInt(append(b, `,"VisibilityTimeout":`...), int64(visibility), 10)
		b = append(b, `,"MessageSystemAttributeNames":["ApproximateReceiveCount"]`...)
	}
	q.body = append(b, '}')
	answer, err := q.c.do(receive, q.body)
	if err != nil {
		return dst, err
	}
	for receipt := range members(answer, "ReceiptHandle") {
		dst = append(dst, got{receipt: receipt})
	}
	i := 0
	for count := range members(answer, "ApproximateReceiveCount") {
		if i == len(dst) {
			return dst, errors.New("ReceiveMessage: more receive counts than messages")
		}
		if dst[i].receives, err = strconv.Atoi(string(count)); err != nil {
			return dst, fmt.Errorf("ReceiveMessage: %w", err)
		}
		i++
	}
	if len(dst) > most {
		return dst, fmt.Errorf("ReceiveMessage: %d messages instead of at most %d", len(dst), most)
	}
	return dst, nil
}

// remove deletes messages by their receipt handles, which must not alias the
// connection's answer.
func (q *queue) remove(receipts [][]byte) error {
	b := append(append(q.body[:0], `{"QueueUrl":`...), q.url...)
	op := deleteMessage
	if len(receipts) == 1 {
		b = append(append(append(b, `,"ReceiptHandle":"`...), receipts[0]...), '"')
	} else {
		op = deleteBatch
		b = append(b, `,"Entries":[`...)
		for i, receipt := range receipts {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(append(b, `{"Id":"`...), int64(i), 10)
			b = append(append(append(b, `","ReceiptHandle":"`...), receipt...), `"}`...)
		}
		b = append(b, ']')
	}
	q.body = append(b, '}')
	answer, err := q.c.do(op, q.body)
	if err != nil || op == deleteMessage {
		return err
	}
	removed := 0
	for range members(answer, "Id") {
		removed++
	}
	if _, _, failed := member(answer, "Code"); failed || removed != len(receipts) {
		return fmt.Errorf("DeleteMessageBatch: %d of %d: %.300s", removed, len(receipts), answer)
	}
	return nil
}

// member finds the next string member of that name in JSON and returns its
// value, still escaped, and what follows. Inside a string the quotes would be
// escaped, so that a body cannot be taken for a member.
func member(doc []byte, name string) (value, rest []byte, ok bool) {
	for {
		i := bytes.Index(doc, []byte(name))
		if i < 0 {
			return nil, nil, false
		}
		before := doc[:i]
		doc = doc[i+len(name):]
		if !bytes.HasSuffix(before, []byte{'"'}) || !bytes.HasPrefix(doc, []byte{'"'}) {
			continue
		}
		after := bytes.TrimLeft(doc[1:], " \t\r\n")
		if !bytes.HasPrefix(after, []byte{':'}) {
			continue
		}
		after = bytes.TrimLeft(after[1:], " \t\r\n")
		if !bytes.HasPrefix(after, []byte{'"'}) {
			continue
		}
		end := stringEnd(after[1:])
		if end < 0 {
			return nil, nil, false
		}
		return after[1 : 1+end], after[1+end:], true
	}
}

// stringEnd is where the string that s begins within ends; -1 if it does not.
func stringEnd(s []byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

func members(doc []byte, name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			value, rest, ok := member(doc, name)
			if !ok || !yield(value) {
				return
			}
			doc = rest
		}
	}
}
