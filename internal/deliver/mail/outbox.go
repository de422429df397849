package mailsender

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	mime "github.com/emersion/go-message"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
)

// outboxMails is how many mails an outbox keeps: the oldest go first.
const outboxMails = 10_000

// Outbox keeps mails in a directory, one file each in the form of RFC 5322, and sends
// none. It implements Transport. It is for development: files are not synced.
type Outbox struct {
	dir   string // empty: in memory
	clock clock.Clock

	mu     sync.Mutex
	names  []string // in order, the oldest first
	memory map[string][]byte
	count  uint64
}

// OpenOutbox opens an outbox in a directory, which it makes; empty: in memory.
func OpenOutbox(dir string, c clock.Clock) (*Outbox, error) {
	o := &Outbox{dir: dir, clock: c, memory: map[string][]byte{}}
	if dir == "" {
		return o, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir) // in the order of names
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), extension); ok && isName.MatchString(name) {
			o.names = append(o.names, name)
		}
	}
	return o, nil
}

const extension = ".eml"

// isName is the form of a mail's name: when it came, and its number among those of this
// process.
var isName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{9}-[0-9]{8}$`)

// Host implements Transport.
func (o *Outbox) Host() string { return "outbox" }

// Deliver keeps a mail.
func (o *Outbox) Deliver(_ context.Context, m *Mail) deliver.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	name := fmt.Sprintf("%s-%08d", o.clock.Now().UTC().Format("20060102T150405.000000000"), o.count%100_000_000)
	if err := o.keep(name, m.Message); err != nil {
		return deliver.Outcome{Class: deliver.ServerError, Detail: "the outbox cannot be written"}
	}
	at, _ := slices.BinarySearch(o.names, name) // a clock may have been set back
	o.names = slices.Insert(o.names, at, name)
	for len(o.names) > outboxMails {
		o.remove(o.names[0])
		o.names = o.names[1:]
	}
	return deliver.Outcome{Class: deliver.Success}
}

func (o *Outbox) path(name string) string { return filepath.Join(o.dir, name+extension) }

func (o *Outbox) keep(name string, mail []byte) error {
	if o.dir == "" {
		o.memory[name] = mail
		return nil
	}
	// Whoever looks into the directory sees whole mails only.
	part := o.path(name) + ".part"
	err := os.WriteFile(part, mail, 0o600)
	if err == nil {
		err = os.Rename(part, o.path(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

func (o *Outbox) remove(name string) {
	delete(o.memory, name)
	if o.dir != "" {
		_ = os.Remove(o.path(name)) // somebody else may have
	}
}

// Kept is a mail of an outbox, as its reader sees it.
type Kept struct {
	ID      string
	At      time.Time
	From    string // with the name that is shown
	To      string // the address
	Subject string
	Text    string
}

// List gives the newest mails, to one address if it is not empty, up to most.
func (o *Outbox) List(to string, most int) ([]Kept, error) {
	o.mu.Lock()
	names := slices.Clone(o.names)
	o.mu.Unlock()
	slices.Reverse(names)
	all := []Kept{}
	for _, name := range names {
		if len(all) >= most {
			break
		}
		raw, err := o.Raw(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody has cleaned up
		}
		if err != nil {
			return nil, err
		}
		k, err := read(name, raw)
		if err == nil && (to == "" || strings.EqualFold(k.To, to)) {
			all = append(all, k)
		}
	}
	return all, nil
}

// Raw is a mail as it would have been sent. Errors: fs.ErrNotExist.
func (o *Outbox) Raw(id string) ([]byte, error) {
	if !isName.MatchString(id) {
		return nil, fs.ErrNotExist
	}
	if o.dir != "" {
		return os.ReadFile(o.path(id))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	mail, ok := o.memory[id]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return mail, nil
}

// read takes a mail apart.
func read(name string, raw []byte) (k Kept, err error) {
	k.ID = name
	k.At, err = time.Parse("20060102T150405.000000000", name[:strings.IndexByte(name, '-')])
	if err != nil {
		return k, err
	}
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
