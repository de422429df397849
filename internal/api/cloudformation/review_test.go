package cloudformation_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/api/refusal"
)

// bare is an Engine whose stack has no template yet.
type bare struct{ cloudformation.Engine }

func (bare) Template(string, string, string) ([]byte, error) { return nil, nil }

// Before the first change set of a stack is executed its template is empty, and there is no
// summary of it.
func TestTemplateInReview(t *testing.T) {
	operations := cloudformation.New(cloudformation.Options{Engine: bare{}, NewID: uuid.NewString}).Operations()
	ask := func(operation string, in any) (any, error) {
		op := operations[slices.IndexFunc(operations, func(o api.Operation) bool { return o.Name == operation })]
		return op.Invoke(t.Context(), &api.Call{Service: "cloudformation", Account: "111122223333", Region: "us-east-1"}, in)
	}
	out, err := ask("GetTemplate", &cloudformation.GetTemplateInput{StackName: new("s")})
	if got, ok := out.(*cloudformation.GetTemplateOutput); err != nil || !ok || got.TemplateBody != "" {
		t.Errorf("%+v, %v", out, err)
	}
	const want = "GetTemplateSummary cannot be called on REVIEW_IN_PROGRESS stacks."
	if _, err := ask("GetTemplateSummary", &cloudformation.GetTemplateSummaryInput{StackName: new("s")}); err == nil || refusal.Text(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}
