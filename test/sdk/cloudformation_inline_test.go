package sdk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/server"
	"godwit.dev/godwit/internal/shard/stacks"
	stackmachine "godwit.dev/godwit/internal/stack"
)

// taking takes a step of a stack.
type taking func(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration)

func (f taking) Do(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration) {
	return f(ctx, t)
}

// startMeddling is a server whose steps of stacks are taken by another one.
func startMeddling(t *testing.T, with func(w stacks.Worker) stacks.Worker) (endpoint string) {
	t.Helper()
	return startBuilt(t, func(ctx context.Context, deps server.Deps) (server.Parts, error) {
		deps.World.Deploying = with
		return withTestKeys(ctx, deps)
	}, func(*config.Config) {})
}

// inlineOf are the inline policies of a role, with what the first statement of each allows.
func inlineOf(t *testing.T, endpoint, role string) (all []string) {
	t.Helper()
	who := iamClient(endpoint)
	for _, name := range must(who.ListRolePolicies(t.Context(), &iam.ListRolePoliciesInput{RoleName: &role}))(t).PolicyNames {
		has := document(t, must(who.GetRolePolicy(t.Context(), &iam.GetRolePolicyInput{RoleName: &role, PolicyName: &name}))(t).PolicyDocument)
		_, action, _ := strings.Cut(has, `"Action":"`)
		action, _, _ = strings.Cut(action, `"`)
		all = append(all, name+" "+action)
	}
	return all
}

func trustedRole(t *testing.T, endpoint, name, trust string) string {
	t.Helper()
	return *must(iamClient(endpoint).CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust}))(t).Role.Arn
}

const clerksRights = `
Parameters: {Action: {Type: String, Default: "sqs:SendMessage"}, Name: {Type: String, Default: own}, Roles: {Type: CommaDelimitedList, Default: clerk}}
Resources:
  Rights:
    Type: AWS::IAM::Policy
    Properties: {PolicyName: !Ref Name, Roles: !Ref Roles, PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: !Ref Action, Resource: "*"}]}}
`

const managedElsewhere = "Policy resource was already managed by another stack or another resource in the current stack. Found stacks: "

// A role, user or group of a stack has its own policies for itself, as an AWS::IAM::Policy has its own:
// whichever comes second is refused, of another stack or of the same one.
func TestStackOwnPoliciesTaken(t *testing.T) {
	endpoint := start(t)
	c := cloudformationAs(endpoint, account)
	statement := func(action string) string {
		return "{Version: 2012-10-17, Statement: [{Effect: Allow, Action: '" + action + "', Resource: '*'}]}"
	}
	const trust = "AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: 'sts:AssumeRole'}]}, "
	own := func(action string) string {
		return "Policies: [{PolicyName: own, PolicyDocument: " + statement(action) + "}]"
	}
	holder := func(kind, more string) string {
		if kind == "Role" {
			more = trust + more
		}
		return "  Holder: {Type: AWS::IAM::" + kind + ", Properties: {" + kind + "Name: clerk, " + more + "}}\n"
	}
	policy := func(kind, action string) string {
		return "  Rights: {Type: AWS::IAM::Policy, Properties: {PolicyName: own, " + kind + "s: [clerk], PolicyDocument: " + statement(action) + "}}\n"
	}
	waits := func(of string) string { return strings.Replace(of, "Properties:", "DependsOn: Holder, Properties:", 1) }
	for _, kind := range []string{"Role", "User", "Group"} {
		first := deployed(t, c, "first", "Resources:\n"+holder(kind, own("sqs:SendMessage")))
		second := deployedBadly(t, c, "second", "Resources:\n"+policy(kind, "sqs:*"))
		second.told("Rights CREATE_FAILED: " + managedElsewhere + "[first|Holder]")
		second.remove()
		first.update(types.StackStatusUpdateRollbackComplete, "Resources:\n"+holder(kind, own("sqs:SendMessage"))+waits(policy(kind, "sqs:*")))
		first.told("Rights CREATE_FAILED: " + managedElsewhere + "[first|Holder]")
		// What the holder gives up another resource of its stack has from then on, and not if they are rolled back.
		moved := "Resources:\n" + holder(kind, "ManagedPolicyArns: []") + waits(policy(kind, "sqs:*"))
		if kind == "Role" {
			equal(t, "policies", []string{"own sqs:SendMessage"}, inlineOf(t, endpoint, "clerk"))
			first.update(types.StackStatusUpdateRollbackComplete, moved+"  Last: {Type: AWS::IAM::Policy, DependsOn: Rights, Properties: {PolicyName: last, Roles: [nobody], PolicyDocument: {}}}\n")
			equal(t, "policies", []string{"own sqs:SendMessage"}, inlineOf(t, endpoint, "clerk"))
		}
		first.update(types.StackStatusUpdateComplete, moved)
		first.update(types.StackStatusUpdateRollbackComplete, "Resources:\n"+holder(kind, own("sqs:SendMessage"))+waits(policy(kind, "sqs:*")))
		first.told("Holder UPDATE_FAILED: " + managedElsewhere + "[first|Rights]")
		first.update(types.StackStatusUpdateComplete, "Resources:\n"+holder(kind, "ManagedPolicyArns: []"))
		second = deployed(t, c, "second", "Resources:\n"+policy(kind, "sqs:*"))
		first.update(types.StackStatusUpdateRollbackComplete, "Resources:\n"+holder(kind, own("sqs:SendMessage")))
		first.told("Holder UPDATE_FAILED: " + managedElsewhere + "[second|Rights]")
		if kind == "Role" {
			equal(t, "policies", []string{"own sqs:*"}, inlineOf(t, endpoint, "clerk"))
		}
		second.remove()
		first.update(types.StackStatusUpdateComplete, "Resources:\n"+holder(kind, own("sqs:SendMessage")))
		first.remove()
	}
}

// An update gives a policy in part and is rolled back, while another stack is to have the same one:
// whichever of the two steps began first, the other one waits for it, so that the policy is neither left
// behind by both nor taken from who has it.
func TestStackPolicyTakenWhileRolledBack(t *testing.T) {
	for name, rollsBackFirst := range map[string]bool{"given first": false, "taken first": true} {
		t.Run(name, func(t *testing.T) {
			given, taken, back, tried := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
			var give, take, begin, try sync.Once
			endpoint := startMeddling(t, func(w stacks.Worker) stacks.Worker {
				return taking(func(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration) {
					switch shared := t.Target.Properties["PolicyName"] == "shared"; {
					case t.Name == "second" && t.Action == stackmachine.Create:
						give.Do(func() { close(given) })
						<-taken
						defer try.Do(func() { close(tried) })
					case t.Name == "first" && t.Action == stackmachine.Update && shared && !rollsBackFirst:
						<-given
					case t.Name == "first" && t.Action == stackmachine.Update && !shared:
						begin.Do(func() { close(back) })
						<-given
						o, later = w.Do(ctx, t)
						take.Do(func() { close(taken) })
						<-tried // before it is noted
						return o, later
					}
					return w.Do(ctx, t)
				})
			})
			c := cloudformationAs(endpoint, account)
			trustedRole(t, endpoint, "clerk", trustRoot)
			first := deployed(t, c, "first", clerksRights)
			must(c.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
				StackName: &first.id, TemplateBody: new(clerksRights), Capabilities: allCapabilities, Parameters: pairs([]string{"Name", "shared", "Roles", "clerk,nobody"}),
			}))(t)
			if rollsBackFirst {
				<-back
			}
			second := deployed(t, c, "second", clerksRights, "Name", "shared", "Action", "sqs:*")
			first.ends(types.StackStatusUpdateRollbackComplete)
			equal(t, "policies", []string{"own sqs:SendMessage", "shared sqs:*"}, inlineOf(t, endpoint, "clerk"))
			second.remove()
			equal(t, "policies", []string{"own sqs:SendMessage"}, inlineOf(t, endpoint, "clerk"))
			first.remove()
			equal(t, "policies", []string(nil), inlineOf(t, endpoint, "clerk"))
		})
	}
}

// A policy was given, which was not noted, and then the role that gives it is gone: the policy goes with
// its stack.
func TestStackPolicyOfRoleThatIsGone(t *testing.T) {
	const trust = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"cloudformation.amazonaws.com"},"Action":"sts:AssumeRole"}}`
	deploys := make(chan func() error, 1)
	endpoint := startMeddling(t, func(w stacks.Worker) stacks.Worker {
		return taking(func(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration) {
			o, later = w.Do(ctx, t)
			if t.Action == stackmachine.Create && later == 0 {
				if err := (<-deploys)(); err != nil {
					return stackmachine.Outcome{Reason: err.Error()}, 0
				}
				t.Again = true
				return w.Do(ctx, t)
			}
			return o, later
		})
	})
	who := iamClient(endpoint)
	trustedRole(t, endpoint, "clerk", trustRoot)
	role, other := trustedRole(t, endpoint, "deploys", trust), trustedRole(t, endpoint, "removes", trust)
	for _, name := range []string{"deploys", "removes"} {
		must(who.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
			RoleName: &name, PolicyName: new("p"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"iam:*","Resource":"*"}}`),
		}))(t)
	}
	deploys <- func() error {
		_, err := who.DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: new("deploys"), PolicyName: new("p")})
		if err != nil {
			return err
		}
		_, err = who.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: new("deploys")})
		return err
	}
	c := cloudformationAs(endpoint, account)
	made := must(c.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: new("first"), TemplateBody: new(clerksRights), Capabilities: allCapabilities, RoleARN: &role}))(t)
	s := &stackUnderTest{t, c, *made.StackId}
	s.ends(types.StackStatusRollbackFailed)
	equal(t, "policies", []string{"own sqs:SendMessage"}, inlineOf(t, endpoint, "clerk"))
	must(c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &s.id, RoleARN: &other}))(t)
	s.ends(types.StackStatusDeleteComplete)
	equal(t, "policies", []string(nil), inlineOf(t, endpoint, "clerk"))
}

// Updates that fail one after the other, each of which has given something: what the last one does not
// give is gone, and with a rollback all is as it was.
func TestStackPoliciesAfterFailedUpdates(t *testing.T) {
	endpoint := start(t)
	c := cloudformationAs(endpoint, account)
	trustedRole(t, endpoint, "clerk", trustRoot)
	const own = `
Parameters: {Name: {Type: String, Default: one}, Path: {Type: String, Default: "arn:aws:iam::aws:policy/AmazonSQSFullAccess"}}
Resources:
  Holder:
    Type: AWS::IAM::Role
    Properties:
      RoleName: keeper
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}
      Policies:
      - {PolicyName: !Ref Name, PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: "sqs:*", Resource: "*"}]}}
      - {PolicyName: !Sub "bad-${Name}", PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: !If [Bad, Nonsense, Allow], Action: "sqs:*", Resource: "*"}]}}
Conditions: {Bad: !Or [!Equals [!Ref Name, two], !Equals [!Ref Name, three]]}
`
	fail := func(s *stackUnderTest, template string, parameters ...string) {
		t.Helper()
		must(c.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
			StackName: &s.id, TemplateBody: &template, Capabilities: allCapabilities, DisableRollback: new(true), Parameters: pairs(parameters),
		}))(t)
		s.ends(types.StackStatusUpdateFailed)
	}
	back := func(s *stackUnderTest) {
		t.Helper()
		must(c.RollbackStack(t.Context(), &cloudformation.RollbackStackInput{StackName: &s.id}))(t)
		s.ends(types.StackStatusUpdateRollbackComplete)
	}
	s := deployed(t, c, "policy", clerksRights, "Name", "one")
	for range 2 {
		fail(s, clerksRights, "Name", "two", "Roles", "clerk,nobody")
		fail(s, clerksRights, "Name", "three", "Roles", "nobody,clerk")
		equal(t, "policies", []string{"one sqs:SendMessage"}, inlineOf(t, endpoint, "clerk"))
		fail(s, clerksRights, "Name", "three", "Roles", "clerk,nobody")
		back(s)
		equal(t, "policies", []string{"one sqs:SendMessage"}, inlineOf(t, endpoint, "clerk"))
	}
	fail(s, clerksRights, "Name", "two", "Roles", "clerk,nobody")
	s.update(types.StackStatusUpdateComplete, clerksRights, "Name", "four", "Roles", "clerk")
	equal(t, "policies", []string{"four sqs:SendMessage"}, inlineOf(t, endpoint, "clerk"))
	fail(s, clerksRights, "Name", "two", "Roles", "clerk,nobody")
	s.remove()
	equal(t, "policies", []string(nil), inlineOf(t, endpoint, "clerk"))

	s = deployed(t, c, "role", own)
	fail(s, own, "Name", "two")
	fail(s, own, "Name", "three")
	s.update(types.StackStatusUpdateComplete, own, "Name", "four")
	equal(t, "policies", []string{"bad-four sqs:*", "four sqs:*"}, inlineOf(t, endpoint, "keeper"))
	fail(s, own, "Name", "two")
	s.remove()
}

// A policy that two stacks have, as one has overwritten the other's before that was refused, is neither
// changed nor taken away by either: who wants to delete a stack retains it there.
func TestStackPolicyShared(t *testing.T) {
	endpoint := startMeddling(t, func(w stacks.Worker) stacks.Worker {
		return taking(func(ctx context.Context, t *stacks.Task) (o stackmachine.Outcome, later time.Duration) {
			if t.Name == "second" && t.Action == stackmachine.Create {
				return stackmachine.Outcome{Physical: t.Target.Physical, Attributes: map[string]any{"Id": t.Target.Physical}}, 0
			}
			return w.Do(ctx, t)
		})
	})
	c := cloudformationAs(endpoint, account)
	trustedRole(t, endpoint, "clerk", trustRoot)
	first, second := deployed(t, c, "first", clerksRights), deployed(t, c, "second", clerksRights)
	has := func(want ...string) {
		t.Helper()
		if got := inlineOf(t, endpoint, "clerk"); !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
	second.update(types.StackStatusUpdateRollbackComplete, clerksRights, "Action", "sqs:*")
	second.told("Rights UPDATE_FAILED: " + managedElsewhere + "[first|Rights]")
	must(c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &second.id}))(t)
	second.ends(types.StackStatusDeleteFailed)
	second.told("Rights DELETE_FAILED: " + managedElsewhere + "[first|Rights]")
	has("own sqs:SendMessage")
	must(c.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &second.id, RetainResources: []string{"Rights"}}))(t)
	second.ends(types.StackStatusDeleteComplete)
	has("own sqs:SendMessage")
	first.update(types.StackStatusUpdateComplete, clerksRights, "Action", "sqs:*")
	has("own sqs:*")
	first.remove()
	has()
}

// Of many stacks that are to have one policy at the same moment, as the clock has it, one has it.
func TestStackPolicyOnce(t *testing.T) {
	endpoint := start(t)
	c := cloudformationAs(endpoint, account)
	trustedRole(t, endpoint, "clerk", trustRoot)
	const many = 12
	var all sync.WaitGroup
	complete := make([]bool, many)
	for i := range many {
		all.Go(func() {
			action := fmt.Sprint("sqs:A", i)
			made, err := c.CreateStack(t.Context(), &cloudformation.CreateStackInput{
				StackName: new(fmt.Sprint("s", i)), TemplateBody: new(clerksRights), Capabilities: allCapabilities, Parameters: pairs([]string{"Action", action}),
			})
			if err != nil {
				t.Error(err)
				return
			}
			complete[i] = awaitStack(t, c, *made.StackId).StackStatus == types.StackStatusCreateComplete
		})
	}
	all.Wait()
	winner := slices.Index(complete, true)
	if winner < 0 || slices.Contains(complete[winner+1:], true) {
		t.Fatalf("complete: %v", complete)
	}
	equal(t, "policies", []string{fmt.Sprint("own sqs:A", winner)}, inlineOf(t, endpoint, "clerk"))
}
