package lambda

import (
	"maps"
	"slices"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
)

// configuring has the configuration settings of a request; nil leaves a setting unchanged.
type configuring struct {
	Role, Runtime, Handler, Description *string
	Timeout, MemorySize                 *int
	DeadLetter                          *DeadLetterConfig
	Environment                         *Environment
	Tracing                             *TracingConfig
	Storage                             *EphemeralStorage
	SnapStart                           *SnapStart
	Logging                             *LoggingConfig
	Architectures                       []string

	layers  *[]function.Layer // see useLayers
	missing error             // why this machine cannot run Runtime; see lookUp
}

// The bounds of a function. Timeouts are in seconds, memory in MB.
const (
	maxTimeout     = 900
	minMemory      = 128
	maxMemory      = 10240
	modelMemory    = 32768 // of Lambda Managed Instances
	minStorage     = 512
	maxStorage     = 10240
	maxDescription = 256
)

// check validates the constraints of the model.
func (s *configuring) check(c *request.Constraints) {
	c.Pattern("role", s.Role, rolePattern)
	c.Length("handler", s.Handler, 0, 128)
	c.Pattern("handler", nonEmpty(s.Handler), handlerPattern)
	c.Length("description", s.Description, 0, maxDescription)
	c.Between("timeout", s.Timeout, 1, maxTimeout)
	c.Between("memorySize", s.MemorySize, minMemory, modelMemory)
	if s.DeadLetter != nil {
		c.Pattern("deadLetterConfig.targetArn", s.DeadLetter.TargetArn, resourcePattern)
	}
	if s.Environment != nil {
		names := slices.Sorted(maps.Keys(s.Environment.Variables))
		if i := slices.IndexFunc(names, func(name string) bool { return !variablePattern.MatchString(name) }); i >= 0 {
			c.Add("environment.variables", "{"+names[i]+"=...}", "Map keys must satisfy constraint: "+
				"[Member must satisfy regular expression pattern: %s]", variablePattern.Text)
		}
	}
	if s.Tracing != nil {
		c.Enum("tracingConfig.mode", s.Tracing.Mode, "Active", "PassThrough")
	}
	if s.Storage != nil {
		if s.Storage.Size == nil {
			c.Lacks("ephemeralStorage.size")
		}
		c.Between("ephemeralStorage.size", s.Storage.Size, minStorage, maxStorage)
	}
	if s.SnapStart != nil {
		c.Enum("snapStart.applyOn", s.SnapStart.ApplyOn, "PublishedVersions", "None")
	}
	if l := s.Logging; l != nil {
		c.Enum("loggingConfig.logFormat", l.LogFormat, function.JSONLogs, function.TextLogs)
		c.Enum("loggingConfig.applicationLogLevel", l.ApplicationLogLevel, "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
		c.Enum("loggingConfig.systemLogLevel", l.SystemLogLevel, "DEBUG", "INFO", "WARN")
		c.Length("loggingConfig.logGroup", l.LogGroup, 1, 512)
		c.Pattern("loggingConfig.logGroup", l.LogGroup, logGroupPattern)
	}
	if c.Count("architectures", s.Architectures, 1, 1) {
		c.Enums("architectures", s.Architectures, "x86_64", "arm64")
	}
}

// apply changes a configuration. It fails with InvalidParameter.
func (s *Service) apply(config *function.Config, set *configuring) error {
	if config.Package == packageImage && (api.Deref(set.Runtime) != "" || api.Deref(set.Handler) != "" || set.layers != nil && len(*set.layers) > 0) {
		return request.Invalid("Please don't provide handler or runtime or layer when the package type is Image.")
	}
	if config.Package == packageZip && config.Handler != "" { // an update: nothing runs without a handler
		var c request.Constraints
		c.Pattern("handler", set.Handler, handlerPattern)
		if err := c.Err(); err != nil {
			return err
		}
	}
	if set.Runtime != nil {
		if err := checkRuntime(*set.Runtime); err != nil {
			return err
		}
		if set.missing != nil {
			return request.Invalid("%s", refusal.Text(set.missing))
		}
	}
	switch {
	case api.Deref(set.MemorySize) > maxMemory:
		return request.Invalid("'MemorySize' value failed to satisfy constraint: Member must have value less than or equal to %d", maxMemory)
	case set.SnapStart != nil && api.Deref(set.SnapStart.ApplyOn) == "PublishedVersions":
		return unbuilt(unbuiltMembers{"SnapStart": true})
	}
	if len(set.Architectures) > 0 {
		config.Architecture = set.Architectures[0]
	}
	change(&config.Role, set.Role)
	change(&config.Runtime, set.Runtime)
	change(&config.Handler, set.Handler)
	change(&config.Description, set.Description)
	change(&config.TimeoutS, set.Timeout)
	change(&config.MemoryMB, set.MemorySize)
	change(&config.Layers, set.layers)
	if set.Tracing != nil {
		change(&config.Tracing, set.Tracing.Mode)
	}
	if set.Storage != nil {
		change(&config.EphemeralMB, set.Storage.Size)
	}
	if set.Environment != nil {
		if err := set.Environment.Check(); err != nil {
			return err
		}
		config.Environment = set.Environment.Variables
		if config.Environment == nil {
			config.Environment = map[string]string{}
		}
	}
	if set.DeadLetter != nil && set.DeadLetter.TargetArn != nil {
		target, err := deadLetter(*set.DeadLetter.TargetArn)
		if err != nil {
			return err
		}
		config.DeadLetter = target
	}
	return applyLogging(&config.Logging, set.Logging)
}

func change[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// deadLetter parses the ARN of the dead-letter queue or topic of asynchronous invocations; an
// empty text means none.
func deadLetter(text string) (arn.ARN, error) {
	if text == "" {
		return arn.ARN{}, nil
	}
	target, err := arn.Parse(text)
	if err != nil || target.Service != "sqs" && target.Service != "sns" || target.FIFO() || target.Resource == "" {
		return arn.ARN{}, request.Invalid("The dead-letter target %s is neither a standard SQS queue nor a standard SNS topic.", request.Shorten(text))
	}
	return target, nil
}

func applyLogging(config *function.Logging, set *LoggingConfig) error {
	if set == nil {
		return nil
	}
	change(&config.Format, set.LogFormat)
	change(&config.Group, set.LogGroup)
	if config.Format == function.TextLogs {
		if set.ApplicationLogLevel != nil || set.SystemLogLevel != nil {
			return request.Invalid("To use ApplicationLogLevel or SystemLogLevel, you must set LogFormat to JSON.")
		}
		config.ApplicationLevel, config.SystemLevel = "", ""
		return nil
	}
	if config.ApplicationLevel == "" {
		config.ApplicationLevel, config.SystemLevel = "INFO", "INFO"
	}
	change(&config.ApplicationLevel, set.ApplicationLogLevel)
	change(&config.SystemLevel, set.SystemLogLevel)
	return nil
}
