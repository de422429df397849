package variables

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/fastjson"
	"godwit.dev/godwit/internal/fault"
)

// Environment is a function's environment variables.
type Environment struct {
	Variables map[string]string
	Error     *Failure // the reason why variables are not shown

	order []string // the names, in the order of the request
}

// UnmarshalJSON decodes the variables of a request, and keeps their order.
func (e *Environment) UnmarshalJSON(text []byte) error {
	var in struct{ Variables json.RawMessage }
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*e = Environment{}
	if in.Variables == nil {
		return nil
	}
	if err := json.Unmarshal(in.Variables, &e.Variables); err != nil {
		return err
	}
	seen := make(map[string]bool, len(e.Variables))
	d := json.NewDecoder(bytes.NewReader(in.Variables))
	for inside := false; ; {
		token, err := d.Token()
		if err != nil {
			return nil // the end of the object
		}
		if name, ok := token.(string); ok && inside {
			if !seen[name] {
				seen[name] = true
				e.order = append(e.order, name)
			}
			_, _ = d.Token() // the value
		}
		inside = true
	}
}

const (
	maxEnvironment = 4096     // bytes of the JSON of the variables
	maxMeasured    = 16 << 10 // of these, in an error message
)

// reserved are the environment variables that Lambda sets.
var reserved = []string{
	"AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_NAME",
	"AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME",
	"AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT",
}

// Check refuses reserved variables, and too many. The error message lists them in the order
// of the request. Errors: InvalidParameter.
func (e *Environment) Check() error {
	const prefix = "Lambda was unable to configure your environment variables because the environment variables you have provided "
	var taken []string
	for _, name := range slices.Sorted(maps.Keys(e.Variables)) {
		if slices.Contains(reserved, name) {
			taken = append(taken, name)
		}
	}
	if len(taken) > 0 {
		return fault.Newf(fault.InvalidParameter, "%scontains reserved keys that are currently not supported for modification. Reserved keys used in this request: %s",
			prefix, strings.Join(taken, ", "))
	}
	measured := []byte{'{'}
	for i, name := range e.order {
		if i > 0 {
			measured = append(measured, ',')
		}
		measured = append(fastjson.AppendString(measured, name), ':')
		measured = fastjson.AppendString(measured, e.Variables[name])
	}
	if measured = append(measured, '}'); len(measured) > maxEnvironment {
		return fault.Newf(fault.InvalidParameter, "%sexceeded the 4KB limit. String measured: %s", prefix,
			fault.Excerpt(string(measured), maxMeasured, "..."))
	}
	return nil
}
