package authorize

import "godwit.dev/godwit/internal/arn"

// LogRights are the permissions to write into a log stream.
type LogRights struct {
	CreateGroup, CreateStream bool // if it does not exist yet
	Put                       bool
}

// AllLogRights are the permissions of the server itself, and of all if policies are not
// evaluated.
var AllLogRights = LogRights{CreateGroup: true, CreateStream: true, Put: true}

// LogStream is the ARN of a log stream in policies; of the group if stream is empty.
func LogStream(group arn.ARN, stream string) string {
	group.Resource += ":log-stream:" + stream
	return group.String()
}
