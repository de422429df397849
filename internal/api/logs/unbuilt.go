package logs

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// Features that are not implemented: lists of them are empty, and invalid requests get AWS's
// errors. Requests that would have to store something are refused by the operation's name.

// The limits of filters, transformations and lists of queries. Source: the API model.
const (
	maxFilterName    = 512
	maxExportName    = 512 // of a task's id, and of a bucket
	maxDeliveryName  = 60
	maxLogType       = 255
	maxFilterPattern = 1024
	maxQueries       = 1000
)

// unbuilt are the operations of such features.
func (s *Service) unbuilt() []api.Operation {
	return []api.Operation{
		api.Op("DescribeDestinations", s.describeDestinations),
		api.Op("DescribeResourcePolicies", s.describeResourcePolicies),
		api.Op("DescribeQueries", s.describeQueries),
		api.Op("DeleteResourcePolicy", s.deleteResourcePolicy),
		api.Op("StartQuery", s.startQuery),
		api.Op("CreateExportTask", s.createExportTask),
		api.Op("CancelExportTask", s.cancelExportTask),
		api.Op("GetDeliveryDestination", s.noDeliveryDestination),
		api.Op("DeleteDeliveryDestination", s.noDeliveryDestination),
		api.Op("GetDeliverySource", s.getDeliverySource),
		api.Op("PutDeliverySource", s.putDeliverySource),
	}
}

func notBuilt(call *api.Call) error {
	return fault.Newf(fault.InvalidAction, "%s is not built yet.", call.Operation)
}

func absent(format string, args ...any) error {
	return fault.Newf(fault.ResourceNotFound, format, args...)
}

// there refuses an unknown group.
func (s *Service) there(call *api.Call, name string) error {
	a, err := group(call, name)
	if err == nil {
		_, err = s.store.Tags(a)
	}
	return err
}

// describeDestinations answers DescribeDestinations.
func (s *Service) describeDestinations(_ context.Context, _ *api.Call, in *ListedInput) (*DestinationsOutput, error) {
	return &DestinationsOutput{Destinations: []None{}}, checkPage(in)
}

// describeResourcePolicies answers DescribeResourcePolicies.
func (s *Service) describeResourcePolicies(_ context.Context, _ *api.Call, in *DescribeResourcePoliciesInput) (*ResourcePoliciesOutput, error) {
	if err := oneOf("policyScope", in.PolicyScope, "ACCOUNT", "RESOURCE"); err != nil {
		return nil, err
	}
	return &ResourcePoliciesOutput{ResourcePolicies: []None{}}, checkPage(&ListedInput{NextToken: in.NextToken, Limit: in.Limit})
}

// describeQueries answers DescribeQueries.
func (s *Service) describeQueries(_ context.Context, call *api.Call, in *DescribeQueriesInput) (*QueriesOutput, error) {
	if err := oneOf("status", in.Status, "Scheduled", "Running", "Complete", "Failed", "Cancelled", "Timeout", "Unknown"); err != nil {
		return nil, err
	}
	if err := oneOf("queryLanguage", in.QueryLanguage, "CWLI", "SQL", "PPL"); err != nil {
		return nil, err
	}
	if _, err := within("maxResults", in.MaxResults, maxQueries); err != nil {
		return nil, err
	}
	if _, err := readListToken("none", in.NextToken); err != nil {
		return nil, err
	}
	if in.LogGroupName != nil {
		if err := s.there(call, *in.LogGroupName); err != nil {
			return nil, err
		}
	}
	return &QueriesOutput{Queries: []None{}}, nil
}

// checkPage validates limits, and refuses tokens, as none was issued.
func checkPage(in *ListedInput) error {
	if _, err := readListToken("none", in.NextToken); err != nil {
		return err
	}
	_, err := limit(in.Limit, maxListed)
	return err
}

// maxGiven bounds a quoted value in an error message that AWS quotes in full, in bytes.
const maxGiven = 16 << 10

// short refuses a value that is too long, and quotes it in full.
func short(member, value string, limit int) error {
	if utf8.RuneCountInString(value) <= limit {
		return nil
	}
	if len(value) > maxGiven {
		value = strings.ToValidUTF8(value[:maxGiven], "")
	}
	return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: "+atMost, value, member, limit)
}

// deleteResourcePolicy refuses DeleteResourcePolicy.
func (s *Service) deleteResourcePolicy(_ context.Context, _ *api.Call, in *DeleteResourcePolicyInput) (*Empty, error) {
	return nil, absent("Policy with name [%s] does not exist.", api.Deref(in.PolicyName))
}

// startQuery refuses StartQuery.
func (s *Service) startQuery(_ context.Context, call *api.Call, in *StartQueryInput) (*Empty, error) {
	names := in.LogGroupNames
	if in.LogGroupName != nil {
		names = append([]string{*in.LogGroupName}, names...)
	}
	for _, name := range names {
		err := s.there(call, name)
		if fault.KindOf(err) == fault.ResourceNotFound {
			return nil, absent("Log group '%s' does not exist for account ID '%s' (Service: AWSLogs; Status Code: 400; Error Code: ResourceNotFoundException; Request ID: %s; Proxy: null)",
				name, call.Account, call.RequestID)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, notBuilt(call)
}

// createExportTask refuses CreateExportTask: there are no buckets.
func (s *Service) createExportTask(_ context.Context, call *api.Call, in *CreateExportTaskInput) (*Empty, error) {
	if err := length("destination", in.Destination, 1, maxExportName); err != nil {
		return nil, err
	}
	if err := s.there(call, in.LogGroupName); err != nil {
		return nil, err
	}
	return nil, invalid("The given bucket does not exist. Please make sure the bucket is valid.")
}

// cancelExportTask refuses CancelExportTask.
func (s *Service) cancelExportTask(_ context.Context, _ *api.Call, in *CancelExportTaskInput) (*Empty, error) {
	if err := length("taskId", in.TaskId, 1, maxExportName); err != nil {
		return nil, err
	}
	return nil, absent("The specified export task does not exist.")
}

// noDeliveryDestination is the error for operations on a delivery destination: there are
// none.
func (s *Service) noDeliveryDestination(_ context.Context, _ *api.Call, in *NameInput) (*Empty, error) {
	if err := length("name", in.Name, 1, maxDeliveryName); err != nil {
		return nil, err
	}
	return nil, absent("Requested Delivery Destination does not exist in this account.")
}

// getDeliverySource refuses GetDeliverySource.
func (s *Service) getDeliverySource(_ context.Context, _ *api.Call, in *NameInput) (*Empty, error) {
	if err := length("name", in.Name, 1, maxDeliveryName); err != nil {
		return nil, err
	}
	return nil, absent("Requested Delivery Source does not exist in this account.")
}

// putDeliverySource refuses PutDeliverySource: no resource here can be a delivery source.
func (s *Service) putDeliverySource(_ context.Context, _ *api.Call, in *PutDeliverySourceInput) (*Empty, error) {
	if err := cmp.Or(length("name", in.Name, 1, maxDeliveryName), length("logType", in.LogType, 1, maxLogType)); err != nil {
		return nil, err
	}
	return nil, absent("Cannot access provided service.")
}
