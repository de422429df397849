package mailsender_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/deliver/sendertest"
	"godwit.dev/godwit/internal/topic"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// keeper is a transport that keeps the last mail.
type keeper struct{ mail *mailsender.Mail }

func (k *keeper) Host() string { return "keeper" }

func (k *keeper) Deliver(_ context.Context, m *mailsender.Mail) deliver.Outcome {
	k.mail = m
	return deliver.Outcome{Class: deliver.Success}
}

func request(change func(r *deliver.Request)) *deliver.Request {
	r := sendertest.Request(sendertest.Target{Protocol: topic.Email, Endpoint: "a@example.com"})
	r.At = at
	change(r)
	return r
}

func send(t *testing.T, o mailsender.Options, r *deliver.Request) []byte {
	t.Helper()
	k := &keeper{}
	o.Transport = k
	if out := mailsender.New(o).Send(t.Context(), r); out.Class != deliver.Success {
		t.Fatalf("%+v", out)
	}
	return k.mail.Message
}

// Nothing that somebody chose adds a header, whatever it is.
func TestNothingIsInjected(t *testing.T) {
	names := func(raw []byte) []string {
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for name, values := range m.Header {
			all = append(all, fmt.Sprintf("%s %d", name, len(values)))
		}
		slices.Sort(all)
		return all
	}
	want := names(send(t, mailsender.Options{}, request(func(*deliver.Request) {})))
	for _, evil := range []string{
		"x\r\nBcc: victim@example.com", "x\nBcc: victim@example.com", "x\rBcc: y", "\r\n\r\nbody", "x\u2028Bcc: y", "x\u0085Bcc: y", "x\x00", "\xff\xfe",
		`"x" <victim@example.com>, `, "=?utf-8?q?x=0D=0ABcc:_y?=", strings.Repeat("ä", 500), strings.Repeat("word ", 300),
	} {
		raw := send(t, mailsender.Options{}, request(func(r *deliver.Request) {
			r.DisplayName, r.Message.Notice.Subject = evil, evil
		}))
		if d := cmp.Diff(want, names(raw)); d != "" {
			t.Errorf("%q (-want +got):\n%s", evil, d)
		}
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		from, err := m.Header.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Address != mailsender.DefaultFrom {
			t.Errorf("%q: from %v, %v", evil, from, err)
		}
		for line := range strings.SplitSeq(string(raw), "\r\n") {
			if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") {
				t.Errorf("%q: the line %q", evil, line)
			}
		}
	}
}

// A mail says who it is from and about, and its id is the same with each attempt, and
// another one for another subscriber.
func TestHeaders(t *testing.T) {
	o := mailsender.Options{From: "sns@mail.example.com"}
	head := func(change func(r *deliver.Request)) mail.Header {
		m, err := mail.ReadMessage(bytes.NewReader(send(t, o, request(change))))
		if err != nil {
			t.Fatal(err)
		}
		return m.Header
	}
	first := head(func(r *deliver.Request) { r.Message.Notice.Subject = "Grüße" })
	subject, err := new(mime.WordDecoder).DecodeHeader(first.Get("Subject"))
	if err != nil || subject != "Grüße" {
		t.Errorf("subject %q %v", subject, err)
	}
	odd := "=?utf-8?q?evil=0d=0aBcc:_x?= " + strings.Repeat("é", 60)
	bare := head(func(r *deliver.Request) { r.Message.Notice.Subject = odd }).Get("Subject")
	if read, err := new(mime.WordDecoder).DecodeHeader(bare); err != nil || read != odd {
		t.Errorf("subject %q is read as %q %v", odd, read, err)
	}
	got := map[string]string{}
	for _, name := range []string{"From", "To", "Date", "X-Amz-Sns-Message-Id", "X-Amz-Sns-Subscription-Arn", "Mime-Version", "List-Unsubscribe-Post", "Auto-Submitted"} {
		got[name] = first.Get(name)
	}
	want := map[string]string{
		"From": `"orders" <sns@mail.example.com>`, "To": "<a@example.com>", "Date": "Mon, 04 May 2026 03:02:01 +0000",
		"X-Amz-Sns-Message-Id":       "aa000000-0000-0000-0000-000000000001",
		"X-Amz-Sns-Subscription-Arn": "arn:aws:sns:us-east-1:000000000000:orders:6d6b8f6e-0000-4000-8000-000000000001",
		"Mime-Version":               "1.0", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Auto-Submitted": "auto-generated",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	id := first.Get("Message-Id")
	if !strings.HasSuffix(id, "@mail.example.com>") || id != head(func(r *deliver.Request) { r.Attempt, r.At = 7, at.Add(time.Hour) }).Get("Message-Id") {
		t.Errorf("id %s", id)
	}
	if id == head(func(r *deliver.Request) { r.Message.Notice.Subscription += "0" }).Get("Message-Id") {
		t.Error("two subscribers' mails have one id")
	}
}

// A signed mail is verified by its domain's key, and one that was changed is not.
func TestDKIM(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw := send(t, mailsender.Options{From: "sns@example.com", DKIM: &mailsender.DKIM{Selector: "godwit", Key: private}}, request(func(*deliver.Request) {}))
	verify := func(raw []byte) error {
		found, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: func(domain string) ([]string, error) {
			if domain != "godwit._domainkey.example.com" {
				t.Errorf("asked for %s", domain)
			}
			return []string{"v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)}, nil
		}})
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		return found[0].Err
	}
	if err := verify(raw); err != nil {
		t.Error(err)
	}
	for _, change := range [][2]string{{"subject", "Subject"}, {"body ", "bodi "}, {"sns@example.com>", "snt@example.com>"}, {"One-Click", "Two-Click"}} {
		changed := bytes.Replace(raw, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(raw, changed) {
			t.Fatalf("%q is not there", change[0])
		}
		if verify(changed) == nil {
			t.Errorf("with %q the signature is good", change[1])
		}
	}
}

// An outbox in a directory is the same behind a restart, and one in memory answers alike.
func TestOutbox(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "outbox")} {
		now := clock.NewVirtual(at)
		box, err := mailsender.OpenOutbox(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		sender := mailsender.New(mailsender.Options{Transport: box})
		for i := range 3 {
			to := []string{"a@example.com", "b@example.com"}[i%2]
			out := sender.Send(t.Context(), request(func(r *deliver.Request) {
				r.Subscription.Endpoint, r.DisplayName = to, "Shop, Inc."
				r.Message.Body = []byte(fmt.Sprint("mail ", i))
			}))
			if out.Class != deliver.Success {
				t.Fatalf("%+v", out)
			}
			if _, err := now.Advance(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if dir != "" {
			if box, err = mailsender.OpenOutbox(dir, now); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v %v", info.Mode(), err)
			}
		}
		all, err := box.List("", 2)
		if err != nil || len(all) != 2 || !strings.HasPrefix(all[0].Text, "mail 2\n") || all[1].To != "b@example.com" || !all[0].At.Equal(at.Add(2*time.Second)) {
			t.Errorf("%q: %+v, %v", dir, all, err)
		}
		mine, err := box.List("A@example.com", 10)
		if err != nil || len(mine) != 2 || mine[0].From != "Shop, Inc. <"+mailsender.DefaultFrom+">" {
			t.Errorf("%q: %+v, %v", dir, mine, err)
		}
		for _, name := range []string{"", "../../etc/passwd", "x", "20260504T030201.000000000-99999999"} {
			if _, err := box.Raw(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// An outbox takes all that it has the time for.
func TestOutboxIsASender(t *testing.T) {
	box, err := mailsender.OpenOutbox("", clock.NewVirtual(at))
	if err != nil {
		t.Fatal(err)
	}
	target := sendertest.Target{Sender: mailsender.New(mailsender.Options{Transport: box}), Protocol: topic.Email, Endpoint: "a@example.com"}
	out := target.Sender.Send(t.Context(), sendertest.Request(target))
	if out.Class != deliver.Success || target.Sender.Local() {
		t.Errorf("%+v", out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out := target.Sender.Send(ctx, sendertest.Request(target)); out.Class != deliver.ServerError {
		t.Errorf("without time: %+v", out)
	}
}
