package shard

// The names of the modules that callers use. Each is documented where it is defined.

import (
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/platforms"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/faults"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/shard/transfer"
)

type (
	// Attempt is that of backlog.
	Attempt = backlog.Attempt
	// BacklogInfo is that of backlog.
	BacklogInfo = backlog.BacklogInfo
	// Cause is that of backlog.
	Cause = backlog.Cause
	// Consumer is that of backlog.
	Consumer = backlog.Consumer
	// Delivery is that of backlog.
	Delivery = backlog.Delivery
	// DeliveryInfo is that of backlog.
	DeliveryInfo = backlog.DeliveryInfo
	// DeliveryPlace is that of backlog.
	DeliveryPlace = backlog.DeliveryPlace
	// DeliveryState is that of backlog.
	DeliveryState = backlog.DeliveryState
	// Ending is that of backlog.
	Ending = backlog.Ending
	// Waiting is that of backlog.
	Waiting = backlog.Waiting
	// EventsInfo is that of functions.
	EventsInfo = functions.EventsInfo
	// FunctionInfo is that of functions.
	FunctionInfo = functions.FunctionInfo
	// FunctionLimits is that of functions.
	FunctionLimits = functions.FunctionLimits
	// LayerListed is that of functions.
	LayerListed = functions.LayerListed
	// QueuedEvent is that of functions.
	QueuedEvent = functions.QueuedEvent
	// PushTarget is that of platforms.
	PushTarget = platforms.Target
	// PushCredentials is that of platforms.
	PushCredentials = platforms.Credentials
	// PlatformApplication is that of platforms.
	PlatformApplication = platforms.Application
	// PlatformEndpoint is that of platforms.
	PlatformEndpoint = platforms.Endpoint
	// Permission is that of queuepolicy.
	Permission = queuepolicy.Permission
	// QueueEvent is that of queues.
	QueueEvent = queues.QueueEvent
	// QueueEventKind is that of queues.
	QueueEventKind = queues.QueueEventKind
	// QueueGauges is that of queues.
	QueueGauges = queues.QueueGauges
	// QueueInfo is that of queues.
	QueueInfo = queues.QueueInfo
	// QueueSpec is that of queues.
	QueueSpec = queues.QueueSpec
	// ReceiveRequest is that of queues.
	ReceiveRequest = queues.ReceiveRequest
	// Received is that of queues.
	Received = queues.Received
	// SendEntry is that of queues.
	SendEntry = queues.SendEntry
	// SendResult is that of queues.
	SendResult = queues.SendResult
	// Slot is that of queues.
	Slot = queues.Slot
	// VisibilityChange is that of queues.
	VisibilityChange = queues.VisibilityChange
	// ImmediateDelivery is that of topics.
	ImmediateDelivery = topics.ImmediateDelivery
	// Publication is a message for a topic's subscribers.
	Publication = publication.Publication
	// Published is that of topics.
	Published = topics.Published
	// Audited is that of topics.
	Audited = topics.Audited
	// MoveStatus is that of transfer.
	MoveStatus = transfer.MoveStatus
	// Picked is that of transfer.
	Picked = transfer.Picked
	// MoveTask is that of transfer.
	MoveTask = transfer.MoveTask
	// MoveTaskSpec is that of transfer.
	MoveTaskSpec = transfer.MoveTaskSpec
)

const (
	// DeliveryDeadLetter is that of backlog.
	DeliveryDeadLetter = backlog.DeliveryDeadLetter
	// DeliveryDelivered is that of backlog.
	DeliveryDelivered = backlog.DeliveryDelivered
	// DeliveryDropped is that of backlog.
	DeliveryDropped = backlog.DeliveryDropped
	// DeliveryInFlight is that of backlog.
	DeliveryInFlight = backlog.DeliveryInFlight
	// DeliveryPending is that of backlog.
	DeliveryPending = backlog.DeliveryPending
	// StageInFlight is that of backlog.
	StageInFlight = backlog.StageInFlight
	// StageDue is that of backlog.
	StageDue = backlog.StageDue
	// StageFresh is that of backlog.
	StageFresh = backlog.StageFresh
	// StageFinished is that of backlog.
	StageFinished = backlog.StageFinished
	// AllResources is that of faults.
	AllResources = faults.AllResources
	// MaxTags is that of queues.
	MaxTags = queues.MaxTags
	// MessagesChanged is that of queues.
	MessagesChanged = queues.MessagesChanged
	// MessagesDeadLettered is that of queues.
	MessagesDeadLettered = queues.MessagesDeadLettered
	// MessagesDeduplicated is that of queues.
	MessagesDeduplicated = queues.MessagesDeduplicated
	// MessagesDeleted is that of queues.
	MessagesDeleted = queues.MessagesDeleted
	// MessagesDeletedAgain is that of queues.
	MessagesDeletedAgain = queues.MessagesDeletedAgain
	// MessagesExpired is that of queues.
	MessagesExpired = queues.MessagesExpired
	// MessagesMovedIn is that of queues.
	MessagesMovedIn = queues.MessagesMovedIn
	// MessagesReceived is that of queues.
	MessagesReceived = queues.MessagesReceived
	// MessagesSent is that of queues.
	MessagesSent = queues.MessagesSent
	// QueueDeleted is that of queues.
	QueueDeleted = queues.QueueDeleted
	// HandOverWait is that of transfer.
	HandOverWait = transfer.HandOverWait
	// MoveCancelled is that of transfer.
	MoveCancelled = transfer.MoveCancelled
	// MoveCancelling is that of transfer.
	MoveCancelling = transfer.MoveCancelling
	// MoveCompleted is that of transfer.
	MoveCompleted = transfer.MoveCompleted
	// MoveFailed is that of transfer.
	MoveFailed = transfer.MoveFailed
	// MoveRunning is that of transfer.
	MoveRunning = transfer.MoveRunning
	// MoveTasksKept is that of transfer.
	MoveTasksKept = transfer.MoveTasksKept
)

// The reasons for which one delivery or message cannot be acted on: as in backlog and transfer.
var (
	ErrUnderWay       = backlog.ErrUnderWay
	ErrTooLong        = backlog.ErrTooLong
	ErrNoDelivery     = backlog.ErrNoDelivery
	ErrPicked         = transfer.ErrPicked
	ErrNoMessage      = transfer.ErrNoMessage
	ErrQueueMadeAgain = transfer.ErrQueueMadeAgain
	ErrNoOrigin       = transfer.ErrNoOrigin
)
