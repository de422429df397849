package rental_test

import "strings"

// The policies of README.md's part on production. $ACCOUNT, $KEY and $TOPIC stand for
// what is known once the shop is set up.
const (
	// keyPolicy leaves the key's use in the account to the account's own policies, and
	// lets the services in that write what it encrypts.
	keyPolicy = `{"Version":"2012-10-17","Statement":[
		{"Sid":"Account","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::$ACCOUNT:root"},"Action":"kms:*","Resource":"*"},
		{"Sid":"Services","Effect":"Allow","Principal":{"Service":["sns.amazonaws.com","cloudwatch.amazonaws.com"]},
			"Action":["kms:GenerateDataKey*","kms:Decrypt"],"Resource":"*"}]}`
	// topicMaySend is the policy of a queue that a topic delivers to, dead letters too.
	topicMaySend = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*",
			"Condition":{"ArnEquals":{"aws:SourceArn":"$TOPIC"}}}]}`
	// alarmsMayPublish is the policy of the topic of alarms.
	alarmsMayPublish = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"Service":"cloudwatch.amazonaws.com"},"Action":"sns:Publish","Resource":"$TOPIC"}]}`
	lambdaMayAssume = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

	useKey = `{"Effect":"Allow","Action":["kms:GenerateDataKey","kms:Decrypt"],"Resource":"$KEY"}`
	// officeMay is what who announces orders may: nothing but that.
	officeMay = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sns:Publish","Resource":"$TOPIC"},` + useKey + `]}`
	// warehouseMay is what who looks after dead letters may.
	warehouseMay = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["sqs:ReceiveMessage","sqs:DeleteMessage","sqs:GetQueueAttributes","sqs:StartMessageMoveTask","sqs:ListMessageMoveTasks"],
			"Resource":"arn:aws:sqs:us-east-1:$ACCOUNT:Rental-*"},
		{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"arn:aws:sqs:us-east-1:$ACCOUNT:Rental-Fulfilment"},` + useKey + `]}`
	// billingMay is what the function's role may.
	billingMay = `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["sqs:ReceiveMessage","sqs:DeleteMessage","sqs:GetQueueAttributes"],"Resource":"arn:aws:sqs:us-east-1:$ACCOUNT:Rental-Fulfilment"},
		{"Effect":"Allow","Action":"sqs:SendMessage","Resource":"arn:aws:sqs:us-east-1:$ACCOUNT:Rental-Billing-DLQ"},
		{"Effect":"Allow","Action":["logs:CreateLogGroup","logs:CreateLogStream","logs:PutLogEvents"],"Resource":"*"},` + useKey + `]}`
)

// policy fills in what a policy names.
func policy(text, key, topic string) *string {
	text = strings.NewReplacer("$ACCOUNT", account, "$KEY", key, "$TOPIC", topic).Replace(text)
	return &text
}
