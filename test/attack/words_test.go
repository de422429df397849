package attack_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Texts that make sense as the value of a member, or of an attribute of that name,
// in lower case. Those of things that exist are learnt.
var sensible = func() map[string][]string {
	words := map[string][]string{}
	for names, texts := range map[string][]string{
		"queueurl":         {"http://127.0.0.1/000000000000/name", "/000000000000/name", "name", "http://[::1]:4566/000000000000/none", "http://h/queue/us-east-1/000000000000/name"},
		"protocol":         {"sqs", "http", "https", "lambda", "email", "email-json", "sms", "application", "firehose"},
		"endpoint":         {"http://127.0.0.1:1/hook", "http://[::ffff:127.0.0.1]:1/", "http://0x7f.1:1/", "http://user:pass@127.0.0.1:1/", "https://127.0.0.1:1/?#", "http://", "http://a b/", "arn:aws:sqs:us-east-1:000000000000:name", "x@example.invalid"},
		"datatype":         {"String", "Number", "Binary", "String.Array", "String.x", "Number.int", "StringList"},
		"messagestructure": {"json"},
		"message":          {`{"default":"d","sqs":"q","http":5}`, `{"default":"d"}`, "hello", `{"a":{"b":[1,"x",null]}}`},
		"messagegroupid messagededuplicationid id statementid label sid": {"a", "b", "c", "A-1_"},
		"pointtype":                    {"Timestamp"},
		"attributename attributenames": append([]string{"All"}, attributes...),
		"messageattributenames messagesystemattributenames": {"All", ".*", "a.*", "kind", "SentTimestamp", "AWSTraceHeader", "ApproximateReceiveCount", "SequenceNumber"},
		"attributevalue":                         slices.Concat(policies, filters, retries, []string{"true", "false", "0", "30", "1", "{}", "MessageBody", "MessageAttributes", "2", `{"MessageRetentionPeriod":"7"}`, `{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00Z"}`}),
		"policy":                                 policies,
		"filterpolicy pattern":                   filters,
		"filterpolicyscope":                      {"MessageBody", "MessageAttributes"},
		"deliverypolicy effectivedeliverypolicy": retries,
		"redrivepolicy": {
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`, `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:name","maxReceiveCount":"1000"}`,
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":99999999999999999999}`, `{"deadLetterTargetArn":["x"],"maxReceiveCount":{}}`,
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead"}`,
		},
		"redriveallowpolicy": {`{"redrivePermission":"allowAll"}`, `{"redrivePermission":"denyAll"}`, `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:name"]}`},
		"archivepolicy":      {`{"MessageRetentionPeriod":"1"}`, `{"MessageRetentionPeriod":365}`, "{}"},
		"replaypolicy":       {`{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00Z"}`, `{"PointType":"Timestamp","StartingPoint":"0001-01-01T00:00:00Z","EndingPoint":"9999-01-01T00:00:00Z"}`, "{}"},
		"delayseconds visibilitytimeout receivemessagewaittimeseconds maximummessagesize messageretentionperiod kmsdatakeyreuseperiodseconds": {
			"0", "1", "60", "900", "901", "1024", "262144", "1048576", "1048577", "1209600", "43200", "43201", "99999999999", "-1", "1e3", " 1", "+1", "0x10", "9223372036854775807", "9223372036854775808",
		},
		"fifoqueue fifotopic contentbaseddeduplication rawmessagedelivery sqsmanagedsseenabled": {"true", "false"},
		"deduplicationscope fifothroughputlimit fifothroughputscope":                            {"messageGroup", "queue", "perQueue", "perMessageGroupId", "Topic", "MessageGroup"},
		"tracingconfig signatureversion":                                                        {"PassThrough", "Active", "1", "2"},
		"eventsourcearn sourcearn":                                                              {"arn:aws:sqs:us-east-1:000000000000:name", "arn:aws:sqs:us-east-1:000000000000:dead", "arn:aws:sqs:us-east-1:000000000000:name.fifo"},
		"nexttoken marker":                                                                      {"AAAA", "MQ==", "f/1", "b/0"},
		"principal":                                                                             {"sns.amazonaws.com", "*", "000000000000", "s3.amazonaws.com"},
		"action actions actionname":                                                             {"lambda:InvokeFunction", "lambda:InvokeFunctionUrl", "lambda:GetLayerVersion", "lambda:*", "SendMessage", "*", "Publish", "Subscribe"},
		"awsaccountid awsaccountids accountidentifiers sourceaccount queueowneraccountid queueownerawsaccountid": {"000000000000", "123456789012", "1"},
		"runtime":                              {"provided.al2023", "provided.al2", "nodejs22.x", "python3.12", "java21"},
		"handler":                              {"bootstrap", "index.handler", "../x.y", strings.Repeat("h", 129)},
		"role":                                 {"arn:aws:iam::000000000000:role/r"},
		"packagetype":                          {"Zip", "Image"},
		"authtype functionurlauthtype":         {"NONE", "AWS_IAM"},
		"invokemode":                           {"BUFFERED", "RESPONSE_STREAM"},
		"alloworigins allowmethods":            {"*", "GET", "https://a.example"},
		"architectures":                        {"x86_64", "arm64"},
		"functionname":                         {"arn:aws:lambda:us-east-1:000000000000:function:name", "000000000000:function:name", "name:$LATEST", "name:1"},
		"qualifier functionversion":            {"$LATEST", "1", "2", "99999999999999999999", "live", "ALL"},
		"layername":                            {"name", "arn:aws:lambda:us-east-1:000000000000:layer:name", "arn:aws:lambda:us-east-1:111122223333:layer:name"},
		"versionnumber":                        {"1", "2", "0", "-1", "9223372036854775807"},
		"arn layers layerversionarn":           {"arn:aws:lambda:us-east-1:000000000000:layer:name:1", "arn:aws:lambda:us-east-1:000000000000:layer:name:99999999999999999999", "arn:aws:lambda:us-east-1:000000000000:layer:name:0"},
		"compatibleruntimes compatibleruntime": {"provided.al2023", "python3.12", "nodejs22.x"},
		"compatiblearchitectures compatiblearchitecture": {"x86_64", "arm64"},
		"organizationid":        {"o-abcdefghij"},
		"invocationtype":        {"RequestResponse", "Event", "DryRun"},
		"logtype":               {"Tail", "None"},
		"starttime endtime":     {"0"},
		"startingposition":      {"TRIM_HORIZON", "LATEST"},
		"functionresponsetypes": {"ReportBatchItemFailures"},
		"namespace":             {"Own", "AWS/SQS", "AWS/Lambda", "AWS/SNS"},
		"metricname":            {"Errors", "NumberOfMessagesSent", "Invocations", "ApproximateNumberOfMessagesVisible"},
		"statistic statistics":  {"Sum", "Average", "Minimum", "Maximum", "SampleCount", "IQM"},
		"extendedstatistic extendedstatistics stat": {"p99", "p99.9", "p0", "p100", "tm90", "TM(10%:90%)", "PR(:300)", "wm(5%:95%)", "tc(0:1e308)", "Sum", "p99.99999999999999", "TM(90%:10%)", "PR(NaN:NaN)"},
		"unit":                             {"Seconds", "Count", "Bytes/Second", "None", "Percent"},
		"comparisonoperator":               {"GreaterThanThreshold", "LessThanOrEqualToThreshold", "LessThanLowerOrGreaterThanUpperThreshold"},
		"treatmissingdata":                 {"missing", "ignore", "breaching", "notBreaching"},
		"evaluatelowsamplecountpercentile": {"evaluate", "ignore"},
		"statevalue":                       {"OK", "ALARM", "INSUFFICIENT_DATA"},
		"statereasondata":                  {`{"a":1}`, "{"},
		"expression":                       {"m1+m2", "SUM(METRICS())", "SEARCH('{AWS/SQS,QueueName}', 'Sum', 60)", "FILL(m1,0)", "IF(m1>1,1,0)", "RATE(m1)", strings.Repeat("(", 1000), "SELECT SUM(x) FROM y", "m1/0", "ANOMALY_DETECTION_BAND(m1)"},
		"recentlyactive":                   {"PT3H"},
		"alarmrule":                        {"ALARM(name)", "TRUE", `NOT OK("name") AND (FALSE OR INSUFFICIENT_DATA(name))`, "AT_LEAST(50%, NOT ALARM, (name, name))", strings.Repeat("(", 9000), "ALARM(\"", "AT_LEAST(99999999999, OK, (name))"},
		"actionssuppressor childrenofalarmname parentsofalarmname": {"name"},
		"scanby":          {"TimestampDescending", "TimestampAscending"},
		"historyitemtype": {"StateUpdate", "ConfigurationUpdate", "Action"},
		"alarmtypes":      {"MetricAlarm", "CompositeAlarm"},
		"okactions alarmactions insufficientdataactions actionprefix": {"arn:aws:sns:us-east-1:000000000000:name", "arn:aws:lambda:us-east-1:000000000000:function:name"},
		"filterpattern":                      {"", "ERROR", `{ $.a = "x" }`, `{ ($.a = 1) && ($.b != "*x*") }`, "[a, b=5*, ...]", `%^a+$%`, "?a ?b -c", `{ $.a IS NULL }`, "%(a+)+$%", `{ $.` + strings.Repeat("a.", 100) + `a = 1 }`, strings.Repeat("(", 900), "{", "%[%", "[", `"`},
		"loggroupclass":                      {"STANDARD", "INFREQUENT_ACCESS", "DELIVERY"},
		"orderby":                            {"LogStreamName", "LastEventTime"},
		"clientcontext":                      {"e30=", "bm8="},
		"tokens token":                       {strings.Repeat("0", 64)},
		"authenticateonunsubscribe":          {"true", "false"},
		"logformat":                          {"JSON", "Text"},
		"applicationloglevel systemloglevel": {"INFO", "DEBUG", "WARN"},
		"destination":                        {"arn:aws:sqs:us-east-1:000000000000:name", "arn:aws:sns:us-east-1:000000000000:name", "arn:aws:lambda:us-east-1:000000000000:function:name"},
		"phonenumber":                        {"+15550100"},
		"type":                               {"String", "Number"},
	} {
		for name := range strings.FieldsSeq(names) {
			words[name] = append(words[name], texts...)
		}
	}
	return words
}()

// needed are members without which most operations that have them are refused.
var needed = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq("starttime endtime namespace metricname statistic statistics period evaluationperiods threshold comparisonoperator value id stat metric " +
		"metricstat message topicarn zipfile runtime handler code loggroupname eventsourcearn key maximumretryattempts reservedconcurrentexecutions attributevalue " +
		"endpoint datatype stringvalue statereason statevalue alarmname alarmrule timestamp functionversion visibilitytimeout entries publishbatchrequestentries metricdata awsaccountid awsaccountids actionname actions logevents tags tagkeys sourcearn messagebody retentionindays enabled") {
		all[name] = true
	}
	return all
}()

// Keys of maps, by the member that the map is.
var mapKeys = map[string][]string{
	"attributes":               attributes,
	"messageattributes":        {"kind", "a", "b.c", "AWS.SNS.MOBILE.x", "..", "n" + strings.Repeat("x", 256)},
	"messagesystemattributes":  {"AWSTraceHeader"},
	"variables":                {"A", "LD_PRELOAD", "PATH", "AWS_REGION", "AWS_LAMBDA_RUNTIME_API", "1x", "A=B"},
	"additionalversionweights": {"1", "2", "$LATEST"},
}

var attributes = []string{
	"DelaySeconds", "MaximumMessageSize", "MessageRetentionPeriod", "Policy", "ReceiveMessageWaitTimeSeconds", "VisibilityTimeout", "RedrivePolicy",
	"RedriveAllowPolicy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled", "FifoQueue", "ContentBasedDeduplication",
	"DeduplicationScope", "FifoThroughputLimit", "QueueArn", "ApproximateNumberOfMessages", "CreatedTimestamp", "DisplayName", "DeliveryPolicy", "TracingConfig", "FifoTopic",
	"ArchivePolicy", "FifoThroughputScope", "FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "ReplayPolicy", "SubscriptionRoleArn", "SignatureVersion",
	"HTTPSuccessFeedbackSampleRate", "HTTPSuccessFeedbackRoleArn", "LambdaFailureFeedbackRoleArn",
}

var policies = []string{
	`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]}`,
	`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:*:*"}}}]}`,
	`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":{"AWS":["000000000000","arn:aws:iam::1:root"]},"Action":["sqs:*"],"Resource":"*"}]}`,
	`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:` + strings.Repeat("*a", 500) + `","Resource":"` + strings.Repeat("*?", 500) + `"}]}`,
	`{"Statement":{"Effect":"Allow","Principal":"*","NotAction":"x","Resource":"*","Condition":{"NumericLessThan":{"aws:x":"1e309"},"DateGreaterThan":{"aws:CurrentTime":"9999999-01-01"},"IpAddress":{"aws:SourceIp":"::ffff:0/0"}}}}`,
	`{"Statement":[]}`, "{}", "",
}

var filters = []string{
	`{"kind":["a"]}`, `{"kind":[{"prefix":"a"},{"anything-but":["b"]}]}`, `{"kind":[{"numeric":[">",0,"<=",1e9]}]}`, `{"a":{"b":[{"exists":false}]}}`, `{"$or":[{"a":["x"]},{"b":["y"]}]}`,
	`{"kind":[{"wildcard":"*a*b*c*"}]}`, `{"kind":[{"cidr":"10.0.0.0/8"}]}`, `{"kind":[{"suffix":"x"},{"equals-ignore-case":"Y"}]}`, `{"kind":[{"numeric":["=",1e400]}]}`, `{"kind":[]}`,
	`{"kind":[{"wildcard":"` + strings.Repeat("*a", 100) + `"}]}`, `{"a":["` + strings.Repeat(`x","`, 200) + `y"]}`, strings.Repeat(`{"a":`, 120) + `["x"]` + strings.Repeat("}", 120),
	`{"$or":[` + strings.Repeat(`{"a":["x"]},`, 60) + `{"b":["y"]}]}`, `{"body":{"x":[1]}}`, "{}", "",
}

var retries = []string{
	`{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":3}}`, `{"http":{"defaultHealthyRetryPolicy":{"numRetries":100,"backoffFunction":"exponential","minDelayTarget":1,"maxDelayTarget":3600,"numMaxDelayRetries":100}}}`,
	`{"healthyRetryPolicy":{"numRetries":1e9}}`, `{"throttlePolicy":{"maxReceivesPerSecond":1}}`, `{"requestPolicy":{"headerContentType":"text/plain\r\nX: y"}}`, `{"healthyRetryPolicy":{"numRetries":-1,"minDelayTarget":9223372036854775807}}`,
}

// handlerZip is a function that ends at once, and bomb one that holds more than it
// may.
var (
	handlerZip = sync.OnceValue(func() []byte { return zipOf("bootstrap", strings.NewReader("#!/bin/sh\nexit 1\n")) })
	bomb       = sync.OnceValue(func() []byte { return zipOf("../../tmp/bomb", io.LimitReader(zeros{}, 300<<20)) })
)

func zipOf(name string, content io.Reader) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	h := &zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = io.Copy(w, content)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
