package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/server/resources"
)

// Who has no access key is told so when a server does not know the one that stands in for it; who
// has one that is not known is told what the server says.
func TestWithoutKey(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	unknown := fmt.Errorf("queues: %w", &resources.Refusal{Action: "ListQueues", Code: "InvalidClientTokenId"})
	if err := withoutKey(unknown); !strings.Contains(err.Error(), "there is no access key in the environment") || !errors.Is(err, unknown) {
		t.Errorf("without a key: %v", err)
	}
	for _, other := range []error{errors.New("gone"), &resources.Refusal{Action: "ListQueues", Code: "AccessDenied"}} {
		if err := withoutKey(other); err.Error() != other.Error() {
			t.Errorf("%v becomes %v", other, err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAX")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	if err := withoutKey(unknown); err.Error() != unknown.Error() {
		t.Errorf("with a key: %v", err)
	}
}
