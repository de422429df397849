package wire

import (
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/sigv4"
	"godwit.dev/godwit/internal/wire/awsquery"
)

// A request for an AWS service that Godwit does not have is refused in the protocol of that
// service, with its name: many users set one endpoint for all services, and must see which one
// is missing.

// titles are the full names of AWS's services by their names in credential scopes.
var titles = map[string]string{
	"sqs": "SQS", "sns": "SNS", "monitoring": "CloudWatch", "logs": "CloudWatch Logs", "lambda": "Lambda",

	"acm": "Certificate Manager", "apigateway": "API Gateway", "appconfig": "AppConfig", "application-autoscaling": "Application Auto Scaling", "appsync": "AppSync", "athena": "Athena",
	"autoscaling": "Auto Scaling", "backup": "Backup", "batch": "Batch", "bedrock": "Bedrock", "cloudformation": "CloudFormation",
	"cloudfront": "CloudFront", "cloudtrail": "CloudTrail", "codebuild": "CodeBuild", "codecommit": "CodeCommit", "codedeploy": "CodeDeploy",
	"codepipeline": "CodePipeline", "cognito-identity": "Cognito", "cognito-idp": "Cognito", "config": "Config", "dynamodb": "DynamoDB",
	"ec2": "EC2", "ecr": "ECR", "ecs": "ECS", "eks": "EKS", "elasticache": "ElastiCache", "elasticfilesystem": "EFS",
	"elasticloadbalancing": "Elastic Load Balancing", "elasticmapreduce": "EMR", "es": "OpenSearch", "events": "EventBridge",
	"execute-api": "API Gateway", "firehose": "Firehose", "glue": "Glue", "iam": "IAM", "iot": "IoT", "kafka": "MSK", "kinesis": "Kinesis",
	"kms": "KMS", "mq": "MQ", "opensearch": "OpenSearch", "organizations": "Organizations", "pipes": "EventBridge Pipes", "rds": "RDS",
	"redshift": "Redshift", "resource-groups": "Resource Groups", "route53": "Route 53", "s3": "S3", "s3express": "S3", "s3-outposts": "S3",
	"scheduler": "EventBridge Scheduler", "schemas": "EventBridge Schemas", "secretsmanager": "Secrets Manager", "servicediscovery": "Cloud Map",
	"ses": "SES", "sso": "IAM Identity Center", "ssm": "Systems Manager", "states": "Step Functions", "sts": "STS", "swf": "SWF",
	"tagging": "Resource Groups Tagging", "transcribe": "Transcribe", "transfer": "Transfer Family", "wafv2": "WAF", "xray": "X-Ray",
}

// targets are the services of prefixes in X-Amz-Target that are not service names.
var targets = map[string]string{
	"AWSEvents": "EventBridge", "AWSStepFunctions": "Step Functions", "TrentService": "KMS", "AmazonSSM": "Systems Manager",
	"AmazonEC2ContainerServiceV20141113": "ECS", "AmazonEC2ContainerRegistry_V20150921": "ECR", "CertificateManager": "Certificate Manager",
	"AWSCognitoIdentityProviderService": "Cognito", "AWSCognitoIdentityService": "Cognito", "secretsmanager": "Secrets Manager",
	"ResourceGroupsTaggingAPI_20170126": "Resource Groups Tagging", "GraniteServiceVersion20100801": "CloudWatch", "Logs_20140328": "CloudWatch Logs",
}

// xmlServices are those whose clients expect XML where there is no form.
var xmlServices = map[string]bool{"s3": true, "s3express": true, "s3-outposts": true, "cloudfront": true, "route53": true}

// notFound are the errors by which clients learn that what they ask for is not there, of operations
// of absent services that are asked whether it is: the Serverless Framework asks for a
// repository of ECR whenever it removes a service, and takes any other error for a failure.
var notFound = map[string]string{
	"AmazonEC2ContainerRegistry_V20150921.DescribeRepositories": "com.amazonaws.ecr#RepositoryNotFoundException",
}

// nobody answers for services that Godwit does not have.
var nobody = newService(Service{errors: with(map[fault.Kind]errorShape{})}, nil)

// nobody11 is nobody in JSON 1.1, which has no header with Query's codes.
var nobody11 = newService(Service{json11: true, errors: nobody.errors}, nil)

// detectAbsent reports whether a request is for a service that Godwit does not have, and sets
// its protocol.
func (x *exchange) detectAbsent(scope sigv4.Scope) bool {
	h, r := x.handler, x.r
	target, named := x.targetOf()
	prefix, _, isCBOR := cborPath(r.URL.Path)
	isCBOR = isCBOR && r.Header.Get(headerProtocol) == smithyCBOR[0]
	var title string
	switch {
	case named && h.byTarget[target] != nil, isCBOR && h.byTarget[prefix] != nil:
		return false
	case h.byName[scope.Service] == nil && titles[scope.Service] != "":
		title = titles[scope.Service]
	case named:
		title = titleOfTarget(target)
	case isCBOR:
		title = titleOfTarget(prefix)
	default:
		return false
	}
	x.service = nobody
	switch {
	case named:
		x.call.Protocol = protocolJSON
		if strings.HasPrefix(r.Header.Get("Content-Type"), typeJSON11[0]) {
			x.service = nobody11
		}
	case isCBOR:
		x.call.Protocol = protocolCBOR
	case isForm(r), r.URL.Query().Has("Action"), xmlServices[scope.Service]:
		x.call.Protocol = protocolQuery
		x.absent.xml = scope.Service
	default:
		x.call.Protocol = protocolREST
	}
	if named {
		x.absent.notFound = notFound[r.Header["X-Amz-Target"][0]]
	}
	x.absent.why = h.noService(title)
	return true
}

// detectForeign is detectAbsent for a request that nothing has found a service for: it is signed
// for one whose name nobody here knows, and its path is not one of Query, so that it is REST.
func (x *exchange) detectForeign(scope sigv4.Scope) bool {
	r := x.r
	if scope.Service == "" || !x.onPath() || isQueuePath(r.URL.Path) || isForm(r) || r.URL.Query().Has("Action") {
		return false
	}
	x.service, x.call.Protocol = nobody, protocolREST
	x.absent.why = x.handler.noService(printable(scope.Service))
	return true
}

// noService refuses a request for a service that is not here.
func (h *Handler) noService(title string) *fault.Error {
	return fault.Newf(fault.InvalidAction, "Godwit has no %s; it speaks %s.", title, h.speaks())
}

// targetOf is the prefix of the request's X-Amz-Target; not ok if there is none. A form with one
// that no service has is Query all the same, and has none.
func (x *exchange) targetOf() (prefix string, ok bool) {
	target := x.r.Header["X-Amz-Target"]
	if len(target) == 0 {
		return "", false
	}
	prefix, _, _ = strings.Cut(target[0], ".")
	return prefix, x.handler.byTarget[prefix] != nil || !isForm(x.r)
}

func isForm(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
}

// titleOfTarget makes a service's name of the prefix of a target: DynamoDB of
// DynamoDB_20120810.
func titleOfTarget(prefix string) string {
	if title := targets[prefix]; title != "" {
		return title
	}
	name, _, _ := strings.Cut(prefix, "_")
	if name == "" {
		return "service of that name"
	}
	return printable(name)
}

// speaks lists the services of the handler.
func (h *Handler) speaks() string {
	var list strings.Builder
	for i, s := range h.Services {
		switch {
		case i == 0:
		case i == len(h.Services)-1:
			list.WriteString(" and ")
		default:
			list.WriteString(", ")
		}
		list.WriteString(s.title())
	}
	return list.String()
}

func (s *Service) title() string {
	if title := titles[s.Name]; title != "" {
		return title
	}
	return s.Name
}

// noAction refuses an action that the service does not have.
func (x *exchange) noAction(name string) error {
	return fault.Newf(fault.InvalidAction, "Godwit has no action %s of %s.", printable(name), x.service.title())
}

// absence is the refusal of a service that Godwit does not have.
type absence struct {
	why      *fault.Error
	xml      string // its name in credential scopes, if it answers in XML
	notFound string // the type of an error in JSON, in place of UnknownOperationException
}

// absentShape sets the status, and the code, by which clients of absent services recognise a
// missing feature, or that what they ask for is not there.
func (x *exchange) absentShape(shape errorShape) errorShape {
	switch {
	case x.call.Protocol == protocolREST:
		shape.Status = http.StatusNotFound
	case x.absent.notFound != "":
		shape.Type = x.absent.notFound
		_, shape.Code, _ = strings.Cut(shape.Type, "#")
	case x.call.Protocol == protocolQuery && xmlServices[x.absent.xml]:
		shape.Code, shape.Status = "NotImplemented", http.StatusNotImplemented
	}
	return shape
}

// appendAbsentXML appends the refusal of an absent service in the service's form of XML.
func (x *exchange) appendAbsentXML(dst []byte, shape errorShape, text string) []byte {
	begin, end, id := `<ErrorResponse><Error><Type>Sender</Type>`, `</Error>`, "RequestId"
	last := "</ErrorResponse>"
	switch x.absent.xml {
	case "s3", "s3express", "s3-outposts":
		begin, end, last = "<Error>", "", "</Error>"
	case "ec2":
		begin, end, id, last = "<Response><Errors><Error>", "</Error></Errors>", "RequestID", "</Response>"
	}
	dst = append(append(append(dst, xmlDeclaration...), begin...), "<Code>"+shape.Code+"</Code><Message>"...)
	dst = append(awsquery.AppendEscaped(dst, text), "</Message>"+end+"<"+id+">"...)
	return append(awsquery.AppendEscaped(dst, x.call.RequestID), "</"+id+">"+last...)
}

// appendAbsentREST appends the refusal in JSON.
func (x *exchange) appendAbsentREST(dst []byte, shape errorShape, text string) []byte {
	_, x.headers[2], _ = strings.Cut(shape.Type, "#")
	x.w.Header()[headerErrorType] = x.headers[2:3:3]
	dst = fastjson.AppendString(append(dst, `{"__type":`...), x.headers[2])
	dst = fastjson.AppendString(append(dst, `,"message":`...), text)
	return append(dst, '}')
}
