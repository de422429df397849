package api

import "strings"

// HostParts tells service and region of hosts like sqs.eu-west-1.example.com,
// eu-west-1.queue.example.com and queue.example.com; empty where it cannot.
func HostParts(host string) (service, region string) {
	first, rest, found := strings.Cut(host, ".")
	if !found {
		return "", ""
	}
	second, _, _ := strings.Cut(rest, ".")
	switch {
	case first == "queue":
		return "sqs", ""
	case second == "queue" && isRegion(first):
		return "sqs", first
	case isRegion(second):
		return first, second
	}
	return first, ""
}

// isRegion reports whether s is shaped as a region's name: us-gov-west-1.
func isRegion(s string) bool {
	if strings.Count(s, "-") < 2 || s[len(s)-1]-'0' > 9 {
		return false
	}
	for _, c := range []byte(s) {
		if c-'a' > 25 && c-'0' > 9 && c != '-' {
			return false
		}
	}
	return true
}
