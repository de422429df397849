package iam_test

import (
	"testing"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

// What AWS has answered to documents of managed policies. Each is a statement, or all
// beside it where there is more.
func TestManagedDocuments(t *testing.T) {
	const (
		syntax    = "Syntax errors in policy."
		version   = "Policy document must be version 2012-10-17 or greater."
		legacy    = "The policy failed legacy parsing"
		actions   = "Policy statement must contain actions."
		resources = "Policy statement must contain resources."
		vendor    = "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
		colon     = "Actions/Condition can contain only one colon."
		sids      = "Statement IDs (SID) in a single policy must be unique."

		bucket = `"Resource":"arn:aws:s3:::example_bucket"`
		list   = `"Action":"s3:ListBucket"`
		whole  = `"Effect":"Allow",` + list + `,` + bucket
		on     = `"Effect":"Allow",` + list + `,"Resource":`
		when   = whole + `,"Condition":`
	)
	arn := func(text string) string { return "Resource " + text + ` must be in ARN format or "*".` }
	partition := func(name, resource string) string {
		return `Partition "` + name + `" is not valid for resource "` + resource + `".`
	}
	for _, c := range []struct {
		document string // one that begins with " is a statement's elements
		why      string // empty: it is taken
	}{
		{`This is not a json document`, syntax},
		{`{"Statement":{` + whole + `}}`, version},
		{`{"Version":"2008-10-17","Statement":{` + whole + `}}`, version},
		{`{"Version":"2013-10-17","Statement":{` + whole + `}}`, syntax},
		{`{"Version":"2012-10-17"}`, syntax},
		{`{"Version":"2012-10-17","Statement":["afd"]}`, syntax},
		{`{"Version":"2012-10-17","Statement":{` + whole + `},"Extra field":"value"}`, syntax},
		{whole + `,"Extra field":"value"`, syntax},
		{`{"Version":"2012-10-17","Id":["cd3a"],"Statement":{` + whole + `}}`, syntax},
		{`{"Version":"2012-10-17","Id":{},"Statement":{` + whole + `}}`, syntax},
		{`"Effect":"invalid",` + list + `,` + bucket, syntax},
		{`"Effect":"Allow","Action":"invalid",` + bucket, vendor},
		{`"Effect":"Allow","NotAction":"",` + bucket, vendor},
		{`"Effect":"Allow","Action":"a a:ListBucket",` + bucket, "Vendor a a is not valid"},
		{`"Effect":"Allow","Action":"s3:List:Bucket",` + bucket, colon},
		{`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3s:ListBucket",` + bucket + `},{"Effect":"Allow","Action":"s:3s:ListBucket",` + bucket + `}]}`, colon},
		{on + `"invalid resource"`, arn("invalid resource")},
		{`{"Version":"2012-10-17","Statement":[{"Sid":"A","Effect":"Allow","Action":["account:EnableRegion"],"Resource":"","Condition":{"StringEquals":{"account:TargetRegion":"ap-east-1"}}},{"Sid":"B","Effect":"Allow","Action":["account:ListRegions"],"Resource":""}]}`, arn("")},
		{`"Effect":"Allow","Action":"s:3:ListBucket","Resource":"sdfsadf"`, arn("sdfsadf")},
		{on + `["adf"]`, arn("adf")},
		{on + `""`, arn("")},
		{`"Effect":"Allow","NotAction":"s3s:ListBucket","Resource":"a:bsdfdsafsad"`, partition("bsdfdsafsad", "arn:bsdfdsafsad:*:*:*:*")},
		{`"Effect":"Allow","NotAction":"s3s:ListBucket","Resource":"a:b:cadfsdf"`, partition("b", "arn:b:cadfsdf:*:*:*")},
		{`"Effect":"Allow","NotAction":"s3s:ListBucket","Resource":"a:b:c:d:e:f:g:h"`, partition("b", "arn:b:c:d:e:f:g:h")},
		{on + `"aws:s3:::example_bucket"`, partition("s3", "arn:s3:::example_bucket:*")},
		{on + `["arn:error:s3:::example_bucket","arn:error:s3::example_bucket"]`, partition("error", "arn:error:s3:::example_bucket")},
		{`{"Version":"2012-10-17","Statement":[]}`, syntax},
		{`"Effect":"Allow",` + list, resources},
		{on + `[]`, resources},
		{`"Effect":"Allow","Action":"invalid"`, resources},
		{`"Effect":"Allow",` + bucket, actions},
		{list + `,` + bucket, syntax},
		{`"Effect":"Allow"`, actions},
		{`"Effect":"Allow","Action":[],` + bucket, actions},
		{`{"Version":"2012-10-17","Statement":[{"Effect":"Deny"},{` + whole + `}]}`, actions},
		{
			on + `"arn:aws:iam:::example_bucket"`,
			`IAM resource path must either be "*", root, or start with user/, federated-user/, role/, group/, instance-profile/, mfa/, server-certificate/, policy/, sms-mfa/, saml-provider/, oidc-provider/, report/, access-report/.`,
		},
		{on + `"arn:aws:s3::example_bucket"`, legacy},
		{`"Effect":"Allow","Resource":"arn:aws:s3::example_bucket"`, legacy},
		{on + `"arn:aws"`, "Resource vendor must be fully qualified and cannot contain regexes."},
		{on + `{"a":"arn:aws:s3:::example_bucket"}`, syntax},
		{on + `["adfdf",{}]`, syntax},
		{`"Effect":"Allow","NotAction":"s3:ListBucket",` + bucket + `,"NotResource":[]`, syntax},
		{`"Effect":"Deny","Action":[[]],` + bucket, syntax},
		{`"Effect":"Allow","NotAction":"s3s:ListBucket","Action":[],` + bucket, syntax},
		{`"Effect":"Allow","Action":{},` + bucket, syntax},
		{when + `[]`, syntax},
		{when + `"a"`, syntax},
		{when + `{"a":"b"}`, syntax},
		{when + `{"DateGreaterThan":"b"}`, syntax},
		{when + `{"DateGreaterThan":[]}`, syntax},
		{when + `{"DateGreaterThan":{"a":{}}}`, syntax},
		{`"Effect":"Allow",` + bucket + `,"Condition":{"DateGreaterThan":{"a":{}}}`, syntax},
		{when + `[{"ForAllValues:StringEquals":{"aws:TagKeys":"Department"}}]`, syntax},
		{on + `"arn:aws:iam:us-east-1::example_bucket"`, "IAM resource arn:aws:iam:us-east-1::example_bucket cannot contain region information."},
		{on + `"arn:aws:s3:us-east-1::example_bucket"`, "Resource arn:aws:s3:us-east-1::example_bucket can not contain region information."},
		{`"Sid":{},` + whole, syntax},
		{`"Sid":[],` + whole, syntax},
		{`{"Version":"2012-10-17","Statement":[{"Sid":"sdf",` + whole + `},{"Sid":"sdf","Effect":"Allow"}]}`, sids},
		{`{"Statement":[{"Sid":"sdf",` + whole + `},{"Sid":"sdf","Effect":"Allow"}]}`, version},
		{`"Effect":"Allow","NotAction":"s3:ListBucket","Action":"iam:dsf",` + bucket, syntax},
		{whole + `,"NotResource":"*"`, syntax},
		{`"Effect":"denY",` + list + `,` + bucket, legacy},
		{when + `{"DateGreaterThan":{"a":"sdfdsf"}}`, legacy},
		{`{"Statement":{` + when + `{"DateGreaterThan":{"a":"sdfdsf"}}}}`, version},
		{`{"Statement":{"Effect":"denY",` + list + `,` + bucket + `}}`, version},
		{`"Effect":"Allow","Condition":{"DateGreaterThan":{"a":"sdfdsf"}}`, legacy},
		{`"Effect":"Allow","NotAction":"s3:ListBucket","Resource":"arn:aws::::example_bucket"`, legacy},
		{`"Effect":"allow","Resource":"arn:aws:s3:us-east-1::example_bucket"`, legacy},
		{`{"Version":"2012-10-17","Statement":[{"Sid":"sdf","Effect":"aLLow",` + list + `,` + bucket + `},{"Sid":"sdf","Effect":"Allow"}]}`, legacy},
		{`"Effect":"Allow",` + list + `,"NotResource":"arn:aws:s3::example_bucket"`, legacy},
		{when + `{"DateLessThanEquals":{"a":"234-13"}}`, legacy},
		{when + `{"DateLessThanEquals":{"a":"2016-12-13t2:00:00.593194+1"}}`, legacy},
		{when + `{"DateLessThanEquals":{"a":"2016-12-13t2:00:00.1999999999+10:59"}}`, legacy},
		{when + `{"DateLessThan":{"a":"9223372036854775808"}}`, legacy},
		{on + `"arn:error:s3:::example_bucket","Condition":{"DateGreaterThan":{"a":"sdfdsf"}}`, legacy},
		{on + `"arn:aws::fdsasf"`, legacy},

		{on + `["arn:aws:s3:::example_bucket","*"]`, ""},
		{`"Effect":"Allow","Action":"iam: asdf safdsf af ",` + bucket, ""},
		{`"Effect":"Allow","Action":"*",` + bucket, ""},
		{`"Effect":"Allow","Action":"service-prefix:action-name","Resource":"*","Condition":{"DateGreaterThan":{"aws:CurrentTime":"2017-07-01T00:00:00Z"}}`, ""},
		{on + `"arn:aws:iam:::user/example_bucket"`, ""},
		{on + `"arn:aws:s33:::example_bucket"`, ""},
		{on + `"arn:aws:fdsasf"`, ""},
		{on + `"arn:aws:cloudwatch:us-east-1::example_bucket"`, ""},
		{on + `"arn:aws:invalid-service:us-east-1::example_bucket"`, ""},
		{on + `"arn:aws:iam::*:user/${aws:username}"`, ""},
		{on + `"arn:aws:rds:region:*:*"`, ""},
		{on + `"arn:aws:ec2:region:account-id:instance/*"`, ""},
		{on + `"arn:aws:s3:us-west-2:123456789012:accesspoint/my-access-point/object/*"`, ""},
		{when + `{}`, ""},
		{when + `{"DateGreaterThan":{}}`, ""},
		{when + `{"DateGreaterThan":{"a":[]}}`, ""},
		{when + `{"x":{},"y":{}}`, ""},
		{when + `{"DateGreaterThan":{"a":"01T"}}`, ""},
		{when + `{"DateLessThanEquals":{"a":"2016-12-13T21:20:37.593194+00:00"}}`, ""},
		{when + `{"DateLessThanEquals":{"a":"2016-12-13t2:00:00.593194+23"}}`, ""},
		{when + `{"DateLessThan":{"a":"-292275054"}}`, ""},
		{when + `{"BoolIfExists":{"aws:MultiFactorAuthPresent":false}}`, ""},
		{`"Effect":"Allow","Action":"s3-s:ListBucket",` + bucket, ""},
		{`"Effect":"Allow","Action":"s3.s:ListBucket",` + bucket, ""},
		{`"Effect":"Allow","NotAction":"s3:ListBucket","NotResource":"*"`, ""},
		{`{"Version":"2012-10-17","Id":"sdfsdfsdf","Statement":[{"Sid":"",` + whole + `},{"Sid":"",` + whole + `}]}`, ""},
	} {
		document := c.document
		if document[0] == '"' {
			document = `{"Version":"2012-10-17","Statement":{` + document + `}}`
		}
		err := iam.CheckDocument(iam.Managed, document)
		if c.why == "" && err != nil || c.why != "" && (fault.KindOf(err) != fault.MalformedPolicyDocument || refusal.Text(err) != c.why) {
			t.Errorf("%s:\n%v, want %q", document, err, c.why)
		}
	}
}
