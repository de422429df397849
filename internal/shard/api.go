package shard

import (
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/transfer"
)

// What the modules call by these names.
type (
	Attempt          = backlog.Attempt
	BacklogInfo      = backlog.BacklogInfo
	Cause            = backlog.Cause
	Consumer         = backlog.Consumer
	Delivery         = backlog.Delivery
	DeliveryInfo     = backlog.DeliveryInfo
	DeliveryState    = backlog.DeliveryState
	Direct           = backlog.Direct
	Waiting          = backlog.Waiting
	EventsInfo       = functions.EventsInfo
	FunctionInfo     = functions.FunctionInfo
	FunctionLimits   = functions.FunctionLimits
	QueuedEvent      = functions.QueuedEvent
	Outgoing         = queues.Outgoing
	Permission       = queues.Permission
	QueueEvent       = queues.QueueEvent
	QueueEventKind   = queues.QueueEventKind
	QueueGauges      = queues.QueueGauges
	QueueInfo        = queues.QueueInfo
	QueueSpec        = queues.QueueSpec
	ReceiveRequest   = queues.ReceiveRequest
	Received         = queues.Received
	SendResult       = queues.SendResult
	Slot             = queues.Slot
	VisibilityChange = queues.VisibilityChange
	DirectDelivery   = topics.DirectDelivery
	Publication      = topics.Publication
	Published        = topics.Published
	Renderer         = topics.Renderer
	MoveStatus       = transfer.MoveStatus
	MoveTask         = transfer.MoveTask
	MoveTaskSpec     = transfer.MoveTaskSpec
)

// What the modules call by these names.
const (
	DeliveryDeadLetter   = backlog.DeliveryDeadLetter
	DeliveryDelivered    = backlog.DeliveryDelivered
	DeliveryDropped      = backlog.DeliveryDropped
	DeliveryInFlight     = backlog.DeliveryInFlight
	DeliveryPending      = backlog.DeliveryPending
	Shards               = kernel.Shards
	AllResources         = queues.AllResources
	MaxTags              = queues.MaxTags
	MessagesDeadLettered = queues.MessagesDeadLettered
	MessagesDeduplicated = queues.MessagesDeduplicated
	MessagesDeleted      = queues.MessagesDeleted
	MessagesDeletedAgain = queues.MessagesDeletedAgain
	MessagesExpired      = queues.MessagesExpired
	MessagesMovedIn      = queues.MessagesMovedIn
	MessagesReceived     = queues.MessagesReceived
	MessagesSent         = queues.MessagesSent
	QueueDeleted         = queues.QueueDeleted
	MoveCancelled        = transfer.MoveCancelled
	MoveCancelling       = transfer.MoveCancelling
	MoveCompleted        = transfer.MoveCompleted
	MoveFailed           = transfer.MoveFailed
	MoveRunning          = transfer.MoveRunning
	MoveTasksKept        = transfer.MoveTasksKept
	RedriveWait          = transfer.RedriveWait
)

// What the modules call by these names.
var (
	ErrUnderWay = backlog.ErrUnderWay
)
