package operator_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"godwit.dev/godwit/internal/api/operator"
	"godwit.dev/godwit/internal/api/operator/backups"
	"godwit.dev/godwit/internal/api/operator/catalog"
	"godwit.dev/godwit/internal/api/operator/development"
	"godwit.dev/godwit/internal/api/operator/jobs"
	"godwit.dev/godwit/internal/api/operator/messages"
	"godwit.dev/godwit/internal/api/operator/monitors"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/setup"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/api/operator/sse"
)

var update = flag.Bool("update", false, "write the document anew")

// TestDocument: the document is what the operations say.
func TestDocument(t *testing.T) {
	want, err := rest.Document(operator.Info, operator.Operations(operator.Options{Catalog: catalog.New(catalog.Options{}), Messages: messages.New(messages.Options{}), Events: sse.New(sse.Options{}), Monitors: monitors.New(monitors.Options{}), Setup: setup.New(setup.Options{}), Jobs: jobs.New(jobs.Options{}), Backups: backups.New(backups.Options{}), Development: development.New(development.Options{}), Sources: sources.New(sources.Options{})}))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, operator.Document) {
		t.Error("openapi.json is not what the operations say: go test ./internal/api/operator -run TestDocument -update")
	}
}
