package sqs

import (
	"strings"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// FuzzQueueURL: whatever is taken for a queue's URL names a queue that could be
// there, and reads the same when it is written as this server writes it.
func FuzzQueueURL(f *testing.F) {
	for _, seed := range []string{
		"http://localhost:4566/000000000000/q", "https://sqs.us-east-1.amazonaws.com/111111111111/q.fifo",
		"http://host/queue/eu-west-1/000000000000/q", "http://host/queue//000000000000/q", "http:///000000000000/q",
		"http://host/000000000000/q/", "http://host/000000000000/", "http://host//q", "q", "", "http://host/queue",
		"http://host/000000000000/.fifo", "http://host/000000000000/a b", "http://host/0000000000000/q",
	} {
		f.Add(seed)
	}
	s := newService(newFake())
	f.Fuzz(func(t *testing.T, url string) {
		call := newCall()
		q, err := queueOf(call, url)
		if err != nil {
			if fault.KindOf(err) != fault.QueueDoesNotExist {
				t.Fatalf("%q: %v", url, err)
			}
			return
		}
		if !arn.IsAccount(q.Account) || q.Region == "" || len(q.Resource) > maxNameBytes || !isQueueName(strings.TrimSuffix(q.Resource, fifoSuffix)) {
			t.Fatalf("%q is taken for %s", url, q)
		}
		call.Region = q.Region
		again, err := queueOf(call, s.queueURL(call, q.Account, q.Resource))
		if err != nil || again != q {
			t.Fatalf("%q is %s, which is %s, %v", url, q, again, err)
		}
	})
}
