// Package ingest has the rules of sources: HTTP endpoints for clients without an AWS SDK,
// such as the webhooks of a payment provider. A source defines how posts are verified, to
// which topic or queue they go, and how they become messages.
//
// It is pure. Times, and the certificates that SNS signs with, are inputs.
package ingest
