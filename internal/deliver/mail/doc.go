// Package mailsender delivers by mail. What a subscriber gets is composed here, once for
// both protocols; a Transport takes it further: an operator's relay, or the outbox of
// development, which keeps mails and sends none.
//
// Nothing that a caller chose becomes part of a header or of a command as it is: names and
// subjects are encoded, addresses are those that package topic takes.
package mailsender
