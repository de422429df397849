package sdk_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"godwit.dev/godwit/internal/wire/rpccbor"
)

// A service that is not here is reported by its name, in the form of its protocol.
func TestServicesThatAreNotHere(t *testing.T) {
	endpoint := startOpen(t)
	const speaks = "; it speaks SQS, SNS, CloudWatch, CloudWatch Logs, Lambda, IAM, STS, KMS, Firehose and CloudFormation."
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
	cbor := func(message string) string {
		return string(rpccbor.AppendTexts(nil, "__type", "com.amazon.coral.service#UnknownOperationException", "message", message))
	}
	for _, tc := range []struct {
		name, method, path, scope string
		header                    map[string]string
		body                      string
		status                    int
		contentType, answer       string
	}{
		{
			"S3", "GET", "/bucket?list-type=2", "s3", nil, "", 501, "text/xml",
			`<?xml version="1.0"?><Error><Code>NotImplemented</Code><Message>Godwit has no S3` + speaks + `</Message><RequestId>ID</RequestId></Error>`,
		},
		{
			"S3 with a body", "PUT", "/bucket/key", "s3",
			map[string]string{"Content-Type": "application/octet-stream"},
			strings.Repeat("x", 100_000), 501, "text/xml",
			`<?xml version="1.0"?><Error><Code>NotImplemented</Code><Message>Godwit has no S3` + speaks + `</Message><RequestId>ID</RequestId></Error>`,
		},
		{
			"Route 53", "GET", "/2013-04-01/hostedzone", "route53", nil, "", 501, "text/xml",
			`<?xml version="1.0"?><ErrorResponse><Error><Type>Sender</Type><Code>NotImplemented</Code><Message>Godwit has no Route 53` + speaks + `</Message></Error><RequestId>ID</RequestId></ErrorResponse>`,
		},
		{
			"ELB", "POST", "/", "elasticloadbalancing", form, "Action=DescribeLoadBalancers&Version=2015-12-01", 400, "text/xml",
			`<?xml version="1.0"?><ErrorResponse><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>Godwit has no Elastic Load Balancing` + speaks + `</Message></Error><RequestId>ID</RequestId></ErrorResponse>`,
		},
		{
			"an action that SNS has, of RDS", "POST", "/", "rds", form, "Action=ListTagsForResource&Version=2014-10-31", 400, "text/xml",
			`<?xml version="1.0"?><ErrorResponse><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>Godwit has no RDS` + speaks + `</Message></Error><RequestId>ID</RequestId></ErrorResponse>`,
		},
		{
			"EC2", "POST", "/", "ec2", form, "Action=DescribeInstances&Version=2016-11-15", 400, "text/xml",
			`<?xml version="1.0"?><Response><Errors><Error><Code>InvalidAction</Code><Message>Godwit has no EC2` + speaks + `</Message></Error></Errors><RequestID>ID</RequestID></Response>`,
		},
		{
			"unsigned ELB", "POST", "/", "", form, "Action=DescribeLoadBalancers&Version=2015-12-01", 400, "text/xml",
			`<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>Godwit has no action DescribeLoadBalancers` + speaks +
				`</Message><Detail/></Error><RequestId>ID</RequestId></ErrorResponse>`,
		},
		{
			"DynamoDB", "POST", "/", "dynamodb",
			map[string]string{"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.PutItem"},
			"{}", 400, "application/x-amz-json-1.0",
			`{"__type":"com.amazon.coral.service#UnknownOperationException","message":"Godwit has no DynamoDB` + speaks + `"}`,
		},
		{
			"EventBridge", "POST", "/", "",
			map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AWSEvents.PutEvents"},
			"{}", 400, "application/x-amz-json-1.1",
			`{"__type":"com.amazon.coral.service#UnknownOperationException","message":"Godwit has no EventBridge` + speaks + `"}`,
		},
		{
			"a repository of ECR", "POST", "/", "ecr",
			map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AmazonEC2ContainerRegistry_V20150921.DescribeRepositories"},
			`{"repositoryNames":["serverless-shop-dev"]}`, 400, "application/x-amz-json-1.1",
			`{"__type":"com.amazonaws.ecr#RepositoryNotFoundException","message":"Godwit has no ECR` + speaks + `"}`,
		},
		{
			"ECR", "POST", "/", "ecr",
			map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AmazonEC2ContainerRegistry_V20150921.CreateRepository"},
			"{}", 400, "application/x-amz-json-1.1",
			`{"__type":"com.amazon.coral.service#UnknownOperationException","message":"Godwit has no ECR` + speaks + `"}`,
		},
		{
			"what nobody knows", "POST", "/", "",
			map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Nobody_2020.Do"},
			"{}", 400, "application/x-amz-json-1.1",
			`{"__type":"com.amazon.coral.service#UnknownOperationException","message":"Godwit has no Nobody` + speaks + `"}`,
		},
		{
			"API Gateway", "GET", "/restapis", "apigateway", nil, "", 404, "application/json",
			`{"__type":"UnknownOperationException","message":"Godwit has no API Gateway` + speaks + `"}`,
		},
		{
			"EFS, whose paths are like Lambda's", "GET", "/2015-02-01/file-systems", "elasticfilesystem", nil, "", 404, "application/json",
			`{"__type":"UnknownOperationException","message":"Godwit has no EFS` + speaks + `"}`,
		},
		{
			"a REST service that nobody knows", "GET", "/workspaces", "aps", nil, "", 404, "application/json",
			`{"__type":"UnknownOperationException","message":"Godwit has no aps` + speaks + `"}`,
		},
		{
			"Application Auto Scaling", "POST", "/", "application-autoscaling",
			map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AnyScaleFrontendService.DescribeScalableTargets"},
			"{}", 400, "application/x-amz-json-1.1",
			`{"__type":"com.amazon.coral.service#UnknownOperationException","message":"Godwit has no Application Auto Scaling` + speaks + `"}`,
		},
		{
			"CBOR", "POST", "/service/Nobody_2020/operation/Do", "nobody",
			map[string]string{"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"},
			"\xa0", 400, "application/cbor",
			cbor("Godwit has no Nobody" + speaks),
		},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, endpoint+tc.path, bytes.NewReader([]byte(tc.body)))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range tc.header {
			req.Header.Set(name, value)
		}
		if tc.scope != "" {
			req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20250101/us-east-1/"+tc.scope+"/aws4_request, SignedHeaders=host, Signature=00")
		}
		r := do(t, req)
		equal(t, tc.name, fmt.Sprint(tc.status, " ", tc.contentType, " ", tc.answer), fmt.Sprint(r.Status, " ", r.Header.Get("Content-Type"), " ", withoutIDs(r.Body)))
	}
}

// An action that a service does not have is reported by its name.
func TestActionsThatAreNotHere(t *testing.T) {
	endpoint := start(t)
	_, err := metricsClient(endpoint).ListMetricStreams(t.Context(), &cloudwatch.ListMetricStreamsInput{})
	refused(t, err, "InvalidAction", 400, "Godwit has no action ListMetricStreams of CloudWatch.")
	_, err = logsClient(endpoint).StopQuery(t.Context(), &cloudwatchlogs.StopQueryInput{QueryId: aws.String("q")})
	refused(t, err, "UnknownOperationException", 400, "Godwit has no action StopQuery of CloudWatch Logs.")
	_, err = functionsClient(endpoint).GetFunctionRecursionConfig(t.Context(), &lambda.GetFunctionRecursionConfigInput{FunctionName: aws.String("f")})
	refused(t, err, "UnknownOperationException", 404, "Godwit has no operation of Lambda at GET /2024-08-31/functions/f/recursion-config.")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "AmazonSQS.CreateTopic")
	r := do(t, req)
	equal(t, "SQS", `400 {"__type":"com.amazon.coral.service#UnknownOperationException","message":"Godwit has no action CreateTopic of SQS."}`, fmt.Sprint(r.Status, " ", r.Body))
}
