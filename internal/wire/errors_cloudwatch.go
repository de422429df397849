package wire

import (
	"net/http"

	"godwit.dev/godwit/internal/fault"
)

const cloudwatchType = "com.amazonaws.cloudwatch.v2010_08_01#"

var cloudwatchInvalid = errorShape{Type: cloudwatchType + "InvalidParameterValueException", Code: "InvalidParameterValue", Status: http.StatusBadRequest, Text: "The value of a parameter is not valid."}

// cloudwatchErrors are the faults of CloudWatch, with the codes and statuses of
// its model. NotFound is about an alarm or another thing by its name,
// ResourceNotFound about an ARN. The kinds of other services that CloudWatch
// cannot meet are invalid values.
var cloudwatchErrors = func() map[fault.Kind]errorShape {
	own := map[fault.Kind]errorShape{
		fault.Internal:                    {Type: cloudwatchType + "InternalServiceFault", Code: "InternalServiceError", Status: http.StatusInternalServerError, Server: true, Text: internalText},
		fault.MissingParameter:            {Type: cloudwatchType + "MissingRequiredParameterException", Code: "MissingParameter", Status: http.StatusBadRequest, Text: "A required parameter is missing."},
		fault.InvalidParameterCombination: {Type: cloudwatchType + "InvalidParameterCombinationException", Code: "InvalidParameterCombination", Status: http.StatusBadRequest, Text: "The parameters do not go together."},
		fault.InvalidNextToken:            {Type: cloudwatchType + "InvalidNextToken", Code: "InvalidNextToken", Status: http.StatusBadRequest, Text: "The next token is not valid."},
		fault.InvalidFormat:               {Type: cloudwatchType + "InvalidFormatFault", Code: "InvalidFormat", Status: http.StatusBadRequest, Text: "Data was not syntactically valid JSON."},
		fault.LimitExceeded:               {Type: cloudwatchType + "LimitExceededFault", Code: "LimitExceeded", Status: http.StatusBadRequest, Text: "The account has as many as it may have."},
		fault.NotFound:                    {Type: cloudwatchType + "ResourceNotFound", Code: "ResourceNotFound", Status: http.StatusNotFound, Text: "Resource not found", Mute: true},
		fault.ResourceNotFound:            {Type: cloudwatchType + "ResourceNotFoundException", Code: "ResourceNotFoundException", Status: http.StatusNotFound, Text: "Resource not found", Mute: true},
		fault.AccessDenied:                {Type: coral + "AccessDeniedException", Code: "AccessDenied", Status: http.StatusForbidden, Text: "Access to the resource is denied."},
		fault.Throttled:                   {Type: coral + "ThrottlingException", Code: "Throttling", Status: http.StatusBadRequest, Text: "Rate exceeded"},
		fault.InvalidSecurity:             {Type: coral + "InvalidSecurityException", Code: "InvalidSecurity", Status: http.StatusForbidden, Text: "The credential signature isn't valid."},
	}
	with(own)
	for _, kind := range fault.Kinds() {
		if _, ok := own[kind]; !ok {
			own[kind] = cloudwatchInvalid
		}
	}
	return own
}()
