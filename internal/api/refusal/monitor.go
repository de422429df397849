package refusal

import (
	"godwit.dev/godwit/internal/alarm/rule"
	"godwit.dev/godwit/internal/metricmath"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
)

var monitor = sentences{
	alarms.ErrTooMany:  "The maximum number of alarms, %d, has been reached.",
	alarms.ErrNotFound: "",
	alarms.ErrUntagged: "",

	alarms.ErrOtherKind:  "There is an alarm with the name %s already, and its type is %s.",
	alarms.ErrNoChildren: "Could not save the composite alarm as alarms [%s] in the alarm rule do not exist",
	alarms.ErrSuppressor: "Could not save the composite alarm as its actions suppressor %s does not exist",
	alarms.ErrParents:    "Could not save the composite alarm as %d composite alarms depend on %s, which is the maximum.",
	alarms.ErrNeeded:     "Cannot delete %s as there are composite alarm(s) depending on it.",
	alarms.ErrAllNeeded:  "Cannot delete %s as there are composite alarm(s) depending on them.",

	rule.ErrToken:    "Error in AlarmRule [Unsupported token '%s' at char %d, must be: %s]",
	rule.ErrEnd:      "Error in AlarmRule [Unexpected end, must be: %s]",
	rule.ErrQuote:    "Error in AlarmRule [The quotes at char %d are not closed]",
	rule.ErrLength:   "1 validation error detected: Value at 'alarmRule' failed to satisfy constraint: Member must have length less than or equal to %d",
	rule.ErrChildren: "Error in AlarmRule [It refers to more than %d alarms]",
	rule.ErrElements: "Error in AlarmRule [It has more than %d elements]",
	rule.ErrAtLeast:  "Error in AlarmRule [AT_LEAST cannot ask for %s of its alarms]",
	rule.ErrSpace:    "AlarmRule must not contain leading or trailing whitespace or be null",

	logs.ErrNoGroup:              "The specified log group does not exist.",
	logs.ErrNoStream:             "The specified log stream does not exist.",
	logs.ErrGroupExists:          "The specified log group already exists",
	logs.ErrStreamExists:         "The specified log stream already exists",
	logs.ErrProtected:            "The log group is protected from deletion. Disable its deletion protection first.",
	logs.ErrNoFilter:             "The specified metric filter does not exist.",
	logs.ErrTooManyFilters:       "Resource limit exceeded.",
	logs.ErrNoSubscription:       "The specified subscription filter does not exist.",
	logs.ErrTooManySubscriptions: "Resource limit exceeded.",
	logs.ErrTooManyTags:          "A resource can have no more than %d tags.",
	logs.ErrSpan:                 "The batch of log events in a single PutLogEvents request cannot span more than 24 hours.",
	logs.ErrToken:                "The specified nextToken is invalid.",
	logs.ErrFull:                 "",

	metricmath.ErrSyntax:      "Error in expression '%s': Invalid syntax",
	metricmath.ErrFunction:    "Error in expression '%s': Function '%s' not found",
	metricmath.ErrUnsupported: "Error in expression '%s': The function %s is not supported.",
	metricmath.ErrInsights:    "Error in expression '%s': Metrics Insights queries are not supported.",
	metricmath.ErrUnknown:     "Error in expression '%s': There is no metric and no expression with the Id '%s'.",
	metricmath.ErrCycle:       "Error in expression '%s': It refers to itself.",
	metricmath.ErrArguments:   "Error in expression '%s': The function %s does not take these arguments.",
	metricmath.ErrOperands:    "Error in expression '%s': The operator %s does not take these operands.",
	metricmath.ErrElements:    "Error in expression '%s': The elements of an array must be time series.",
	metricmath.ErrSearch:      "Error in expression '%s': The text of a SEARCH must have a schema or a search term in the syntax of CloudWatch's search expressions, and no more than %d characters.",
	metricmath.ErrSearches:    "Error in expression '%s': The expressions of a request can have %d searches.",
	metricmath.ErrSearched:    "Error in expression '%s': The searches of the request look at too many metrics. A schema with a namespace makes them look at fewer.",
	metricmath.ErrScalar:      "Error in expression '%s': The result is a single number. It must be a time series, or an array of time series.",
	metricmath.ErrDepth:       "Error in expression '%s': It is nested more than %d deep.",
	metricmath.ErrParts:       "Error in expression '%s': The expressions of a request can have %d parts.",
	metricmath.ErrDatapoints:  "Error in expression '%s': It needs too many datapoints. You may reduce them by increasing Period, or decreasing the time range.",
}
