// Package ingest has the rules of sources: the endpoints for clients that do not speak AWS's APIs,
// such as the webhooks of a payment provider. A source says who may post to it and how that is
// verified, to which topic or queue the posts go, and what of a post becomes the message.
//
// It is pure. Time comes with each call, and so do the certificates that SNS signs with.
package ingest
