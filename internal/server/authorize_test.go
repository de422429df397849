package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/api/cloudwatch"
	"godwit.dev/godwit/internal/api/firehose"
	iamapi "godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/api/kms"
	"godwit.dev/godwit/internal/api/lambda"
	"godwit.dev/godwit/internal/api/lambda/access"
	"godwit.dev/godwit/internal/api/logs"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/api/sns"
	"godwit.dev/godwit/internal/api/sqs"
	"godwit.dev/godwit/internal/api/sts"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	mailsender "godwit.dev/godwit/internal/deliver/mail"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/server/mailing"
	"godwit.dev/godwit/internal/server/monitoring"
	"godwit.dev/godwit/internal/server/senders"
	"godwit.dev/godwit/internal/server/streaming"
	"godwit.dev/godwit/internal/server/texting"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/direct"
)

// tables are the operations of every service, by the service's name in requests.
func tables() map[string][]api.Operation {
	return map[string][]api.Operation{
		"sqs":        sqs.New(sqs.Options{}).Operations(),
		"sns":        sns.New(sns.Options{Engine: noSubscriptions{}}).Operations(),
		"lambda":     access.Guarded(lambda.New(lambda.Options{}).Operations()),
		"monitoring": cloudwatch.New(cloudwatch.Options{}).Operations(),
		"logs":       logs.New(nil, nil).Operations(),
		"iam":        iamapi.New(iamapi.Options{Engine: nobody{}}).Operations(),
		"sts":        sts.New(sts.Options{}).Operations(),
		"kms":        kms.New(nil, nil).Operations(),
		"firehose":   firehose.New(firehose.Options{}).Operations(),

		"cloudformation": cloudformation.New(cloudformation.Options{}).Operations(),
	}
}

// nobody are identities of which there are none.
type nobody struct{ iamapi.Engine }

func (nobody) Read(string, func(*iam.Account) error) error { return nil }

// noSubscriptions are topics without subscriptions.
type noSubscriptions struct{ sns.Engine }

func (noSubscriptions) SubscriptionAttributes(context.Context, arn.ARN) (map[string]string, error) {
	return nil, fault.New(fault.NotFound, "")
}

const owner, stranger = "111122223333", "444455556666"

// samples are values of members, by the service and the member's name, or by the name
// alone.
var samples = map[string]string{
	"QueueUrl": "http://localhost/" + owner + "/q", "QueueName": "q", "QueueOwnerAWSAccountId": owner,
	"SourceArn": "arn:aws:sqs:us-east-1:" + owner + ":q", "DestinationArn": "arn:aws:sqs:us-east-1:" + owner + ":r",
	"TaskHandle": "eyJ0YXNrSWQiOiJ4Iiwic291cmNlQXJuIjoiYXJuOmF3czpzcXM6dXMtZWFzdC0xOjExMTEyMjIyMzMzMzpxIn0=",
	"Name":       "t", "TopicArn": "arn:aws:sns:us-east-1:" + owner + ":t", "SubscriptionArn": "arn:aws:sns:us-east-1:" + owner + ":t:5be8f5b5-6a27-41a4-8c5a-3b1a3b1a3b1a",
	"sns.ResourceArn": "arn:aws:sns:us-east-1:" + owner + ":t", "Protocol": "sqs", "Endpoint": "arn:aws:sqs:us-east-1:" + owner + ":q",
	"FunctionName": "arn:aws:lambda:us-east-1:" + owner + ":function:f", "Role": "arn:aws:iam::" + owner + ":role/r", "Qualifier": "prod",
	"Resource": "arn:aws:lambda:us-east-1:" + owner + ":function:f", "UUID": "5be8f5b5-6a27-41a4-8c5a-3b1a3b1a3b1a",
	"EventSourceArn": "arn:aws:sqs:us-east-1:" + owner + ":q", "AlarmName": "a", "AlarmNames": "a", "ResourceARN": "arn:aws:cloudwatch:us-east-1:" + owner + ":alarm:a",
	"DashboardName": "d", "LogGroupName": "/g", "LogStreamName": "s", "logs.ResourceArn": "arn:aws:logs:us-east-1:" + owner + ":log-group:/g",
	"UserName": "anna", "RoleName": "r", "GroupName": "g", "PolicyName": "p", "PolicyArn": "arn:aws:iam::" + owner + ":policy/p",
	"RoleArn": "arn:aws:iam::" + owner + ":role/r", "AliasName": "alias/a",
	"PlatformApplicationArn": "arn:aws:sns:us-east-1:" + owner + ":app/GCM/t", "Platform": "GCM",
	"EndpointArn":         "arn:aws:sns:us-east-1:" + owner + ":endpoint/GCM/t/5be8f5b5-6a27-41a4-8c5a-3b1a3b1a3b1a",
	"DeliveryStreamName":  "s",
	"StackName":           "shop",
	"LayerName":           "arn:aws:lambda:us-east-1:" + owner + ":layer:l",
	"VersionNumber":       "1",
	"lambda.Arn":          "arn:aws:lambda:us-east-1:" + owner + ":layer:l:1",
	"DestinationArn.logs": "arn:aws:lambda:us-east-1:" + owner + ":function:f",
}

// fill sets the members of an input that name something: of a publish the topic only.
func fill(service string, in any) {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		value, ok := samples[service+"."+name]
		if !ok {
			value, ok = samples[name]
		}
		if !ok || name == "LogGroupIdentifier" {
			continue
		}
		switch f := v.Field(i); {
		case f.Kind() == reflect.String:
			f.SetString(value)
		case f.Kind() == reflect.Int:
			n, _ := strconv.Atoi(value)
			f.SetInt(int64(n))
		case f.Type() == reflect.TypeFor[*string]():
			f.Set(reflect.ValueOf(&value))
		case f.Type() == reflect.TypeFor[[]string]():
			f.Set(reflect.ValueOf([]string{value}))
		}
	}
	if f := v.FieldByName("LogGroupIdentifier"); f.IsValid() && !v.FieldByName("LogGroupName").IsValid() {
		value := samples["LogGroupName"]
		if f.Kind() == reflect.String {
			f.SetString(value)
		} else {
			f.Set(reflect.ValueOf(&value))
		}
	}
}

// world is what a case says of policies.
type world struct {
	identity, session  []*policy.Policy
	boundary, resource *policy.Policy
}

func (w *world) PoliciesOf(*caller.Caller) (identity []*policy.Policy, boundary *policy.Policy, session []*policy.Policy, err error) {
	return w.identity, w.boundary, w.session, nil
}
func (w *world) PolicyOf(context.Context, arn.ARN) *policy.Policy  { return w.resource }
func (w *world) TagsOf(context.Context, arn.ARN) map[string]string { return nil }

// statements are documents of the matrix: on all actions of a list, or none.
func statements(effect string, needs []authorize.Need, principal string) string {
	var all []string
	for i := range needs {
		s := `{"Effect":"` + effect + `","Action":"` + needs[i].Action + `","Resource":"` + needs[i].Resource + `"`
		if principal != "" {
			s += `,"Principal":{"AWS":"` + principal + `"}`
		}
		all = append(all, s+"}")
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(all, ",") + `]}`
}

func identityPolicy(t *testing.T, doc string) *policy.Policy {
	t.Helper()
	p, err := policy.ParseIdentity(doc)
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return p
}

const (
	allowAll = `{"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`
	silent   = `{"Statement":{"Effect":"Allow","Action":"none:None","Resource":"*"}}`
)

// free are the operations that need no permission, as with AWS; elsewhere those that decide
// themselves, as a test of test/sdk says: TestAssumeRoleWithWebIdentity.
var (
	free      = []string{"sts.GetCallerIdentity", "sts.GetSessionToken"}
	elsewhere = []string{"sts.AssumeRoleWithWebIdentity"}
)

// TestDocumented: what is answered is in docs/compatibility.md, by its name, or, of Firehose,
// as one of so many. (Those of IAM stand there in groups.)
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	for service, operations := range tables() {
		switch service {
		case "iam":
		case "firehose":
			if !strings.Contains(string(text), fmt.Sprintf("all %d actions; see [firehose.md]", len(operations))) {
				t.Errorf("docs/compatibility.md does not tell of %d actions of Firehose", len(operations))
			}
		default:
			for _, op := range operations {
				if !regexp.MustCompile(`\b` + op.Name + `\b`).Match(text) {
					t.Errorf("docs/compatibility.md does not name %s", op.Name)
				}
			}
		}
	}
}

// TestTablesAreAll: what is served is what the matrix has, so that no service is added without
// it.
func TestTablesAreAll(t *testing.T) {
	s := &state{
		modules: modules{deliveryStreams: &streaming.Streaming{}}, engine: &shard.Engine{Direct: &direct.Publishing{}}, monitoring: &monitoring.Monitoring{},
	}
	r := &running{senders: &senders.Senders{Mails: &mailing.Mailing{Sender: &mailsender.Sender{}}, Texts: &texting.Texting{Sender: &smssender.Sender{}}}}
	all := tables()
	for _, service := range services(Deps{OnStop: func(string, func(context.Context) error) {}}, s, r, lambda.New(lambda.Options{}), nil) {
		if all[service.Name] == nil {
			t.Errorf("%s is served, and not in the matrix", service.Name)
		}
		delete(all, service.Name)
	}
	for name := range all {
		t.Errorf("%s is in the matrix, and not served", name)
	}
}

// TestMatrix: every action of every service, by everybody whom policies tell apart.
func TestMatrix(t *testing.T) {
	cases := 0
	for service, operations := range tables() {
		for _, op := range operations {
			t.Run(service+"."+op.Name, func(t *testing.T) { cases += testOperation(t, service, op) })
		}
	}
	if cases < 8*100 {
		t.Errorf("only %d cases", cases)
	}
}

// auditLine is the last record of an audit log.
type auditLine struct{ text []byte }

func (l *auditLine) Write(_ time.Time, line []byte) error {
	l.text = bytes.Clone(line)
	return nil
}

// TestAuditNamesResources: where an action is allowed on one resource, the audit log has its name.
func TestAuditNamesResources(t *testing.T) {
	last := &auditLine{}
	trail := audit.New(audit.Options{Sinks: []audit.Sink{last}, Data: true, Logger: slog.New(slog.DiscardHandler), NewID: func() string { return "id" }})
	looked := 0
	for service, operations := range tables() {
		for _, op := range operations {
			in := op.New()
			fill(service, in)
			call := api.Call{Service: service, Operation: op.Name, Region: "us-east-1", Account: owner, Caller: authorize.RootOf(owner), Time: time.Unix(1772366400, 0)}
			needs, err := op.Access(t.Context(), &call, in)
			one := slices.ContainsFunc(needs, func(n authorize.Need) bool {
				a, err := arn.Parse(n.Resource)
				return err == nil && strings.Trim(a.Resource, "*/:") != "" && a.Resource != "log-group::log-stream:" && !strings.HasSuffix(a.Resource, "/") // all of them, or all below a path
			})
			if err != nil || !one {
				continue
			}
			looked++
			trail.Call(&call, in, audit.Outcome{Status: 200})
			var record struct{ RequestParameters map[string]any }
			if err := json.Unmarshal(last.text, &record); err != nil {
				t.Fatal(err)
			}
			if len(record.RequestParameters) == 0 {
				t.Errorf("%s.%s is on %s, and the audit log has no name", service, op.Name, needs[0].Resource)
			}
		}
	}
	if looked < 150 {
		t.Errorf("only %d actions are on one resource", looked)
	}
}

func testOperation(t *testing.T, service string, op api.Operation) (cases int) {
	if op.Access == nil {
		t.Fatal("nobody says what it needs to be allowed")
	}
	in := op.New()
	fill(service, in)
	ask := func(who *caller.Caller, w *world) error {
		cases++
		call := api.Call{
			Service: service, Operation: op.Name, Region: "us-east-1", Account: who.Account, AccessKey: "AKIAX", Caller: who,
			Host: "http://localhost", RemoteAddr: "203.0.113.7:4711", Time: time.Unix(1772366400, 0),
		}
		if who.Kind == caller.Anonymous {
			call.Account, call.AccessKey = owner, ""
		}
		return guarded(&authorize.Authorizer{Identities: w, Resources: w})(context.Background(), &call, &op, in)
	}
	user := &caller.Caller{Kind: caller.User, Account: owner, ARN: "arn:aws:iam::" + owner + ":user/anna", ID: "AIDAANNAANNAANNAANNA2", Name: "anna"}
	call := api.Call{Service: service, Operation: op.Name, Region: "us-east-1", Account: owner, AccessKey: "AKIAX", Caller: user}
	needs, err := op.Access(t.Context(), &call, in)
	if err != nil {
		t.Fatalf("what it needs cannot be told: %v", err)
	}
	if len(needs) == 0 {
		if !slices.Contains(free, service+"."+op.Name) {
			t.Error("it needs nothing, which is not known of it")
		}
		return 0
	}
	inside := slices.ContainsFunc(needs, func(n authorize.Need) bool { return n.Inside })
	if inside && service != "kms" && !slices.Contains(elsewhere, service+"."+op.Name) { // TestMatrixOfKeys has those of KMS
		t.Error("no test is known of what it decides itself")
	}
	if needs = slices.DeleteFunc(slices.Clone(needs), func(n authorize.Need) bool { return n.Inside }); len(needs) == 0 {
		return 0
	}
	absent := needs[0].Absent // what others are told instead
	allowed := func(what string, who *caller.Caller, w *world) {
		t.Helper()
		if err := ask(who, w); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	denied := func(what, because string, who *caller.Caller, w *world) {
		t.Helper()
		err := ask(who, w)
		said, _ := refusal.Of(err)
		switch {
		case err == nil:
			t.Errorf("%s is allowed", what)
		case absent != nil && who.Account != owner:
			if !errors.Is(err, absent) {
				t.Errorf("%s: %v", what, err)
			}
		case fault.KindOf(err) != fault.AccessDenied || !strings.Contains(said.Message, because) || !strings.HasPrefix(said.Message, "User: "):
			t.Errorf("%s: %v", what, err)
		}
	}
	if needs[0].Must {
		return testMust(t, needs, user, ask)
	}
	exactly := identityPolicy(t, statements("Allow", needs, ""))
	if !op.Open {
		denied("without credentials", "User: anonymous is not authorized", &caller.Caller{}, &world{identity: []*policy.Policy{exactly}})
	}
	allowed("the account's root", authorize.RootOf(owner), &world{})
	denied("no permission", "because no identity-based policy allows the ", user, &world{})
	denied("another permission", "because no identity-based policy allows the ", user, &world{identity: []*policy.Policy{identityPolicy(t, silent)}})
	allowed("allowed by identity", user, &world{identity: []*policy.Policy{exactly}})
	for i := range needs { // each of them is needed
		denied("explicit deny of "+needs[i].Action, "with an explicit deny in an identity-based policy", user,
			&world{identity: []*policy.Policy{identityPolicy(t, allowAll), identityPolicy(t, statements("Deny", needs[i:i+1], ""))}})
		denied("boundary", "because no permissions boundary allows the ", user, &world{identity: []*policy.Policy{exactly}, boundary: identityPolicy(t, silent)})
		denied("session", "because no session policy allows the ", user, &world{identity: []*policy.Policy{exactly}, session: []*policy.Policy{identityPolicy(t, silent)}})
	}
	testResource(t, needs, user, allowed, denied)
	call.Account = stranger
	if needs, err = op.Access(t.Context(), &call, in); err != nil {
		return cases // what is others' cannot be named
	}
	needs = slices.DeleteFunc(slices.Clone(needs), func(n authorize.Need) bool { return n.Inside })
	testStranger(t, needs, allowed, denied)
	return cases
}

// testMust: what the resource's policy has to allow, as assuming a role.
func testMust(t *testing.T, needs []authorize.Need, user *caller.Caller, ask func(*caller.Caller, *world) error) int {
	t.Helper()
	all := []*policy.Policy{identityPolicy(t, allowAll)}
	zoe := &caller.Caller{Kind: caller.User, Account: stranger, ARN: "arn:aws:iam::" + stranger + ":user/zoe", ID: "AIDAZOEZOEZOEZOEZOEZ2", Name: "zoe"}
	for i, tt := range []struct {
		who     *caller.Caller
		w       world
		allowed bool
	}{
		{&caller.Caller{}, world{}, false},
		{authorize.RootOf(owner), world{}, false},
		{user, world{identity: all}, false},
		{user, world{resource: resourcePolicy(t, "Allow", needs, user.ARN)}, true},
		{user, world{resource: resourcePolicy(t, "Allow", needs, owner)}, false},
		{user, world{identity: all, resource: resourcePolicy(t, "Allow", needs, owner)}, true},
		{user, world{identity: all, resource: resourcePolicy(t, "Deny", needs, owner)}, false},
		{user, world{identity: all, resource: resourcePolicy(t, "Allow", needs, owner), boundary: identityPolicy(t, silent)}, false},
		{user, world{identity: all, resource: resourcePolicy(t, "Allow", needs, owner), session: []*policy.Policy{identityPolicy(t, silent)}}, false},
		{zoe, world{identity: all}, false},
		{zoe, world{resource: resourcePolicy(t, "Allow", needs, stranger)}, false},
		{zoe, world{identity: all, resource: resourcePolicy(t, "Allow", needs, stranger)}, true},
	} {
		if err := ask(tt.who, &tt.w); (err == nil) != tt.allowed {
			t.Errorf("case %d, %s: %v", i, tt.who.ARN, err)
		}
	}
	return 12
}

// testResource: what a resource's policy can give its own account.
func testResource(t *testing.T, needs []authorize.Need, user *caller.Caller,
	allowed func(string, *caller.Caller, *world), denied func(string, string, *caller.Caller, *world),
) {
	t.Helper()
	if !everyShared(needs) {
		denied("a policy that the resource cannot have", "because no identity-based policy allows the ", user, &world{resource: resourcePolicy(t, "Allow", needs, user.ARN)})
		return
	}
	allowed("allowed by resource", user, &world{resource: resourcePolicy(t, "Allow", needs, user.ARN)})
	denied("the account named by the resource", "because no identity-based policy allows the ", user, &world{resource: resourcePolicy(t, "Allow", needs, owner)})
	denied("denied by resource", "with an explicit deny in a resource-based policy", user,
		&world{identity: []*policy.Policy{identityPolicy(t, allowAll)}, resource: resourcePolicy(t, "Deny", needs, user.ARN)})
}

// testStranger: what another account may do with the resources that the request names.
func testStranger(t *testing.T, needs []authorize.Need, allowed func(string, *caller.Caller, *world), denied func(string, string, *caller.Caller, *world)) {
	t.Helper()
	var foreign []authorize.Need
	for _, n := range needs {
		if n.Account != "" && n.Account != stranger {
			foreign = append(foreign, n)
		}
	}
	if len(foreign) == 0 {
		return // the request names nothing of others
	}
	root := authorize.RootOf(stranger)
	user := &caller.Caller{Kind: caller.User, Account: stranger, ARN: "arn:aws:iam::" + stranger + ":user/zoe", ID: "AIDAZOEZOEZOEZOEZOEZ2", Name: "zoe"}
	all := []*policy.Policy{identityPolicy(t, allowAll)}
	denied("another account's root", "because no resource-based policy allows the ", root, &world{})
	denied("another account's user", "because no resource-based policy allows the ", user, &world{identity: all})
	grant := resourcePolicy(t, "Allow", foreign, stranger)
	if !everyShared(foreign) {
		denied("another account, by a policy that the resource cannot have", "because no resource-based policy allows the ", root, &world{resource: grant})
		return
	}
	allowed("another account's root, by resource", root, &world{resource: grant})
	allowed("another account's user, by both", user, &world{identity: all, resource: grant})
	denied("another account's user, by resource alone", "because no identity-based policy allows the ", user, &world{resource: grant})
	denied("another account's user, capped", "because no permissions boundary allows the ", user, &world{identity: all, boundary: identityPolicy(t, silent), resource: grant})
	denied("another account's user, denied there", "with an explicit deny in a resource-based policy", user,
		&world{identity: all, resource: resourcePolicy(t, "Deny", foreign, stranger)})
}

func everyShared(needs []authorize.Need) bool {
	for i := range needs {
		if !needs[i].Shared {
			return false
		}
	}
	return true
}

func resourcePolicy(t *testing.T, effect string, needs []authorize.Need, principal string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse(statements(effect, needs, principal))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
