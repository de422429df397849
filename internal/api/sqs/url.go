package sqs

import (
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

const (
	accountDigits  = 12
	maxNameBytes   = 80
	fifoSuffix     = ".fifo"
	queuePathStyle = "queue" // the first segment of /queue/<region>/<account>/<name>
)

// queueURL is the URL of a queue under the host that the caller used.
func queueURL(call *api.Call, account, name string) string {
	return call.Host + "/" + account + "/" + name
}

// queueOf finds the queue that a QueueUrl names: its account and name are the
// last two segments of the path, whatever the host. Its region is the call's,
// or the one that a path of the form /queue/<region>/<account>/<name> states.
//
// Errors: fault.InvalidAddress for what is no queue's URL, and
// fault.QueueDoesNotExist for a name that no queue can have.
func queueOf(call *api.Call, url string) (arn.ARN, error) {
	rest, ok := strings.CutPrefix(url, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(url, "https://")
	}
	host, path, found := strings.Cut(rest, "/")
	if !ok || !found || host == "" {
		return arn.ARN{}, invalidAddress(url)
	}
	region := call.Region
	first, last, _ := strings.Cut(path, "/")
	if first == queuePathStyle {
		region, path, _ = strings.Cut(last, "/")
		first, last, _ = strings.Cut(path, "/")
	}
	if region == "" || !isAccount(first) || last == "" || strings.Contains(last, "/") {
		return arn.ARN{}, invalidAddress(url)
	}
	if !isQueueName(strings.TrimSuffix(last, fifoSuffix)) || len(last) > maxNameBytes {
		return arn.ARN{}, fault.New(fault.QueueDoesNotExist, "")
	}
	return arn.Queue(region, first, last), nil
}

func invalidAddress(url string) error {
	return fault.Newf(fault.InvalidAddress, "The address %s is not valid for this endpoint.", url)
}

func isAccount(s string) bool {
	if len(s) != accountDigits {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// isQueueName reports whether s is 1–80 of A–Z a–z 0–9 - _, as are the names of
// standard queues and the ids of batch entries.
func isQueueName(s string) bool {
	if s == "" || len(s) > maxNameBytes {
		return false
	}
	for i := range len(s) {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}

// isWord reports whether c is one of A–Z a–z 0–9 - _.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
