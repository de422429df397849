package mailsender

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"

	mime "github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// Paths of the pages that mails link to.
const (
	ConfirmationPath = "/confirmation.html"
	UnsubscribePath  = "/unsubscribe.html"
)

// The subjects of mails without a subject, and of confirmations. Source: recorded mails of
// SNS.
const (
	plainSubject        = "AWS Notification Message"
	confirmationSubject = "AWS Notification - Subscription Confirmation"
	confirmationSender  = "AWS Notifications"
)

const noReply = "Please do not reply directly to this email."

// confirmationLink is the link to confirm a subscription, with its token.
func confirmationLink(base, topicARN, token string) string {
	return base + ConfirmationPath + "?TopicArn=" + url.QueryEscape(topicARN) + "&Token=" + url.QueryEscape(token)
}

// unsubscribeLink is the link to unsubscribe.
func unsubscribeLink(base, subscription, endpoint string) string {
	return base + UnsubscribePath + "?SubscriptionArn=" + url.QueryEscape(subscription) + "&Endpoint=" + url.QueryEscape(endpoint)
}

// compose renders the mail of an attempt.
func compose(r *deliver.Request, from string) ([]byte, error) {
	m, n := r.Message, r.Message.Notice
	confirms := n.Kind != message.Notification
	sender, subject := r.DisplayName, n.Subject
	if sender == "" {
		sender = topicName(n.Topic)
	}
	if subject == "" {
		subject = plainSubject
	}
	if confirms {
		sender, subject = confirmationSender, confirmationSubject
	}

	var h mail.Header
	h.SetDate(r.At)
	h.SetAddressList("From", []*mail.Address{{Name: oneLine(sender), Address: from}})
	h.SetAddressList("To", []*mail.Address{{Address: r.Subscription.Endpoint}})
	setSubject(&h, oneLine(subject))
	h.SetMessageID(messageID(r, from))
	h.Set("x-amz-sns-message-id", uuid.UUID(m.ID).String())
	h.Set("x-amz-sns-subscription-arn", n.Subscription)
	if !confirms {
		h.Set("List-Unsubscribe", "<"+unsubscribeLink(r.Issuer.URL, n.Subscription, r.Subscription.Endpoint)+">")
		h.Set("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	h.Set("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies
	h.SetContentType("text/plain", map[string]string{"charset": "UTF-8"})
	h.Set("Content-Transfer-Encoding", "quoted-printable")
	h.Set("MIME-Version", "1.0")

	var b bytes.Buffer
	w, err := mime.CreateWriter(&b, h.Header)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write([]byte(text(r, confirms))); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// text is the text of a mail.
func text(r *deliver.Request, confirms bool) string {
	n := r.Message.Notice
	switch {
	case r.Subscription.Protocol == topic.EmailJSON:
		return string(r.Body())
	case confirms:
		return "You have chosen to subscribe to the topic:\n" + n.Topic + "\n\n" +
			"To confirm this subscription, click or visit the link below (If this was in error no action is necessary):\n" +
			confirmationLink(r.Issuer.URL, n.Topic, n.Token) + "\n\n" + noReply + "\n"
	default:
		return string(r.Message.Body) + "\n\n--\n" +
			"If you wish to stop receiving notifications from this topic, please click or visit the link below to unsubscribe:\n" +
			unsubscribeLink(r.Issuer.URL, n.Subscription, r.Subscription.Endpoint) + "\n\n" + noReply + "\n"
	}
}

// messageID is the same for each attempt at a delivery, so that duplicates, after a lost
// reply, can be recognised.
func messageID(r *deliver.Request, from string) string {
	id := uuid.NewSHA1(uuid.UUID(r.Message.ID), []byte(r.Message.Notice.Subscription))
	return id.String() + from[strings.LastIndexByte(from, '@'):]
}

func topicName(name string) string {
	t, err := arn.Parse(name)
	if err != nil {
		return name
	}
	return t.Resource
}

// setSubject sets the subject, and encodes text that would otherwise be taken for an encoded
// word.
func setSubject(h *mail.Header, subject string) {
	if !strings.Contains(subject, "=?") {
		h.SetSubject(subject)
		return
	}
	const most = 42 // bytes of an encoded word, which has at most 75 characters: RFC 2047, 2
	var words []string
	for len(subject) > 0 {
		n := min(most, len(subject))
		for n < len(subject) && !utf8.RuneStart(subject[n]) {
			n--
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(subject[:n]))+"?=")
		subject = subject[n:]
	}
	h.Set("Subject", strings.Join(words, " "))
}

// oneLine is a text for a header: line ends and invalid characters become spaces.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
