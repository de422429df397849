package authorize

import "godwit.dev/godwit/internal/arn"

// LogRights are what may be done to write into a stream of a log group.
type LogRights struct {
	CreateGroup, CreateStream bool // where they are not there yet
	Put                       bool
}

// AllLogRights are those of the server itself, and of everybody where nobody asks.
var AllLogRights = LogRights{CreateGroup: true, CreateStream: true, Put: true}

// LogStream is the ARN that policies know a stream of a log group by; that of the group
// if it has no name.
func LogStream(group arn.ARN, stream string) string {
	group.Resource += ":log-stream:" + stream
	return group.String()
}
