package retry_test

import (
	"testing"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic/retry"
)

func TestParseTopicRefusals(t *testing.T) {
	policy := func(members string) string {
		return `{"http":{"defaultHealthyRetryPolicy":{` + members + `}}}`
	}
	const ok = `"minDelayTarget":1,"maxDelayTarget":2,"numRetries":3`
	const path = "http.defaultHealthyRetryPolicy"
	for document, want := range map[string]string{
		`{`:                              "failed to parse JSON.",
		`[]`:                             "failed to parse JSON.",
		`null`:                           "failed to parse JSON.",
		`{} {}`:                          "failed to parse JSON.",
		`{"http":1}`:                     "http must be a JSON object",
		`{"healthyRetryPolicy":{}}`:      "Unexpected JSON member: healthyRetryPolicy",
		`{"http":{"throttlePolicy":{}}}`: "Unexpected JSON member: throttlePolicy",
		`{"http":{"b":1,"a":1}}`:         "Unexpected JSON member: b",
		policy(`"jitter":1`):             "Unexpected JSON member: jitter",
		policy(``):                       path + ".minDelayTarget must be specified",
		policy(`"minDelayTarget":null`):  path + ".minDelayTarget must be specified",
		policy(`"minDelayTarget":1`):     path + ".maxDelayTarget must be specified",
		policy(`"minDelayTarget":1,"maxDelayTarget":2`):                path + ".numRetries must be specified",
		policy(`"minDelayTarget":0`):                                   path + ".minDelayTarget must be greater than or equal to 1",
		policy(`"minDelayTarget":"1"`):                                 path + ".minDelayTarget must be an integer",
		policy(`"minDelayTarget":1.5`):                                 path + ".minDelayTarget must be an integer",
		policy(`"minDelayTarget":9223372036854775807`):                 path + ".minDelayTarget must be less than or equal to 3600",
		policy(`"maxDelayTarget":3601`):                                path + ".maxDelayTarget must be less than or equal to 3600",
		policy(`"minDelayTarget":3,"maxDelayTarget":2,"numRetries":3`): path + ".maxDelayTarget must be greater than or equal to minDelayTarget",
		policy(`"numRetries":101`):                                     path + ".numRetries must be less than or equal to 100",
		policy(`"numRetries":-1`):                                      path + ".numRetries must be greater than or equal to 0",
		policy(ok + `,"numMinDelayRetries":-1`):                        path + ".numMinDelayRetries must be greater than or equal to 0",
		policy(ok + `,"numMinDelayRetries":2,"numNoDelayRetries":2`):   path + ".numRetries must be greater than or equal to total of numMinDelayRetries, numNoDelayRetries and numMaxDelayRetries",
		policy(ok + `,"numMinDelayRetries":9223372036854775807,"numNoDelayRetries":9223372036854775807,"numMaxDelayRetries":9223372036854775807`): path + ".numRetries must be greater than or equal to total of numMinDelayRetries, numNoDelayRetries and numMaxDelayRetries",
		policy(ok + `,"backoffFunction":"cubic"`):                                  path + ".backoffFunction: the value [cubic] is not a valid backoff function",
		policy(`"minDelayTarget":37,"maxDelayTarget":37,"numRetries":100`):         path + " total retry time of 1h1m40s must be less than or equal to 3600 seconds",
		`{"http":{"disableSubscriptionOverrides":"yes"}}`:                          "http.disableSubscriptionOverrides must be true or false",
		`{"http":{"defaultThrottlePolicy":{"maxReceivesPerSecond":0}}}`:            "http.defaultThrottlePolicy.maxReceivesPerSecond must be >= 1",
		`{"http":{"defaultRequestPolicy":{"headerContentType":"text/csv"}}}`:       "http.defaultRequestPolicy.headerContentType: the value [text/csv] is not a valid content type",
		`{"http":{"defaultRequestPolicy":{"headerContentType":1}}}`:                "http.defaultRequestPolicy.headerContentType: the value [1] is not a valid content type",
		`{"http":{"defaultRequestPolicy":{"headerContentType":"text/plain\r\n"}}}`: `http.defaultRequestPolicy.headerContentType: the value [text/plain\r\n] is not a valid content type`,
	} {
		p, err := retry.ParseTopic(document)
		if err == nil {
			t.Errorf("%s was taken as %s", document, p.Document())
			continue
		}
		if fault.KindOf(err) != fault.InvalidParameter || refusal.Text(err) != want {
			t.Errorf("%s:\n got %v\nwant %s", document, err, want)
		}
	}
}

func TestParseSubscriptionRefusals(t *testing.T) {
	for document, want := range map[string]string{
		`{"http":{}}`: "Unexpected JSON member: http",
		`{"healthyRetryPolicy":{"numRetries":101}}`:          "healthyRetryPolicy.numRetries must be less than or equal to 100",
		`{"healthyRetryPolicy":{"numRetries":3}}`:            "healthyRetryPolicy.minDelayTarget must be specified",
		`{"sicklyRetryPolicy":{"numRetries":3}}`:             "sicklyRetryPolicy.minDelayTarget must be specified",
		`{"throttlePolicy":{"maxReceivesPerSecond":0}}`:      "throttlePolicy.maxReceivesPerSecond must be >= 1",
		`{"guaranteed":1}`:                                   "guaranteed must be true or false",
		`{"requestPolicy":{"headerContentType":"text/csv"}}`: "requestPolicy.headerContentType: the value [text/csv] is not a valid content type",
	} {
		_, err := retry.ParseSubscription(document, false)
		if fault.KindOf(err) != fault.InvalidParameter || refusal.Text(err) != want {
			t.Errorf("%s:\n got %v\nwant %s", document, err, want)
		}
	}
}
