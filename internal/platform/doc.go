// Package platform has the rules of push platforms: valid applications and endpoints, the
// events for topics, and the lifetime of messages. It is pure.
package platform
