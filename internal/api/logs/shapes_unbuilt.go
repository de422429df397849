package logs

// The shapes of operations whose features are not implemented, as far as they are validated.

// None is the entry of an empty list.
type None struct{}

// ListedInput is a request for a list that is always empty.
type ListedInput struct {
	NextToken *string `json:"nextToken"`
	Limit     *int    `json:"limit"`
}

// NameInput is a request with a name.
type NameInput struct {
	Name string `json:"name" wire:"required"`
}

// DestinationsOutput is the answer of DescribeDestinations.
type DestinationsOutput struct {
	Destinations []None `json:"destinations"`
}

// ResourcePoliciesOutput is the answer of DescribeResourcePolicies.
type ResourcePoliciesOutput struct {
	ResourcePolicies []None `json:"resourcePolicies"`
}

// DescribeResourcePoliciesInput is the request of DescribeResourcePolicies.
type DescribeResourcePoliciesInput struct {
	NextToken   *string `json:"nextToken"`
	Limit       *int    `json:"limit"`
	PolicyScope *string `json:"policyScope"`
}

// DescribeQueriesInput is the request of DescribeQueries.
type DescribeQueriesInput struct {
	LogGroupName  *string `json:"logGroupName"`
	Status        *string `json:"status"`
	QueryLanguage *string `json:"queryLanguage"`
	MaxResults    *int    `json:"maxResults"`
	NextToken     *string `json:"nextToken"`
}

// QueriesOutput is the answer of DescribeQueries.
type QueriesOutput struct {
	Queries []None `json:"queries"`
}

// DeleteResourcePolicyInput is the request of DeleteResourcePolicy.
type DeleteResourcePolicyInput struct {
	PolicyName *string `json:"policyName"`
}

// StartQueryInput is the request of StartQuery.
type StartQueryInput struct {
	LogGroupName  *string  `json:"logGroupName"`
	LogGroupNames []string `json:"logGroupNames"`
	StartTime     *int64   `json:"startTime" wire:"required"`
	EndTime       *int64   `json:"endTime" wire:"required"`
	QueryString   *string  `json:"queryString" wire:"required"`
}

// CreateExportTaskInput is the request of CreateExportTask.
type CreateExportTaskInput struct {
	LogGroupName string `json:"logGroupName" wire:"required"`
	Destination  string `json:"destination" wire:"required"`
	From         *int64 `json:"from" wire:"required"`
	To           *int64 `json:"to" wire:"required"`
}

// CancelExportTaskInput is the request of CancelExportTask.
type CancelExportTaskInput struct {
	TaskId string `json:"taskId" wire:"required"`
}

// PutDeliverySourceInput is the request of PutDeliverySource.
type PutDeliverySourceInput struct {
	Name        string `json:"name" wire:"required"`
	ResourceArn string `json:"resourceArn" wire:"required"`
	LogType     string `json:"logType" wire:"required"`
}
