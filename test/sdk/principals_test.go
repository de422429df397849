package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"godwit.dev/godwit/internal/config"
)

const annARN = "arn:aws:iam::" + account + ":user/ann"

// naming is a policy that lets a principal do everything of a service with a resource;
// where another statement leaves the rest to the account.
func naming(who, action, resource string) string {
	return `{"Version":"2012-10-17","Id":"p","Statement":[` +
		`{"Sid":"s","Effect":"Allow","Principal":{"AWS":"` + who + `"},"Action":"` + action + `","Resource":"` + resource + `"},` +
		`{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:root"},"Action":"` + action + `","Resource":"` + resource + `","Condition":{"StringNotEquals":{"aws:PrincipalArn":"` + annARN + `"}}}]}`
}

// Policies and grants mean the user that they named: one who is created under its name
// later has nothing of what it had, and they show whom they meant.
func TestPrincipalsAreBound(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	queues, topics, functions, keys, users := client(endpoint), topicsClient(endpoint), functionsClient(endpoint), newKMS(t, endpoint, "test"), iamClient(endpoint)
	makeAnn := func() (id string) {
		must(users.CreateUser(ctx, &iam.CreateUserInput{UserName: new("ann")}))(t)
		return *must(users.GetUser(ctx, &iam.GetUserInput{UserName: new("ann")}))(t).User.UserId
	}
	id := makeAnn()
	key := func() *iam.CreateAccessKeyOutput {
		return must(users.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: new("ann")}))(t)
	}
	first := key()

	url := createQueue(t, queues, "q", "Policy", naming(annARN, "sqs:SendMessage", queueARN("q")))
	topic := createTopic(t, topics, "t")
	must(topics.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: new("Policy"), AttributeValue: new(naming(annARN, "sns:Publish", topic))}))(t)
	createFunction(t, endpoint, functions, "f")
	added := must(functions.AddPermission(ctx, permission("f", "s", annARN)))(t)
	if !strings.Contains(*added.Statement, annARN) {
		t.Errorf("the statement is %s", *added.Statement)
	}
	ofPolicy := makeKey(t, keys, &kms.CreateKeyInput{Policy: new(naming(annARN, "kms:*", "*"))})
	ofGrant := makeKey(t, keys, &kms.CreateKeyInput{})
	grant := must(keys.CreateGrant(ctx, &kms.CreateGrantInput{
		KeyId: ofGrant.KeyId, GranteePrincipal: new(annARN), RetiringPrincipal: new(annARN), Operations: []kmstypes.GrantOperation{"DescribeKey"},
	}))(t)

	shown := func() map[string]string {
		g := must(keys.ListGrants(ctx, &kms.ListGrantsInput{KeyId: ofGrant.KeyId}))(t).Grants[0]
		return map[string]string{
			"queue":    must(queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"Policy"}}))(t).Attributes["Policy"],
			"topic":    topicAttributes(t, topics, topic)["Policy"],
			"function": *must(functions.GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: new("f")}))(t).Policy,
			"key":      *must(keys.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: ofPolicy.KeyId}))(t).Policy,
			"grant":    `"` + *g.GranteePrincipal + `","AWS":"` + *g.RetiringPrincipal + `"`,
		}
	}
	before := shown()
	equal(t, "the queue's policy", naming(annARN, "sqs:SendMessage", queueARN("q")), before["queue"])
	equal(t, "the topic's policy", naming(annARN, "sns:Publish", topic), before["topic"])
	equal(t, "the key's policy", naming(annARN, "kms:*", "*"), before["key"])
	createQueue(t, queues, "q", "Policy", naming(annARN, "sqs:SendMessage", queueARN("q"))) // it is the same

	try := func(k *iam.CreateAccessKeyOutput) map[string]error {
		who := longTerm(k.AccessKey)
		errs := map[string]error{}
		_, errs["queue"] = queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("x")}, func(o *sqs.Options) { o.Credentials = who })
		_, errs["topic"] = topics.Publish(ctx, &sns.PublishInput{TopicArn: &topic, Message: new("x")}, func(o *sns.Options) { o.Credentials = who })
		_, errs["function"] = functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: new("f"), InvocationType: "DryRun"}, func(o *lambda.Options) { o.Credentials = who })
		_, errs["key"] = kmsAs(endpoint, who).DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: ofPolicy.KeyId})
		_, errs["grant"] = kmsAs(endpoint, who).DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: ofGrant.KeyId})
		return errs
	}
	for what, err := range try(first) {
		if err != nil {
			t.Errorf("who is named by the %s: %v", what, err)
		}
	}

	must(users.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: new("ann"), AccessKeyId: first.AccessKey.AccessKeyId}))(t)
	must(users.DeleteUser(ctx, &iam.DeleteUserInput{UserName: new("ann")}))(t)
	makeAnn()
	second := key()
	for what, err := range try(second) {
		if err == nil || !strings.Contains(err.Error(), "AccessDenied") && !strings.Contains(err.Error(), "AuthorizationError") {
			t.Errorf("who has the name of whom the %s named: %v", what, err)
		}
	}
	_, err := kmsAs(endpoint, longTerm(second.AccessKey)).RetireGrant(ctx, &kms.RetireGrantInput{KeyId: ofGrant.Arn, GrantId: grant.GrantId})
	deniedTo(t, "retiring a grant under the name of who could", err)
	for what, doc := range shown() {
		if want := strings.ReplaceAll(before[what], `"AWS":"`+annARN+`"`, `"AWS":"`+id+`"`); what != "grant" && doc != want {
			t.Errorf("the %s shows %s, want %s", what, doc, want)
		} else if what == "grant" && doc != `"`+id+`","AWS":"`+id+`"` {
			t.Errorf("the grant shows %s", doc)
		}
	}
	// Whom there is no more nobody can name.
	_, err = queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"Policy": naming(id, "sqs:SendMessage", queueARN("q"))}})
	refused(t, err, "InvalidAttributeValue", 400, "Invalid value for the parameter Policy.")
}

// The sessions of a role that was deleted are named by a policy without success, too.
func TestSessionsAreBound(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	queues, c := client(endpoint), iamClient(endpoint)
	make := func() {
		must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("job"), AssumeRolePolicyDocument: new(trustRoot)}))(t)
	}
	make()
	named := naming("arn:aws:sts::"+account+":assumed-role/job/one", "sqs:SendMessage", queueARN("q"))
	url := createQueue(t, queues, "q", "Policy", named)
	ann := stsAs(endpoint, makeUser(t, endpoint, "ann", statement("Allow", `"sts:AssumeRole"`, "*")))
	send := func(name string) error {
		s := must(ann.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: new("arn:aws:iam::" + account + ":role/job"), RoleSessionName: &name}))(t)
		_, err := queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("x")}, func(o *sqs.Options) { o.Credentials = session(s.Credentials) })
		return err
	}
	if err := send("one"); err != nil {
		t.Error(err)
	}
	deniedTo(t, "another session", send("two"))
	must(c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: new("job")}))(t)
	make()
	deniedTo(t, "a session of another role", send("one"))
}

// A policy that names nobody is refused where it is asked who calls; elsewhere it may
// name a user or role that is somewhere else.
func TestPrincipalsThatAreNot(t *testing.T) {
	ctx := t.Context()
	for name, enforced := range map[string]bool{"enforced": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			endpoint := startWith(t, func(c *config.Config) { c.Enforce = enforced })
			queues, topics, keys := client(endpoint), topicsClient(endpoint), newKMS(t, endpoint, "test")
			topic := createTopic(t, topics, "t")
			made := makeKey(t, keys, &kms.CreateKeyInput{})
			check := func(err error, code, text string) {
				t.Helper()
				if enforced {
					refusedWith(t, err, code, text)
				} else if err != nil {
					t.Error(err)
				}
			}
			_, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new("q"), Attributes: map[string]string{"Policy": naming(annARN, "sqs:*", queueARN("q"))}})
			check(err, "InvalidAttributeValue", "Invalid value for the parameter Policy.")
			_, err = topics.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: new("Policy"), AttributeValue: new(naming(annARN, "sns:Publish", topic))})
			check(err, "InvalidParameter", "Invalid parameter: Policy Error: PrincipalNotFound")
			_, err = topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: new("u"), Attributes: map[string]string{"Policy": naming(annARN, "sns:Publish", topic)}})
			check(err, "InvalidParameter", "Invalid parameter: Policy Error: PrincipalNotFound")
			_, err = keys.CreateKey(ctx, &kms.CreateKeyInput{Policy: new(naming(annARN, "kms:*", "*"))})
			check(err, "MalformedPolicyDocumentException", "Policy contains a statement with one or more invalid principals.")
			_, err = keys.CreateGrant(ctx, &kms.CreateGrantInput{KeyId: made.KeyId, GranteePrincipal: new(annARN), Operations: []kmstypes.GrantOperation{"DescribeKey"}})
			check(err, "InvalidArnException", "ARN does not refer to a valid principal: "+annARN)
		})
	}
}

// A group is no principal, whether it is there or not, and neither is what has no name of one;
// that nobody looks for users and roles changes nothing.
func TestWhatIsNoPrincipal(t *testing.T) {
	ctx := t.Context()
	for name, enforced := range map[string]bool{"enforced": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			endpoint := startWith(t, func(c *config.Config) { c.Enforce = enforced })
			queues, topics, functions, keys, users := client(endpoint), topicsClient(endpoint), functionsClient(endpoint), newKMS(t, endpoint, "test"), iamClient(endpoint)
			group := *must(users.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: new("staff")}))(t).Group.Arn
			topic := createTopic(t, topics, "t")
			createFunction(t, endpoint, functions, "f")
			made := makeKey(t, keys, &kms.CreateKeyInput{})

			_, err := queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: new("q"), Attributes: map[string]string{"Policy": naming(group, "sqs:*", queueARN("q"))}})
			refused(t, err, "InvalidAttributeValue", 400, "Invalid value for the parameter Policy.")
			_, err = topics.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: new("Policy"), AttributeValue: new(naming(group, "sns:Publish", topic))})
			refusedWith(t, err, "InvalidParameter", "Invalid parameter: Policy Error: PrincipalNotFound")
			_, err = users.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: new(strings.ReplaceAll(trustRoot, "arn:aws:iam::"+account+":root", group))})
			refusedWith(t, err, "MalformedPolicyDocument", `Invalid principal in policy: "AWS":"`+group+`"`)
			_, err = keys.CreateKey(ctx, &kms.CreateKeyInput{Policy: new(naming(group, "kms:*", "*"))})
			refusedWith(t, err, "MalformedPolicyDocumentException", "Policy contains a statement with one or more invalid principals.")
			for _, who := range []string{group, queueARN("q"), "arn:aws:iam::12:root", "ann"} {
				_, err = functions.AddPermission(ctx, permission("f", "s", who))
				refusedWith(t, err, "InvalidParameterValueException", "The provided principal was invalid. Please check the principal and try again.")
				_, err = keys.CreateGrant(ctx, &kms.CreateGrantInput{KeyId: made.KeyId, GranteePrincipal: &who, Operations: []kmstypes.GrantOperation{"DescribeKey"}})
				refusedWith(t, err, "InvalidArnException", "ARN does not refer to a valid principal: "+who)
			}
			for _, who := range []string{"arn:aws:iam::" + account + ":root", "sns.amazonaws.com"} {
				must(keys.CreateGrant(ctx, &kms.CreateGrantInput{KeyId: made.KeyId, GranteePrincipal: &who, Operations: []kmstypes.GrantOperation{"DescribeKey"}}))(t)
			}
		})
	}
}
