// Package logs answers the API of Amazon CloudWatch Logs.
package logs

// The shapes of the operations. Fields are AWS's members; the tag `wire` marks required
// members. In inputs nil means absent; in outputs nil and the empty string are omitted. Times
// are epoch milliseconds.

// CreateLogGroupInput is the request of CreateLogGroup.
type CreateLogGroupInput struct {
	LogGroupName              string            `json:"logGroupName" wire:"required"`
	KmsKeyID                  *string           `json:"kmsKeyId"`
	Tags                      map[string]string `json:"tags"`
	LogGroupClass             *string           `json:"logGroupClass"`
	DeletionProtectionEnabled *bool             `json:"deletionProtectionEnabled"`
}

// Empty is an empty answer.
type Empty struct{}

// GroupInput is a request that names a group only.
type GroupInput struct {
	LogGroupName string `json:"logGroupName" wire:"required"`
}

// DescribeLogGroupsInput is the request of DescribeLogGroups.
type DescribeLogGroupsInput struct {
	AccountIdentifiers    []string `json:"accountIdentifiers"`
	IncludeLinkedAccounts *bool    `json:"includeLinkedAccounts"`
	LogGroupNamePrefix    *string  `json:"logGroupNamePrefix"`
	LogGroupNamePattern   *string  `json:"logGroupNamePattern"`
	LogGroupClass         *string  `json:"logGroupClass"`
	LogGroupIdentifiers   []string `json:"logGroupIdentifiers"`
	NextToken             *string  `json:"nextToken"`
	Limit                 *int     `json:"limit"`
}

// DescribeLogGroupsOutput is the answer of DescribeLogGroups.
type DescribeLogGroupsOutput struct {
	LogGroups []LogGroup `json:"logGroups"`
	NextToken string     `json:"nextToken"`
}

// LogGroup is one group of a list.
type LogGroup struct {
	LogGroupName              string `json:"logGroupName"`
	CreationTime              int64  `json:"creationTime"`
	RetentionInDays           *int   `json:"retentionInDays"`
	MetricFilterCount         *int   `json:"metricFilterCount"`
	Arn                       string `json:"arn"`
	StoredBytes               *int64 `json:"storedBytes"`
	LogGroupClass             string `json:"logGroupClass"`
	LogGroupArn               string `json:"logGroupArn"`
	DeletionProtectionEnabled *bool  `json:"deletionProtectionEnabled"`
}

// ListLogGroupsInput is the request of ListLogGroups.
type ListLogGroupsInput struct {
	LogGroupNamePattern   *string            `json:"logGroupNamePattern"`
	LogGroupClass         *string            `json:"logGroupClass"`
	IncludeLinkedAccounts *bool              `json:"includeLinkedAccounts"`
	AccountIdentifiers    []string           `json:"accountIdentifiers"`
	NextToken             *string            `json:"nextToken"`
	Limit                 *int               `json:"limit"`
	DataSources           []DataSourceFilter `json:"dataSources"`
	FieldIndexNames       []string           `json:"fieldIndexNames"`
	LogGroupTags          []TagFilter        `json:"logGroupTags"`
}

// DataSourceFilter selects groups with a data source.
type DataSourceFilter struct {
	Name *string `json:"name"`
	Type *string `json:"type"`
}

// TagFilter selects groups with a tag, with one of the values if there are any.
type TagFilter struct {
	Key    *string  `json:"key"`
	Values []string `json:"values"`
}

// ListLogGroupsOutput is the answer of ListLogGroups.
type ListLogGroupsOutput struct {
	LogGroups []LogGroupSummary `json:"logGroups"`
	NextToken string            `json:"nextToken"`
}

// LogGroupSummary is one group of ListLogGroups.
type LogGroupSummary struct {
	LogGroupName  string `json:"logGroupName"`
	LogGroupArn   string `json:"logGroupArn"`
	LogGroupClass string `json:"logGroupClass"`
}

// StreamInput is a request that names a stream only.
type StreamInput struct {
	LogGroupName  string `json:"logGroupName" wire:"required"`
	LogStreamName string `json:"logStreamName" wire:"required"`
}

// DescribeLogStreamsInput is the request of DescribeLogStreams.
type DescribeLogStreamsInput struct {
	LogGroupName        *string `json:"logGroupName"`
	LogGroupIdentifier  *string `json:"logGroupIdentifier"`
	LogStreamNamePrefix *string `json:"logStreamNamePrefix"`
	OrderBy             *string `json:"orderBy"`
	Descending          *bool   `json:"descending"`
	NextToken           *string `json:"nextToken"`
	Limit               *int    `json:"limit"`
}

// DescribeLogStreamsOutput is the answer of DescribeLogStreams.
type DescribeLogStreamsOutput struct {
	LogStreams []LogStream `json:"logStreams"`
	NextToken  string      `json:"nextToken"`
}

// LogStream is one stream of a list.
type LogStream struct {
	LogStreamName       string `json:"logStreamName"`
	CreationTime        int64  `json:"creationTime"`
	FirstEventTimestamp *int64 `json:"firstEventTimestamp"`
	LastEventTimestamp  *int64 `json:"lastEventTimestamp"`
	LastIngestionTime   *int64 `json:"lastIngestionTime"`
	UploadSequenceToken string `json:"uploadSequenceToken"`
	Arn                 string `json:"arn"`
	StoredBytes         int64  `json:"storedBytes"`
}

// PutLogEventsInput is the request of PutLogEvents. The entity is ignored.
type PutLogEventsInput struct {
	LogGroupName  string          `json:"logGroupName" wire:"required"`
	LogStreamName string          `json:"logStreamName" wire:"required"`
	LogEvents     []InputLogEvent `json:"logEvents" wire:"required"`
	SequenceToken *string         `json:"sequenceToken"`
}

// InputLogEvent is an event in a request.
type InputLogEvent struct {
	Timestamp *int64  `json:"timestamp"`
	Message   *string `json:"message"`
}

// PutLogEventsOutput is the answer of PutLogEvents.
type PutLogEventsOutput struct {
	NextSequenceToken     string                 `json:"nextSequenceToken"`
	RejectedLogEventsInfo *RejectedLogEventsInfo `json:"rejectedLogEventsInfo"`
}

// RejectedLogEventsInfo are the events that were not stored.
type RejectedLogEventsInfo struct {
	TooNewLogEventStartIndex *int `json:"tooNewLogEventStartIndex"`
	TooOldLogEventEndIndex   *int `json:"tooOldLogEventEndIndex"`
	ExpiredLogEventEndIndex  *int `json:"expiredLogEventEndIndex"`
}

// GetLogEventsInput is the request of GetLogEvents.
type GetLogEventsInput struct {
	LogGroupName       *string `json:"logGroupName"`
	LogGroupIdentifier *string `json:"logGroupIdentifier"`
	LogStreamName      string  `json:"logStreamName" wire:"required"`
	StartTime          *int64  `json:"startTime"`
	EndTime            *int64  `json:"endTime"`
	NextToken          *string `json:"nextToken"`
	Limit              *int    `json:"limit"`
	StartFromHead      *bool   `json:"startFromHead"`
	Unmask             *bool   `json:"unmask"`
}

// GetLogEventsOutput is the answer of GetLogEvents.
type GetLogEventsOutput struct {
	Events            []OutputLogEvent `json:"events"`
	NextForwardToken  string           `json:"nextForwardToken"`
	NextBackwardToken string           `json:"nextBackwardToken"`
}

// OutputLogEvent is an event of a stream.
type OutputLogEvent struct {
	Timestamp     int64  `json:"timestamp"`
	Message       string `json:"message"`
	IngestionTime int64  `json:"ingestionTime"`
}

// FilterLogEventsInput is the request of FilterLogEvents.
type FilterLogEventsInput struct {
	LogGroupName        *string  `json:"logGroupName"`
	LogGroupIdentifier  *string  `json:"logGroupIdentifier"`
	LogStreamNames      []string `json:"logStreamNames"`
	LogStreamNamePrefix *string  `json:"logStreamNamePrefix"`
	StartTime           *int64   `json:"startTime"`
	EndTime             *int64   `json:"endTime"`
	FilterPattern       *string  `json:"filterPattern"`
	NextToken           *string  `json:"nextToken"`
	Limit               *int     `json:"limit"`
	Interleaved         *bool    `json:"interleaved"`
	Unmask              *bool    `json:"unmask"`
}

// FilterLogEventsOutput is the answer of FilterLogEvents.
type FilterLogEventsOutput struct {
	Events             []FilteredLogEvent  `json:"events"`
	SearchedLogStreams []SearchedLogStream `json:"searchedLogStreams"`
	NextToken          string              `json:"nextToken"`
}

// FilteredLogEvent is a matching event.
type FilteredLogEvent struct {
	LogStreamName string `json:"logStreamName"`
	Timestamp     int64  `json:"timestamp"`
	Message       string `json:"message"`
	IngestionTime int64  `json:"ingestionTime"`
	EventID       string `json:"eventId"`
}

// SearchedLogStream is an entry of a list that AWS leaves empty since 2020.
type SearchedLogStream struct {
	LogStreamName      string `json:"logStreamName"`
	SearchedCompletely bool   `json:"searchedCompletely"`
}

// PutRetentionPolicyInput is the request of PutRetentionPolicy.
type PutRetentionPolicyInput struct {
	LogGroupName    string `json:"logGroupName" wire:"required"`
	RetentionInDays *int   `json:"retentionInDays" wire:"required"`
}

// PutLogGroupDeletionProtectionInput is the request of
// PutLogGroupDeletionProtection.
type PutLogGroupDeletionProtectionInput struct {
	LogGroupIdentifier        string `json:"logGroupIdentifier" wire:"required"`
	DeletionProtectionEnabled *bool  `json:"deletionProtectionEnabled" wire:"required"`
}

// TagResourceInput is the request of TagResource.
type TagResourceInput struct {
	ResourceArn string            `json:"resourceArn" wire:"required"`
	Tags        map[string]string `json:"tags" wire:"required"`
}

// UntagResourceInput is the request of UntagResource.
type UntagResourceInput struct {
	ResourceArn string   `json:"resourceArn" wire:"required"`
	TagKeys     []string `json:"tagKeys" wire:"required"`
}

// ListTagsForResourceInput is the request of ListTagsForResource.
type ListTagsForResourceInput struct {
	ResourceArn string `json:"resourceArn" wire:"required"`
}

// TagsOutput is the answer of ListTagsForResource and ListTagsLogGroup.
type TagsOutput struct {
	Tags map[string]string `json:"tags"`
}

// TagLogGroupInput is the request of TagLogGroup.
type TagLogGroupInput struct {
	LogGroupName string            `json:"logGroupName" wire:"required"`
	Tags         map[string]string `json:"tags" wire:"required"`
}

// UntagLogGroupInput is the request of UntagLogGroup.
type UntagLogGroupInput struct {
	LogGroupName string   `json:"logGroupName" wire:"required"`
	Tags         []string `json:"tags" wire:"required"`
}
