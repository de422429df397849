// Package rental_test tells the story of README.md against the built server,
// through the AWS SDK.
package rental_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

// slack is how much later than planned an attempt may be: only a machine that does
// something else makes it late.
const slack = time.Minute

func TestRental(t *testing.T) {
	t.Parallel()
	godwit, billing := build(t, "billing")
	address, data, billingAddress := freeAddress(t), t.TempDir(), freeAddress(t)
	start := func(step *testing.T) *process {
		// Without jitter the schedule is exact.
		return launch(step, t, "http://"+address+"/_godwit/health", godwit,
			"--listen", address, "--data", data, "--log-level", "warn", "--jitter", "0")
	}
	launch(t, t, "http://"+billingAddress+"/arrivals", billing, "--listen", billingAddress)
	server := start(t)
	s := newShop("http://"+address, "http://"+billingAddress)

	var quoted string // the message id of the order that nobody is to hear of
	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"set up", s.setUp},
		{"matching orders arrive, filtered ones nowhere", func(t *testing.T) { quoted = matching(t, s) }},
		{"an order exhausts the policy of billing", func(t *testing.T) { exhausted(t, s) }},
		{"a consumer fails three times", func(t *testing.T) { failedConsumer(t, s) }},
		{"kill -9 in the middle of a schedule", func(t *testing.T) {
			killed(t, s, func() {
				server.kill()
				server = start(t)
			})
		}},
		{"the queue is deleted", func(t *testing.T) { deletedQueue(t, s) }},
		{"nothing is anywhere else", func(t *testing.T) { nothingElse(t, s, quoted) }},
	} {
		if !t.Run(step.name, step.run) {
			t.FailNow() // the steps build on each other
		}
	}
}

// matching: billing is down for a while, and every matching order is retried
// and then delivered; the queue has them at once. The message id of the order
// that matched nothing is returned.
func matching(t *testing.T, s *shop) (quoted string) {
	s.setBilling(t, http.StatusServiceUnavailable)
	ids := map[string]string{
		"R-1": s.publish(t, "R-1", "confirmed"),
		"R-2": s.publish(t, "R-2", "canceled"),
	}
	quoted = s.publish(t, "R-3", "quoted")
	ids["R-4"] = s.publish(t, "R-4", "confirmed")

	inQueue := map[string]string{}
	for range ids {
		m := s.take(t, fulfilmentName)
		if m.Envelope.Type != "Notification" || m.Envelope.TopicArn != s.topic {
			t.Errorf("the queue got type %q of topic %q", m.Envelope.Type, m.Envelope.TopicArn)
		}
		inQueue[m.Envelope.MessageId] = m.Envelope.Message
	}
	want := map[string]string{
		ids["R-1"]: body("R-1", "confirmed"), ids["R-2"]: body("R-2", "canceled"), ids["R-4"]: body("R-4", "confirmed"),
	}
	if d := cmp.Diff(want, inQueue); d != "" {
		t.Errorf("orders in %s (-want +got):\n%s", fulfilmentName, d)
	}
	s.wantEmpty(t, fulfilmentName)

	// Down until each has been tried three times, which the policy says is at
	// once, once more at once, and a second later.
	const triesDown = 3
	for order := range ids {
		eventually(t, order+" is tried three times", func() (bool, error) { return len(s.arrivals(t, order)) >= triesDown, nil })
	}
	s.setBilling(t, http.StatusOK)
	for order, id := range ids {
		s.awaitDelivery(t, s.toBilling, id, order+" reaches billing", func(d delivery) bool { return d.State == "delivered" })
		all := s.arrivals(t, order)
		wantGaps(t, order, all)
		for i, a := range all {
			if last := i == len(all)-1; last != (a.Status == http.StatusOK) {
				t.Errorf("%s: try %d of %d was answered %d", order, i+1, len(all), a.Status)
			}
			if a.MessageID != id {
				t.Errorf("%s: try %d has message id %s, want %s", order, i+1, a.MessageID, id)
			}
		}
	}
	return quoted
}

// wantGaps checks that the tries of an order came as the policy of billing
// says.
func wantGaps(t *testing.T, order string, all []arrival) {
	t.Helper()
	if len(all) > len(schedule)+1 {
		t.Fatalf("%s was tried %d times, the policy has %d", order, len(all), len(schedule)+1)
	}
	for i := 1; i < len(all); i++ {
		gap, planned := all[i].At.Sub(all[i-1].At), schedule[i-1]
		// A millisecond less is the rounding of due times.
		if gap < planned-time.Millisecond || gap > planned+slack {
			t.Errorf("%s: retry %d came after %v, want %v", order, i, gap, planned)
		}
	}
}

// exhausted: billing stays down, and after the policy's last retry the order
// is in the dead-letter queue of the subscription.
func exhausted(t *testing.T, s *shop) {
	s.setBilling(t, http.StatusServiceUnavailable)
	id := s.publish(t, "R-5", "confirmed")
	dead := s.take(t, billingDLQ)
	if dead.Envelope.MessageId != id || dead.Envelope.Message != body("R-5", "confirmed") {
		t.Errorf("%s has message %s: %s", billingDLQ, dead.Envelope.MessageId, dead.Envelope.Message)
	}
	if a := dead.Envelope.MessageAttributes["order-status"]; a.Type != "String" || a.Value != "confirmed" {
		t.Errorf("the dead letter's order-status is %+v", a)
	}
	all := s.arrivals(t, "R-5")
	if len(all) != len(schedule)+1 {
		t.Errorf("R-5 was tried %d times, want %d", len(all), len(schedule)+1)
	}
	wantGaps(t, "R-5", all)
	d := s.awaitDelivery(t, s.toBilling, id, "R-5 is a dead letter", func(d delivery) bool { return d.State == "dead-letter" })
	if len(d.Attempts) != len(all) {
		t.Errorf("the server tells of %d attempts, billing of %d", len(d.Attempts), len(all))
	}
	for i, a := range d.Attempts {
		if a.Status != http.StatusServiceUnavailable || a.Outcome != "server-error" {
			t.Errorf("attempt %d: %+v", i+1, a)
		}
	}
	if m := s.take(t, fulfilmentName); m.Envelope.MessageId != id {
		t.Errorf("%s got %s instead of R-5", fulfilmentName, m.Envelope.Message)
	}
	s.setBilling(t, http.StatusOK)
}

// failedConsumer: an order that is received three times and never deleted goes
// to the queue's own dead-letter queue.
func failedConsumer(t *testing.T, s *shop) {
	id := s.publish(t, "R-6", "confirmed")
	for i := 1; i <= 3; i++ {
		m, ok := s.receive(t, fulfilmentName, 1, 20)
		if !ok || m.Envelope.MessageId != id {
			t.Fatalf("receive %d: got %v, %q", i, ok, m.Envelope.Message)
		}
	}
	eventually(t, "a fourth receive finds nothing, and the dead-letter queue has the order", func() (bool, error) {
		if m, ok := s.receive(t, fulfilmentName, 1, 0); ok {
			t.Fatalf("received a fourth time: %s", m.Envelope.Message)
		}
		out, err := s.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: aws.String(s.url[fulfilmentDLQ]), AttributeNames: []sqstypes.QueueAttributeName{"ApproximateNumberOfMessages"},
		})
		return err == nil && out.Attributes["ApproximateNumberOfMessages"] == "1", err
	})
	dead := s.take(t, fulfilmentDLQ)
	if dead.Envelope.MessageId != id {
		t.Errorf("%s has %s, want R-6", fulfilmentDLQ, dead.Envelope.Message)
	}
	if source := dead.Attributes["DeadLetterQueueSourceArn"]; source != s.arn[fulfilmentName] {
		t.Errorf("DeadLetterQueueSourceArn is %q", source)
	}
	s.wantEmpty(t, fulfilmentName)
}

// killed: the server dies between the fourth and the fifth attempt and comes
// back; the fifth is made when it was due, and is the fifth.
func killed(t *testing.T, s *shop, restart func()) {
	const made = 4
	s.setBilling(t, http.StatusServiceUnavailable)
	id := s.publish(t, "R-7", "confirmed")
	before := s.awaitDelivery(t, s.toBilling, id, "four attempts are made", func(d delivery) bool {
		return d.State == "pending" && len(d.Attempts) == made
	})
	if before.NextAttemptAt == nil {
		t.Fatal("no next attempt is planned")
	}
	s.setBilling(t, http.StatusOK) // before the restart, which may take a busy machine until the fifth is due
	restart()
	after, ok := s.delivery(t, s.toBilling, id)
	if !ok {
		t.Fatal("after the restart the delivery is gone")
	}
	n := len(s.arrivals(t, "R-7"))
	if left := time.Until(*before.NextAttemptAt); left < time.Millisecond { // the rounding of due times
		t.Logf("the fifth was due %v before the server was asked: what there was until then is not seen", -left)
	} else {
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("the delivery before and after kill -9 (-before +after):\n%s", d)
		}
		if n != made {
			t.Fatalf("billing saw %d attempts before the next was due, want %d", n, made)
		}
	}
	s.awaitDelivery(t, s.toBilling, id, "R-7 reaches billing", func(d delivery) bool { return d.State == "delivered" })
	all := s.arrivals(t, "R-7")
	if len(all) != made+1 {
		t.Fatalf("billing saw %d attempts, want %d", len(all), made+1)
	}
	wantGaps(t, "R-7", all)
	if late := all[made].At.Sub(*before.NextAttemptAt); late < -time.Millisecond || late > slack {
		t.Errorf("the attempt after the restart was %v behind its time", late)
	}
	// What had reached the queue survived too, once.
	if m := s.take(t, fulfilmentName); m.Envelope.MessageId != id {
		t.Errorf("%s got %s instead of R-7", fulfilmentName, m.Envelope.Message)
	}
	s.wantEmpty(t, fulfilmentName)
}

// deletedQueue: to a queue that is gone nothing is retried; the order is in
// the dead-letter queue of the subscription after one attempt.
func deletedQueue(t *testing.T, s *shop) {
	if _, err := s.sqs.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(s.url[fulfilmentName])}); err != nil {
		t.Fatal(err)
	}
	id := s.publish(t, "R-8", "confirmed")
	dead := s.take(t, fanoutDLQ)
	if dead.Envelope.MessageId != id || dead.Envelope.Message != body("R-8", "confirmed") {
		t.Errorf("%s has message %s: %s", fanoutDLQ, dead.Envelope.MessageId, dead.Envelope.Message)
	}
	d := s.awaitDelivery(t, s.toFulfilment, id, "R-8 is a dead letter", func(d delivery) bool { return d.State == "dead-letter" })
	if len(d.Attempts) != 1 || d.Attempts[0].Outcome != "client-error" {
		t.Errorf("attempts: %+v, want one client-error", d.Attempts)
	}
	s.awaitDelivery(t, s.toBilling, id, "R-8 reaches billing all the same", func(d delivery) bool { return d.State == "delivered" })
}

// nothingElse: the order that no policy asked for was delivered to nobody, and
// no dead-letter queue holds anything that was not taken from it.
func nothingElse(t *testing.T, s *shop, quoted string) {
	for _, subscription := range []string{s.toFulfilment, s.toBilling} {
		if d, ok := s.delivery(t, subscription, quoted); ok {
			t.Errorf("the filtered order is a delivery of %s: %+v", subscription, d)
		}
	}
	if all := s.arrivals(t, "R-3"); len(all) != 0 {
		t.Errorf("the filtered order reached billing: %+v", all)
	}
	for _, queue := range []string{fulfilmentDLQ, fanoutDLQ, billingDLQ} {
		s.wantEmpty(t, queue)
	}
}
