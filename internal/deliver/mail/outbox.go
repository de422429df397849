package mailsender

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/mail"
	"strings"
	"time"

	mime "github.com/emersion/go-message"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/outbox"
)

// Outbox stores mails, in the form of RFC 5322, and sends none. It implements Transport.
type Outbox struct{ box *outbox.Box }

// OpenOutbox opens an outbox in a directory, which it creates; empty: in memory.
func OpenOutbox(dir string, c clock.Clock) (*Outbox, error) {
	box, err := outbox.Open(dir, ".eml", c)
	return &Outbox{box}, err
}

// Host implements Transport.
func (o *Outbox) Host() string { return "outbox" }

// Deliver stores a mail.
func (o *Outbox) Deliver(_ context.Context, m *Mail) deliver.Outcome {
	if err := o.box.Keep(m.Message); err != nil {
		return deliver.Outcome{Class: deliver.ServerError, Detail: "the outbox cannot be written"}
	}
	return deliver.Outcome{Class: deliver.Success}
}

// Kept is a mail of an outbox.
type Kept struct {
	ID      string
	At      time.Time
	From    string // with the display name
	To      string // the address
	Subject string
	Text    string
}

// List returns the newest mails, at most limit, to one address if it is not empty.
func (o *Outbox) List(to string, limit int) ([]Kept, error) {
	all := []Kept{}
	err := o.box.Each(func(name string, at time.Time, raw []byte) bool {
		if len(all) >= limit {
			return false
		}
		k, err := read(raw)
		if err == nil && (to == "" || strings.EqualFold(k.To, to)) {
			k.ID, k.At = name, at
			all = append(all, k)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Raw is the text of a mail. Errors: fs.ErrNotExist.
func (o *Outbox) Raw(id string) ([]byte, error) { return o.box.Read(id) }

// read parses a mail.
func read(raw []byte) (k Kept, err error) {
	entity, err := mime.Read(bytes.NewReader(raw))
	if err != nil {
		return k, err
	}
	body, err := io.ReadAll(entity.Body)
	if err != nil {
		return k, err
	}
	k.Text = strings.ReplaceAll(string(body), "\r\n", "\n")
	k.Subject, _ = entity.Header.Text("Subject")
	from, to := entity.Header.Get("From"), entity.Header.Get("To")
	if a, err := mail.ParseAddress(from); err == nil {
		from = cmp.Or(a.Name, a.Address) + " <" + a.Address + ">"
	}
	if a, err := mail.ParseAddress(to); err == nil {
		to = a.Address
	}
	k.From, k.To = from, to
	return k, nil
}
