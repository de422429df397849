package policy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/policy"
)

const account, otherAccount = "111122223333", "444455556666"

// callers are who the tables speak of.
var callers = map[string]*caller.Caller{
	"root": {Kind: caller.Root, Account: account, ARN: "arn:aws:iam::111122223333:root", ID: account},
	"user": {Kind: caller.User, Account: account, ARN: "arn:aws:iam::111122223333:user/anna", ID: "AIDAANNAANNAANNAANNA2", Name: "anna"},
	"session": {
		Kind: caller.Session, Account: account, ARN: "arn:aws:sts::111122223333:assumed-role/reader/anna", ID: "AROAREADERREADERREAD2:anna", Name: "anna",
		Role: "arn:aws:iam::111122223333:role/reader", RoleID: "AROAREADERREADERREAD2",
	},
	"federated": {Kind: caller.Federated, Account: account, ARN: "arn:aws:sts::111122223333:federated-user/anna", Name: "anna"},
	"service":   {Kind: caller.Service, Services: []string{"sns.amazonaws.com", "sns.us-east-1.amazonaws.com"}},
	"web":       {Kind: caller.Anonymous, Provider: "arn:aws:iam::111122223333:oidc-provider/id.example.com"},
	"nobody":    {},
}

// eachCase calls f with the lines of a table that are cases, and returns their number.
func eachCase(t *testing.T, name string, f func(t *testing.T, line string)) (cases int) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	source := ""
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		switch line := lines.Text(); {
		case line == "" || line[0] == '#':
		case line[0] == '=':
			source = line
		case source == "":
			t.Fatalf("%s:%d says not where it comes from", name, number)
		default:
			cases++
			t.Run(fmt.Sprintf("%s:%d", name, number), func(t *testing.T) { f(t, line) })
		}
	}
	return cases
}

// TestTables: what AWS documents, case by case.
func TestTables(t *testing.T) {
	cases := eachCase(t, "conditions.txt", testCondition) + eachCase(t, "elements.txt", testElement) + eachCase(t, "decisions.txt", testDecision)
	if cases < 400 {
		t.Errorf("only %d cases", cases)
	}
}

func testCondition(t *testing.T, line string) {
	version := policy.Version2012
	if rest, old := strings.CutPrefix(line, "2008 "); old {
		version, line = policy.Version2008, rest
	}
	want, line, _ := strings.Cut(line, " ")
	operator, line, _ := strings.Cut(strings.TrimSpace(line), " ")
	operands, values, ok := cutObjects(line)
	if !ok {
		t.Fatal("the line cannot be read")
	}
	var have keys
	if err := json.Unmarshal([]byte(values), &have); err != nil {
		t.Fatal(err)
	}
	p, err := policy.ParseIdentity(`{"Version":"` + version + `","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"` + operator + `":` + operands + `}}}`)
	if err != nil {
		t.Fatal(err)
	}
	r := policy.Request{Caller: callers["user"], Action: "sqs:SendMessage", Resource: queue, Context: have}
	if got := p.Evaluate(&r) == policy.Allow; got != (want == "yes") {
		t.Errorf("%s %s with %s: %t", operator, operands, values, got)
	}
}

// cutObjects takes two objects of JSON apart that stand behind one another.
func cutObjects(line string) (first, second string, ok bool) {
	dec := json.NewDecoder(strings.NewReader(line))
	var one, two json.RawMessage
	ok = dec.Decode(&one) == nil && dec.Decode(&two) == nil
	return string(one), string(two), ok
}

func testElement(t *testing.T, line string) {
	want, line, _ := strings.Cut(line, " ")
	element, line, _ := strings.Cut(strings.TrimSpace(line), " ")
	dec := json.NewDecoder(strings.NewReader(line))
	var said json.RawMessage
	if err := dec.Decode(&said); err != nil {
		t.Fatal(err)
	}
	asked := strings.TrimSpace(line[dec.InputOffset():])
	members := map[string]string{"Effect": `"Allow"`, "Principal": `"*"`, "Action": `"*"`, "Resource": `"*"`}
	r := policy.Request{
		Caller: callers["user"], Action: "sqs:SendMessage", Resource: queue, Owner: account,
		Context: keys{"aws:username": {"anna"}, "aws:stars": {"a*"}},
	}
	form := ""
	switch element {
	case "action":
		members["Action"], r.Action = string(said), asked
	case "notaction":
		delete(members, "Action")
		members["NotAction"], r.Action = string(said), asked
	case "resource":
		members["Resource"], r.Resource = string(said), asked
	case "notresource":
		delete(members, "Resource")
		members["NotResource"], r.Resource = string(said), asked
	default:
		var name string
		name, form, _ = strings.Cut(asked, " ")
		r.Caller = callers[name]
		delete(members, "Principal")
		switch element {
		case "notdenied":
			members["Effect"] = `"Deny"`
			fallthrough
		case "notprincipal":
			members["NotPrincipal"] = string(said)
		case "deny":
			members["Effect"] = `"Deny"`
			fallthrough
		default:
			members["Principal"] = string(said)
		}
	}
	doc := ""
	for name, value := range members {
		doc += `,"` + name + `":` + value
	}
	p, err := policy.Parse(`{"Version":"2012-10-17","Statement":[{` + doc[1:] + `}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Evaluate(&r) != policy.ImplicitDeny; got != (want == "yes") {
		t.Errorf("%s %s of %s: %t", element, said, asked, got)
	}
	if form == "" || form == "-" {
		return
	}
	// The form is known where the resource's policy decides.
	r.Owner = account
	if result := policy.Decide(&r, &policy.Policies{Resource: p, Rule: policy.ResourceSide, Identity: []*policy.Policy{everything(t)}}); form != result.Form.String() && form != "account" {
		t.Errorf("%s %s of %s is named as %q", element, said, asked, result.Form)
	}
}

// everything is an identity's policy that allows everything.
func everything(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := policy.ParseIdentity(`{"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// named are the principals of the table of decisions.
var named = map[string]string{
	"all": `"*"`, "account": `{"AWS":"111122223333"}`, "role": `{"AWS":"arn:aws:iam::111122223333:role/reader"}`,
	"user": `{"AWS":"arn:aws:iam::111122223333:user/anna"}`, "session": `{"AWS":"arn:aws:sts::111122223333:assumed-role/reader/anna"}`,
	"fed": `{"AWS":"arn:aws:sts::111122223333:federated-user/anna"}`, "service": `{"Service":"sns.amazonaws.com"}`,
	"web": `{"Federated":"arn:aws:iam::111122223333:oidc-provider/id.example.com"}`, "other": `{"AWS":"arn:aws:iam::999999999999:user/zoe"}`,
}

func testDecision(t *testing.T, line string) {
	given, want, _ := strings.Cut(line, " => ")
	words := strings.Fields(given)
	r := policy.Request{Caller: callers[words[0]], Action: "sqs:SendMessage", Resource: queue, Owner: account}
	var p policy.Policies
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "identity":
			for said := range strings.SplitSeq(value, ",") {
				p.Identity = append(p.Identity, saying(t, said))
			}
		case "boundary":
			p.Boundary = saying(t, strings.Split(value, ",")...)
		case "session":
			if p.Capped = true; value != "gone" {
				p.Session = append(p.Session, saying(t, strings.Split(value, ",")...))
			}
		case "resource":
			effect, who, _ := strings.Cut(value, ":")
			element := "Principal"
			if rest, not := strings.CutPrefix(who, "not-"); not {
				who, element = rest, "NotPrincipal"
			}
			var err error
			if p.Resource, err = policy.Parse(`{"Statement":{"Effect":"` + effects[effect] + `","` + element + `":` + named[who] +
				`,"Action":"sqs:*","Resource":"*"}}`); err != nil {
				t.Fatal(err)
			}
		case "rule":
			p.Rule = policy.ResourceSide
		case "granted":
			p.Granted = true
		case "owner":
			r.Owner = otherAccount
		default:
			t.Fatalf("%q is not understood", word)
		}
	}
	result := policy.Decide(&r, &p)
	kind := map[policy.Kind]string{
		policy.NoKind: "none", policy.Identity: "identity", policy.Resource: "resource", policy.Boundary: "boundary", policy.Session: "session",
	}[result.Kind]
	got := strings.TrimSpace(result.Decision.String() + " " + kind + " " + result.Form.String())
	if got != want {
		t.Errorf("%s: %s, want %s", given, got, want)
	}
	if decided := result.Decision == policy.ExplicitDeny || result.Allowed() && result.Kind != policy.NoKind && !p.Granted; decided != (result.Statement != nil) {
		t.Errorf("%s: the statement that decided is %v", given, result.Statement)
	}
}

var effects = map[string]string{"allow": "Allow", "deny": "Deny"}

// saying is a policy of an identity that allows, denies, or speaks of something else.
func saying(t *testing.T, words ...string) *policy.Policy {
	t.Helper()
	var all []string
	for _, word := range words {
		statement := `{"Effect":"Allow","Action":"iam:GetUser","Resource":"*"}`
		if word != "silent" {
			statement = `{"Effect":"` + effects[word] + `","Action":"sqs:*","Resource":"*"}`
		}
		all = append(all, statement)
	}
	p, err := policy.ParseIdentity(`{"Statement":[` + strings.Join(all, ",") + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
