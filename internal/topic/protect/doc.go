// Package protect finds sensitive data in messages, and says what a topic's data
// protection policy does about it: audit, mask, redact or deny.
//
// It finds what a pattern, a checksum and a keyword nearby can find. Identifiers of names
// and addresses of people need a model of language, and are refused by name.
//
// Source: "Message data protection" in the SNS developer guide.
package protect
