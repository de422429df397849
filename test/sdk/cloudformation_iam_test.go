package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// staff are a role, a user in a group, and a policy that all three carry.
const staff = `
Parameters: {Action: {Type: String, Default: "sqs:SendMessage"}, Session: {Type: Number, Default: 3600}}
Resources:
  Clerk:
    Type: AWS::IAM::Role
    Properties:
      Description: rents out
      MaxSessionDuration: !Ref Session
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}
      ManagedPolicyArns: ["arn:aws:iam::aws:policy/AmazonSQSReadOnlyAccess"]
      Policies: [{PolicyName: own, PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: !Ref Action, Resource: "*"}]}}]
      Tags: [{Key: team, Value: rentals}]
  Team: {Type: AWS::IAM::Group}
  Ann: {Type: AWS::IAM::User, Properties: {Groups: [!Ref Team]}}
  Shared:
    Type: AWS::IAM::Policy
    Properties:
      PolicyName: shared
      Roles: [!Ref Clerk]
      Users: [!Ref Ann]
      Groups: [!Ref Team]
      PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: !Ref Action, Resource: "*"}]}
Outputs: {Role: {Value: !Ref Clerk}, RoleArn: {Value: !GetAtt Clerk.Arn}, RoleId: {Value: !GetAtt Clerk.RoleId}, User: {Value: !Ref Ann}, Group: {Value: !Ref Team}}
`

// Identities of a stack are made with their policies, changed in place, replaced under another
// name, and deleted with all that the stack gave them.
func TestStackIdentities(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, who := cloudformationAs(endpoint, account), iamClient(endpoint)
	_, err := c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("staff"), TemplateBody: new(staff)})
	refusedWith(t, err, "InsufficientCapabilitiesException", "Requires capabilities : [CAPABILITY_IAM]")

	granted := []types.Capability{types.CapabilityCapabilityNamedIam}
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("staff"), TemplateBody: new(staff), Capabilities: granted}))(t)
	s := awaitStack(t, c, *made.StackId)
	if s.StackStatus != types.StackStatusCreateComplete {
		t.Fatalf("%q", eventsOfStack(t, c, *made.StackId))
	}
	out := map[string]string{}
	for _, o := range s.Outputs {
		out[*o.OutputKey] = *o.OutputValue
	}
	if !strings.HasPrefix(out["Role"], "staff-Clerk-") {
		t.Errorf("the role is called %s", out["Role"])
	}
	role := must(who.GetRole(ctx, &iam.GetRoleInput{RoleName: new(out["Role"])}))(t).Role
	equal(t, "ARN", out["RoleArn"], *role.Arn)
	equal(t, "id", out["RoleId"], *role.RoleId)
	equal(t, "session", int32(3600), *role.MaxSessionDuration)
	equal(t, "tags", 1, len(role.Tags))
	equal(t, "managed policies", 1, len(must(who.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: new(out["Role"])}))(t).AttachedPolicies))
	says := func(policy string) string {
		return document(t, must(who.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: new(out["Role"]), PolicyName: &policy}))(t).PolicyDocument)
	}
	equal(t, "members", 1, len(must(who.GetGroup(ctx, &iam.GetGroupInput{GroupName: new(out["Group"])}))(t).Users))
	must(who.GetUserPolicy(ctx, &iam.GetUserPolicyInput{UserName: new(out["User"]), PolicyName: new("shared")}))(t)
	must(who.GetGroupPolicy(ctx, &iam.GetGroupPolicyInput{GroupName: new(out["Group"]), PolicyName: new("shared")}))(t)

	update := func(template string, parameters ...string) {
		t.Helper()
		must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("staff"), TemplateBody: &template, Capabilities: granted, Parameters: pairs(parameters)}))(t)
		if is := awaitStack(t, c, *made.StackId); is.StackStatus != types.StackStatusUpdateComplete {
			t.Fatalf("%q", eventsOfStack(t, c, *made.StackId))
		}
	}
	changed := strings.Replace(staff, `      ManagedPolicyArns: ["arn:aws:iam::aws:policy/AmazonSQSReadOnlyAccess"]`+"\n", "", 1)
	changed = strings.Replace(changed, "      Users: [!Ref Ann]\n", "", 1)
	changed = strings.Replace(changed, "Properties: {Groups: [!Ref Team]}", "Properties: {Path: /rentals/}", 1)
	update(changed, "Action", "sqs:ReceiveMessage", "Session", "7200")
	role = must(who.GetRole(ctx, &iam.GetRoleInput{RoleName: new(out["Role"])}))(t).Role
	equal(t, "session", int32(7200), *role.MaxSessionDuration)
	equal(t, "description", "rents out", *role.Description)
	for _, policy := range []string{"own", "shared"} {
		if has := says(policy); !strings.Contains(has, "sqs:ReceiveMessage") {
			t.Errorf("%s: %s", policy, has)
		}
	}
	equal(t, "managed policies", 0, len(must(who.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: new(out["Role"])}))(t).AttachedPolicies))
	equal(t, "members", 0, len(must(who.GetGroup(ctx, &iam.GetGroupInput{GroupName: new(out["Group"])}))(t).Users))
	_, err = who.GetUserPolicy(ctx, &iam.GetUserPolicyInput{UserName: new(out["User"]), PolicyName: new("shared")})
	refusedWith(t, err, "NoSuchEntity", "The user policy with name shared cannot be found.")
	equal(t, "path", "/rentals/", *must(who.GetUser(ctx, &iam.GetUserInput{UserName: new(out["User"])}))(t).User.Path)

	update(strings.Replace(changed, "      Description: rents out", "      RoleName: clerk", 1), "Action", "sqs:ReceiveMessage", "Session", "7200")
	must(who.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: new("clerk"), PolicyName: new("shared")}))(t)
	_, err = who.GetRole(ctx, &iam.GetRoleInput{RoleName: new(out["Role"])})
	if err == nil {
		t.Error("the role that was replaced is still there")
	}

	must(c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: new("staff")}))(t)
	if gone := awaitStack(t, c, *made.StackId); gone.StackStatus != types.StackStatusDeleteComplete {
		t.Errorf("%q", eventsOfStack(t, c, *made.StackId))
	}
	equal(t, "roles", 0, len(must(who.ListRoles(ctx, &iam.ListRolesInput{}))(t).Roles))
	equal(t, "users", 0, len(must(who.ListUsers(ctx, &iam.ListUsersInput{}))(t).Users))
	equal(t, "groups", 0, len(must(who.ListGroups(ctx, &iam.ListGroupsInput{}))(t).Groups))
}

// A name that somebody else's role has is not taken over.
func TestStackIdentityTaken(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, who := cloudformationAs(endpoint, account), iamClient(endpoint)
	must(who.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("clerk"), AssumeRolePolicyDocument: new(trustRoot)}))(t)
	template := strings.Replace(staff, "      Description: rents out", "      RoleName: clerk", 1)
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("staff"), TemplateBody: &template, Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam}}))(t)
	equal(t, "status", types.StackStatusRollbackComplete, awaitStack(t, c, *made.StackId).StackStatus)
	if lines := strings.Join(eventsOfStack(t, c, *made.StackId), "\n"); !strings.Contains(lines, "Resource of type 'AWS::IAM::Role' with identifier 'clerk' already exists.") {
		t.Error(lines)
	}
	equal(t, "roles", 1, len(must(who.ListRoles(ctx, &iam.ListRolesInput{}))(t).Roles))
}

// An inline policy that a resource of a stack has on a role is neither replaced nor taken away by
// another's, of another stack or of the same one; one that no stack has is replaced.
func TestStackInlinePolicyTaken(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, who := cloudformationAs(endpoint, account), iamClient(endpoint)
	const template = `
Parameters: {Action: {Type: String, Default: "sqs:SendMessage"}, Name: {Type: String, Default: own}}
Resources:
  Rights:
    Type: AWS::IAM::Policy
    Properties: {PolicyName: !Ref Name, Roles: [clerk], PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: !Ref Action, Resource: "*"}]}}
`
	must(who.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("clerk"), AssumeRolePolicyDocument: new(trustRoot)}))(t)
	allows := func(policy, action string) {
		t.Helper()
		has := document(t, must(who.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: new("clerk"), PolicyName: &policy}))(t).PolicyDocument)
		if !strings.Contains(has, action) {
			t.Errorf("%s does not allow %s: %s", policy, action, has)
		}
	}
	const refusal = "Policy resource was already managed by another stack or another resource in the current stack. Found stacks: [first|Rights]"
	first := deployed(t, c, "first", template)
	second := deployedBadly(t, c, "second", template, "Action", "sqs:*")
	second.told("Rights CREATE_FAILED: " + refusal)
	second.remove()
	allows("own", "sqs:SendMessage")

	third := deployed(t, c, "third", template, "Name", "mine", "Action", "sqs:*")
	third.update(types.StackStatusUpdateRollbackComplete, template, "Name", "own", "Action", "sqs:*")
	third.told("Rights UPDATE_FAILED: " + refusal)
	allows("own", "sqs:SendMessage")
	allows("mine", "sqs:*")
	third.remove()
	allows("own", "sqs:SendMessage")

	first.update(types.StackStatusUpdateRollbackComplete, strings.Replace(template, "  Rights:", "  Renamed:", 1))
	first.told("Renamed CREATE_FAILED: " + refusal)
	first.update(types.StackStatusUpdateComplete, template, "Action", "sqs:ReceiveMessage")
	allows("own", "sqs:ReceiveMessage")

	must(who.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: new("clerk"), PolicyName: new("by-hand"), PolicyDocument: new(`{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"sqs:*","Resource":"*"}}`)}))(t)
	deployed(t, c, "fourth", template, "Name", "by-hand")
	allows("by-hand", "sqs:SendMessage")

	first.remove()
	_, err := who.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: new("clerk"), PolicyName: new("own")})
	refusedWith(t, err, "NoSuchEntity", "The role policy with name own cannot be found.")
	deployed(t, c, "second", template, "Action", "sqs:*")
	allows("own", "sqs:*")
}

// A policy whose update has failed may be as it was and as it was to be: with its stack both go,
// and what another stack has stays. The names of roles differ by more than case.
func TestStackPolicyDeletedAfterFailedUpdate(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, who := cloudformationAs(endpoint, account), iamClient(endpoint)
	const template = `
Parameters: {Name: {Type: String}, Roles: {Type: CommaDelimitedList}, Queue: {Type: String}, Topic: {Type: String}, Holder: {Type: String, Default: smith}}
Resources:
  Rights:
    Type: AWS::IAM::Policy
    Properties: {PolicyName: !Ref Name, Roles: !Ref Roles, PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: "sqs:*", Resource: "*"}]}}
  Posts:
    Type: AWS::SQS::QueuePolicy
    Properties: {Queues: [!Ref Queue], PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: "*", Action: "sqs:SendMessage", Resource: "*"}]}}
  Publishes:
    Type: AWS::SNS::TopicPolicy
    Properties: {Topics: [!Ref Topic], PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: "*", Action: "sns:Publish", Resource: !Ref Topic}]}}
  Managed:
    Type: AWS::IAM::ManagedPolicy
    Properties: {Roles: [!Ref Holder], PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: "sqs:*", Resource: "*"}]}}
`
	for _, name := range []string{"clerk", "smith"} {
		must(who.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: new(trustRoot)}))(t)
	}
	queues := client(endpoint)
	queue := func(name string) string {
		return *must(queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name}))(t).QueueUrl
	}
	rights := func() (all []string) {
		t.Helper()
		for _, name := range []string{"clerk", "smith"} {
			for _, policy := range must(who.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &name}))(t).PolicyNames {
				all = append(all, name+" "+policy)
			}
		}
		return all
	}
	topics := topicsClient(endpoint)
	topic := func(name string) string {
		return *must(topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: &name}))(t).TopicArn
	}
	one, other, published := queue("one"), queue("other"), topic("other")
	open := func() string {
		return must(topics.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &published}))(t).Attributes["Policy"]
	}
	closed := open()
	first := deployed(t, c, "first", template, "Name", "own", "Roles", "clerk", "Queue", one, "Topic", topic("one"))
	second := deployed(t, c, "second", template, "Name", "mine", "Roles", "smith,clerk", "Queue", other, "Topic", published)
	must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{
		StackName: &second.id, TemplateBody: new(template), Capabilities: allCapabilities, DisableRollback: new(true),
		Parameters: pairs([]string{"Name", "own", "Roles", "CLERK", "Queue", other + "-that-is-not-there", "Topic", published + "-nor-this", "Holder", "nobody"}),
	}))(t)
	second.ends(types.StackStatusUpdateFailed)
	second.told("Rights UPDATE_FAILED: Policy resource was already managed by another stack")
	equal(t, "rights", []string{"clerk mine", "clerk own", "smith mine"}, rights())
	second.remove()
	equal(t, "rights", []string{"clerk own"}, rights())
	policy := must(queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &other, AttributeNames: []sqstypes.QueueAttributeName{"Policy"}}))(t).Attributes["Policy"]
	equal(t, "the queue's policy", "", policy)
	equal(t, "the topic's policy", closed, open())
	first.update(types.StackStatusUpdateComplete, template, "Name", "own", "Roles", "Clerk", "Queue", one, "Topic", strings.Replace(published, "other", "one", 1))
	equal(t, "rights", []string{"clerk own"}, rights())
	first.remove()
	equal(t, "rights", []string(nil), rights())
}

// A managed policy and an instance profile are made, changed in place and deleted.
func TestStackManagedPolicy(t *testing.T) {
	ctx, endpoint := t.Context(), start(t)
	c, who := cloudformationAs(endpoint, account), iamClient(endpoint)
	const template = `
Parameters: {Action: {Type: String, Default: "sqs:SendMessage"}}
Resources:
  Clerk:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: ec2.amazonaws.com}, Action: "sts:AssumeRole"}]}
  Rules:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      Roles: [!Ref Clerk]
      PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: !Ref Action, Resource: "*"}]}
  Desk: {Type: AWS::IAM::InstanceProfile, Properties: {Roles: [!Ref Clerk]}}
Outputs: {Policy: {Value: !Ref Rules}, Version: {Value: !GetAtt Rules.DefaultVersionId}, Role: {Value: !Ref Clerk}, Profile: {Value: !Ref Desk}}
`
	granted := []types.Capability{types.CapabilityCapabilityNamedIam}
	made := must(c.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: new("rules"), TemplateBody: new(template), Capabilities: granted}))(t)
	outputs := func() map[string]string {
		out := map[string]string{}
		for _, o := range awaitStack(t, c, *made.StackId).Outputs {
			out[*o.OutputKey] = *o.OutputValue
		}
		return out
	}
	out := outputs()
	if out["Policy"] == "" {
		t.Fatalf("%q", eventsOfStack(t, c, *made.StackId))
	}
	equal(t, "version", "v1", out["Version"])
	attached := func() int {
		return len(must(who.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: new(out["Role"])}))(t).AttachedPolicies)
	}
	equal(t, "attached", 1, attached())
	profile := func() *iam.GetInstanceProfileOutput {
		return must(who.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: new(out["Profile"])}))(t)
	}
	equal(t, "role of the profile", out["Role"], *profile().InstanceProfile.Roles[0].RoleName)
	for i, action := range []string{"sqs:A", "sqs:B", "sqs:C", "sqs:D", "sqs:E", "sqs:F"} { // more than IAM keeps
		must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("rules"), UsePreviousTemplate: new(true), Capabilities: granted, Parameters: pairs([]string{"Action", action})}))(t)
		equal(t, "version", "v"+string(rune('2'+i)), outputs()["Version"])
	}
	now := must(who.GetPolicyVersion(ctx, &iam.GetPolicyVersionInput{PolicyArn: new(out["Policy"]), VersionId: new("v7")}))(t).PolicyVersion
	if has := document(t, now.Document); !strings.Contains(has, "sqs:F") {
		t.Error(has)
	}
	alone := strings.Replace(template, "      Roles: [!Ref Clerk]\n", "", 1)
	alone = strings.Replace(alone, "    Type: AWS::IAM::ManagedPolicy\n    Properties:\n", "    Type: AWS::IAM::ManagedPolicy\n    Properties:\n      ManagedPolicyName: rules\n", 1)
	must(c.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: new("rules"), TemplateBody: &alone, Capabilities: granted}))(t)
	equal(t, "replaced", "arn:aws:iam::"+account+":policy/rules", outputs()["Policy"])
	equal(t, "attached", 0, attached())

	must(c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: new("rules")}))(t)
	if gone := awaitStack(t, c, *made.StackId); gone.StackStatus != types.StackStatusDeleteComplete {
		t.Errorf("%q", eventsOfStack(t, c, *made.StackId))
	}
	equal(t, "policies", 0, len(must(who.ListPolicies(ctx, &iam.ListPoliciesInput{Scope: "Local"}))(t).Policies))
	equal(t, "profiles", 0, len(must(who.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{}))(t).InstanceProfiles))
}
