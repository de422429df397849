package topic

import "godwit.dev/godwit/internal/fault"

// The errors of commands, with the fields of each.
var (
	ErrNoTopic               = fault.NewRule(fault.NotFound, "topic: no such topic")
	ErrNoSubscription        = fault.NewRule(fault.NotFound, "topic: no such subscription")
	ErrNoResource            = fault.NewRule(fault.ResourceNotFound, "topic: no such topic, for tags")
	ErrArchived              = fault.NewRule(fault.InvalidState, "topic: it keeps an archive")
	ErrTooManyTags           = fault.NewRule(fault.TagLimitExceeded, "topic: too many tags")
	ErrTooManySubscriptions  = fault.NewRule(fault.SubscriptionLimitExceeded, "topic: too many subscriptions")
	ErrTooManyFilterPolicies = fault.NewRule(fault.FilterPolicyLimitExceeded, "topic: too many filter policies")
	ErrTooManyReplays        = fault.NewRule(fault.ReplayLimitExceeded, "topic: too many replays under way")
	ErrConfirmUnsigned       = fault.NewRule(fault.AccessDenied, "topic: an unsigned request for signed removal")
	ErrUnsubscribeUnsigned   = fault.NewRule(fault.AccessDenied, "topic: an unsigned removal")
	ErrName                  = fault.NewRule(fault.InvalidParameter, "topic: no name of a topic")
	ErrToken                 = fault.NewRule(fault.InvalidParameter, "topic: no valid token")
	ErrNoToken               = fault.NewRule(fault.InvalidParameter, "topic: what no token could be")
	ErrTopicOfToken          = fault.NewRule(fault.InvalidParameter, "topic: the token is of another region")
	ErrOtherAttributes       = fault.NewRule(fault.InvalidParameter, "topic: there is one with other attributes")
	ErrOtherTags             = fault.NewRule(fault.InvalidParameter, "topic: there is one with other tags")
	ErrTagsUTF8              = fault.NewRule(fault.InvalidParameter, "topic: tags that are not UTF-8")
	ErrUnknownAttribute      = fault.NewRule(fault.InvalidParameter, "topic: unknown attribute") // its name
	ErrAttributeName         = fault.NewRule(fault.InvalidParameter, "topic: no attribute that can be set")

	// ErrConfirmations refuses a confirmation mail beyond the limit of a mail box or of a
	// requester.
	ErrConfirmations = fault.NewRule(fault.Throttled, "topic: too many confirmations by mail")

	// Of a topic of large messages: above how many bytes.
	ErrLargeProtocols     = fault.NewRule(fault.InvalidParameter, "topic: the protocols take no large messages")                           // the protocols
	ErrLargeSubscriptions = fault.NewRule(fault.InvalidParameter, "topic: it has as many subscriptions as one of large messages may have") // how many

	// Of Subscribe.
	ErrProtocolOfFIFO = fault.NewRule(fault.InvalidParameter, "topic: the protocol is for no FIFO topic") // the protocol
	ErrSubscribed     = fault.NewRule(fault.InvalidParameter, "topic: there is a subscription with other attributes")

	// Of the value of an attribute. If there are several, the first field is its name.
	// ErrInAttribute and ErrInAttributes say where it was given.
	ErrInAttribute     = fault.NewRule(fault.InvalidParameter, "topic: the attribute")     // the error
	ErrInAttributes    = fault.NewRule(fault.InvalidParameter, "topic: of the attributes") // the error
	ErrJSON            = fault.NewRule(fault.InvalidParameter, "topic: no JSON")           // the attribute, what is wrong with it
	ErrNoRole          = fault.NewRule(fault.InvalidParameter, "topic: the protocol needs a role")
	ErrTooManyStreams  = fault.NewRule(fault.SubscriptionLimitExceeded, "topic: the account has as many delivery streams as may be subscribed") // how many
	ErrRoleProtocol    = fault.NewRule(fault.InvalidParameter, "topic: the protocol needs no role")
	ErrRawProtocol     = fault.NewRule(fault.InvalidParameter, "topic: the protocol has no raw delivery")      // the protocol
	ErrRedriveMember   = fault.NewRule(fault.InvalidParameter, "topic: the redrive policy has another member") // its name
	ErrRedriveTarget   = fault.NewRule(fault.InvalidParameter, "topic: the dead-letter target is no queue")
	ErrRedriveOwner    = fault.NewRule(fault.InvalidParameter, "topic: the dead-letter queue is of another account or region")
	ErrRedriveFIFO     = fault.NewRule(fault.InvalidParameter, "topic: the dead-letter queue has to be a FIFO queue")
	ErrRedriveStandard = fault.NewRule(fault.InvalidParameter, "topic: the dead-letter queue has to be a standard queue")
	ErrNoArchive       = fault.NewRule(fault.InvalidParameter, "topic: it has no archive to replay")
	ErrReplayFuture    = fault.NewRule(fault.InvalidParameter, "topic: the replay is of the future") // the member
)

// InAttribute adds to an error that it concerns the attribute that a request sets;
// InAttributes, one of the attributes of a resource that it creates. Errors of other kinds stay
// unchanged.
func InAttribute(err error) error { return in(ErrInAttribute, err) }

// InAttributes is InAttribute for a resource that is created.
func InAttributes(err error) error { return in(ErrInAttributes, err) }

func in(where *fault.Rule, err error) error {
	if fault.KindOf(err) != fault.InvalidParameter {
		return err
	}
	return where.With(err)
}
