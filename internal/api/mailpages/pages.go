// Package mailpages serves the links in mails. Following a link, which mail scanners also do,
// only shows a page; a change requires its button, which sends a POST.
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

// Engine executes the changes; *shard.Engine implements it.
type Engine interface {
	ConfirmSubscription(ctx context.Context, cmd topic.Confirm) (arn.ARN, error)
	Unsubscribe(ctx context.Context, cmd topic.Unsubscribe) error
	SubscriptionAttributes(ctx context.Context, sub arn.ARN) (map[string]string, error)
}

// Options are the dependencies and settings of the pages.
type Options struct {
	Engine   Engine
	NewToken func() string // returns a new secret
	Logger   *slog.Logger
}

// Serve serves the pages, and passes other requests to next.
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

// content is the content of a page.
type content struct {
	Title  string
	Text   string
	Name   string // of the resource
	Button string // empty: there is no button
}

// maxForm bounds the form of a POST, in bytes; the parameters are in the link.
const maxForm = 4096

// acts reports pressed if the request is a POST of the button; done if it was answered.
func (o Options) acts(w http.ResponseWriter, r *http.Request) (pressed, done bool) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return false, false
	case http.MethodPost:
		// The form of a one-click unsubscribe (RFC 8058) has no parameters.
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
	// The id of a subscription and its address together prove that the sender has received a
	// mail of it.
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

// fail shows an error with AWS's message; other errors are only logged.
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
	// The URL has a secret: it must not leave in a referrer, and other sites must not frame
	// the button. With no-referrer, browsers would omit the origin of the form.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	_ = page.Execute(w, c) // an error means that the client is gone
}
