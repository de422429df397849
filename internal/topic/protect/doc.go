// Package protect finds sensitive data in messages, and applies a topic's data protection
// policy to it: audit, mask, redact or deny.
//
// It finds data by a pattern, a checksum and a keyword nearby. Identifiers of names and
// addresses of people need a language model, and are refused by name.
//
// Source: "Message data protection" in the SNS developer guide.
package protect
