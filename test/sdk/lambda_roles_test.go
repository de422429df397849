package sdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"godwit.dev/godwit/internal/config"
)

// allow is a policy that allows actions on a resource.
func allow(resource string, actions ...string) string {
	list, _ := json.Marshal(actions) // strings
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":` + string(list) + `,"Resource":"` + resource + `"}]}`
}

// role makes a role that Lambda may assume and that may what the policy says, and gives
// its ARN; change is what it may from then on. The role of a name that is there is changed.
func role(t *testing.T, c *iam.Client, name, policy string) (roleARN string) {
	t.Helper()
	_, _ = c.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(lambdaTrust)})
	must(c.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: &name, PolicyName: aws.String("may"), PolicyDocument: &policy}))(t)
	return "arn:aws:iam::" + account + ":role/" + name
}

// nothing allows nothing.
const nothing = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"sqs:*","Resource":"arn:aws:sqs:us-east-1:000000000000:nobody"}]}`

// ownCall is a request of a function with its own credentials.
type ownCall struct {
	Service string `json:"service"`
	Type    string `json:"type"`
	Target  string `json:"target,omitempty"`
	Method  string `json:"method,omitempty"`
	Path    string `json:"path"`
	Body    string `json:"body"`
}

// callAs has a function make a request, and gives what was answered.
func callAs(t *testing.T, c *lambda.Client, name string, request ownCall) (status int, body string) {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"call": request})
	if err != nil {
		t.Fatal(err)
	}
	out := invoke(t, c, name, string(payload))
	var got struct {
		Status int
		Body   string
	}
	if err := json.Unmarshal(out.Payload, &got); err != nil || out.FunctionError != nil {
		t.Fatalf("%s: %s", name, out.Payload)
	}
	return got.Status, got.Body
}

func sendAs(queue string) ownCall {
	return ownCall{
		Service: "sqs", Type: "application/x-amz-json-1.0", Target: "AmazonSQS.SendMessage",
		Body: `{"QueueUrl":"http://localhost/000000000000/` + queue + `","MessageBody":"x"}`,
	}
}

var identityAs = ownCall{Service: "sts", Type: "application/x-www-form-urlencoded", Body: "Action=GetCallerIdentity&Version=2011-06-15"}

// variablesOf are the credentials in a function's environment.
func variablesOf(t *testing.T, c *lambda.Client, name string) (keys [3]string) {
	t.Helper()
	var all []string
	if err := json.Unmarshal(invoke(t, c, name, `{"env":true}`).Payload, &all); err != nil {
		t.Fatal(err)
	}
	for i, variable := range []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN="} {
		at := slices.IndexFunc(all, func(v string) bool { return strings.HasPrefix(v, variable) })
		if at < 0 {
			t.Fatalf("no %s", variable)
		}
		keys[i] = strings.TrimPrefix(all[at], variable)
	}
	return keys
}

const cannotAssume = "The role defined for the function cannot be assumed by Lambda."

// A function's own requests are those of a session of its role: they may what the role may
// at that moment, and nothing else.
func TestFunctionCredentials(t *testing.T) {
	endpoint := start(t)
	functions, identities, queues := functionsClient(endpoint), iamClientOf(endpoint, "test", secretOf("test"), ""), client(endpoint)
	createQueue(t, queues, "mine")
	createQueue(t, queues, "other")
	limited := role(t, identities, "limited", policyOf(`{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"`+queueARN("mine")+`"},`+
		`{"Effect":"Allow","Action":["godwit:*","lambda:CreateFunction"],"Resource":"*"}`))
	createProgram(t, functions, "f", func(in *lambda.CreateFunctionInput) { in.Role = &limited })

	if status, body := callAs(t, functions, "f", identityAs); status != http.StatusOK ||
		!strings.Contains(body, "<Arn>arn:aws:sts::000000000000:assumed-role/limited/f</Arn>") || !strings.Contains(body, ":f</UserId>") {
		t.Errorf("who: %d %s", status, body)
	}
	if status, body := callAs(t, functions, "f", sendAs("mine")); status != http.StatusOK {
		t.Errorf("what the role may: %d %s", status, body)
	}
	denied := func(what, text string, request ownCall) {
		t.Helper()
		if status, body := callAs(t, functions, "f", request); status != http.StatusForbidden || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	const session = "User: arn:aws:sts::000000000000:assumed-role/limited/f is not authorized to perform: "
	denied("another queue", session+"sqs:sendmessage on resource: "+queueARN("other"), sendAs("other"))
	denied("a role that it may not pass", session+"iam:PassRole on resource: "+roleARN, ownCall{
		Service: "lambda", Type: "application/json", Path: "2015-03-31/functions",
		Body: `{"FunctionName":"g","Role":"` + roleARN + `","PackageType":"Image","Code":{"ImageUri":"http://127.0.0.1:1/"}}`,
	})
	denied("a role that it may not assume", session+"sts:AssumeRole on resource: "+roleARN, ownCall{
		Service: "sts", Type: "application/x-www-form-urlencoded", Body: "Action=AssumeRole&Version=2011-06-15&RoleSessionName=x1&RoleArn=" + roleARN,
	})
	denied("what is the operator's", "", ownCall{Service: "godwit", Type: "text/plain", Method: http.MethodGet, Path: "_godwit/deliveries?topic=x"})

	// Taken out of the environment they are no more: functions are no operators.
	keys := variablesOf(t, functions, "f")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/_godwit/events?function="+functionARN("f"), nil)
	if err != nil {
		t.Fatal(err)
	}
	empty := sha256.Sum256(nil)
	if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: keys[0], SecretAccessKey: keys[1], SessionToken: keys[2]}, req, hex.EncodeToString(empty[:]), "godwit", region, time.Now()); err != nil {
		t.Fatal(err)
	}
	if r := do(t, req); r.Status != http.StatusForbidden {
		t.Errorf("a function as an operator: %d %s", r.Status, r.Body)
	}

	role(t, identities, "limited", nothing)
	denied("what the role might", session, sendAs("mine"))
}

// Credentials are renewed before they end: the environment is another one then. They go
// with the role, and nobody gets them but by a role that Lambda may assume.
func TestFunctionCredentialsEnd(t *testing.T) {
	endpoint := start(t)
	functions, identities := functionsClient(endpoint), iamClientOf(endpoint, "test", secretOf("test"), "")
	name := role(t, identities, "short", allow("*", "sqs:ListQueues"))
	createProgram(t, functions, "f", func(in *lambda.CreateFunctionInput) { in.Role = &name })
	first := variablesOf(t, functions, "f")
	advance(t, endpoint, "1h")
	if again := variablesOf(t, functions, "f"); again != first {
		t.Error("the environment was replaced before its credentials end")
	}
	advance(t, endpoint, "4h55m")
	second := variablesOf(t, functions, "f")
	if second[0] == first[0] || second[1] == first[1] || second[2] == first[2] || !strings.HasPrefix(second[0], "ASIA") {
		t.Error("the credentials were not renewed")
	}
	if status, body := callAs(t, functions, "f", identityAs); status != http.StatusOK {
		t.Errorf("the renewed ones: %d %s", status, body)
	}

	run := func() error {
		_, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("f")})
		return err
	}
	must(identities.DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: aws.String("short"), PolicyName: aws.String("may")}))(t)
	must(identities.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("short")}))(t)
	refused(t, run(), "AccessDeniedException", http.StatusForbidden, cannotAssume)
	role(t, identities, "short", nothing)
	if third := variablesOf(t, functions, "f"); third[0] == second[0] {
		t.Error("the credentials are the deleted role's")
	}
	must(identities.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("short"), PolicyDocument: aws.String(trustRoot)}))(t)
	advance(t, endpoint, "6h")
	refused(t, run(), "AccessDeniedException", http.StatusForbidden, cannotAssume)
}

// The credentials that a function had before a restart are good after it, and so are the
// new ones.
func TestFunctionCredentialsAfterRestart(t *testing.T) {
	besideOthers(t)
	endpoint, restart := startDiskWith(t, func(c *config.Config) {
		enforce(c)
		c.FunctionIsolation = isolation()
	})
	identities := iamClientOf(endpoint, rootKey, rootSecret, "")
	name := role(t, identities, "kept", allow("*", "sqs:ListQueues"))
	asRoot := func(endpoint string) *lambda.Client {
		return lambda.New(lambda.Options{BaseEndpoint: &endpoint, Region: region, Credentials: stsClientOf(endpoint, rootKey, rootSecret, "").Options().Credentials, RetryMaxAttempts: 1, HTTPClient: eager})
	}
	createProgram(t, asRoot(endpoint), "f", func(in *lambda.CreateFunctionInput) { in.Role = &name })
	before := variablesOf(t, asRoot(endpoint), "f")
	endpoint = restart()
	after := variablesOf(t, asRoot(endpoint), "f")
	if before[0] == after[0] {
		t.Error("the environment has the credentials of one before the restart")
	}
	for _, keys := range [][3]string{before, after} {
		who, err := stsClientOf(endpoint, keys[0], keys[1], keys[2]).GetCallerIdentity(t.Context(), nil)
		if err != nil || *who.Arn != "arn:aws:sts::000000000000:assumed-role/kept/f" {
			t.Errorf("%v, %v", who, err)
		}
	}
}

// Where nobody verifies who calls, a role need not be there; one that is gives its sessions.
func TestFunctionCredentialsInDevelopment(t *testing.T) {
	endpoint := startOpen(t)
	functions, identities := functionsClient(endpoint), iamClientOf(endpoint, "test", "secret", "")
	name := "arn:aws:iam::" + account + ":role/later"
	createProgram(t, functions, "f", func(in *lambda.CreateFunctionInput) { in.Role = &name })
	if keys := variablesOf(t, functions, "f"); keys[0] != account {
		t.Errorf("without the role: %v", keys)
	}
	role(t, identities, "later", nothing)
	if _, body := callAs(t, functions, "f", identityAs); !strings.Contains(body, ":assumed-role/later/f</Arn>") {
		t.Error(body)
	}
}

// A role has to be there, in the function's account, and to trust Lambda.
func TestFunctionRoleRefusals(t *testing.T) {
	endpoint := start(t)
	functions, identities := functionsClient(endpoint), iamClientOf(endpoint, "test", secretOf("test"), "")
	must(identities.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("mine"), AssumeRolePolicyDocument: aws.String(trustRoot)}))(t)
	must(identities.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("ones"), AssumeRolePolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole",` +
			`"Condition":{"ArnEquals":{"aws:SourceArn":"` + functionARN("one") + `"},"StringEquals":{"aws:SourceAccount":"` + account + `"}}}]}`)}))(t)
	others := iamClientOf(endpoint, "111122223333", secretOf("111122223333"), "")
	must(others.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("theirs"), AssumeRolePolicyDocument: aws.String(lambdaTrust)}))(t)
	const prefix = "arn:aws:iam::" + account + ":role/"
	create := func(name, role string) error {
		in := functionInput(t, name)
		in.Role = &role
		_, err := functions.CreateFunction(t.Context(), in)
		return err
	}
	for _, role := range []string{prefix + "none", prefix + "mine", prefix + "ones"} {
		refused(t, create("f", role), "InvalidParameterValueException", http.StatusBadRequest, cannotAssume)
	}
	if err := create("f", "arn:aws:iam::111122223333:role/theirs"); err == nil {
		t.Error("a function has the role of another account")
	}
	if err := create("one", prefix+"ones"); err != nil {
		t.Error(err)
	}
	_, err := functions.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("one"), Role: aws.String(prefix + "none")})
	refused(t, err, "InvalidParameterValueException", http.StatusBadRequest, cannotAssume)
	if got := configuration(t, functions, "one"); *got.Role != prefix+"ones" {
		t.Errorf("what was refused has changed the role: %s", *got.Role)
	}
}
