package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

var seed = flag.Uint64("seed", 0, "seed of the kills; 0 draws one")

const (
	jobs        = 150
	poisoned    = 6 // every tenth of the first, whose amount is refused
	kills       = 12
	maxReceives = 5
	lease       = 3 * time.Second
	look        = 4 * time.Second // what a large amount takes: longer than the lease
	refusal     = "the amount must be positive"
)

// TestNothingIsLost sends jobs while the workers and the server are killed at
// random, and then looks where each job is.
func TestNothingIsLost(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d draws the same kills again", *seed)
	s := setUp(t)

	var out sent
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		out = s.send(t)
	}()
	s.killAtRandom(t, rand.New(rand.NewPCG(*seed, 0)))
	<-sending

	large, hopeless := s.mustSend(t, invoice{"R-large", 1_000_000}), s.mustSend(t, invoice{"R-hopeless", -1})
	s.awaitEmpty(t)

	charged, dead := s.charged(t), s.deadLetters(t)
	s.checkPeaceful(t, large, hopeless, charged, dead)
	delete(dead, hopeless)
	s.checkGood(t, out, charged, dead)
	s.checkPoisoned(t, out, charged, dead)
	s.checkRedelivered(t)
}

// checkPeaceful: when nobody is killed, a job that takes longer than its lease
// is done by the first attempt, because heartbeats keep it; and one that cannot
// succeed has all its attempts on record.
func (s *stage) checkPeaceful(t *testing.T, large, hopeless string, charged map[string]charge, dead map[string]invoice) {
	t.Helper()
	if all := s.attempts(t, large); len(all) != 1 || all[0].seconds < look.Seconds() || charged[large].Requests != 1 {
		t.Errorf("the large amount was charged as %+v by the attempts %+v, want one that takes %v", charged[large], all, look)
	}
	if dead[hopeless].Invoice == "" {
		t.Error("the hopeless job is no dead letter")
	}
	all := s.attempts(t, hopeless)
	if len(all) != maxReceives {
		t.Errorf("the hopeless job has %d attempts, want %d", len(all), maxReceives)
	}
	for i, a := range all {
		if a.number != i+1 || a.receives != i+1 || !strings.Contains(a.err, refusal) {
			t.Errorf("attempt %d at the hopeless job: %+v", i+1, a)
		}
	}
}

// checkGood: every job that was accepted is charged once, whatever happened.
func (s *stage) checkGood(t *testing.T, out sent, charged map[string]charge, dead map[string]invoice) {
	t.Helper()
	perInvoice, repeated := map[string]int{}, 0
	for id, c := range charged {
		perInvoice[c.Invoice]++
		repeated += c.Requests - 1
		if job, ok := out.accepted[id]; ok && job.Invoice != c.Invoice {
			t.Errorf("%s is %s, but %s was charged under it", id, job.Invoice, c.Invoice)
		}
	}
	attempts := 0
	for id, job := range out.accepted {
		if job.Cents <= 0 {
			continue
		}
		if charged[id].Invoice == "" {
			t.Errorf("lost: %s (%s) is not charged; a dead letter: %t", job.Invoice, id, dead[id].Invoice != "")
		}
		if extra := perInvoice[job.Invoice] - 1; extra > out.unanswered[job.Invoice] {
			t.Errorf("%s was charged under %d more ids, and of its sends %d had no answer", job.Invoice, extra, out.unanswered[job.Invoice])
		}
		attempts += len(s.attempts(t, id))
	}
	t.Logf("%d jobs accepted, %d sends without an answer, %d attempts, %d charges asked for again",
		len(out.accepted), total(out.unanswered), attempts, repeated)
	if repeated == 0 {
		t.Error("nothing was asked for twice: the test has not tested much")
	}
}

// checkPoisoned: every job that cannot succeed, and no other, is a dead
// letter, and the ledger reports the attempts.
func (s *stage) checkPoisoned(t *testing.T, out sent, charged map[string]charge, dead map[string]invoice) {
	t.Helper()
	for id, job := range dead {
		if job.Cents > 0 {
			t.Errorf("%s (%s) is a dead letter; its attempts: %+v", job.Invoice, id, s.attempts(t, id))
		}
	}
	for id, job := range out.accepted {
		if job.Cents > 0 {
			continue
		}
		if dead[id] != job {
			t.Errorf("lost: the poisoned %s (%s) is no dead letter", job.Invoice, id)
		}
		if charged[id].Invoice != "" {
			t.Errorf("the poisoned %s was charged", job.Invoice)
		}
		all := s.attempts(t, id)
		if len(all) == 0 {
			t.Errorf("no attempt at the poisoned %s is on record", job.Invoice)
		}
		for i, a := range all {
			// One without an error ended with a kill.
			if a.number != i+1 || a.err != "" && !strings.Contains(a.err, refusal) {
				t.Errorf("attempt %d at the poisoned %s: %+v", i+1, job.Invoice, a)
			}
		}
	}
}

// checkRedelivered: a message that comes once more after it was done is
// deleted, and nothing else.
func (s *stage) checkRedelivered(t *testing.T) {
	t.Helper()
	for _, w := range s.workers {
		w.stop(t)
	}
	id := s.mustSend(t, invoice{"R-again", 100})
	if err := s.ledger.finish(t.Context(), id, 0, "receipt"); err != nil {
		t.Fatal(err)
	}
	s.workers[0].start(t)
	s.awaitEmpty(t)
	if c := s.charged(t)[id]; c.Requests != 0 {
		t.Errorf("a job that was done before was charged: %+v", c)
	}
	if all := s.attempts(t, id); len(all) != 0 {
		t.Errorf("a job that was done before was tried: %+v", all)
	}
}

// stage is all that plays a part.
type stage struct {
	server, payments *program
	workers          []*program
	till             string
	ledger           *ledger
	sqs              *sqs.Client
	queue, dead      string // URLs
}

func setUp(t *testing.T) *stage {
	t.Helper()
	lookAtSources(t)
	bin, data, book := t.TempDir(), filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "ledger.db")
	address, till := freeAddress(t), freeAddress(t)
	s := &stage{
		till: "http://" + till + "/charges",
		server: &program{
			path: server(t, bin), ready: "http://" + address + "/_godwit/ready",
			args: []string{"--listen", address, "--data", data, "--log-level", "warn"},
		},
		sqs: sqs.New(sqs.Options{
			Region: "us-east-1", BaseEndpoint: aws.String("http://" + address),
			Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
			Retryer:     aws.NopRetryer{}, // the test counts what had no answer
		}),
	}
	s.payments = &program{
		path: build(t, bin, ".", "./payments", "payments"), ready: s.till,
		args: []string{"-listen", till, "-look", look.String()},
	}
	path := build(t, bin, ".", ".", "durable-job")
	for range 2 {
		s.workers = append(s.workers, &program{
			path: path,
			args: []string{
				"-ledger", book, "-payments", "http://" + till, "-max-receives", fmt.Sprint(maxReceives),
				"-lease", lease.String(), "-rest", "1s", "-longest-rest", "2s",
			},
			env: []string{
				"AWS_ENDPOINT_URL=http://" + address, "AWS_REGION=us-east-1",
				"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=",
			},
		})
	}
	var err error
	if s.ledger, err = openLedger(t.Context(), book); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.ledger.close() })
	s.server.start(t)
	s.payments.start(t)
	for _, w := range s.workers {
		w.start(t)
	}
	eventually(t, "the workers create the queues", func() error {
		for name, url := range map[string]*string{"invoices": &s.queue, "invoices-dead": &s.dead} {
			out, err := s.sqs.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
			if err != nil {
				return err
			}
			*url = *out.QueueUrl
		}
		return nil
	})
	return s
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// sent is what became of the sends.
type sent struct {
	accepted   map[string]invoice // by message id
	unanswered map[string]int     // sends by invoice, of which nobody knows whether they were accepted
}

// send sends every job until it is accepted.
func (s *stage) send(t *testing.T) sent {
	out := sent{accepted: map[string]invoice{}, unanswered: map[string]int{}}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for n := 0; n < jobs; {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			return out
		}
		job := invoice{fmt.Sprintf("R-%d", n), int64(100 + n)}
		if n%10 == 0 && n < 10*poisoned {
			job.Cents = -job.Cents
		}
		id, err := s.sendOnce(t.Context(), job)
		if err != nil {
			out.unanswered[job.Invoice]++
			continue
		}
		out.accepted[id] = job
		n++
	}
	return out
}

func (s *stage) sendOnce(ctx context.Context, job invoice) (id string, err error) {
	body, err := json.Marshal(job)
	if err != nil {
		return "", err
	}
	out, err := s.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &s.queue, MessageBody: aws.String(string(body))})
	if err != nil {
		return "", err
	}
	return *out.MessageId, nil
}

func (s *stage) mustSend(t *testing.T, job invoice) (id string) {
	t.Helper()
	id, err := s.sendOnce(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// killAtRandom kills workers and the server, and starts them again.
func (s *stage) killAtRandom(t *testing.T, random *rand.Rand) {
	t.Helper()
	for range kills {
		pause(t.Context(), time.Duration(200+random.IntN(400))*time.Millisecond)
		victim := s.server
		if i := random.IntN(3); i < len(s.workers) {
			victim = s.workers[i]
		}
		victim.kill()
		victim.start(t)
	}
}

// awaitEmpty waits until nothing is in the queue: visible, leased or delayed.
func (s *stage) awaitEmpty(t *testing.T) {
	t.Helper()
	eventually(t, "the queue is empty", func() error {
		out, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: &s.queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
		})
		if err != nil {
			return err
		}
		for _, suffix := range []string{"", "NotVisible", "Delayed"} {
			if n := out.Attributes["ApproximateNumberOfMessages"+suffix]; n != "0" {
				return fmt.Errorf("ApproximateNumberOfMessages%s is %s", suffix, n)
			}
		}
		return nil
	})
}

// deadLetters receives them all.
func (s *stage) deadLetters(t *testing.T) map[string]invoice {
	t.Helper()
	all := map[string]invoice{}
	for {
		out, err := s.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &s.dead, MaxNumberOfMessages: 10, VisibilityTimeout: 600})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return all
		}
		for _, m := range out.Messages {
			var job invoice
			if err := json.Unmarshal([]byte(*m.Body), &job); err != nil {
				t.Fatal(err)
			}
			if _, twice := all[*m.MessageId]; twice {
				t.Errorf("%s is two dead letters", *m.MessageId)
			}
			all[*m.MessageId] = job
		}
	}
}

// charge is what the service charged under a key.
type charge struct {
	Invoice  string
	Cents    int64
	Requests int
}

func (s *stage) charged(t *testing.T) (byKey map[string]charge) {
	t.Helper()
	resp, err := http.Get(s.till)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&byKey); err != nil {
		t.Fatal(err)
	}
	return byKey
}

// attempt is a line of the ledger.
type attempt struct {
	number, receives int
	seconds          float64 // 0 if it did not end
	err              string
}

func (s *stage) attempts(t *testing.T, id string) (all []attempt) {
	t.Helper()
	rows, err := s.ledger.db.QueryContext(t.Context(), `
		SELECT attempt, receive_count, coalesce(round(86400 * (julianday(ended_at) - julianday(started_at)), 3), 0), coalesce(error, '')
		FROM attempts WHERE message_id = ? ORDER BY attempt`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a attempt
		if err := rows.Scan(&a.number, &a.receives, &a.seconds, &a.err); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRest(t *testing.T) {
	r := rest{base: 2 * time.Second, limit: 15 * time.Minute}
	for _, c := range []struct {
		receives int
		jitter   float64
		want     time.Duration
	}{
		{1, 0, 2 * time.Second},
		{2, 0, 4 * time.Second},
		{3, 0, 8 * time.Second},
		{3, 0.5, 6 * time.Second},
		{9, 0, 512 * time.Second},
		{10, 0, 15 * time.Minute},
		{1000, 0, 15 * time.Minute},
	} {
		if got := r.after(c.receives, c.jitter); got != c.want {
			t.Errorf("after receive %d with jitter %v: %v, want %v", c.receives, c.jitter, got, c.want)
		}
	}
	for d, want := range map[time.Duration]int32{0: 0, time.Nanosecond: 1, time.Second: 1, 1500 * time.Millisecond: 2} {
		if got := seconds(d); got != want {
			t.Errorf("%v is %d s, want %d", d, got, want)
		}
	}
}
