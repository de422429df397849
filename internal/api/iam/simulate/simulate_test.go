package simulate_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/api/iam/entity/entitytest"
	"godwit.dev/godwit/internal/api/iam/simulate"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

const (
	account = "111122223333"
	queue   = "arn:aws:sqs:us-east-1:111122223333:q"
)

func newAsker(t *testing.T) *apitest.Asker {
	t.Helper()
	e := entitytest.New(account)
	err := e.Run(account, func(a *iam.Account, now time.Time) error {
		for _, e := range []*iam.Entity{
			{Kind: iam.User, Path: "/", Name: "alice", ID: "AIDAALICE", Created: now},
			{Kind: iam.Group, Path: "/", Name: "team", ID: "AGPATEAM", Created: now},
		} {
			if err := a.Create(e); err != nil {
				return err
			}
		}
		return a.PutInline(iam.User, "alice", "sends", allow("sqs:SendMessage", queue))
	})
	if err != nil {
		t.Fatal(err)
	}
	return apitest.New(t, simulate.New(e).Operations(), func(operation string) *api.Call {
		return &api.Call{Operation: operation, Region: "us-east-1", Account: account}
	})
}

func statement(effect, action, resource, more string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"` + effect + `","Action":"` + action + `","Resource":"` + resource + `"` + more + `}]}`
}

func allow(action, resource string) string { return statement("Allow", action, resource, "") }

// texts is a list of texts in JSON.
func texts(all ...string) string {
	for i, text := range all {
		all[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	return "[" + strings.Join(all, ",") + "]"
}

// TestCustomPolicy decides by what the request brings, alone.
func TestCustomPolicy(t *testing.T) {
	a := newAsker(t)
	for _, c := range []struct{ in, want string }{
		{`"PolicyInputList":` + texts(allow("sqs:*", queue)) + `,"ActionNames":["sqs:SendMessage"],"ResourceArns":["` + queue + `"]`, `"EvalDecision":"allowed","MatchedStatements":[{"SourcePolicyId":"PolicyInputList.1","SourcePolicyType":"none","StartPosition":{"Line":1,"Column":38}`},
		{`"PolicyInputList":` + texts(allow("sqs:*", queue)) + `,"ActionNames":["sqs:SendMessage"],"ResourceArns":["` + queue + `2"]`, `"EvalDecision":"implicitDeny","MatchedStatements":[]`},
		{`"PolicyInputList":` + texts(allow("*", "*"), statement("Deny", "sqs:Purge*", "*", "")) + `,"ActionNames":["sqs:PurgeQueue"]`, `"EvalResourceName":"*","EvalDecision":"explicitDeny","MatchedStatements":[{"SourcePolicyId":"PolicyInputList.2"`},
		{`"PolicyInputList":` + texts(allow("*", "*")) + `,"PermissionsBoundaryPolicyInputList":` + texts(allow("sns:*", "*")) + `,"ActionNames":["sqs:PurgeQueue"]`, `"EvalDecision":"implicitDeny"`},
		{`"PolicyInputList":` + texts(allow("*", "*")) + `,"PermissionsBoundaryPolicyInputList":` + texts(allow("sns:*", "*")) + `,"ActionNames":["sns:Publish"]`, `"PermissionsBoundaryDecisionDetail":{"AllowedByPermissionsBoundary":true}`},
		{`"PolicyInputList":` + texts(statement("Allow", "*", "*", `,"Condition":{"StringEquals":{"aws:SourceVpc":"v"}}`)) + `,"ActionNames":["a:b"]`, `"EvalDecision":"implicitDeny","MatchedStatements":[],"MissingContextValues":["aws:SourceVpc"]`},
		{`"PolicyInputList":` + texts(statement("Allow", "*", "*", `,"Condition":{"StringEquals":{"aws:SourceVpc":"v"}}`)) + `,"ActionNames":["a:b"],"ContextEntries":[{"ContextKeyName":"AWS:sourcevpc","ContextKeyValues":["v"]}]`, `"EvalDecision":"allowed"`},
		{`"PolicyInputList":` + texts(allow("*", "*")) + `,"ActionNames":["a:b","a:c"],"MaxItems":1`, `"IsTruncated":true`},
	} {
		a.Check("SimulateCustomPolicy", "{"+c.in+"}", apitest.Answered, c.want)
	}
	a.Check("SimulateCustomPolicy", `{"PolicyInputList":["no policy"],"ActionNames":["a:b"]}`, fault.InvalidInput, "Invalid Input PolicyInputList.1: Syntax errors in policy.")
	a.Check("SimulateCustomPolicy", `{"PolicyInputList":[],"ActionNames":["none"]}`, fault.InvalidInput, "Invalid Action Name: none")
	a.Check("SimulateCustomPolicy", `{"PolicyInputList":`+texts(allow("*", "*"))+`,"PermissionsBoundaryPolicyInputList":`+texts(allow("*", "*"), allow("sns:*", "*"))+`,"ActionNames":["a:b"]}`,
		fault.InvalidInput, "Only one permissions boundary can be simulated.")
	a.Check("GetContextKeysForCustomPolicy", `{"PolicyInputList":`+texts(statement("Allow", "*", "*", `,"Condition":{"StringEquals":{"aws:SourceVpc":"v"},"Null":{"aws:SourceVpc":"true"}}`))+`}`, apitest.Answered, `{"ContextKeyNames":["aws:SourceVpc"]}`)
}

// TestPrincipalPolicy decides by what a user has, and what the request adds.
func TestPrincipalPolicy(t *testing.T) {
	a := newAsker(t)
	const alice = `"PolicySourceArn":"arn:aws:iam::111122223333:user/alice"`
	a.Check("SimulatePrincipalPolicy", `{`+alice+`,"ActionNames":["sqs:SendMessage"],"ResourceArns":["`+queue+`"]}`, apitest.Answered, `"EvalDecision":"allowed"`)
	a.Check("SimulatePrincipalPolicy", `{`+alice+`,"ActionNames":["sqs:DeleteQueue"],"ResourceArns":["`+queue+`"]}`, apitest.Answered, `"EvalDecision":"implicitDeny"`)
	a.Check("SimulatePrincipalPolicy", `{`+alice+`,"PolicyInputList":`+texts(allow("sqs:DeleteQueue", "*"))+`,"ActionNames":["sqs:DeleteQueue"]}`, apitest.Answered, `"EvalDecision":"allowed"`)
	a.Check("SimulatePrincipalPolicy", `{"PolicySourceArn":"arn:aws:iam::111122223333:user/nobody","ActionNames":["a:b"]}`, fault.NoSuchEntity, "nobody")
	a.Check("SimulatePrincipalPolicy", `{"PolicySourceArn":"arn:aws:sqs:::q","ActionNames":["a:b"]}`, fault.InvalidInput, "does not clearly define entity type and name")
	// The Principal of a resource's policy needs a user: the source's, or CallerArn.
	resource := `,"ActionNames":["sqs:DeleteQueue"],"ResourceArns":["` + queue + `"],"ResourcePolicy":` +
		strings.Trim(texts(statement("Allow", "sqs:DeleteQueue", queue, `,"Principal":{"AWS":"arn:aws:iam::111122223333:user/alice"}`)), "[]")
	const team = `"PolicySourceArn":"arn:aws:iam::111122223333:group/team"`
	a.Check("SimulatePrincipalPolicy", `{`+alice+resource+`}`, apitest.Answered, `"EvalDecision":"allowed"`)
	a.Check("SimulatePrincipalPolicy", `{`+team+resource+`}`, fault.InvalidInput, "CallerArn is required")
	a.Check("SimulatePrincipalPolicy", `{`+team+resource+`,"CallerArn":"arn:aws:iam::111122223333:user/alice"}`, apitest.Answered, `"EvalDecision":"allowed"`)
	a.Check("GetContextKeysForPrincipalPolicy", `{`+alice+`}`, apitest.Answered, `{"ContextKeyNames":[]}`)
}

// A request may have any number of pairs of an action and a resource: a page evaluates those that it
// has, and ends early where they are expensive. The pages have each pair once.
func TestSimulationIsBounded(t *testing.T) {
	a := newAsker(t)
	many := func(n int, prefix string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = prefix + strconv.Itoa(i)
		}
		return texts(all...)
	}
	in := `{"PolicyInputList":` + texts(allow("sqs:*", queue)) + `,"ActionNames":` + many(20_000, "sqs:A") + `,"ResourceArns":` + many(20_000, queue) + `,"MaxItems":3`
	a.Check("SimulateCustomPolicy", in+`}`, apitest.Answered, `"EvalActionName":"sqs:A0","EvalResourceName":"`+queue+`2"`)

	large := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":` + many(3000, queue) + `}]}`
	in = `{"PolicyInputList":` + texts(large) + `,"ActionNames":["sqs:A","sqs:B"],"ResourceArns":` + many(400, queue) + `,"MaxItems":1000`
	pages, got := 0, []string{}
	for marker := ""; pages == 0 || marker != ""; pages++ {
		text, err := a.Ask("SimulateCustomPolicy", in+marker+`}`)
		if err != nil {
			t.Fatal(err)
		}
		var out simulate.SimulationOutput
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.EvaluationResults {
			got = append(got, r.EvalActionName+" "+r.EvalResourceName+" "+r.EvalDecision)
		}
		if marker = ""; out.IsTruncated {
			marker = `,"Marker":"` + out.Marker + `"`
		}
	}
	if first, last := "sqs:A "+queue+"0 allowed", "sqs:B "+queue+"399 allowed"; len(got) != 800 || got[0] != first || got[799] != last || pages < 2 {
		t.Errorf("%d results in %d pages, from %s to %s", len(got), pages, got[0], got[len(got)-1])
	}
	a.Check("SimulateCustomPolicy", `{"PolicyInputList":[],"ActionNames":["a:b"],"Marker":"none"}`, fault.ValidationFailed, "Invalid Marker.")
}
