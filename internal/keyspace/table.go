package keyspace

import "strconv"

// Module names the module that writes a kind of record and reads it back, as its directory below
// internal, internal/shard or internal/monitor is called.
type Module string

// The modules.
const (
	ModuleJournal         Module = "journal"
	ModuleQueues          Module = "queues"
	ModuleTransfer        Module = "transfer"
	ModuleTopics          Module = "topics"
	ModuleBacklog         Module = "backlog"
	ModuleDirect          Module = "direct"
	ModuleFunctions       Module = "functions"
	ModuleSigning         Module = "signing"
	ModuleMetrics         Module = "metrics"
	ModuleAlarms          Module = "alarms"
	ModuleLogs            Module = "logs"
	ModuleIdentity        Module = "identity"
	ModuleKeys            Module = "keys"
	ModulePlatforms       Module = "platforms"
	ModuleTexts           Module = "texts"
	ModuleCluster         Module = "cluster"
	ModuleDeliveryStreams Module = "deliverystreams"
	ModuleJobs            Module = "jobs"
	ModuleSources         Module = "sources"
	ModuleStacks          Module = "stacks"
)

// Part is a part of a key: a fixed byte, a number or an id of Size bytes, or a text
// that ends with End or, without one, with the key.
type Part struct {
	Name string // empty: the fixed byte End
	Size int    // 0: a text
	End  byte
	Ends bool // the text ends with End
}

// String writes the part as docs/keyspace.md does.
func (p Part) String() string {
	switch {
	case p.Name == "" && p.End == 0:
		return "0x00"
	case p.Name == "":
		return strconv.QuoteRune(rune(p.End))
	case p.Size > 0:
		return p.Name + ":" + strconv.Itoa(p.Size)
	case p.Ends && p.End == 0:
		return p.Name + " 0x00"
	case p.Ends:
		return p.Name + " " + strconv.QuoteRune(rune(p.End))
	default:
		return p.Name
	}
}

// Kind is a kind of record.
type Kind struct {
	Name   string
	Module Module
	Key    []Part
	Value  string // the form of the value, in words
}

func tag(b byte) Part               { return Part{End: b} }
func number(name string) Part       { return Part{Name: name, Size: 8} }
func id(name string, size int) Part { return Part{Name: name, Size: size} }
func text(name string) Part         { return Part{Name: name} }
func until(end byte, n string) Part { return Part{Name: n, End: end, Ends: true} }
func zeroed(n string) Part          { return until(0, n) }
func key(parts ...Part) []Part      { return parts }
func sharded(parts ...Part) []Part  { return append(key(id(PartShard, 2)), parts...) }
func ofQueue(parts ...Part) []Part {
	return append(sharded(tag(Data), number(PartIncarnation)), parts...)
}
func named(t byte) []Part { return sharded(tag(t), zeroed(PartAccount), zeroed(PartRegion)) }
func slashed(parts ...Part) []Part {
	return append(parts, until('/', PartAccount), until('/', PartRegion))
}
func function(t byte) []Part { return slashed(sharded(tag(Functions), tag(t))...) }
func log(t byte, p ...Part) []Part {
	return append(key(tag(LogSpace), tag(t)), p...)
}

func alarm(t byte, p ...Part) []Part {
	return append(key(tag(AlarmSpace), tag(t)), p...)
}

func identity(t byte, p ...Part) []Part {
	return append(key(tag(IdentitySpace), tag(t)), p...)
}

func ofKeys(t byte, p ...Part) []Part { return append(key(tag(KMSSpace), tag(t)), p...) }

func ofSMS(t byte, p ...Part) []Part {
	return append(key(tag(SMSSpace), tag(t), zeroed(PartAccount), zeroed(PartRegion)), p...)
}

func firehose(t byte, p ...Part) []Part { return append(key(tag(FirehoseSpace), tag(t)), p...) }

func ofStack(t byte, p ...Part) []Part {
	return append(key(tag(StackSpace), tag(t), id(PartStack, 16)), p...)
}

func metric(t byte, p ...Part) []Part {
	return append(key(tag(MetricSpace), tag(t)), p...)
}

// The names of parts that say whose a record is. An incarnation is a queue's, a
// subscription's backlog's, a function's events' or a FIFO topic's, within its shard.
const (
	PartShard          = "shard"
	PartIncarnation    = "incarnation"
	PartAccount        = "account"
	PartRegion         = "region"
	PartName           = "name"
	PartSourceShard    = "source shard"
	PartSource         = "source incarnation"
	PartSourceSequence = "source sequence"
	PartCount          = "number" // of a publication, of a queue's task: in their order
	PartSequence       = "sequence"
	PartGroup          = "group" // of logs: its number
	PartKind           = "kind"
	PartStack          = "stack" // the id at the end of its ARN
	PartNumber         = "phone number"
	PartID             = "id" // of a subscription: the end of its ARN; of what may be a duplicate
	PartSent           = "sent"
	PartUntil          = "until"
	PartOrder          = "order"
	PartEndpoint       = "endpoint"
	PartSigningKey     = "key"
	PartUpload         = "upload"
	PartStream         = "stream" // its number
	PartChangeSet      = "change set"
	PartLogicalID      = "logical id"
)

// The forms of values that several kinds have.
const (
	none        = "nothing"
	fixed8      = "number, 8 bytes"
	versioned   = "version 1, JSON"
	inJSON      = "JSON"
	sealedJSON  = "version 1, whether it is sealed, JSON"
	stateForm   = "57 bytes: due, sent, first and latest receive, receives, epoch, lane, tenant, flags; of a FIFO queue 8 more: turn; 4 more: the size of its record"
	fanoutForm  = "cursor, incarnation, bodies by protocol, message"
	messageForm = "version, flags, time, id, digest, what the flags say, body"
)

// ID is the place of a Kind in Table.
type ID int

// The kinds of record.
const (
	KindArchive ID = iota
	KindDirect
	KindCounters
	KindDue
	KindExpiry
	KindGroup
	KindHeld
	KindDueSecond
	KindLease
	KindMessage
	KindHistory
	KindReturnedGroup
	KindListedGroup
	KindDueTime
	KindTenant
	KindDeletedTopics
	KindTopicSequence
	KindDelivered
	KindConfirmation
	KindHandleKey
	KindAlias
	KindDeletedFunction
	KindFunction
	KindLayer
	KindMapping
	KindVersion
	KindLayerVersion
	KindStreamState
	KindPlatformApplication
	KindPlatformEndpoint
	KindPlatformToken
	KindFanout
	KindQueue
	KindReplay
	KindSubscription
	KindTopic
	KindDuplicate
	KindMoveTask
	KindDuplicateBatch
	KindTransfer
	KindSigningKey
	KindCode
	KindLogBucket
	KindLogTotals
	KindLogDeleted
	KindLogEvent
	KindLogCursor
	KindLogGroup
	KindLogPut
	KindLogIndex
	KindLogStreamName
	KindLogOldest
	KindLogSequence
	KindLogStream
	KindLogLatest
	KindLogClock
	KindLogExpiry
	KindAlarm
	KindAlarmItem
	KindAlarmIndex
	KindAlarmAction
	KindAlarmSequence
	KindFence
	KindFirehoseBatch
	KindFirehoseChunk
	KindFirehoseRecords
	KindDeliveryStream
	KindIdentity
	KindAccessKey
	KindTokenKey
	KindIdentityUse
	KindJob
	KindKeyAlias
	KindKeyGrant
	KindKey
	KindSealing
	KindStored
	KindMetricClosed
	KindMetricFloor
	KindMetricSecond
	KindMetricLatest
	KindMetricOpen
	KindMetricPoint
	KindMetricSeries
	KindChangeSet
	KindStackEvent
	KindStackResource
	KindStack
	KindStackTemplate
	KindSMSAttributes
	KindSMSConsent
	KindSMSDestination
	KindSMSSpending
	KindSource
	kinds
)

// Table is every kind of record, by its ID and in the order of keys.
var Table = [...]Kind{
	KindArchive: {"archived publication", ModuleTopics, sharded(tag(Archives), number(PartIncarnation), number(PartSent), number(PartSequence)), fanoutForm},
	KindDirect:  {"backlog of what an account publishes without a topic", ModuleDirect, append(named(Directs), text(PartName)), versioned},

	KindCounters: {"counters of a queue", ModuleQueues, sharded(tag(Counters), number(PartIncarnation)), "10 to 14 uvarints: next, head, fresh, scheduled, leased, lowest of two lanes, grouped, returned, listed; listed as returned, turn, ages, one more than the bytes of messages"},

	KindDue:           {"scheduled message", ModuleQueues, ofQueue(tag(DueMessages), number("due"), number(PartSequence)), stateForm},
	KindExpiry:        {"expiry of a message outside the main and the delayed lane; in FIFO queues, of one that came back", ModuleQueues, ofQueue(tag(MessageExpiries), number(PartSent), number(PartSequence)), "lane, 8 bytes"},
	KindGroup:         {"group that is not empty", ModuleQueues, ofQueue(tag(Groups), number("lane")), "a sequence at or before its first, 8 bytes"},
	KindHeld:          {"returned message of a FIFO group", ModuleQueues, ofQueue(tag(HeldMessages), number("lane"), number(PartSequence)), stateForm},
	KindDueSecond:     {"messages due in a second", ModuleQueues, ofQueue(tag(DueSeconds), number("second")), "count, 8 bytes; of the second -1: a recount is under way"},
	KindLease:         {"lease", ModuleQueues, ofQueue(tag(Leases), number(PartSequence)), stateForm},
	KindMessage:       {"message", ModuleQueues, ofQueue(tag(Messages), number("lane"), number(PartSequence)), messageForm},
	KindHistory:       {"history of attempts", ModuleBacklog, ofQueue(tag(Histories), number(PartSequence)), "version 1 to 3, signature, cause, attempts; of a function's event version 1, JSON"},
	KindReturnedGroup: {"group of a FIFO queue whose first message came back", ModuleQueues, ofQueue(tag(ReturnedGroups), number("due"), number("turn")), "16 bytes: lane, sequence"},
	KindListedGroup:   {"group that can be received from", ModuleQueues, ofQueue(tag(ListedGroups), number(PartSequence)), "17 bytes: lane, time, whether returned"},
	KindDueTime:       {"due time of a scheduled message", ModuleQueues, ofQueue(tag(DueTimes), number(PartSequence)), "time, 8 bytes"},
	KindTenant:        {"what a tenant of a fair queue has waiting", ModuleQueues, ofQueue(tag(Tenants), number("lane")), "2 uvarints: messages, scheduled"},

	KindDeletedTopics: {"mark that backlogs of deleted topics are being dropped", ModuleTopics, sharded(tag(DeletedTopics)), "the shard's latest incarnation then, 8 bytes"},
	KindTopicSequence: {"next sequence of a FIFO topic", ModuleTopics, sharded(tag(TopicSequences), number(PartIncarnation)), fixed8},
	KindDelivered:     {"subscriptions that a fan-out has passed already", ModuleTopics, sharded(tag(Delivered), number("number")), "uvarints: incarnations"},
	KindConfirmation:  {"mail that has asked for a confirmation, or its answer", ModuleTopics, sharded(tag(Confirmations), number(PartUntil), number(PartOrder)), "version 1, whether it is an answer, time, digest of the mail box: 26 bytes; account"},
	KindHandleKey:     {"key of receipt handles; in shard 0", ModuleQueues, sharded(tag(HandleKey)), "32 bytes"},

	KindAlias:           {"alias of a function", ModuleFunctions, append(function(FunctionAliases), zeroed(PartName), text("alias")), versioned},
	KindDeletedFunction: {"highest version of a deleted function", ModuleFunctions, append(function(FunctionsDeleted), text(PartName)), versioned},
	KindFunction:        {"function", ModuleFunctions, append(function(FunctionRecords), text(PartName)), versioned},
	KindLayer:           {"highest version of a layer", ModuleFunctions, append(function(LayerNumbers), text(PartName)), versioned},
	KindMapping:         {"event-source mapping", ModuleFunctions, append(function(FunctionMappings), text(PartName)), versioned},
	KindVersion:         {"version of a function", ModuleFunctions, append(function(FunctionVersions), zeroed(PartName), number("version")), versioned},
	KindLayerVersion:    {"version of a layer", ModuleFunctions, append(function(LayerVersions), zeroed(PartName), number("version")), versioned},

	KindStreamState: {"shard, or another stream of the journal", ModuleJournal, sharded(tag(StreamState)), "28 bytes: sequence, epoch, time, latest incarnation"},

	KindPlatformApplication: {"platform application, its credentials sealed", ModulePlatforms, append(slashed(sharded(tag(Platforms), tag(PlatformApplications))...), text(PartName)), versioned},
	KindPlatformEndpoint:    {"platform endpoint", ModulePlatforms, sharded(tag(Platforms), tag(PlatformEndpoints), number(PartIncarnation), id(PartEndpoint, 16)), versioned},
	KindPlatformToken:       {"platform endpoint by its token", ModulePlatforms, sharded(tag(Platforms), tag(PlatformTokens), number(PartIncarnation), id("token", 16)), "the endpoint's id, 16 bytes"},

	KindFanout:         {"publication that is being fanned out", ModuleTopics, sharded(tag(Fanouts), number(PartCount)), fanoutForm},
	KindQueue:          {"queue", ModuleQueues, append(named(Queues), text(PartName)), versioned},
	KindReplay:         {"replay of an archive", ModuleTopics, sharded(tag(Replays), number(PartIncarnation)), "16 bytes: time, sequence"},
	KindSubscription:   {"subscription", ModuleTopics, append(slashed(sharded(tag(Subscriptions))...), zeroed(PartName), text(PartID)), versioned},
	KindTopic:          {"topic", ModuleTopics, append(slashed(sharded(tag(Topics))...), text(PartName)), versioned},
	KindDuplicate:      {"deduplication id that was accepted in a minute", ModuleQueues, sharded(tag(Duplicates), number("minute"), number(PartIncarnation), id(PartID, 16)), "32 bytes: time, sequence, message id"},
	KindMoveTask:       {"move task", ModuleTransfer, append(named(MoveTasks), zeroed(PartName), number(PartCount)), versioned},
	KindDuplicateBatch: {"deduplication ids that were accepted together in a minute", ModuleQueues, sharded(tag(DuplicateBatches), number("minute"), number(PartIncarnation), number(PartSequence)), "time, 8 bytes; of each message 40 bytes: deduplication id, sequence, message id"},
	KindTransfer:       {"mark of a message that was taken in", ModuleTransfer, sharded(tag(Transfers), id(PartSourceShard, 2), number(PartSource), number(PartSourceSequence)), "lane at the source, 8 bytes"},
	KindSigningKey:     {"key that envelopes are signed with; in shard 0", ModuleSigning, sharded(tag(SigningKeys), id(PartSigningKey, 16)), "version, number; private key in PKCS #1, certificate in DER"},

	KindCode: {"piece of a function's or a layer's zip", ModuleFunctions, key(tag(CodeSpace), id(PartShard, 2), number(PartUpload), id("piece", 4)), "64 KiB at most"},

	KindLogBucket:     {"an hour of a log group", ModuleLogs, log(LogBuckets, number(PartGroup), number("hour")), "bytes, events: 16 bytes"},
	KindLogTotals:     {"totals of a log group", ModuleLogs, log(LogTotals, number(PartGroup)), "retention, next expiry, bytes, events: 32 bytes"},
	KindLogDeleted:    {"removed log stream with events", ModuleLogs, log(LogDeleted, number(PartGroup), number(PartStream)), none},
	KindLogEvent:      {"log event", ModuleLogs, log(LogEvents, number(PartGroup), number("time"), number(PartSequence)), "stream, time of arrival: 16 bytes; message"},
	KindLogCursor:     {"how far a subscription filter has handed over", ModuleLogs, log(LogCursors, number(PartGroup), number("filter")), "next sequence: 8 bytes; account, region, name of the group, with NULs between"},
	KindLogGroup:      {"log group", ModuleLogs, log(LogGroups, zeroed(PartAccount), zeroed(PartRegion), text(PartName)), "id, creation: 16 bytes; JSON"},
	KindLogPut:        {"log events that subscription filters are yet to hand over", ModuleLogs, log(LogPuts, number(PartGroup), number(PartSequence)), "stream, time of arrival: 16 bytes; times as variable-length numbers, each since the one before"},
	KindLogIndex:      {"log event by its stream", ModuleLogs, log(LogIndex, number(PartGroup), number("hour"), number(PartStream), number("time"), number(PartSequence)), none},
	KindLogStreamName: {"name of a log stream", ModuleLogs, log(LogStreamNames, number(PartGroup), number(PartStream)), "the name"},
	KindLogOldest:     {"log group with events of an hour", ModuleLogs, log(LogOldest, number("hour"), number(PartGroup)), none},
	KindLogSequence:   {"bound of the numbers given to log groups", ModuleLogs, log(LogSequence), fixed8},
	KindLogStream:     {"log stream", ModuleLogs, log(LogStreams, number(PartGroup), text(PartName)), "id, creation, first, last and latest event: 40 bytes"},
	KindLogLatest:     {"log stream by its last event", ModuleLogs, log(LogLatest, number(PartGroup), number("time"), number(PartStream)), "the stream's name"},
	KindLogClock:      {"time of the log groups' latest commit", ModuleLogs, log(LogClock), fixed8},
	KindLogExpiry:     {"log group of which something expires", ModuleLogs, log(LogExpiries, number("hour"), number(PartGroup)), none},

	KindAlarm:         {"alarm", ModuleAlarms, alarm(AlarmRecords, zeroed(PartAccount), zeroed(PartRegion), zeroed(PartName)), inJSON},
	KindAlarmItem:     {"item of alarms' history", ModuleAlarms, alarm(AlarmHistory, zeroed(PartAccount), zeroed(PartRegion), number("time"), id(PartSequence, 4)), inJSON},
	KindAlarmIndex:    {"item of an alarm's history", ModuleAlarms, alarm(AlarmIndex, zeroed(PartAccount), zeroed(PartRegion), zeroed(PartName), number("time"), id(PartSequence, 4)), none},
	KindAlarmAction:   {"alarm's action that is due", ModuleAlarms, alarm(AlarmActions, number("time"), id(PartSequence, 4)), inJSON},
	KindAlarmSequence: {"last sequence of alarms", ModuleAlarms, alarm(AlarmSequence), "number, 4 bytes"},

	KindFence: {"how far a cell's replica has come in its log", ModuleCluster, key(tag(ClusterSpace), tag(ClusterFences), id("cell", 2)), "version 1, epoch, number, position in the log: 25 bytes; owner"},

	KindFirehoseBatch:   {"batch of a delivery stream that is being delivered", ModuleDeliveryStreams, firehose(FirehoseBatches, number(PartStream)), versioned},
	KindFirehoseChunk:   {"chunk of a delivery stream's records", ModuleDeliveryStreams, firehose(FirehoseChunks, number(PartStream), number(PartSequence)), "time of arrival, records, bytes: 16 bytes"},
	KindFirehoseRecords: {"records of a chunk", ModuleDeliveryStreams, firehose(FirehoseRecords, number(PartStream), number(PartSequence)), "sealed: length and flag, data"},
	KindDeliveryStream:  {"delivery stream", ModuleDeliveryStreams, firehose(DeliveryStreams, zeroed(PartAccount), zeroed(PartRegion), text(PartName)), "version 1, JSON; its access key sealed"},
	KindIdentity:        {"user, group, role, policy, identity provider, instance profile or alias", ModuleIdentity, identity(IdentityEntities, zeroed(PartAccount), id(PartKind, 1), text(PartName)), versioned},
	KindAccessKey:       {"access key of a user, its secret sealed", ModuleIdentity, identity(IdentityKeys, zeroed(PartAccount), text(PartName)), versioned},
	KindTokenKey:        {"key of session tokens", ModuleIdentity, identity(IdentityTokens), "whether it is sealed, 1 byte; 32 bytes, or these sealed"},
	KindIdentityUse:     {"latest use of an access key or a role", ModuleIdentity, identity(IdentityUses, text(PartName)), versioned},
	KindJob:             {"job of an operator, what it looks for sealed", ModuleJobs, key(tag(JobSpace), tag(JobRecords), text("job")), versioned},

	KindKeyAlias: {"alias of a KMS key", ModuleKeys, ofKeys(KeyAliases, zeroed(PartAccount), zeroed(PartRegion), text(PartName)), versioned},
	KindKeyGrant: {"grant of a KMS key", ModuleKeys, ofKeys(KeyGrants, zeroed(PartAccount), zeroed(PartRegion), zeroed(PartName), text("grant")), versioned},
	KindKey:      {"KMS key", ModuleKeys, ofKeys(KeyRecords, zeroed(PartAccount), zeroed(PartRegion), text(PartName)), "version 1, JSON; its material sealed"},
	KindStored:   {"how far what was stored in clear has been sealed", ModuleKeys, ofKeys(KeyStored), inJSON},
	KindSealing:  {"keys that seal what is on disk, wrapped with the root key", ModuleKeys, ofKeys(KeySealing), inJSON},

	KindMetricClosed: {"steady sample that has ended", ModuleMetrics, metric(MetricClosed, zeroed(PartAccount), zeroed(PartRegion), zeroed("namespace"), zeroed("dimensions"), id("first minute", 4)), "last minute, 4 bytes; sample"},
	KindMetricFloor:  {"minute before which points are in the next resolution", ModuleMetrics, metric(MetricFloors, id("resolution", 1)), "minute, 4 bytes"},
	KindMetricSecond: {"point of a second", ModuleMetrics, metric(MetricSeconds, id("half hour", 4), id("series", 16), id("second", 4)), setForm},
	KindMetricLatest: {"latest write of metrics", ModuleMetrics, metric(MetricLatest), "12 bytes: minute, latest minute written, milliseconds; of old 8"},
	KindMetricOpen:   {"steady sample that still stands", ModuleMetrics, metric(MetricOpen, zeroed(PartAccount), zeroed(PartRegion), zeroed("namespace"), zeroed("dimensions")), "first minute, 4 bytes; sample"},
	KindMetricPoint:  {"point of a metric", ModuleMetrics, metric(MetricPoints, id("resolution", 1), id("bucket", 4), id("series", 16), id("minute", 4)), setForm},
	KindMetricSeries: {"series of a metric", ModuleMetrics, metric(MetricSeries, zeroed(PartAccount), zeroed(PartRegion), zeroed("namespace"), zeroed(PartName), zeroed("dimensions"), text("unit")), "minute it was last seen in, 4 bytes"},

	KindChangeSet:     {"change set of a stack", ModuleStacks, ofStack(StackChanges, id(PartChangeSet, 16)), sealedJSON},
	KindStackEvent:    {"event of a stack", ModuleStacks, ofStack(StackEvents, number("number")), sealedJSON},
	KindStackResource: {"resource of a stack", ModuleStacks, ofStack(StackResources, text(PartLogicalID)), sealedJSON},
	KindStack:         {"stack", ModuleStacks, ofStack(StackRecords), sealedJSON},
	KindStackTemplate: {"template of a stack", ModuleStacks, ofStack(StackTemplates, number("number")), sealedJSON},

	KindSMSAttributes:  {"an account's settings of text messages", ModuleTexts, ofSMS(SMSAttributes), versioned},
	KindSMSConsent:     {"phone number that has opted out, or in again", ModuleTexts, ofSMS(SMSConsents, text(PartNumber)), versioned},
	KindSMSDestination: {"phone number of the sandbox", ModuleTexts, ofSMS(SMSDestinations, text(PartNumber)), versioned},
	KindSMSSpending:    {"what an account has spent on text messages in a month", ModuleTexts, ofSMS(SMSSpending), versioned},

	KindSource: {"source that posts come in by", ModuleSources, key(tag(SourceSpace), tag(SourceRecords), text(PartName)), "version 1, JSON; its secrets sealed"},
}

const setForm = "form, count, sum, minimum, maximum, distribution"
