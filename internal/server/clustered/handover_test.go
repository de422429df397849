package clustered

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"godwit.dev/godwit/internal/config"
)

// The step of a stack that hangs keeps nobody from handing over, and is taken again by the next
// owner.
func TestStackDoesNotKeepOwner(t *testing.T) {
	asked := make(chan struct{}, 100)
	objects := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer objects.Close()
	o := startOwning(t)
	o.part.cfg.Artifacts = config.Artifacts{Endpoint: objects.URL}
	o.take()
	o.ask("", url.Values{
		"Action": {"CreateStack"}, "Version": {"2010-05-15"}, "StackName": {"s"},
		"TemplateBody": {`Resources: {F: {Type: AWS::Lambda::Function, Properties: {Role: "arn:aws:iam::000000000000:role/f", Runtime: python3.13, Handler: a.b, Code: {S3Bucket: code, S3Key: k}}}}`},
	})
	for range 2 {
		<-asked
		o.leave()
		o.take()
	}
	o.leave()
}
