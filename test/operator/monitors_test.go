package operator_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/config"
)

type alarmPage struct {
	Alarms []struct {
		ARN, Name, State, Reason, Metric, Comparison string
		Threshold                                    float64
		ActionsEnabled                               bool
	}
	Next *string
}

type series struct {
	PeriodSeconds int
	Series        []struct {
		Namespace, Name, Unit, Statistic string
		Points                           [][]float64
	}
}

func TestAlarmsAndMetrics(t *testing.T) {
	w := start(t)
	url := w.queue("orders", nil)
	w.send(url, "one")
	w.send(url, "two")
	watch := cloudwatch.NewFromConfig(w.config)
	for _, name := range []string{"backlog", "Böse <script>", "calm"} {
		must(watch.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
			AlarmName: &name, Namespace: aws.String("AWS/SQS"), MetricName: aws.String("NumberOfMessagesSent"), Statistic: cloudwatchtypes.StatisticSum,
			Dimensions: []cloudwatchtypes.Dimension{{Name: aws.String("QueueName"), Value: aws.String("orders")}},
			Period:     aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: cloudwatchtypes.ComparisonOperatorGreaterThanThreshold,
			TreatMissingData: aws.String("ignore"),
		}))(t)
	}
	w.advance("1m") // in the minute after it nothing is sent
	page := get[alarmPage](w, "alarms", "limit", "2", "state", "ALARM")
	if len(page.Alarms) != 2 || page.Next == nil || page.Alarms[1].Name != "backlog" || page.Alarms[1].Threshold != 1 || !page.Alarms[1].ActionsEnabled {
		t.Fatalf("%+v", page)
	}
	rest := get[alarmPage](w, "alarms", "limit", "2", "state", "ALARM", "cursor", *page.Next)
	if len(rest.Alarms) != 1 || rest.Next != nil || rest.Alarms[0].Name != "calm" {
		t.Errorf("%+v", rest)
	}
	equal(t, "found by a part of the name", "Böse <script>", get[alarmPage](w, "alarms", "search", "ÖSE").Alarms[0].Name)
	one := get[struct {
		Name, State string
		History     []struct{ Kind, Summary string }
	}](w, "alarm", "arn", page.Alarms[1].ARN)
	if one.Name != "backlog" || one.State != "ALARM" || len(one.History) < 2 || one.History[0].Kind != "StateUpdate" {
		t.Errorf("%+v", one)
	}
	w.refused(http.StatusNotFound, http.MethodGet, "alarm", "arn=arn:aws:cloudwatch:"+region+":"+account+":alarm:none")
	w.refused(http.StatusBadRequest, http.MethodGet, "alarm", "arn="+queueARN("orders"))

	measured := get[series](w, "metrics", "arn", queueARN("orders"), "hours", "1")
	sent := 0.0
	for _, s := range measured.Series {
		if s.Name == "NumberOfMessagesSent" && s.Statistic == "Sum" && s.Unit == "Count" {
			for _, p := range s.Points {
				sent += p[1]
			}
		}
	}
	if sent != 2 || measured.PeriodSeconds != 60 {
		t.Errorf("%v sent; %+v", sent, measured)
	}
	if watched := get[series](w, "metrics", "arn", page.Alarms[1].ARN, "hours", "24"); len(watched.Series) != 1 || watched.PeriodSeconds != 180 || len(watched.Series[0].Points) == 0 {
		t.Errorf("%+v", watched)
	}
	w.refused(http.StatusBadRequest, http.MethodGet, "metrics", "arn=arn:aws:iam::"+account+":user/anna")
	w.refused(http.StatusBadRequest, http.MethodGet, "metrics", "arn=none")
	w.refused(http.StatusNotFound, http.MethodGet, "metrics", "arn=arn:aws:cloudwatch:"+region+":"+account+":alarm:none")
}

func TestLogs(t *testing.T) {
	w := start(t)
	kept := cloudwatchlogs.NewFromConfig(w.config)
	group := "/orders/b"
	must(kept.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group}))(t)
	must(kept.PutRetentionPolicy(t.Context(), &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &group, RetentionInDays: aws.Int32(7)}))(t)
	stream := "one"
	must(kept.CreateLogStream(t.Context(), &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &stream}))(t)
	now := time.Now()
	at := func(n int) *int64 { return aws.Int64(now.Add(time.Duration(n) * time.Second).UnixMilli()) }
	must(kept.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: []logtypes.InputLogEvent{
		{Timestamp: at(-3), Message: aws.String("order 1 taken")}, {Timestamp: at(-2), Message: aws.String("order 2 taken")}, {Timestamp: at(-1), Message: aws.String("order 2 \x1b[31mfailed")},
	}}))(t)
	groups := get[struct {
		Groups []struct {
			ARN, Name     string
			RetentionDays *int
			StoredBytes   int
		}
		Next *string
	}](w, "log-groups", "search", "ORDERS")
	if len(groups.Groups) != 1 || groups.Groups[0].Name != group || *groups.Groups[0].RetentionDays != 7 || groups.Groups[0].StoredBytes == 0 {
		t.Fatalf("%+v", groups)
	}
	arn := groups.Groups[0].ARN
	streams := get[struct {
		Streams []struct {
			Name        string
			LastEventAt *time.Time
		}
	}](w, "log-streams", "arn", arn)
	if len(streams.Streams) != 1 || streams.Streams[0].Name != stream || streams.Streams[0].LastEventAt.UnixMilli() != *at(-1) {
		t.Errorf("%+v", streams)
	}
	type page struct {
		Events []struct{ ID, Stream, Message string }
		Next   *string
	}
	var found []string
	for cursor := ""; ; {
		p := get[page](w, "log-events", "arn", arn, "pattern", `"order 2"`, "limit", "1", "cursor", cursor, "from", now.Add(-time.Hour).Format(time.RFC3339))
		for _, e := range p.Events {
			found = append(found, e.Message)
		}
		if p.Next == nil {
			break
		}
		cursor = *p.Next
	}
	equal(t, "lines", "order 2 taken|order 2 \x1b[31mfailed", strings.Join(found, "|"))
	equal(t, "of another time", 0, len(get[page](w, "log-events", "arn", arn, "to", now.Add(-time.Hour).Format(time.RFC3339)).Events))
	none := "arn=arn:aws:logs:" + region + ":" + account + ":log-group:none"
	for _, path := range []string{"log-streams", "log-events"} {
		w.refused(http.StatusNotFound, http.MethodGet, path, none)
		w.refused(http.StatusBadRequest, http.MethodGet, path, "arn="+queueARN("orders"))
	}
	w.refused(http.StatusBadRequest, http.MethodGet, "log-events", "arn="+arn+"&from=yesterday")
	w.refused(http.StatusBadRequest, http.MethodGet, "log-events", "arn="+arn+"&pattern="+url.QueryEscape("{ broken"))
	w.refused(http.StatusBadRequest, http.MethodGet, "log-events", "arn="+arn+"&cursor=bm9uZQ")
}

func TestIdentitiesAndSettings(t *testing.T) {
	root := aws.Credentials{AccessKeyID: "AKIAROOTROOTROOTROOT", SecretAccessKey: "a secret of the root user, long enough"}
	w := startWith(t, func(c *config.Config) {
		c.Enforce, c.Root = true, config.Root{AccessKeyID: root.AccessKeyID, Secret: root.SecretAccessKey}
	})
	w = worldAt(t, w.endpoint, root)
	w.signs = &root
	identities := iam.NewFromConfig(w.config)
	name, trust := "anna", `{"Statement":{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}}`
	must(identities.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}))(t)
	key := must(identities.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name}))(t).AccessKey
	must(identities.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("worker"), AssumeRolePolicyDocument: &trust}))(t)
	anna := worldAt(t, w.endpoint, aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey})
	must(sts.NewFromConfig(anna.config).GetCallerIdentity(t.Context(), nil))(t)
	users := get[struct {
		Users []struct {
			Name, ARN string
			Keys      []struct {
				ID         string
				Active     bool
				LastUsedAt *time.Time
			}
		}
	}](w, "users", "search", "ANN")
	if len(users.Users) != 1 || users.Users[0].Name != name || users.Users[0].Keys[0].ID != *key.AccessKeyId || users.Users[0].Keys[0].LastUsedAt == nil {
		t.Errorf("%+v", users)
	}
	text := w.call(http.MethodGet, "keys", "", "", http.StatusOK)
	if !strings.Contains(text, *key.AccessKeyId) || strings.Contains(text, *key.SecretAccessKey) {
		t.Error(text)
	}
	if roles := w.call(http.MethodGet, "roles", "", "", http.StatusOK); !strings.Contains(roles, `"worker"`) {
		t.Error(roles)
	}
	settings := w.call(http.MethodGet, "settings", "", "", http.StatusOK)
	if strings.Contains(settings, root.SecretAccessKey) || !strings.Contains(settings, `"name":"listen"`) {
		t.Error(settings)
	}
	for _, path := range []string{"alarms", "log-groups", "users", "keys", "roles"} {
		w.refused(http.StatusBadRequest, http.MethodGet, path, "cursor=***")
	}
	w.refused(http.StatusBadRequest, http.MethodGet, "settings", "none=1")
}

func TestTopicAttribute(t *testing.T) {
	w := start(t)
	topic := w.topic("orders")
	policy := `{\"http\":{\"defaultHealthyRetryPolicy\":{\"minDelayTarget\":1,\"maxDelayTarget\":2,\"numRetries\":3}}}`
	set := post[struct{ DeliveryPolicy *string }](w, "topic/attribute", `{"topic":"`+topic+`","name":"DeliveryPolicy","value":"`+policy+`"}`)
	if set.DeliveryPolicy == nil || !strings.Contains(*set.DeliveryPolicy, "numRetries") {
		t.Errorf("%+v", set)
	}
	w.refused(http.StatusBadRequest, http.MethodPost, "topic/attribute", `{"topic":"`+topic+`","name":"DeliveryPolicy","value":"{"}`)
	w.refused(http.StatusBadRequest, http.MethodPost, "topic/attribute", `{"topic":"`+topic+`","name":"Policy","value":"{}"}`)
	w.refused(http.StatusNotFound, http.MethodPost, "topic/attribute", `{"topic":"`+topic+`s","name":"DisplayName","value":"Orders"}`)
}
