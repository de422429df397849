package clustered

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/cluster/node"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server/clustered/nodeapi"
	"godwit.dev/godwit/test/output"
)

// The step of a stack that hangs keeps nobody from handing over, and is taken again by the next
// owner.
func TestStackDoesNotKeepOwner(t *testing.T) {
	asked := make(chan struct{}, 100)
	objects := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer objects.Close()
	o := startOwning(t)
	o.part.cfg.Artifacts = config.Artifacts{Endpoint: objects.URL}
	o.take()
	o.ask("", url.Values{
		"Action": {"CreateStack"}, "Version": {"2010-05-15"}, "StackName": {"s"},
		"TemplateBody": {`Resources: {F: {Type: AWS::Lambda::Function, Properties: {Role: "arn:aws:iam::000000000000:role/f", Runtime: python3.13, Handler: a.b, Code: {S3Bucket: code, S3Key: k}}}}`},
	})
	for range 2 {
		<-asked
		o.leave()
		o.take()
	}
	o.leave()
}

// What an owner has only in memory, metrics of the current minute and lines of functions' logs, is the
// next owner's once it was handed over.
func TestMemoryIsHandedOver(t *testing.T) {
	function := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer function.Close()
	o := startOwning(t)
	o.take()
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	o.ask("/2015-03-31/functions", map[string]any{
		"FunctionName": "f", "Role": "arn:aws:iam::000000000000:role/f", "PackageType": "Image", "Code": map[string]any{"ImageUri": function.URL},
	})
	began := clock.System.Now()
	const times = 3
	for range times {
		o.ask("AmazonSQS.SendMessage", map[string]any{"QueueUrl": queueURL, "MessageBody": "x"})
		o.ask("/2015-03-31/functions/f/invocations", map[string]any{})
		o.leave()
		o.take()
	}
	var sent struct{ Datapoints []struct{ Sum float64 } }
	if err := json.Unmarshal([]byte(o.ask("GraniteServiceVersion20100801.GetMetricStatistics", map[string]any{
		"Namespace": "AWS/SQS", "MetricName": "NumberOfMessagesSent", "Dimensions": []any{map[string]any{"Name": "QueueName", "Value": "q"}},
		"StartTime": began.Add(-time.Minute).Unix(), "EndTime": began.Add(time.Hour).Unix(), "Period": 60, "Statistics": []string{"Sum"},
	})), &sent); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, d := range sent.Datapoints {
		sum += d.Sum
	}
	if sum != times {
		t.Errorf("of %d messages that were sent the metric has %v", times, sum)
	}
	var lines struct{ Events []struct{ Message string } }
	if err := json.Unmarshal([]byte(o.ask("Logs_20140328.FilterLogEvents", map[string]any{"logGroupName": "/aws/lambda/f", "filterPattern": "REPORT"})), &lines); err != nil {
		t.Fatal(err)
	}
	if len(lines.Events) != times {
		t.Errorf("of %d invocations the log has %d: %+v", times, len(lines.Events), lines.Events)
	}
	o.leave()
}

// A link to a function's code is good at the next owner, too.
func TestLinksAreHandedOver(t *testing.T) {
	var code bytes.Buffer
	w := zip.NewWriter(&code)
	if f, err := w.Create("bootstrap"); err != nil {
		t.Fatal(err)
	} else if _, err := io.WriteString(f, "#!"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	o := startOwning(t)
	o.take()
	o.ask("/2015-03-31/functions", map[string]any{
		"FunctionName": "f", "Role": "arn:aws:iam::000000000000:role/f", "Runtime": "provided.al2023", "Handler": "x", "Code": map[string]any{"ZipFile": code.Bytes()},
	})
	get := func(target string) *httptest.ResponseRecorder {
		r, out := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil), httptest.NewRecorder()
		r.Host, r.RemoteAddr = "127.0.0.1:4566", "127.0.0.1:1234"
		o.part.front.ServeHTTP(out, r)
		return out
	}
	var got struct{ Code struct{ Location string } }
	if err := json.Unmarshal(get("/2015-03-31/functions/f").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out := get(got.Code.Location); out.Code != http.StatusOK || !bytes.Equal(out.Body.Bytes(), code.Bytes()) {
			t.Errorf("%q: status %d, %d bytes", got.Code.Location, out.Code, out.Body.Len())
		}
		o.leave()
		o.take()
	}
	o.leave()
}

// A node that owns the state hands it over where it is asked to as the owner, and not where
// another one is, whose request may have been carried out by making this one the owner.
func TestStepDownOfAnother(t *testing.T) {
	o := startOwning(t)
	o.take()
	for _, c := range []struct {
		query string
		says  string
	}{{"?owner=b", "node b does not own the state any more"}, {"?owner=a", errNoSuccessor.Error()}, {"", errNoSuccessor.Error()}} {
		out := httptest.NewRecorder()
		o.part.front.asked(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, nodeapi.StepDownPath+c.query, nil))
		if out.Code != http.StatusServiceUnavailable || !strings.Contains(out.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.query, out.Code, out.Body)
		}
	}
	o.leave()
}

// Slow requests to any service that come to a server that has ended are refused, of which no log
// tells an operator.
func TestSlowRequestsOfAllServices(t *testing.T) {
	var log output.Buffer
	o := startOwning(t)
	o.part.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.take()
	const logs, metrics, kms, firehose = "Logs_20140328.", "GraniteServiceVersion20100801.", "TrentService.", "Firehose_20150804."
	o.ask("AmazonSQS.CreateQueue", map[string]any{"QueueName": "q"})
	o.ask("AmazonSQS.SendMessage", map[string]any{"QueueUrl": queueURL, "MessageBody": "x"})
	o.ask(logs+"CreateLogGroup", map[string]any{"logGroupName": "g"})
	o.ask(logs+"CreateLogStream", map[string]any{"logGroupName": "g", "logStreamName": "s"})
	var key struct{ KeyMetadata struct{ KeyId string } }
	if err := json.Unmarshal([]byte(o.ask(kms+"CreateKey", map[string]any{})), &key); err != nil {
		t.Fatal(err)
	}
	requests := map[string]func() *httptest.ResponseRecorder{}
	for _, r := range [][2]string{
		{"AmazonSQS.CreateQueue", `{"QueueName":"other"}`},
		{"AmazonSQS.ListQueues", `{}`},
		{"AmazonSQS.ReceiveMessage", `{"QueueUrl":"` + queueURL + `"}`},
		{"AmazonSQS.PurgeQueue", `{"QueueUrl":"` + queueURL + `"}`},
		{"AmazonSQS.DeleteQueue", `{"QueueUrl":"` + queueURL + `"}`},
		{logs + "PutLogEvents", `{"logGroupName":"g","logStreamName":"s","logEvents":[{"timestamp":1795000000000,"message":"m"}]}`},
		{logs + "GetLogEvents", `{"logGroupName":"g","logStreamName":"s"}`},
		{logs + "CreateLogGroup", `{"logGroupName":"h"}`},
		{logs + "DeleteLogGroup", `{"logGroupName":"g"}`},
		{metrics + "PutMetricData", `{"Namespace":"n","MetricData":[{"MetricName":"m","Value":1}]}`},
		{metrics + "ListMetrics", `{}`},
		{metrics + "PutMetricAlarm", `{"AlarmName":"a","MetricName":"m","Namespace":"n","Statistic":"Sum","Period":60,"EvaluationPeriods":1,"Threshold":1,"ComparisonOperator":"GreaterThanThreshold"}`},
		{metrics + "DescribeAlarmHistory", `{}`},
		{kms + "CreateKey", `{}`},
		{kms + "Encrypt", `{"KeyId":"` + key.KeyMetadata.KeyId + `","Plaintext":"eA=="}`},
		{firehose + "ListDeliveryStreams", `{}`},
	} {
		requests[r[0]] = o.slowly(r[0], r[1])
	}
	for _, form := range []url.Values{
		{"Action": {"CreateTopic"}, "Version": {"2010-03-31"}, "Name": {"t"}},
		{"Action": {"ListTopics"}, "Version": {"2010-03-31"}},
		{"Action": {"CreateUser"}, "Version": {"2010-05-08"}, "UserName": {"u"}},
		{"Action": {"ListUsers"}, "Version": {"2010-05-08"}},
		{"Action": {"CreateStack"}, "Version": {"2010-05-15"}, "StackName": {"s"}, "TemplateBody": {"Resources: {Q: {Type: AWS::SQS::Queue}}"}},
		{"Action": {"ListStacks"}, "Version": {"2010-05-15"}},
	} {
		requests[form.Get("Action")] = o.slowly("", form.Encode())
	}
	requests["a function"] = o.slowly("/2015-03-31/functions", `{"FunctionName":"f","Role":"arn:aws:iam::000000000000:role/f","PackageType":"Image","Code":{"ImageUri":"http://127.0.0.1:1"}}`)
	o.leave()
	for name, finish := range requests {
		if out := finish(); out.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d: %s", name, out.Code, out.Body)
		}
	}
	if got := log.String(); got != "" {
		t.Errorf("the log has:\n%s", got)
	}
}

// flushed is an answer that tells of each of its parts.
type flushed struct {
	*httptest.ResponseRecorder
	parts chan struct{}
}

func (f flushed) Flush() {
	f.ResponseRecorder.Flush()
	f.parts <- struct{}{}
}

// An operator's stream ends with what it is of, also where nobody has handed over.
func TestStreamsEnd(t *testing.T) {
	o := startOwning(t)
	for _, end := range []func(){o.leave, func() {
		o.part.inner.Load().owner.StepDown(errors.New("a test says so"))
		o.until(o.mine(), "nothing serves", func(s node.State) bool { return !s.Serving && o.mine().Owner() == nil })
		s, _ := o.mine().State()
		o.takeOver(s.Epoch + 1)
	}} {
		o.take()
		out := flushed{httptest.NewRecorder(), make(chan struct{}, 100)}
		var streaming sync.WaitGroup
		streaming.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_godwit/v1/events?commits=true", nil)
			r.Host, r.RemoteAddr = "127.0.0.1:4566", "127.0.0.1:1234"
			o.part.front.ServeHTTP(out, r)
		})
		<-out.parts
		end()
		streaming.Wait()
		if out.Code != http.StatusOK {
			t.Errorf("status %d: %s", out.Code, out.Body)
		}
	}
}

// A function that runs when its owner hands over is cut off. An event is run again by the next
// owner; who waits for an invocation is told to ask again.
func TestRunningFunctions(t *testing.T) {
	ran, ends := make(chan string, 100), make(chan struct{})
	function := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		ran <- string(text)
		select {
		case <-ends:
			_, _ = io.WriteString(w, "{}")
		case <-r.Context().Done():
		}
	}))
	defer function.Close()
	o := startOwning(t)
	o.take()
	o.ask("/2015-03-31/functions", map[string]any{
		"FunctionName": "f", "Role": "arn:aws:iam::000000000000:role/f", "PackageType": "Image", "Timeout": 900, "Code": map[string]any{"ImageUri": function.URL},
	})
	invoke := func(kind, payload string) *httptest.ResponseRecorder {
		r, out := newRequest(t.Context(), "/2015-03-31/functions/f/invocations", strings.NewReader(payload)), httptest.NewRecorder()
		r.Header.Set("X-Amz-Invocation-Type", kind)
		o.part.front.ServeHTTP(out, r)
		return out
	}
	if out := invoke("Event", `"event"`); out.Code != http.StatusAccepted {
		t.Fatalf("status %d: %s", out.Code, out.Body)
	}
	if got := <-ran; got != `"event"` {
		t.Errorf("it got %s", got)
	}
	for range 2 {
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if out := invoke("RequestResponse", `"call"`); out.Code != http.StatusServiceUnavailable {
				t.Errorf("status %d: %s", out.Code, out.Body)
			}
		})
		if got := <-ran; got != `"call"` {
			t.Errorf("it got %s", got)
		}
		o.leave()
		waiting.Wait()
		o.take()
		if got := <-ran; got != `"event"` {
			t.Errorf("after the hand-over it got %s", got)
		}
	}
	close(ends)
	if out := invoke("RequestResponse", `"last"`); out.Code != http.StatusOK || <-ran != `"last"` {
		t.Errorf("status %d: %s", out.Code, out.Body)
	}
	o.leave()
}
