package providers_test

import (
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/api/iam/entity/entitytest"
	"godwit.dev/godwit/internal/api/iam/providers"
	"godwit.dev/godwit/internal/fault"
)

const account = "111122223333"

func newAsker(t *testing.T) *apitest.Asker {
	s := providers.New(entity.Store{Engine: entitytest.New(account)})
	return apitest.New(t, s.Operations(), func(operation string) *api.Call {
		return &api.Call{Operation: operation, Region: "us-east-1", Account: account}
	})
}

// list is a list of n texts in JSON.
func list(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%q", fmt.Sprint("client", i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// TestProvider: what a provider is made with, each change of it, and its end.
func TestProvider(t *testing.T) {
	a := newAsker(t)
	const arn = "arn:aws:iam::111122223333:oidc-provider/issuer.example/path"
	const named = `{"OpenIDConnectProviderArn":"` + arn + `"`
	a.Check("CreateOpenIDConnectProvider", `{"Url":"https://issuer.example/path","ClientIDList":["a"],"ThumbprintList":["t"],"Tags":[{"Key":"k","Value":"v"}]}`, apitest.Answered, arn)
	a.Check("CreateOpenIDConnectProvider", `{"Url":"https://issuer.example/path"}`, fault.EntityAlreadyExists, "issuer.example/path")
	a.Check("ListOpenIDConnectProviders", `{}`, apitest.Answered, `[{"Arn":"`+arn+`"}]`)
	a.Check("GetOpenIDConnectProvider", named+`}`, apitest.Answered, `"Url":"issuer.example/path","ClientIDList":["a"],"ThumbprintList":["t"],"CreateDate":1767225600.0,"Tags":[{"Key":"k","Value":"v"}]`)
	a.Check("AddClientIDToOpenIDConnectProvider", named+`,"ClientID":"b"}`, apitest.Answered, "")
	a.Check("AddClientIDToOpenIDConnectProvider", named+`,"ClientID":"b"}`, apitest.Answered, "") // it is there
	a.Check("RemoveClientIDFromOpenIDConnectProvider", named+`,"ClientID":"a"}`, apitest.Answered, "")
	a.Check("RemoveClientIDFromOpenIDConnectProvider", named+`,"ClientID":"none"}`, apitest.Answered, "")
	a.Check("UpdateOpenIDConnectProviderThumbprint", named+`,"ThumbprintList":["u","w"]}`, apitest.Answered, "")
	a.Check("TagOpenIDConnectProvider", named+`,"Tags":[{"Key":"z","Value":""},{"Key":"a","Value":"1"}]}`, apitest.Answered, "")
	a.Check("UntagOpenIDConnectProvider", named+`,"TagKeys":["k"]}`, apitest.Answered, "")
	a.Check("GetOpenIDConnectProvider", named+`}`, apitest.Answered, `"ClientIDList":["b"],"ThumbprintList":["u","w"]`)
	a.Check("ListOpenIDConnectProviderTags", named+`}`, apitest.Answered, `"Tags":[{"Key":"a","Value":"1"},{"Key":"z","Value":""}],"IsTruncated":false`)
	a.Check("ListOpenIDConnectProviderTags", named+`,"MaxItems":1}`, apitest.Answered, `"Tags":[{"Key":"a","Value":"1"}],"IsTruncated":true`)
	a.Check("DeleteOpenIDConnectProvider", named+`}`, apitest.Answered, "")
	a.Check("GetOpenIDConnectProvider", named+`}`, fault.NoSuchEntity, arn)
	a.Check("DeleteOpenIDConnectProvider", named+`}`, fault.NoSuchEntity, "OpenId connect Provider "+arn+" cannot be found.")
}

// TestRefused changes nothing.
func TestRefused(t *testing.T) {
	a := newAsker(t)
	for _, url := range []string{"http://issuer.example", "issuer.example", "https://", "https://u@issuer.example", "https://issuer.example/?q", "https://issuer.example/#f", "%"} {
		a.Check("CreateOpenIDConnectProvider", `{"Url":"`+url+`"}`, fault.ValidationFailed, "Invalid Open ID Connect Provider URL")
	}
	a.Check("CreateOpenIDConnectProvider", `{"Url":"https://i.example","ThumbprintList":`+list(6)+`}`, fault.InvalidInput, "Thumbprint list must contain fewer than 5 entries.")
	a.Check("CreateOpenIDConnectProvider", `{"Url":"https://i.example","ClientIDList":`+list(101)+`}`, fault.LimitExceeded, "Cannot exceed quota for ClientIdsPerOpenIdConnectProvider: 100")
	a.Check("CreateOpenIDConnectProvider", `{"Url":"https://i.example","Tags":[{"Key":"AWS:x","Value":""}]}`, fault.InvalidInput, "Tag keys beginning with aws: are reserved for system use")
	a.Check("ListOpenIDConnectProviders", `{}`, apitest.Answered, `{"OpenIDConnectProviderList":[]}`)

	a.Check("CreateOpenIDConnectProvider", `{"Url":"https://i.example","ClientIDList":`+list(100)+`}`, apitest.Answered, "")
	const named = `{"OpenIDConnectProviderArn":"arn:aws:iam::111122223333:oidc-provider/i.example"`
	a.Check("AddClientIDToOpenIDConnectProvider", named+`,"ClientID":"one more"}`, fault.LimitExceeded, "")
	a.Check("UpdateOpenIDConnectProviderThumbprint", named+`,"ThumbprintList":`+list(6)+`}`, fault.InvalidInput, "")
	a.Check("TagOpenIDConnectProvider", named+`,"Tags":[{"Key":"aws:x","Value":""}]}`, fault.InvalidInput, "")
	a.Check("GetOpenIDConnectProvider", named+`}`, apitest.Answered, `"ThumbprintList":[]`)
	got, err := a.Ask("GetOpenIDConnectProvider", named+`}`)
	if err != nil || strings.Contains(got, "one more") || !strings.Contains(got, "client99") {
		t.Errorf("%v: %s", err, got)
	}
}
