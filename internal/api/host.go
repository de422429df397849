package api

import (
	"strings"

	"godwit.dev/godwit/internal/sigv4"
)

// HostParts returns service and region of a host like sqs.eu-west-1.example.com,
// eu-west-1.queue.example.com or queue.example.com; empty if unknown.
func HostParts(host string) (service, region string) {
	first, rest, found := strings.Cut(host, ".")
	if !found {
		return "", ""
	}
	second, _, _ := strings.Cut(rest, ".")
	switch {
	case first == "queue":
		return "sqs", ""
	case second == "queue" && sigv4.IsRegion(first):
		return "sqs", first
	case sigv4.IsRegion(second):
		return first, second
	}
	return first, ""
}
