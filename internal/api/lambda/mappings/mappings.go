// Package mappings answers the operations on event-source mappings.
package mappings

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/invoke/eventsource"
)

// Engine stores event-source mappings.
type Engine interface {
	CreateMapping(ctx context.Context, m mapping.Mapping) (mapping.Mapping, error)
	UpdateMapping(ctx context.Context, a arn.ARN, edit func(mapping.Mapping) (mapping.Update, error)) (mapping.Mapping, error)
	DeleteMapping(ctx context.Context, a arn.ARN) (mapping.Mapping, error)
	Mapping(ctx context.Context, a arn.ARN) (mapping.Mapping, error)
	// Mappings returns all mappings, ordered by UUID.
	Mappings(ctx context.Context) ([]mapping.Mapping, error)
}

// Limits of event-source mappings. Source: the Lambda API reference.
const (
	defaultBatch  = 10
	maxBatch      = 10_000
	maxWindow     = 300 // seconds
	maxMapped     = 1_000
	minMapped     = 2
	maxFilters    = 5
	maxFilterSize = 4096 // characters
)

const reportFailures = "ReportBatchItemFailures"

// CreateEventSourceMappingInput is the request of CreateEventSourceMapping.
type CreateEventSourceMappingInput struct {
	EventSourceArn                 *string
	FunctionName                   string `wire:"required"`
	Enabled                        *bool
	BatchSize                      *int
	FilterCriteria                 *FilterCriteria
	MaximumBatchingWindowInSeconds *int
	FunctionResponseTypes          []string
	ScalingConfig                  *ScalingConfig
	Tags                           map[string]string
	StartingPosition               *string
	StartingPositionTimestamp      *api.Time
	ParallelizationFactor          *int
	MaximumRecordAgeInSeconds      *int
	BisectBatchOnFunctionError     *bool
	MaximumRetryAttempts           *int
	TumblingWindowInSeconds        *int
	DestinationConfig              *Unbuilt
	ProvisionedPollerConfig        *Unbuilt

	Topics                              []string
	Queues                              []string
	SelfManagedEventSource              *Unbuilt
	SourceAccessConfigurations          []Unbuilt
	AmazonManagedKafkaEventSourceConfig *Unbuilt
	SelfManagedKafkaEventSourceConfig   *Unbuilt
	DocumentDBEventSourceConfig         *Unbuilt
	LoggingConfig                       *Unbuilt
	KMSKeyArn                           *string
	MetricsConfig                       *MetricsConfig
}

// UpdateEventSourceMappingInput is the request of UpdateEventSourceMapping.
type UpdateEventSourceMappingInput struct {
	UUID                           string `wire:"required,uri"`
	FunctionName                   *string
	Enabled                        *bool
	BatchSize                      *int
	FilterCriteria                 *FilterCriteria
	MaximumBatchingWindowInSeconds *int
	FunctionResponseTypes          []string
	ScalingConfig                  *ScalingConfig
	ParallelizationFactor          *int
	MaximumRecordAgeInSeconds      *int
	BisectBatchOnFunctionError     *bool
	MaximumRetryAttempts           *int
	TumblingWindowInSeconds        *int
	DestinationConfig              *Unbuilt
	ProvisionedPollerConfig        *Unbuilt

	SourceAccessConfigurations          []Unbuilt
	AmazonManagedKafkaEventSourceConfig *Unbuilt
	SelfManagedKafkaEventSourceConfig   *Unbuilt
	DocumentDBEventSourceConfig         *Unbuilt
	LoggingConfig                       *Unbuilt
	KMSKeyArn                           *string
	MetricsConfig                       *MetricsConfig
}

// MappingInput is the request of GetEventSourceMapping and DeleteEventSourceMapping.
type MappingInput struct {
	UUID string `wire:"required,uri"`
}

// ListEventSourceMappingsInput is the request of ListEventSourceMappings.
type ListEventSourceMappingsInput struct {
	EventSourceArn *string `wire:"query=EventSourceArn"`
	FunctionName   *string `wire:"query=FunctionName"`
	Marker         *string `wire:"query=Marker"`
	MaxItems       *int    `wire:"query=MaxItems"`
}

// ListEventSourceMappingsOutput is the answer of ListEventSourceMappings.
type ListEventSourceMappingsOutput struct {
	NextMarker          string
	EventSourceMappings []EventSourceMappingConfiguration
}

// FilterCriteria selects the messages that the function receives.
type FilterCriteria struct{ Filters []FilterPattern }

// FilterPattern is one pattern of FilterCriteria.
type FilterPattern struct{ Pattern *string }

// ScalingConfig bounds the concurrent batches.
type ScalingConfig struct{ MaximumConcurrency *int }

// MetricsConfig names metrics of a mapping, which are not implemented.
type MetricsConfig struct{ Metrics []string }

// EventSourceMappingConfiguration is a mapping in an answer.
type EventSourceMappingConfiguration struct {
	UUID                           string
	BatchSize                      int
	MaximumBatchingWindowInSeconds int
	EventSourceArn                 string
	FunctionArn                    string
	FilterCriteria                 *FilterCriteria
	LastModified                   api.Time
	State                          string
	StateTransitionReason          string
	LastProcessingResult           string
	FunctionResponseTypes          []string
	ScalingConfig                  *ScalingConfig
	EventSourceMappingArn          string
}

// Unbuilt is a member of features that are not implemented: only its presence is checked.
type Unbuilt struct{}

var errSource = request.Invalid("Unrecognized event source.")

// others refuses, by name, members for other kinds of sources, and those that are not
// implemented for queues.
func others(foreign, unbuilt map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		switch {
		case !foreign[name]:
		case name == "StartingPosition":
			return request.Invalid("StartingPosition is not valid for SQS event sources.")
		default:
			return request.Invalid("Unsupported %s parameter for given event source mapping type.", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unbuilt)) {
		if unbuilt[name] {
			return request.Invalid("Not supported by this version: %s.", name)
		}
	}
	return nil
}

func unbuilt(key *string, metrics *MetricsConfig) map[string]bool {
	return map[string]bool{"KMSKeyArn": api.Deref(key) != "", "MetricsConfig": metrics != nil && len(metrics.Metrics) > 0}
}

func checkCreate(in *CreateEventSourceMappingInput) error {
	return others(map[string]bool{
		"StartingPosition": in.StartingPosition != nil, "StartingPositionTimestamp": in.StartingPositionTimestamp != nil,
		"ParallelizationFactor":     in.ParallelizationFactor != nil,
		"MaximumRecordAgeInSeconds": in.MaximumRecordAgeInSeconds != nil, "BisectBatchOnFunctionError": in.BisectBatchOnFunctionError != nil,
		"MaximumRetryAttempts": in.MaximumRetryAttempts != nil, "TumblingWindowInSeconds": in.TumblingWindowInSeconds != nil,
		"DestinationConfig": in.DestinationConfig != nil, "ProvisionedPollerConfig": in.ProvisionedPollerConfig != nil,
		"Topics": len(in.Topics) > 0, "Queues": len(in.Queues) > 0, "SelfManagedEventSource": in.SelfManagedEventSource != nil,
		"SourceAccessConfigurations":          len(in.SourceAccessConfigurations) > 0,
		"AmazonManagedKafkaEventSourceConfig": in.AmazonManagedKafkaEventSourceConfig != nil,
		"SelfManagedKafkaEventSourceConfig":   in.SelfManagedKafkaEventSourceConfig != nil,
		"DocumentDBEventSourceConfig":         in.DocumentDBEventSourceConfig != nil, "LoggingConfig": in.LoggingConfig != nil,
	}, unbuilt(in.KMSKeyArn, in.MetricsConfig))
}

func checkUpdate(in *UpdateEventSourceMappingInput) error {
	return others(map[string]bool{
		"ParallelizationFactor": in.ParallelizationFactor != nil, "MaximumRecordAgeInSeconds": in.MaximumRecordAgeInSeconds != nil,
		"BisectBatchOnFunctionError": in.BisectBatchOnFunctionError != nil, "MaximumRetryAttempts": in.MaximumRetryAttempts != nil,
		"TumblingWindowInSeconds": in.TumblingWindowInSeconds != nil, "DestinationConfig": in.DestinationConfig != nil,
		"ProvisionedPollerConfig":             in.ProvisionedPollerConfig != nil,
		"SourceAccessConfigurations":          len(in.SourceAccessConfigurations) > 0,
		"AmazonManagedKafkaEventSourceConfig": in.AmazonManagedKafkaEventSourceConfig != nil,
		"SelfManagedKafkaEventSourceConfig":   in.SelfManagedKafkaEventSourceConfig != nil,
		"DocumentDBEventSourceConfig":         in.DocumentDBEventSourceConfig != nil, "LoggingConfig": in.LoggingConfig != nil,
	}, unbuilt(in.KMSKeyArn, in.MetricsConfig))
}

// Service answers the operations.
type Service struct{ engine Engine }

// New makes a Service.
func New(e Engine) *Service { return &Service{e} }

// Operations are the operations on event-source mappings.
func (s *Service) Operations() []api.Operation {
	const mappings, one = "/2015-03-31/event-source-mappings", "/2015-03-31/event-source-mappings/{UUID}"
	return []api.Operation{
		api.Op("CreateEventSourceMapping", s.createMapping).At("POST "+mappings, 202),
		api.Op("GetEventSourceMapping", s.getMapping).At("GET "+one, 200),
		api.Op("ListEventSourceMappings", s.listMappings).At("GET "+mappings, 200),
		api.Op("UpdateEventSourceMapping", s.updateMapping).At("PUT "+one, 202),
		api.Op("DeleteEventSourceMapping", s.deleteMapping).At("DELETE "+one, 202),
	}
}

func shownMapping(m *mapping.Mapping) *EventSourceMappingConfiguration {
	window := int(m.Window / time.Second)
	out := &EventSourceMappingConfiguration{
		UUID: m.UUID(), BatchSize: m.BatchSize, MaximumBatchingWindowInSeconds: window, EventSourceArn: m.Queue.String(),
		FunctionArn: m.Function.String(), LastModified: api.TimeOf(m.Modified), State: m.State(),
		StateTransitionReason: "USER_INITIATED", LastProcessingResult: m.Result, FunctionResponseTypes: []string{}, EventSourceMappingArn: m.ARN.String(),
	}
	if m.ReportFailures {
		out.FunctionResponseTypes = []string{reportFailures}
	}
	if len(m.Filters) > 0 {
		out.FilterCriteria = &FilterCriteria{}
		for _, text := range m.Filters {
			out.FilterCriteria.Filters = append(out.FilterCriteria.Filters, FilterPattern{Pattern: &text})
		}
	}
	if m.Concurrency > 0 {
		out.ScalingConfig = &ScalingConfig{MaximumConcurrency: &m.Concurrency}
	}
	return out
}

// changes are the members that creation and update share, and the position of a creation.
type changes struct {
	batch, window *int
	filters       *FilterCriteria
	responses     []string
	scaling       *ScalingConfig
	position      *string
}

func (c changes) check() error {
	var broken request.Constraints
	broken.Between("batchSize", c.batch, 1, maxBatch)
	broken.Between("maximumBatchingWindowInSeconds", c.window, 0, maxWindow)
	broken.Enum("startingPosition", c.position, "LATEST", "AT_TIMESTAMP", "TRIM_HORIZON")
	if c.scaling != nil {
		broken.Between("scalingConfig.maximumConcurrency", c.scaling.MaximumConcurrency, minMapped, maxMapped)
	}
	if broken.Count("functionResponseTypes", c.responses, 0, 1) {
		broken.Enums("functionResponseTypes", c.responses, reportFailures)
	}
	if c.filters != nil && len(c.filters.Filters) <= maxFilters { // apply refuses more
		for _, f := range c.filters.Filters {
			broken.Length("filterCriteria.filters.member.pattern", f.Pattern, 0, maxFilterSize)
		}
	}
	return broken.Err()
}

// apply changes the settings that are not nil. It fails with InvalidParameter for invalid
// filters, or too many.
func (c changes) apply(set *mapping.Settings) error {
	if c.batch != nil {
		set.BatchSize = *c.batch
	}
	if c.window != nil {
		set.Window = time.Duration(*c.window) * time.Second
	}
	if c.responses != nil {
		set.ReportFailures = len(c.responses) > 0
	}
	if c.scaling != nil { // an empty one clears it
		set.Concurrency = api.Deref(c.scaling.MaximumConcurrency)
	}
	if c.filters == nil {
		return nil
	}
	set.Filters = nil
	if len(c.filters.Filters) > maxFilters {
		return request.Invalid("Exceeded maximum number of filters: at most %d.", maxFilters)
	}
	for _, f := range c.filters.Filters {
		text := strings.Clone(api.Deref(f.Pattern))
		if _, err := eventsource.CompileFilter(text); err != nil {
			return request.Invalid("Invalid filter pattern definition.")
		}
		set.Filters = append(set.Filters, text)
	}
	return nil
}

// createMapping answers CreateEventSourceMapping.
func (s *Service) createMapping(ctx context.Context, call *api.Call, in *CreateEventSourceMappingInput) (*EventSourceMappingConfiguration, error) {
	c := changes{in.BatchSize, in.MaximumBatchingWindowInSeconds, in.FilterCriteria, in.FunctionResponseTypes, in.ScalingConfig, in.StartingPosition}
	queue, n, err := readMapping(call, in.EventSourceArn, &in.FunctionName, c)
	if err != nil {
		return nil, err
	}
	if err := ownMapping(call, queue, n); err != nil {
		return nil, err
	}
	fn := n.ARN()
	if err := checkCreate(in); err != nil {
		return nil, err
	}
	if queue == (arn.ARN{}) {
		return nil, errSource
	}
	if err := request.CheckTags(in.Tags); err != nil {
		return nil, err
	}
	id, err := uuid.NewRandomFromReader(rand.Reader)
	if err != nil {
		return nil, err
	}
	m := mapping.Mapping{
		ARN: mapping.ARN(call.Region, call.Account, id.String()), Queue: queue, Function: fn,
		Settings: mapping.Settings{BatchSize: defaultBatch}, Enabled: in.Enabled == nil || *in.Enabled, Tags: in.Tags,
	}
	if err := c.apply(&m.Settings); err != nil {
		return nil, err
	}
	made, err := s.engine.CreateMapping(ctx, m)
	if err != nil {
		return nil, err
	}
	return shownMapping(&made), nil
}

// ownMapping refuses a queue or a function of another account, whatever its policy allows.
func ownMapping(call *api.Call, queue arn.ARN, n request.Named) error {
	strict := *call
	strict.Authorized = false
	if queue != (arn.ARN{}) {
		if err := request.Owned(&strict, queue); err != nil {
			return err
		}
	}
	if n == (request.Named{}) {
		return nil
	}
	return request.Owned(&strict, n.ARN())
}

// readMapping reads the queue and the function of a mapping.
func readMapping(call *api.Call, queueARN, name *string, c changes) (queue arn.ARN, n request.Named, err error) {
	var broken request.Constraints
	broken.Pattern("eventSourceArn", queueARN, request.ARNPattern)
	if err := broken.Err(); err != nil {
		return queue, n, err
	}
	if err := c.check(); err != nil {
		return queue, n, err
	}
	if queueARN != nil {
		if queue, err = arn.Parse(*queueARN); err != nil || queue.Service != "sqs" {
			return queue, n, errSource
		}
		if queue.Region != call.Region {
			return queue, n, request.Invalid("The event source must be in the same region as the function.")
		}
	}
	if name == nil {
		return queue, n, nil
	}
	n, err = request.Read(call, *name, nil, request.MaxLongName)
	if fault.KindOf(err) == fault.ResourceNotFound {
		err = request.Invalid("Function does not exist")
	}
	return queue, n, err
}

// updateMapping answers UpdateEventSourceMapping.
func (s *Service) updateMapping(ctx context.Context, call *api.Call, in *UpdateEventSourceMappingInput) (*EventSourceMappingConfiguration, error) {
	c := changes{in.BatchSize, in.MaximumBatchingWindowInSeconds, in.FilterCriteria, in.FunctionResponseTypes, in.ScalingConfig, nil}
	_, n, err := readMapping(call, nil, in.FunctionName, c)
	if err != nil {
		return nil, err
	}
	if err := ownMapping(call, arn.ARN{}, n); err != nil {
		return nil, err
	}
	if err := checkUpdate(in); err != nil {
		return nil, err
	}
	a := mapping.ARN(call.Region, call.Account, in.UUID)
	made, err := s.engine.UpdateMapping(ctx, a, func(m mapping.Mapping) (mapping.Update, error) {
		u := mapping.Update{ARN: a, Settings: m.Settings, Enabled: m.Enabled}
		if in.FunctionName != nil {
			u.Function = n.ARN()
		}
		if in.Enabled != nil {
			u.Enabled = *in.Enabled
		}
		return u, c.apply(&u.Settings)
	})
	if err != nil {
		return nil, err
	}
	return shownMapping(&made), nil
}

// getMapping answers GetEventSourceMapping.
func (s *Service) getMapping(ctx context.Context, call *api.Call, in *MappingInput) (*EventSourceMappingConfiguration, error) {
	m, err := s.engine.Mapping(ctx, mapping.ARN(call.Region, call.Account, in.UUID))
	if err != nil {
		return nil, err
	}
	return shownMapping(&m), nil
}

// deleteMapping answers DeleteEventSourceMapping.
func (s *Service) deleteMapping(ctx context.Context, call *api.Call, in *MappingInput) (*EventSourceMappingConfiguration, error) {
	m, err := s.engine.DeleteMapping(ctx, mapping.ARN(call.Region, call.Account, in.UUID))
	if err != nil {
		return nil, err
	}
	return shownMapping(&m), nil
}

// mappingPage is the page size of ListEventSourceMappings. Source: the Lambda API reference.
const mappingPage = 100

// listMappings answers ListEventSourceMappings.
func (s *Service) listMappings(ctx context.Context, call *api.Call, in *ListEventSourceMappingsInput) (*ListEventSourceMappingsOutput, error) {
	if err := request.CheckPage(in.MaxItems); err != nil {
		return nil, err
	}
	queue, n, err := readMapping(call, in.EventSourceArn, in.FunctionName, changes{})
	if err != nil {
		return nil, err
	}
	after, err := request.ReadMarker("mappings", in.Marker)
	if err != nil {
		return nil, err
	}
	all, err := s.engine.Mappings(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m mapping.Mapping) bool {
		return m.ARN.Account != call.Account || m.ARN.Region != call.Region || m.UUID() <= after ||
			queue != (arn.ARN{}) && m.Queue != queue || in.FunctionName != nil && m.Function != n.ARN()
	})
	limit := mappingPage
	if in.MaxItems != nil {
		limit = min(*in.MaxItems, limit)
	}
	out := &ListEventSourceMappingsOutput{EventSourceMappings: []EventSourceMappingConfiguration{}}
	for i := range all {
		if i == limit {
			out.NextMarker = api.NextToken("mappings", all[i-1].UUID())
			break
		}
		out.EventSourceMappings = append(out.EventSourceMappings, *shownMapping(&all[i]))
	}
	return out, nil
}
