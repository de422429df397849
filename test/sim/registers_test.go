package sim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// register is something of any service that one request writes, another one removes and a
// third one reads. What it is must be what was written last, or what was asked for and
// not answered.
type register struct {
	name  string
	write func(value string) *http.Request // value may be absent
	read  func() *http.Request
	// value is what an answer to read tells, if that is what was written and not that
	// there is nothing.
	value *regexp.Regexp
	only  []string // the values that there are; nil: tokens

	is   []string // what it may be
	busy bool
}

const absent = ""

// keyAlias names the key that everything of KMS is done with.
const keyAlias = "alias/sim"

func registers(w *world) []*register {
	exists := []string{"there"}
	text := regexp.MustCompile(`(v[0-9]+)"`)
	named := func(name string) *regexp.Regexp { return regexp.MustCompile(`(` + name + `)`) }
	either := func(value string, set, remove *http.Request) *http.Request {
		if value == absent {
			return remove
		}
		return set
	}
	alarm := func(operation string, in map[string]any) *http.Request {
		return targetRequest("GraniteServiceVersion20100801."+operation, in)
	}
	all := []*register{
		{
			name: "a user", only: exists, value: named("<UserName>bob<"),
			write: func(v string) *http.Request {
				return either(v, identityRequest("CreateUser", "UserName", "bob"), identityRequest("DeleteUser", "UserName", "bob"))
			},
			read: func() *http.Request { return identityRequest("GetUser", "UserName", "bob") },
		}, {
			name: "a user's policy", value: regexp.MustCompile(`Sid%22%3A%22(v[0-9]+)%22`),
			write: func(v string) *http.Request {
				document := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Sid":%q,"Effect":"Allow","Action":"sqs:*","Resource":"*"}]}`, v)
				return either(v, identityRequest("PutUserPolicy", "UserName", "ada", "PolicyName", "p", "PolicyDocument", document),
					identityRequest("DeleteUserPolicy", "UserName", "ada", "PolicyName", "p"))
			},
			read: func() *http.Request {
				return identityRequest("GetUserPolicy", "UserName", "ada", "PolicyName", "p")
			},
		}, {
			name: "an alias of a key", only: exists, value: named("alias/other"),
			write: func(v string) *http.Request {
				return either(v, keyRequest("CreateAlias", map[string]any{"AliasName": "alias/other", "TargetKeyId": w.keyID}),
					keyRequest("DeleteAlias", map[string]any{"AliasName": "alias/other"}))
			},
			read: func() *http.Request { return keyRequest("ListAliases", map[string]any{}) },
		}, {
			name: "a key's description", value: text,
			write: func(v string) *http.Request {
				return keyRequest("UpdateKeyDescription", map[string]any{"KeyId": w.keyID, "Description": v})
			},
			read: func() *http.Request { return keyRequest("DescribeKey", map[string]any{"KeyId": keyAlias}) },
		}, {
			name: "a queue", only: exists, value: named("temporary"),
			write: func(v string) *http.Request {
				return either(v, queueRequest("CreateQueue", map[string]any{"QueueName": "temporary"}),
					queueRequest("DeleteQueue", map[string]any{"QueueUrl": queueURL("temporary")}))
			},
			read: func() *http.Request {
				return queueRequest("ListQueues", map[string]any{"QueueNamePrefix": "temporary"})
			},
		}, {
			name: "a queue's tag", value: text,
			write: func(v string) *http.Request {
				return either(v, queueRequest("TagQueue", map[string]any{"QueueUrl": queueURL("wide-0"), "Tags": map[string]string{"k": v}}),
					queueRequest("UntagQueue", map[string]any{"QueueUrl": queueURL("wide-0"), "TagKeys": []string{"k"}}))
			},
			read: func() *http.Request {
				return queueRequest("ListQueueTags", map[string]any{"QueueUrl": queueURL("wide-0")})
			},
		}, {
			name: "a topic", only: exists, value: named("temporary"),
			write: func(v string) *http.Request {
				return either(v, topicRequest("CreateTopic", "Name", "temporary"), topicRequest("DeleteTopic", "TopicArn", topicARN("temporary")))
			},
			read: func() *http.Request { return topicRequest("ListTopics") },
		}, {
			name: "a topic's name", value: regexp.MustCompile(`(v[0-9]+)</value>`),
			write: func(v string) *http.Request {
				return topicRequest("SetTopicAttributes", "TopicArn", topicARN("wide"), "AttributeName", "DisplayName", "AttributeValue", v)
			},
			read: func() *http.Request { return topicRequest("GetTopicAttributes", "TopicArn", topicARN("wide")) },
		}, {
			name: "an alarm", value: text,
			write: func(v string) *http.Request {
				return either(v, alarm("PutMetricAlarm", map[string]any{
					"AlarmName": "a", "AlarmDescription": v, "ActionsEnabled": false, "Namespace": "Sim", "MetricName": "m", "Statistic": "Sum",
					"Period": 3600, "EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "GreaterThanThreshold",
				}), alarm("DeleteAlarms", map[string]any{"AlarmNames": []string{"a"}}))
			},
			read: func() *http.Request { return alarm("DescribeAlarms", map[string]any{}) },
		}, {
			name: "the retention of a log group", value: regexp.MustCompile(`"retentionInDays":([0-9]+)`), only: []string{"1", "3", "5", "7", "14", "30"},
			write: func(v string) *http.Request {
				return either(v, logRequest("PutRetentionPolicy", map[string]any{"logGroupName": "sim", "retentionInDays": number(v)}),
					logRequest("DeleteRetentionPolicy", map[string]any{"logGroupName": "sim"}))
			},
			read: func() *http.Request {
				return logRequest("DescribeLogGroups", map[string]any{"logGroupNamePrefix": "sim"})
			},
		}, {
			name: "a function's description", value: text,
			write: func(v string) *http.Request {
				return functionRequest(http.MethodPut, "/2015-03-31/functions/mill/configuration", map[string]any{"Description": v})
			},
			read: func() *http.Request {
				return functionRequest(http.MethodGet, "/2015-03-31/functions/mill/configuration", nil)
			},
		}, {
			name: "a delivery stream's tag", value: text,
			write: func(v string) *http.Request {
				return either(v, streamRequest("TagDeliveryStream", map[string]any{"DeliveryStreamName": "lake", "Tags": []map[string]string{{"Key": "k", "Value": v}}}),
					streamRequest("UntagDeliveryStream", map[string]any{"DeliveryStreamName": "lake", "TagKeys": []string{"k"}}))
			},
			read: func() *http.Request {
				return streamRequest("ListTagsForDeliveryStream", map[string]any{"DeliveryStreamName": "lake"})
			},
		},
	}
	for _, r := range all {
		r.is = []string{absent}
	}
	return all
}

func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n) // it is one, or not used
	return n
}

// change writes or reads a register.
func (w *world) change() {
	r := pick(w, w.registers)
	if r.busy {
		return
	}
	switch n := w.rand.IntN(10); {
	case n < 4:
		w.look(r)
		return
	case n < 6:
		w.put(r, absent)
	case r.only != nil:
		w.put(r, pick(w, r.only))
	default:
		w.put(r, w.token("v"))
	}
}

func (w *world) put(r *register, value string) {
	before := slices.Clone(r.is)
	if r.is = append(r.is, value); slices.Contains(before, value) {
		r.is = before
	}
	r.busy = true
	low := w.disk.isLow()
	w.begin(fmt.Sprintf("set %s to %q", r.name, value), r.write(value), func(a *answer) {
		r.busy = false
		switch {
		case a.ok():
			r.is = []string{value}
		case a.refused() && (low || w.disk.isLow()):
			r.is = before
		case a.refused() && slices.Contains(before, value): // it is so already
			r.is = []string{value}
		case a.refused():
			w.ledger.fail("%s cannot be set to %q: %d %s", r.name, value, a.status, a.body)
		}
	})
}

func (w *world) look(r *register) {
	r.busy = true
	w.begin("look at "+r.name, r.read(), func(a *answer) {
		r.busy = false
		if a.status == 0 {
			return
		}
		found := absent
		if m := r.value.FindSubmatch(a.body); m != nil {
			if found = string(m[1]); r.only != nil && !slices.Contains(r.only, found) {
				found = r.only[0]
			}
		} else if !a.ok() && !strings.Contains(string(a.body), "NoSuchEntity") {
			w.ledger.fail("%s cannot be read: %d %s", r.name, a.status, a.body)
			return
		}
		if !slices.Contains(r.is, found) {
			w.ledger.fail("%s is %q, and must be one of %q", r.name, found, r.is)
		}
		r.is = []string{found}
	})
}

// secret is what was encrypted under a key.
type secret struct{ text, sealed string }

// encrypt encrypts something, or decrypts what was encrypted at any time before.
func (w *world) encrypt() {
	switch n := w.rand.IntN(8); {
	case n == 0:
		w.begin("rotate the key", keyRequest("RotateKeyOnDemand", map[string]any{"KeyId": w.keyID}), func(*answer) {})
	case n < 4 || len(w.secrets) == 0:
		text := base64.StdEncoding.EncodeToString([]byte(w.token("s")))
		w.begin("encrypt "+text, keyRequest("Encrypt", map[string]any{"KeyId": keyAlias, "Plaintext": text}), func(a *answer) {
			if a.ok() {
				w.secrets = append(w.secrets, secret{text, parse[struct{ CiphertextBlob string }](a).CiphertextBlob})
			} else if a.refused() {
				w.ledger.fail("%s cannot be encrypted: %s", text, a.body)
			}
		})
	default:
		w.decrypt(pick(w, w.secrets))
	}
}

func (w *world) decrypt(s secret) {
	w.begin("decrypt "+s.text, keyRequest("Decrypt", map[string]any{"CiphertextBlob": s.sealed}), func(a *answer) {
		if got := parse[struct{ Plaintext string }](a).Plaintext; a.status != 0 && got != s.text {
			w.ledger.fail("%s is decrypted as %q: %s", s.text, got, a.body)
		}
	})
}

// line puts a line into a log.
func (w *world) line() {
	tok := w.token("l")
	event := map[string]any{"timestamp": w.now().UnixMilli(), "message": tok}
	in := map[string]any{"logGroupName": "sim", "logStreamName": "s", "logEvents": []any{event}}
	w.logged[tok] = maybe
	low := w.disk.isLow()
	w.begin("log "+tok, logRequest("PutLogEvents", in), func(a *answer) {
		switch {
		case a.ok():
			w.logged[tok] = yes
		case a.refused():
			w.logged[tok] = no
			if !low && !w.disk.isLow() {
				w.ledger.fail("%s cannot be logged: %s", tok, a.body)
			}
		}
	})
}

// settleServices checks what is left of everything but messages.
func (w *world) settleServices() {
	for _, r := range w.registers {
		w.look(r)
		w.finish()
	}
	for _, s := range w.secrets {
		w.decrypt(s)
	}
	w.finish()
	found := map[string]int{}
	for token, begun := "", true; token != "" || begun; begun = false {
		in := map[string]any{"logGroupName": "sim"}
		if token != "" {
			in["nextToken"] = token
		}
		w.ask("read the log", logRequest("FilterLogEvents", in), func(a *answer) {
			out := parse[struct {
				Events    []struct{ Message string }
				NextToken string
			}](a)
			for _, e := range out.Events {
				found[e.Message]++
			}
			token = out.NextToken
		})
	}
	for n := range w.tokens {
		tok := fmt.Sprint("l", n+1)
		is, was := w.logged[tok]
		switch {
		case found[tok] > 1, found[tok] > 0 && (!was || is == no), found[tok] == 0 && is == yes:
			w.ledger.fail("%s is %d times in the log", tok, found[tok])
		}
	}
}

// scoped says which service a form is for, as a signature does; nobody verifies it.
func scoped(r *http.Request, service string) *http.Request {
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+account+"/20300101/"+region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=00")
	return r
}

func targetRequest(target string, in any) *http.Request {
	r := queueRequest("", in)
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", target)
	return r
}

func keyRequest(operation string, in any) *http.Request {
	return targetRequest("TrentService."+operation, in)
}

func logRequest(operation string, in any) *http.Request {
	return targetRequest("Logs_20140328."+operation, in)
}

func streamRequest(operation string, in any) *http.Request {
	return targetRequest("Firehose_20150804."+operation, in)
}

// identityRequest is one to IAM: pairs of names and values.
func identityRequest(operation string, pairs ...string) *http.Request {
	form := url.Values{"Action": {operation}, "Version": {"2010-05-08"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r := newRequest(http.MethodPost, "/", []byte(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return scoped(r, "iam")
}

// buildServices makes what registers, keys, logs and streams are about.
func buildServices(must func(r *http.Request) []byte) (keyID string) {
	must(identityRequest("CreateUser", "UserName", "ada"))
	made := parse[struct{ KeyMetadata struct{ KeyId string } }](&answer{body: must(keyRequest("CreateKey", map[string]any{}))})
	keyID = made.KeyMetadata.KeyId
	must(keyRequest("CreateAlias", map[string]any{"AliasName": keyAlias, "TargetKeyId": keyID}))
	must(logRequest("CreateLogGroup", map[string]any{"logGroupName": "sim"}))
	must(logRequest("CreateLogStream", map[string]any{"logGroupName": "sim", "logStreamName": "s"}))
	bucket := map[string]any{
		"RoleARN": "arn:aws:iam::" + account + ":role/hose", "BucketARN": "arn:aws:s3:::bucket",
		"BufferingHints": map[string]any{"SizeInMBs": 1, "IntervalInSeconds": int(hoseInterval / time.Second)},
	}
	must(streamRequest("CreateDeliveryStream", map[string]any{"DeliveryStreamName": "pond", "ExtendedS3DestinationConfiguration": bucket}))
	must(streamRequest("CreateDeliveryStream", map[string]any{"DeliveryStreamName": "lake", "HttpEndpointDestinationConfiguration": map[string]any{
		"EndpointConfiguration": map[string]any{"Url": "http://lake.sim/in", "Name": "lake"}, "RoleARN": bucket["RoleARN"],
		"BufferingHints": map[string]any{"SizeInMBs": 1, "IntervalInSeconds": int(hoseInterval / time.Second)},
		"RetryOptions":   map[string]any{"DurationInSeconds": 30}, "S3Configuration": bucket,
	}}))
	return keyID
}
