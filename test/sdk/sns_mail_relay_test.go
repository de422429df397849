package sdk_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/emersion/go-smtp"

	"godwit.dev/godwit/internal/config"
)

// relay is an SMTP server that keeps the mails it takes, or says that it is busy.
type relay struct {
	mu     sync.Mutex
	busy   bool
	turned int // what was refused
	mails  []string
}

func (r *relay) NewSession(*smtp.Conn) (smtp.Session, error) { return relaySession{r}, r.admit() }

// admit refuses a session or a mail while the relay is busy.
func (r *relay) admit() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy {
		return nil
	}
	r.turned++
	return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 3, 2}, Message: "Try again later"}
}

type relaySession struct{ r *relay }

func (s relaySession) Mail(string, *smtp.MailOptions) error { return s.r.admit() }
func (s relaySession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s relaySession) Reset()                               {}
func (s relaySession) Logout() error                        { return nil }
func (s relaySession) Data(in io.Reader) error {
	text, err := io.ReadAll(in)
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.mails = append(s.r.mails, string(text))
	return err
}

// with counts the mails that hold a text.
func (r *relay) with(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.mails {
		if strings.Contains(m, text) {
			n++
		}
	}
	return n
}

func (r *relay) set(busy bool) (turned int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = busy
	return r.turned
}

// A relay that answers 421 for an hour loses no mail and gets none twice: the ladder continues
// at its times, and queues beside it get what is published at once.
func TestRelayAwayForAnHour(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	s := smtp.NewServer(r)
	s.Domain, s.AllowInsecureAuth = "relay.example", true
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	endpoint := startWith(t, func(c *config.Config) {
		c.MailRelay, c.MailFrom = "smtp://"+l.Addr().String(), "sns@mail.example.com"
	})
	c, queues := topicsClient(endpoint), client(endpoint)
	topic, beside := createTopic(t, c, "orders"), createQueue(t, queues, "beside")
	subscribe(t, c, topic, "sqs", queueARN("beside"))
	subscription := subscribe(t, c, topic, "email", "ops@example.com")
	advance(t, endpoint, "1s")
	equal(t, "mails that ask", 1, r.with("onfirm"))
	r.mu.Lock()
	asked := readLetter(t, r.mails[0])
	r.mu.Unlock()
	equal(t, "confirming", http.StatusOK, follow(t, http.MethodPost, asked.link(t), "").Status)
	latest := func() map[string]any {
		t.Helper()
		page := visit(t, endpoint+"/_godwit/deliveries?subscription="+url.QueryEscape(subscription))
		return decode(t, page.Body)["deliveries"].([]any)[0].(map[string]any)
	}

	r.set(true)
	const late = "sent while the relay was busy"
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: new(late)}))(t)
	equal(t, "what the queue has", late, decode(t, *takeMessage(t, queues, beside).Body)["Message"].(string))
	advance(t, endpoint, "1h")
	// One at once, 2 after 10 s each, 10 in 1,210 s, and one every 600 s. The first met the
	// relay on a connection that was kept, and tried once more on a new one.
	equal(t, "what was refused", 16+1, r.set(false))
	equal(t, "attempts after an hour", any(16.0), latest()["attempt"])
	equal(t, "the state after an hour", any("pending"), latest()["state"])
	equal(t, "mails after an hour", 0, r.with(late))
	advance(t, endpoint, "10m")
	equal(t, "mails", 1, r.with(late))
	equal(t, "the state", any("delivered"), latest()["state"])
	advance(t, endpoint, "6h")
	equal(t, "mails in the end", 1, r.with(late))
}
