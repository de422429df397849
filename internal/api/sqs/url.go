package sqs

import (
	"cmp"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

const (
	maxNameBytes   = 80
	fifoSuffix     = ".fifo"
	queuePathStyle = "queue" // the first segment of /queue/<region>/<account>/<name>
)

// queueURL is the URL of a queue; URLs of different regions differ. The host is
// sqs.<region>.<host> if there is a host for queue URLs, else that of the request. Then the
// path has the region, unless the host has it or it is the default region.
func (s *Service) queueURL(call *api.Call, account, name string) string {
	region, path := call.Region, "/"+account+"/"+name
	scheme, host, _ := strings.Cut(call.Host, "://")
	switch {
	case s.urlHost != "":
		return scheme + "://sqs." + region + "." + s.urlHost + portOf(host) + path
	case regionOf(host) == region, region == s.region && regionOf(host) == "":
		return call.Host + path
	}
	return call.Host + "/" + queuePathStyle + "/" + region + path
}

// regionOf is the region in a host of SQS, as in sqs.<region>.<domain> or
// <region>.queue.<domain>; empty: there is none.
func regionOf(host string) string {
	if service, region := api.HostParts(host); service == "sqs" {
		return region
	}
	return ""
}

// portOf is the port of host[:port] with its colon, or empty.
func portOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return host[i:]
	}
	return ""
}

// queueOf finds the queue of a QueueUrl. That may be a name of the caller's queue; of a URL,
// the last two segments of the path are account and name, whatever the host. The region is
// the call's, or that of a path of the form /queue/<region>/<account>/<name>, or of a host of
// the form sqs.<region>.<domain>.
//
// Errors: fault.QueueDoesNotExist if no queue can have that URL.
func queueOf(call *api.Call, url string) (arn.ARN, error) {
	rest, ok := strings.CutPrefix(url, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(url, "https://")
	}
	if !ok {
		return named(call.Region, call.Account, url)
	}
	host, path, _ := strings.Cut(rest, "/")
	region := cmp.Or(regionOf(host), call.Region)
	first, last, _ := strings.Cut(path, "/")
	if first == queuePathStyle {
		region, path, _ = strings.Cut(last, "/")
		first, last, _ = strings.Cut(path, "/")
	}
	if host == "" || region == "" || !arn.IsAccount(first) {
		return arn.ARN{}, fault.New(fault.QueueDoesNotExist, "")
	}
	return named(region, first, last)
}

func named(region, account, name string) (arn.ARN, error) {
	if !isQueueName(strings.TrimSuffix(name, fifoSuffix)) || len(name) > maxNameBytes {
		return arn.ARN{}, fault.New(fault.QueueDoesNotExist, "")
	}
	return arn.Queue(region, account, name), nil
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
