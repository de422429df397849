package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// The functions of the language, in a stack: what its outputs say is what they give.
func TestStackLanguage(t *testing.T) {
	endpoint := start(t)
	c := cloudformationAs(endpoint, account)
	deployed(t, c, "first", `
Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: exported}}}
Outputs: {Q: {Value: !GetAtt Q.QueueName, Export: {Name: queue-of-first}}}`)
	s := deployed(t, c, "second", `
Transform: AWS::LanguageExtensions
Parameters: {Names: {Type: CommaDelimitedList, Default: "Red,Blue"}, Big: {Type: String, Default: "no"}}
Mappings: {Sizes: {"no": {delay: 3}, "yes": {delay: 9}}}
Conditions: {Big: !Equals [!Ref Big, "yes"], Other: !Not [!Condition Big], Both: !And [!Condition Other, !Or [!Condition Big, !Condition Other]]}
Resources:
  Fn::ForEach::Queues:
    - Name
    - !Ref Names
    - "Q${Name}": {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub "${AWS::StackName}-${Name}", DelaySeconds: !FindInMap [Sizes, !Ref Big, delay]}}
Outputs:
  Cidr: {Value: !Join [",", !Cidr ["10.0.0.0/24", 2, 5]]}
  Zone: {Value: !Select [0, !GetAZs ""]}
  Json: {Value: {"Fn::ToJsonString": {a: 1, b: [x, !Ref Big]}}}
  Length: {Value: {"Fn::Length": !Ref Names}}
  Base64: {Value: !Base64 hi}
  Split: {Value: !Select [1, !Split ["-", a-b]]}
  Map: {Value: {"Fn::FindInMap": [Sizes, !Ref Big, missing, {DefaultValue: none}]}}
  Import: {Value: !ImportValue queue-of-first}
  If: {Value: !If [Both, small, big]}
  Arn: {Value: !GetAtt QRed.Arn}
  Sub: {Value: !Sub ["${Of} in ${AWS::Region}, ${!not}", {Of: !Ref AWS::AccountId}]}
`)
	equal(t, "outputs", map[string]string{
		"Cidr": "10.0.0.0/27,10.0.0.32/27", "Zone": "us-east-1a", "Json": `{"a":1,"b":["x","no"]}`, "Length": "2", "Base64": "aGk=", "Split": "b",
		"Map": "none", "Import": "exported", "If": "small", "Arn": queueARN("second-Red"), "Sub": account + " in us-east-1, ${not}",
	}, s.outputs())
	made := must(client(endpoint).ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: new("second-")}))(t).QueueUrls
	equal(t, "queues of a loop", 2, len(made))
	for _, url := range made {
		equal(t, url[strings.LastIndex(url, "/"):], "3", attributesOf(t, client(endpoint), url)["DelaySeconds"])
	}
}
