package wire

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/test/generated"
)

const errorsHead = `# Errors

What each service refuses with, made of the source. The code is that of the Query protocol, of
` + "`x-amzn-query-error`" + ` and of metrics; the type is ` + "`__type`" + ` in JSON without its name space, and
what SDKs name the exception by. Where the sender is at fault, a request that is sent again gets the
same; where the server is, SDKs try again by themselves. The text is that of a refusal which has none of its own:
most say what is wrong with which member, in AWS's words.

## All services

These are the same everywhere, unless the service has one of its own below.

`

// TestErrorsDocument: docs/reference/errors.md has each error of each service.
func TestErrorsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(errorsHead)
	errorRows(&b, common)
	for _, s := range []*Service{SQS(), SNS(), Lambda(), CloudWatch(), Logs(), KMS(), IAM(), STS(), Firehose()} {
		own := map[fault.Kind]errorShape{}
		for kind, shape := range s.errors {
			if shape != common[kind] && (kind == fault.Internal || shape != s.errors[fault.Internal]) {
				own[kind] = shape
			}
		}
		fmt.Fprintf(&b, "\n## %s\n\n", s.Name)
		errorRows(&b, own)
	}
	generated.Hold(t, "../../docs/reference/errors.md", b.String())
}

func errorRows(b *strings.Builder, shapes map[fault.Kind]errorShape) {
	b.WriteString("| code | type | status | at fault | text |\n|---|---|---|---|---|\n")
	rows := map[string]bool{}
	for _, shape := range shapes {
		side := "sender"
		if shape.Server {
			side = "server"
		}
		kind := shape.Type[strings.LastIndexByte(shape.Type, '#')+1:]
		rows[fmt.Sprintf("| `%s` | `%s` | %d | %s | %s |\n", shape.Code, cmp.Or(kind, shape.Code), shape.Status, side, strings.ReplaceAll(shape.Text, "|", `\|`))] = true
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		b.WriteString(row)
	}
}
