// Package receiver takes posts to sources: POST /in/NAME. A post is verified, mapped to a
// message and sent to the source's topic or queue; 202 says that it is durable there.
//
// A caller who cannot prove that a post is theirs learns nothing of which sources there are: an unknown
// name is answered as a wrong signature is, after as much work.
package receiver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/limit/rates"
)

// Prefix is what the path of a source begins with.
const Prefix = "/in/"

// bodyTime is how long a body may take to come.
const bodyTime = 15 * time.Second

// Options are what a Receiver works with.
type Options struct {
	// Find is the source of a name; nil: there is none.
	Find func(name string) *ingest.Compiled
	// Within carries out the operation that a post becomes.
	Within func(ctx context.Context, call *api.Call, in any) (any, error)
	// Certificates has those that SNS signs with.
	Certificates *Certificates
	Logger       *slog.Logger
	Requests     *limit.Budget // bounds the memory of bodies; nil: nothing does
	// Observe is called for each post: of which source, empty if there is none of that name,
	// and why it was refused, empty if it was not. May be nil.
	Observe func(source string, refused ingest.Reason)
}

// Receiver answers posts.
type Receiver struct {
	Options
	decoy *ingest.Compiled // verifies posts to nobody

	mu   sync.Mutex
	used map[string]*use // by the name of the source
}

// use is what a source is used for now.
type use struct {
	perSecond int
	rates     *rates.Rates
	now       int // posts that are published
}

// New makes a Receiver.
func New(o Options) *Receiver {
	decoy, err := ingest.Compile(ingest.Source{
		Name: "none", Target: "arn:aws:sqs:us-east-1:000000000000:none",
		Verification: ingest.Verification{Kind: ingest.HMAC, Header: "X-Signature"},
	}, []string{"whatever this is, nobody signs with it"})
	if err != nil {
		panic(err) // it is a constant
	}
	return &Receiver{Options: o, decoy: decoy, used: map[string]*use{}}
}

// statuses are how refusals are answered.
var statuses = map[ingest.Reason]int{
	ingest.Unknown: http.StatusUnauthorized, ingest.Unsigned: http.StatusUnauthorized, ingest.Forged: http.StatusUnauthorized,
	ingest.Untimely: http.StatusUnauthorized, ingest.Uncertified: http.StatusServiceUnavailable,
	ingest.Unencodable: http.StatusUnsupportedMediaType, ingest.Unreadable: http.StatusBadRequest, ingest.Unmapped: http.StatusBadRequest,
	ingest.TooLarge: http.StatusRequestEntityTooLarge, ingest.TooSlow: http.StatusRequestTimeout,
	ingest.TooMany: http.StatusTooManyRequests, ingest.TooManyNow: http.StatusTooManyRequests,
	ingest.Stopped: http.StatusServiceUnavailable, ingest.TargetFails: http.StatusServiceUnavailable, ingest.NotNow: http.StatusServiceUnavailable,
	ingest.Rejected: http.StatusUnprocessableEntity,
}

// errUnverified is all that the sender of an unverified post learns.
var errUnverified = "There is no such source, or the request is not verified as its source asks for: look at the secret, at the clock, and that the body is sent as it was signed."

func refuse(reason ingest.Reason, text string) *ingest.Refusal {
	return &ingest.Refusal{Reason: reason, Err: errors.New(text)}
}

// ServeHTTP implements http.Handler.
func (v *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, Prefix)
	switch {
	case !ok || !ingest.ValidName(name):
		v.observe("", ingest.WrongRequest)
		answer(w, http.StatusNotFound, problem{"Post to /in/ and the name of a source.", "NotFound"})
		return
	case r.Method != http.MethodPost:
		v.observe("", ingest.WrongRequest)
		w.Header().Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed, problem{"Sources take POST only.", "MethodNotAllowed"})
		return
	}
	source := v.Find(name)
	known := ""
	if source != nil {
		known = source.Name
	}
	done, err := v.take(w, r, source)
	if err == nil {
		v.observe(known, "")
		answer(w, done.status, done.body)
		return
	}
	refused, ok := errors.AsType[*ingest.Refusal](err)
	if !ok {
		v.Logger.LogAttrs(r.Context(), slog.LevelError, "a post failed", slog.String("source", known), slog.Any("error", err))
		refused = refuse(ingest.NotNow, "The server cannot take it now: try again.")
	}
	v.observe(known, refused.Reason)
	status, text, code := statuses[refused.Reason], refusal.Text(refused.Err), string(refused.Reason)
	switch status {
	case http.StatusUnauthorized:
		text, code = errUnverified, "unverified"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	answer(w, status, problem{text, code})
}

func (v *Receiver) observe(source string, refused ingest.Reason) {
	if v.Observe != nil {
		v.Observe(source, refused)
	}
}

// problem is the body of a refusal.
type problem struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

// taken is the body of a success.
type taken struct {
	MessageID string `json:"messageId"`
	// Sequence is that of a FIFO topic or queue.
	Sequence string `json:"sequenceNumber,omitempty"`
}

// outcome is how a post is answered that was not refused.
type outcome struct {
	status int
	body   any // text as it is, anything else as JSON
}

func answer(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	text, plain := body.(string)
	out := []byte(text)
	if plain {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		h.Set("Content-Type", "application/json")
		out, _ = json.Marshal(body) // the types above can always be written
		out = append(out, '\n')
	}
	h.Set("Content-Length", strconv.Itoa(len(out)))
	w.WriteHeader(status)
	_, _ = w.Write(out) // a caller that is gone needs no answer
}

// take takes a post to a source; nil is one that is not there. Errors: *ingest.Refusal, and
// ours.
func (v *Receiver) take(w http.ResponseWriter, r *http.Request, source *ingest.Compiled) (outcome, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return outcome{}, refuse(ingest.Unencodable, "Send the body without a Content-Encoding.")
	}
	var memory limit.Reservation
	defer memory.Release()
	body, err := v.read(w, r, &memory)
	if err != nil {
		return outcome{}, err
	}
	now := clock.System.Now() // providers sign with the time of machines
	if source == nil {
		_ = v.decoy.Verify(now, decoyHeader{}, body)
		return outcome{}, refuse(ingest.Unknown, "")
	}
	var notice *ingest.FromSNS
	if source.Verification.Kind == ingest.SNS {
		notice, err = v.verifySNS(r.Context(), source, now, body)
	} else {
		err = source.Verify(now, r.Header, body)
	}
	if err != nil {
		return outcome{}, err
	}
	if notice != nil && !notice.IsNotification() {
		return v.aboutSubscription(r.Context(), source, notice)
	}
	if challenge, ok := source.Challenge(body); ok {
		return outcome{http.StatusOK, challenge}, nil
	}
	if err := v.admit(source, int64(len(body))); err != nil {
		return outcome{}, err
	}
	defer v.leave(source)
	event, err := source.Map(r.Header, body)
	if err != nil {
		if refused, ok := errors.AsType[*ingest.Refusal](err); ok && refused.Reason == ingest.Unreadable && !readable(r.Header.Get("Content-Type")) {
			return outcome{}, refuse(ingest.Unencodable, "The source takes JSON, or text in UTF-8: send such a body, with its Content-Type.")
		}
		return outcome{}, err
	}
	return v.publish(r, source, &event)
}

// decoyHeader has a signature that is nobody's.
type decoyHeader struct{}

// Values implements ingest.Header.
func (decoyHeader) Values(string) []string { return []string{strings.Repeat("00", 32)} }

// readable reports that a media type is JSON or text, or not given.
func readable(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && (media == "application/json" || strings.HasSuffix(media, "+json") || strings.HasPrefix(media, "text/") ||
		media == "application/x-www-form-urlencoded")
}

// read reads a body, as large as one of any source may be: to refuse one earlier would tell
// a caller that has proved nothing what a source takes.
func (v *Receiver) read(w http.ResponseWriter, r *http.Request, memory *limit.Reservation) ([]byte, error) {
	tooLarge := refuse(ingest.TooLarge, "A post has "+strconv.Itoa(ingest.MaxBytes)+" bytes at most.")
	if r.ContentLength > ingest.MaxBytes {
		return nil, tooLarge
	}
	if v.Requests != nil {
		size := r.ContentLength
		if size < 0 {
			size = ingest.MaxBytes
		}
		memory.Of(v.Requests)
		if size > limit.Free {
			if err := memory.Grow(r.Context(), size); err != nil {
				return nil, refuse(ingest.NotNow, "The server has too much to do: try again.")
			}
		}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(clock.System.Now().Add(bodyTime)) // a connection without deadlines has none
	var in bytes.Buffer
	if r.ContentLength > 0 {
		in.Grow(int(r.ContentLength) + bytes.MinRead) // so that it is not copied
	}
	_, err := in.ReadFrom(http.MaxBytesReader(w, r.Body, ingest.MaxBytes))
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.As(err, &large):
		return nil, tooLarge
	case errors.As(err, &slow) && slow.Timeout():
		return nil, refuse(ingest.TooSlow, "The body did not come in time.")
	case err != nil:
		return nil, refuse(ingest.TooSlow, "The body did not come whole.")
	}
	return in.Bytes(), nil
}

// admit refuses what is beyond the limits of a source. Who is admitted has to leave.
func (v *Receiver) admit(source *ingest.Compiled, size int64) error {
	switch maxBytes := source.Limits.MaxBytes(); {
	case source.Paused:
		return refuse(ingest.Stopped, "The source is paused: try again later.")
	case size > maxBytes:
		return refuse(ingest.TooLarge, "A post to this source has "+strconv.FormatInt(maxBytes, 10)+" bytes at most.")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	u := v.used[source.Name]
	if u == nil {
		if source.Limits.PerSecond > 0 { // its entry stays, and those of deleted sources go
			maps.DeleteFunc(v.used, func(name string, u *use) bool { return u.now == 0 && v.Find(name) == nil })
		}
		u = &use{}
		v.used[source.Name] = u
	}
	if u.perSecond != source.Limits.PerSecond {
		u.perSecond, u.rates = source.Limits.PerSecond, nil
		if n := u.perSecond; n > 0 {
			u.rates = rates.New(func() int { return n }, clock.System.Now)
		}
	}
	if u.now >= source.Limits.MaxConcurrent() {
		return refuse(ingest.TooManyNow, "Too many posts to this source are under way: wait for their answers.")
	}
	if u.rates != nil && !u.rates.Take(source.Name) {
		return refuse(ingest.TooMany, "This source takes "+strconv.Itoa(u.perSecond)+" posts a second: slow down.")
	}
	u.now++
	return nil
}

func (v *Receiver) leave(source *ingest.Compiled) {
	v.mu.Lock()
	defer v.mu.Unlock()
	u := v.used[source.Name]
	if u.now--; u.now == 0 && u.rates == nil {
		delete(v.used, source.Name)
	}
}
