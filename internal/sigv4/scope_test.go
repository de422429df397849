package sigv4

import (
	"net/http/httptest"
	"testing"
)

func TestFromRequest(t *testing.T) {
	want := Scope{AccessKey: "111122223333", Date: "20260102", Region: "eu-west-1", Service: "sqs"}
	const credential = "111122223333/20260102/eu-west-1/sqs/aws4_request"
	for name, test := range map[string]struct {
		header, query string
		want          Scope
		ok            bool
	}{
		"header":            {header: "AWS4-HMAC-SHA256 Credential=" + credential + ", SignedHeaders=host;x-amz-date, Signature=00", want: want, ok: true},
		"header, no spaces": {header: "AWS4-HMAC-SHA256 Credential=" + credential + ",SignedHeaders=host,Signature=00", want: want, ok: true},
		"presigned":         {query: "Action=X&X-Amz-Credential=111122223333%2F20260102%2Feu-west-1%2Fsqs%2Faws4_request", want: want, ok: true},
		"key with a slash":  {header: "AWS4-HMAC-SHA256 Credential=a/b/20260102/eu-west-1/sqs/aws4_request", want: Scope{"a/b", "20260102", "eu-west-1", "sqs"}, ok: true},
		"header before query": {
			header: "AWS4-HMAC-SHA256 Credential=" + credential, query: "X-Amz-Credential=k%2Fd%2Fr%2Fs%2Faws4_request", want: want, ok: true,
		},
		"none":           {},
		"other scheme":   {header: "Basic Zm9vOmJhcg=="},
		"no credential":  {header: "AWS4-HMAC-SHA256 Signature=00"},
		"too short":      {header: "AWS4-HMAC-SHA256 Credential=20260102/eu-west-1/sqs/aws4_request"},
		"no terminator":  {header: "AWS4-HMAC-SHA256 Credential=k/20260102/eu-west-1/sqs"},
		"empty region":   {header: "AWS4-HMAC-SHA256 Credential=k/20260102//sqs/aws4_request"},
		"empty key":      {header: "AWS4-HMAC-SHA256 Credential=/20260102/eu-west-1/sqs/aws4_request"},
		"bad escape":     {query: "X-Amz-Credential=%zz"},
		"empty presigne": {query: "X-Amz-Credential="},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "http://localhost/?"+test.query, nil)
			if test.header != "" {
				r.Header.Set("Authorization", test.header)
			}
			got, ok := FromRequest(r)
			if ok != test.ok || ok && got != test.want {
				t.Errorf("got %+v, %t; want %+v, %t", got, ok, test.want, test.ok)
			}
		})
	}
}
