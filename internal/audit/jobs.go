package audit

import (
	"time"

	"godwit.dev/godwit/internal/caller"
)

// Job is an operator's job that has ended.
type Job struct {
	ID       string `json:"job"`
	Kind     string `json:"kind"`
	Resource string `json:"resource"`
	State    string `json:"state"` // completed, cancelled or failed
	Done     int64  `json:"done"`
	Skipped  int64  `json:"skipped"`
}

// JobEnded records the end of a job whose creation was recorded as CreateJob. A crash at that
// moment loses the record.
func (t *Trail) JobEnded(by *caller.Caller, at time.Time, region string, j Job) {
	if t == nil {
		return
	}
	j.Resource = bounded(j.Resource)
	record := record{
		UserIdentity: t.identityOf(by, ""), EventSource: "godwit", EventName: "JobEnded", Region: region, EventType: "AwsServiceEvent", Parameters: j,
	}
	if j.State == "failed" {
		record.ErrorCode = "JobFailed"
	}
	t.write(at, &record, false)
}
