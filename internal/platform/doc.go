// Package platform has the rules of push platforms: what applications and endpoints there
// may be, what is said of them in topics, and for how long a message is worth sending. It
// is pure.
package platform
