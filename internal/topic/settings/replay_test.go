package settings

import (
	"testing"
	"time"
)

// FuzzArchiveAndReplay: what is taken for a policy is stored as one that is
// taken again, and means the same.
func FuzzArchiveAndReplay(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "[]", `{"MessageRetentionPeriod":"1"}`, `{"MessageRetentionPeriod":365}`, `{"MessageRetentionPeriod":"366"}`,
		`{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00.000Z"}`,
		`{"PointType":"Timestamp","StartingPoint":"2026-01-01T00:00:00+01:00","EndingPoint":"2026-01-02T00:00:00Z"} `,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		if policy, err := checkArchive(document); err == nil {
			again, err := checkArchive(policy)
			if err != nil || again != policy {
				t.Errorf("%q is stored as %q, and that as %q, %v", document, policy, again, err)
			}
			days := Retention(policy) / (24 * time.Hour)
			if (days == 0) != (policy == "") || days > maxArchive {
				t.Errorf("%q keeps messages for %d days", document, days)
			}
		}
		policy, err := ParseReplay(document)
		if err != nil || policy == nil {
			return
		}
		again, err := ParseReplay(policy.document)
		if err != nil || *again != *policy {
			t.Errorf("%q is %+v, and as it is stored %+v, %v", document, policy, again, err)
		}
	})
}
