// Package mailpages answers the links in mails. Whoever follows a link, be it a scanner of
// mails, sees a page; only its button, which sends a POST, changes anything.
package mailpages

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net/http"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic"
)

// Engine is what the pages need of the state: *shard.Engine.
type Engine interface {
	ConfirmSubscription(ctx context.Context, cmd topic.Confirm) (arn.ARN, error)
	Unsubscribe(ctx context.Context, cmd topic.Unsubscribe) error
	SubscriptionAttributes(ctx context.Context, sub arn.ARN) (map[string]string, error)
}

// Options are what Pages are made of.
type Options struct {
	Engine   Engine
	NewToken func() string // makes secrets
	Logger   *slog.Logger
}

// Serve answers the pages, and hands everything else on.
func Serve(o Options, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case mailsender.ConfirmationPath:
			o.confirmation(w, r)
		case mailsender.UnsubscribePath:
			o.unsubscribe(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

//go:embed page.html
var files embed.FS

var page = template.Must(template.ParseFS(files, "page.html"))

// content is what a page shows.
type content struct {
	Title  string
	Text   string
	Name   string // of what it is about
	Button string // empty: nothing can be done
}

// maxForm is the most that a form sends, in bytes: what it says stands in the link.
const maxForm = 4096

// acts reports that the button was pressed; done that the request has its answer.
func (o Options) acts(w http.ResponseWriter, r *http.Request) (pressed, done bool) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return false, false
	case http.MethodPost:
		// One click (RFC 8058) sends a form, which says nothing that counts.
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxForm))
		return true, false
	}
	w.Header().Set("Allow", "GET, HEAD, POST")
	o.show(w, r, http.StatusMethodNotAllowed, content{Title: "This cannot be done", Text: "A link from a mail is opened."})
	return false, true
}

func (o Options) confirmation(w http.ResponseWriter, r *http.Request) {
	pressed, done := o.acts(w, r)
	if done {
		return
	}
	query := r.URL.Query()
	t, err := arn.Parse(query.Get("TopicArn"))
	token := query.Get("Token")
	if err != nil || t.Service != "sns" || token == "" {
		o.show(w, r, http.StatusBadRequest, content{Title: "This link is not whole", Text: "Open the link in the mail again, or copy all of it."})
		return
	}
	if !pressed {
		o.show(w, r, http.StatusOK, content{
			Title: "Confirm your subscription", Text: "Do you want to get mails from this topic?", Name: t.String(), Button: "Confirm subscription",
		})
		return
	}
	sub, err := o.Engine.ConfirmSubscription(r.Context(), topic.Confirm{Topic: t, Token: token})
	if err != nil {
		o.fail(w, r, err)
		return
	}
	o.show(w, r, http.StatusOK, content{Title: "Subscription confirmed!", Text: "You have subscribed. Your subscription's id is:", Name: sub.String()})
}

func (o Options) unsubscribe(w http.ResponseWriter, r *http.Request) {
	pressed, done := o.acts(w, r)
	if done {
		return
	}
	query := r.URL.Query()
	sub, err := arn.Parse(query.Get("SubscriptionArn"))
	if err == nil {
		_, _, ok := sub.SplitSubscription()
		if !ok {
			err = errors.New("no subscription")
		}
	}
	endpoint := query.Get("Endpoint")
	if err != nil || endpoint == "" {
		o.show(w, r, http.StatusBadRequest, content{Title: "This link is not whole", Text: "Open the link in the mail again, or copy all of it."})
		return
	}
	// Who knows both the subscription and its address has had a mail of it.
	attributes, err := o.Engine.SubscriptionAttributes(r.Context(), sub)
	gone := err != nil && fault.KindOf(err) == fault.NotFound || err == nil && attributes["Endpoint"] != endpoint
	switch {
	case gone:
		o.show(w, r, http.StatusOK, content{Title: "Not subscribed", Text: "There is no such subscription, or not any more."})
		return
	case err != nil:
		o.fail(w, r, err)
		return
	case !pressed:
		o.show(w, r, http.StatusOK, content{
			Title: "Unsubscribe", Text: "Do you want no more mails of this subscription?", Name: sub.String(), Button: "Unsubscribe",
		})
		return
	}
	if err := o.Engine.Unsubscribe(r.Context(), topic.Unsubscribe{Subscription: sub, Token: o.NewToken()}); err != nil {
		o.fail(w, r, err)
		return
	}
	o.show(w, r, http.StatusOK, content{Title: "Subscription removed!", Text: "You get no more mails of this subscription:", Name: sub.String()})
}

// fail shows a refusal, in AWS's words; of other errors, which the log has, nothing.
func (o Options) fail(w http.ResponseWriter, r *http.Request, err error) {
	said, ok := refusal.Of(err)
	if !ok {
		o.Logger.Error("a link from a mail has failed", "path", r.URL.Path, "error", err)
		o.show(w, r, http.StatusInternalServerError, content{Title: "This has failed", Text: "Try again later."})
		return
	}
	status := http.StatusBadRequest
	if fault.KindOf(err) == fault.AccessDenied {
		status = http.StatusForbidden
	}
	o.show(w, r, status, content{Title: "This cannot be done", Text: said.Error()})
}

func (o Options) show(w http.ResponseWriter, r *http.Request, status int, c content) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// The address has a secret: it goes nowhere else, and no page of others frames the
	// button. With no-referrer browsers would send the form without its origin.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	_ = page.Execute(w, c) // whoever asks may be gone
}
