// Package mailsender delivers by mail. It composes the mails of both protocols; a Transport
// sends them: an operator's relay, or the outbox of development, which only stores them.
//
// No text of a caller becomes part of a header or an SMTP command unchanged: names and
// subjects are encoded, addresses were validated by package topic.
package mailsender
