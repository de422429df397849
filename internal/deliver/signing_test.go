package deliver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

// signer signs with a word. It has a key once ready is closed.
type signer struct {
	ready chan struct{}
	err   error // of Sign

	mu   sync.Mutex
	made int
}

const signature = "SIGNED"

func (s *signer) Key() [16]byte { return [16]byte{0xcd} }

func (s *signer) Sign(body []byte, u *message.Unsigned) error {
	<-s.ready
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	copy(body[u.Offset:], signature)
	return s.err
}

// sentBodies answers with statuses in turn and keeps what was sent.
type sentBodies struct {
	mu     sync.Mutex
	bodies []string
	fail   int // so many times
}

func (s *sentBodies) send(ctx context.Context, r *Request) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return Outcome{Class: ServerError, Detail: "cut off"}
	}
	s.bodies = append(s.bodies, string(r.Body()))
	if len(s.bodies) <= s.fail {
		return Outcome{Class: ServerError, Detail: "HTTP 500"}
	}
	return Outcome{Class: Success}
}

// publishSigned puts a notification with a version of signature into a backlog.
func (e *engine) publishSigned(sub topic.Subscription, version byte, raw bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.subs[sub.ARN]
	e.sequence++
	m := &message.Message{Sent: e.clock.Now().UnixMilli(), Body: []byte("text"), Notice: &message.Notice{
		Kind: message.Notification, Subscription: sub.ARN.String(), SignatureVersion: version, Raw: raw,
	}}
	st.entries = append(st.entries, &entry{m: m, sub: st, due: e.clock.Now(), seq: e.sequence})
	e.wake(st)
}

var fewRetries = retry.Policy{NumRetries: 2, MinDelayTarget: time.Second, MaxDelayTarget: time.Second}

// TestEnvelopesAreSignedBeforeTheyLeave: each attempt carries the signature, which
// is made once and kept with the delivery. Raw messages and those of topics that do not sign have none, and wait for none.
func TestEnvelopesAreSignedBeforeTheyLeave(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version byte
		raw     bool
		signs   int
	}{{"signed", 1, false, 1}, {"raw", 1, true, 0}, {"of a FIFO topic", 0, false, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			v, sent, s := clock.NewVirtual(start), &sentBodies{fail: 2}, &signer{ready: make(chan struct{})}
			if tt.signs > 0 {
				close(s.ready)
			}
			r := newRig(t, v, sent.send, func(o *Options) { o.Signer = s })
			sub := testSub("a", "host", topic.HTTP, testDLQ)
			r.add(sub, fewRetries, 0)
			r.publishSigned(sub, tt.version, tt.raw)
			advance(t, v, time.Minute)
			if len(sent.bodies) != 3 || s.made != tt.signs {
				t.Fatalf("%d attempts, %d signed", len(sent.bodies), s.made)
			}
			for _, body := range sent.bodies {
				if strings.Contains(body, signature) != (tt.signs > 0) || strings.Contains(body, "SigningCertURL") != (tt.signs > 0) {
					t.Errorf("sent %s", body)
				}
			}
		})
	}
}

// TestDeadLettersAreSignedLater: a dead letter names the key, and lacks only
// its signature.
func TestDeadLettersAreSignedLater(t *testing.T) {
	v, s := clock.NewVirtual(start), &signer{ready: make(chan struct{})}
	close(s.ready)
	r := newRig(t, v, func(context.Context, *Request) Outcome { return Outcome{Class: ClientError, Detail: "HTTP 400"} },
		func(o *Options) { o.Signer = s })
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, fewRetries, 0)
	r.publishSigned(sub, 2, false)
	advance(t, v, time.Minute)
	ends := r.results()
	if len(ends) != 1 || ends[0].state != shard.DeliveryDeadLetter {
		t.Fatalf("ended as %+v", ends)
	}
	u := ends[0].m.Unsigned
	if u == nil || u.Key != [16]byte{0xcd} || u.Version != 2 || !strings.Contains(string(ends[0].m.Body), envelope.CertificatePath(u.Key)) {
		t.Errorf("the dead letter lacks %+v in %s", u, ends[0].m.Body)
	}
}

// TestWaitsForTheFirstKey: until there is a key, what is to be signed waits, and
// a stop that does not gives it back as if no attempt had begun.
func TestWaitsForTheFirstKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, s := &sentBodies{}, &signer{ready: make(chan struct{})}
		r := newRig(t, clock.System, sent.send, func(o *Options) { o.Signer = s })
		sub := testSub("a", "host", topic.HTTP, testDLQ)
		r.add(sub, fewRetries, 0)
		r.publishSigned(sub, 1, false)
		synctest.Wait()
		if len(sent.bodies) != 0 || r.leased() != 1 {
			t.Fatalf("%d attempts, %d under way", len(sent.bodies), r.leased())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		go func() {
			synctest.Wait()
			close(s.ready)
		}()
		if err := r.dispatcher.Stop(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("stop: %v", err)
		}
		if ends := r.results(); len(ends) != 0 || r.leased() != 0 {
			t.Errorf("ended as %+v, %d leased", ends, r.leased())
		}
	})
}

// TestSignerThatFails: what cannot be signed does not leave, and is tried again.
func TestSignerThatFails(t *testing.T) {
	v, sent, s := clock.NewVirtual(start), &sentBodies{}, &signer{ready: make(chan struct{}), err: errors.New("no")}
	close(s.ready)
	r := newRig(t, v, sent.send, func(o *Options) { o.Signer = s })
	sub := testSub("a", "host", topic.HTTP, testDLQ)
	r.add(sub, fewRetries, 0)
	r.publishSigned(sub, 1, false)
	advance(t, v, time.Minute)
	ends := r.results()
	if len(sent.bodies) != 0 || len(ends) != 1 || len(ends[0].attempts) != 3 || ends[0].attempts[0].Outcome != ServerError.String() {
		t.Errorf("%d left, ended as %+v", len(sent.bodies), ends)
	}
}
