// Package keyspace is the table of everything that the store holds: for each kind
// of record the bytes that its keys begin with, the parts of a key, the form of the
// value and the module that owns it. Nobody else chooses the first bytes of a key.
//
// A key is the two bytes of a shard's number and a tag, or, for what does not belong
// to a shard, a byte of its own that is not zero and a tag. Numbers in keys are
// big-endian, so that keys are in their order.
package keyspace

import "bytes"

// Spaces are the first bytes of all keys. Shards' numbers have two bytes and are
// small, so that the first byte of theirs is zero.
const (
	ShardSpace  byte = 0x00
	CodeSpace   byte = 'C' // functions' zips, apart so that no walk through a shard reads one
	LogSpace    byte = 'L'
	AlarmSpace  byte = 'a'
	KMSSpace    byte = 'k' // KMS's keys, and those that seal the store
	MetricSpace byte = 'm'
	StackSpace  byte = 's' // stacks of resources
	SMSSpace    byte = 't'
	JobSpace    byte = 'j' // operators' jobs
	SourceSpace byte = 'w' // sources: endpoints for clients that do not speak AWS's APIs

	ClusterSpace byte = 'c' // of this machine's replica: no stream writes it

	IdentitySpace byte = 'i'
	FirehoseSpace byte = 'f' // delivery streams
)

// Shards is how many shards the state is split into: a constant of the format.
const Shards = 64

// The streams of the journal: a shard's has the shard's number, and those behind are
// of what belongs to no shard. They too begin keys: that of what a stream remembers.
const (
	MetricStream uint16 = Shards + iota
	AlarmStream
	LogStream
	IdentityStream
	KMSStream
	SMSStream
	FirehoseStream
	JobStream
	SourceStream
	StackStream
	Streams // how many there are
)

// streams are those of spaces that one stream writes.
var streams = [256]uint16{
	MetricSpace: MetricStream, AlarmSpace: AlarmStream, LogSpace: LogStream, IdentitySpace: IdentityStream,
	KMSSpace: KMSStream, SMSSpace: SMSStream, FirehoseSpace: FirehoseStream, JobSpace: JobStream,
	SourceSpace: SourceStream, StackSpace: StackStream,
}

// Tags of a shard's records, behind its number.
const (
	Archives         byte = 'A'
	Directs          byte = 'B' // of what was published to no topic
	Counters         byte = 'C'
	Data             byte = 'D' // of a queue: all that goes when it goes; a tag of its own follows
	DeletedTopics    byte = 'E'
	TopicSequences   byte = 'F'
	Delivered        byte = 'G'
	Confirmations    byte = 'I' // mails that have asked for one
	HandleKey        byte = 'K'
	Functions        byte = 'L' // a tag of its own follows
	StreamState      byte = 'M' // also of streams that are no shards
	Platforms        byte = 'N' // a tag of its own follows
	Fanouts          byte = 'P'
	Queues           byte = 'Q'
	Replays          byte = 'R'
	Subscriptions    byte = 'S'
	Topics           byte = 'T'
	Duplicates       byte = 'U'
	MoveTasks        byte = 'V'
	DuplicateBatches byte = 'W'
	Transfers        byte = 'X'
	SigningKeys      byte = 'Y'
)

// Tags of a queue's records, behind Data and its incarnation.
const (
	DueMessages     byte = 'd'
	MessageExpiries byte = 'e'
	Groups          byte = 'g'
	HeldMessages    byte = 'h'
	DueSeconds      byte = 'k'
	Leases          byte = 'l'
	Messages        byte = 'm'
	Histories       byte = 'n'
	ReturnedGroups  byte = 'q'
	ListedGroups    byte = 'r'
	DueTimes        byte = 't'
	Tenants         byte = 'w'
)

// Tags of functions' records, behind Functions.
const (
	FunctionAliases  byte = 'a'
	FunctionsDeleted byte = 'd'
	FunctionRecords  byte = 'f'
	LayerNumbers     byte = 'l'
	FunctionMappings byte = 'm'
	FunctionVersions byte = 'v'
	LayerVersions    byte = 'w'
)

// Tags of push platforms' records, behind Platforms.
const (
	PlatformApplications byte = 'a'
	PlatformEndpoints    byte = 'e'
	PlatformTokens       byte = 't'
)

// Tags behind LogSpace.
const (
	LogBuckets     byte = 'b'
	LogTotals      byte = 'c'
	LogDeleted     byte = 'd'
	LogEvents      byte = 'e'
	LogCursors     byte = 'f'
	LogGroups      byte = 'g'
	LogPuts        byte = 'h'
	LogIndex       byte = 'i'
	LogStreamNames byte = 'n'
	LogOldest      byte = 'o'
	LogSequence    byte = 'q'
	LogStreams     byte = 's'
	LogLatest      byte = 't'
	LogClock       byte = 'w'
	LogExpiries    byte = 'x'
)

// Tags behind AlarmSpace.
const (
	AlarmRecords  byte = 'a'
	AlarmHistory  byte = 'h'
	AlarmIndex    byte = 'i'
	AlarmActions  byte = 'p'
	AlarmSequence byte = 's'
)

// ClusterFences is the tag behind ClusterSpace.
const ClusterFences byte = 'f'

// Tags behind IdentitySpace.
const (
	IdentityEntities byte = 'e'
	IdentityKeys     byte = 'k'
	IdentityTokens   byte = 't'
	IdentityUses     byte = 'u'
)

// Tags behind KMSSpace.
const (
	KeyAliases byte = 'a'
	KeyGrants  byte = 'g'
	KeyRecords byte = 'k'
	KeySealing byte = 's'
	KeyStored  byte = 't'
)

// Tags behind FirehoseSpace.
const (
	FirehoseBatches byte = 'b'
	FirehoseChunks  byte = 'c'
	FirehoseRecords byte = 'r'
	DeliveryStreams byte = 's'
)

// Tags behind MetricSpace.
const (
	MetricClosed  byte = 'c'
	MetricFloors  byte = 'f'
	MetricSeconds byte = 'h'
	MetricLatest  byte = 'l'
	MetricOpen    byte = 'o'
	MetricPoints  byte = 'p'
	MetricSeries  byte = 's'
)

// Span is a range of keys, [Lower, Upper). Its slices are its own.
type Span struct{ Lower, Upper []byte }

// Prefix spans all keys that begin with prefix, of which at least one byte is not
// 0xff.
func Prefix(prefix []byte) Span {
	lower := append([]byte(nil), prefix...)
	upper := append([]byte(nil), prefix...)
	for i := len(upper) - 1; ; i-- {
		upper[i]++
		if upper[i] != 0 {
			return Span{Lower: lower, Upper: upper[:i+1]}
		}
	}
}

// Shard begins the keys of a kind of record of a shard.
func Shard(shard uint16, tag byte) []byte { return []byte{byte(shard >> 8), byte(shard), tag} }

// JobRecords is the tag behind JobSpace.
const JobRecords byte = 'r'

// SourceRecords is the tag behind SourceSpace.
const SourceRecords byte = 'r'

// Tags behind StackSpace.
const (
	StackChanges   byte = 'c'
	StackEvents    byte = 'e'
	StackResources byte = 'r'
	StackRecords   byte = 's'
	StackTemplates byte = 't'
)

// Tags behind SMSSpace.
const (
	SMSAttributes   byte = 'a'
	SMSConsents     byte = 'c'
	SMSDestinations byte = 'd'
	SMSSpending     byte = 's'
)

// Meets reports that some key lies in both spans.
func (s Span) Meets(o Span) bool {
	return (o.Upper == nil || bytes.Compare(s.Lower, o.Upper) < 0) && (s.Upper == nil || bytes.Compare(o.Lower, s.Upper) < 0)
}

// Required are the spans of what a start must read as a whole, in no order: which queues,
// topics and functions there are, who may do what, what secrets are sealed with, whom no
// text may reach. A start without some of it would take it for deleted, and a denial with
// it. What of single queues, or of what is observed, is lost costs only that.
func Required() (spans []Span) {
	for stream := range Streams {
		all, data := Prefix(Shard(stream, 0)[:2]), Prefix(Shard(stream, Data))
		spans = append(spans, Span{all.Lower, data.Lower}, Span{data.Upper, all.Upper})
	}
	for _, prefix := range [][]byte{{IdentitySpace}, {KMSSpace}, {SMSSpace}, {FirehoseSpace, DeliveryStreams}, {SourceSpace}, {StackSpace, StackResources}, {StackSpace, StackRecords}, {StackSpace, StackTemplates}} {
		spans = append(spans, Prefix(prefix))
	}
	return spans
}
