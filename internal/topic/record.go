package topic

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/topic/endpoint"
	"godwit.dev/godwit/internal/topic/filter"
	"godwit.dev/godwit/internal/topic/protect"
	"godwit.dev/godwit/internal/topic/retry"
	"godwit.dev/godwit/internal/topic/settings"
)

// A topic and a subscription are one record each:
//
//	shard 'T' account/region/name          → version, JSON of topicRecord
//	shard 'S' account/region/name 0x00 id  → version, JSON of subscriptionRecord
//
// shard is 2 bytes, big-endian. No name holds a slash or a zero byte, so that
// keys sort by account, region, name and id, and a topic's subscriptions are
// one range.
const (
	topicPrefix        = keyspace.Topics
	subscriptionPrefix = keyspace.Subscriptions
	version            = 1
)

// ErrRecord reports a record that this version did not write.
var ErrRecord = errors.New("topic: unreadable record")

type topicRecord struct {
	Created    int64             `json:"created"` // Unix milliseconds
	Attributes map[string]string `json:"attributes,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Deleted    int               `json:"deleted,omitempty"`
	// Incarnation is set for FIFO topics.
	Incarnation  uint64 `json:"incarnation,omitempty"`
	ArchivedFrom int64  `json:"archivedFrom,omitempty"` // Unix milliseconds
	Protection   string `json:"protection,omitempty"`   // the data protection policy
}

type subscriptionRecord struct {
	Protocol string `json:"protocol"`
	Endpoint string `json:"endpoint"`
	// Sealed is an endpoint with a password; Endpoint is empty then.
	Sealed      []byte `json:"sealed,omitempty"`
	Owner       string `json:"owner"`
	Principal   string `json:"principal,omitempty"` // none for the root
	Created     int64  `json:"created"`             // Unix milliseconds
	Incarnation uint64 `json:"incarnation"`

	Pending                   bool   `json:"pending,omitempty"`
	Authenticated             bool   `json:"authenticated,omitempty"`
	AuthenticateOnUnsubscribe bool   `json:"authenticateOnUnsubscribe,omitempty"`
	Token                     []byte `json:"token,omitempty"`   // SHA-256
	Expires                   int64  `json:"expires,omitempty"` // of the token, Unix milliseconds
	Removed                   bool   `json:"removed,omitempty"` // deleted; the token can restore it

	Paused  int64 `json:"paused,omitempty"`  // Unix milliseconds
	Resumed int64 `json:"resumed,omitempty"` // Unix milliseconds

	Raw      bool   `json:"raw,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Filter   string `json:"filter,omitempty"`
	Delivery string `json:"delivery,omitempty"`
	Redrive  string `json:"redrive,omitempty"`
	Role     string `json:"role,omitempty"`

	Replay       string `json:"replay,omitempty"`
	ReplayStatus string `json:"replayStatus,omitempty"`
	ReplayNumber uint64 `json:"replayNumber,omitempty"`
	ReplayFrom   uint64 `json:"replayFrom,omitempty"`
	ReplayUntil  uint64 `json:"replayUntil,omitempty"`
}

// Load loads one record. Each must be loaded once, in any order; then Loaded checks that they
// are complete. A failure leaves the state unusable.
func (s *State) Load(key, value []byte) error {
	if len(key) < 3 || binary.BigEndian.Uint16(key) != s.shard || len(value) == 0 || value[0] != version {
		return fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	name, id, isSubscription := bytes.Cut(key[3:], []byte{0})
	owner, ok := parseTopicName(string(name))
	fits := key[2] == topicPrefix && !isSubscription || key[2] == subscriptionPrefix && len(id) > 0
	if !ok || !fits {
		return fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	t, ok := s.topics[owner]
	if !ok {
		t = newTopic(owner)
		t.incomplete = true
		s.addTopic(t)
	}
	var err error
	if isSubscription {
		err = s.loadSubscription(t, string(id), value[1:])
	} else {
		err = t.load(value[1:])
	}
	if err != nil {
		return fmt.Errorf("%w: key %q: %w", ErrRecord, key, err)
	}
	return nil
}

// Loaded fails if a subscription was loaded and its topic was not.
func (s *State) Loaded() error {
	for _, t := range s.order.Items {
		if t.incomplete {
			return fmt.Errorf("%w: subscriptions of %v without the topic", ErrRecord, t.ARN)
		}
	}
	return nil
}

func (t *Topic) load(value []byte) error {
	var r topicRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return err
	}
	t.incomplete = false
	t.Created = time.UnixMilli(r.Created).UTC()
	t.Tags = r.Tags
	t.Deleted = r.Deleted
	t.Incarnation = r.Incarnation
	if r.ArchivedFrom != 0 {
		t.archivedFrom = time.UnixMilli(r.ArchivedFrom).UTC()
	}
	for name, value := range r.Attributes {
		t.set(name, value)
	}
	if r.Protection != "" {
		var err error
		if t.Protection, err = protect.Load(r.Protection); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) loadSubscription(t *Topic, id string, value []byte) error {
	var r subscriptionRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return err
	}
	protocol, err := endpoint.ParseProtocol(r.Protocol)
	if err != nil {
		return err
	}
	if s.sealer != nil && len(r.Sealed) > 0 {
		address, err := s.sealer.Open(r.Sealed, endpointPlace(t.ARN.Subscription(id)))
		if err != nil {
			return err
		}
		r.Endpoint = string(address)
	}
	sub := &Subscription{
		ARN:                       t.ARN.Subscription(id),
		Protocol:                  protocol,
		Endpoint:                  r.Endpoint,
		Owner:                     t.intern(r.Owner),
		principal:                 t.internPrincipal(r.Owner, r.Principal),
		Created:                   r.Created,
		Incarnation:               r.Incarnation,
		Pending:                   r.Pending,
		Authenticated:             r.Authenticated,
		AuthenticateOnUnsubscribe: r.AuthenticateOnUnsubscribe,
		PausedAt:                  r.Paused,
		ResumedAt:                 r.Resumed,
		topic:                     t,
	}
	if len(r.Token) == len(tokenHash{}) {
		sub.confirmation = &confirmation{Token: tokenHash(r.Token), Expires: time.UnixMilli(r.Expires).UTC()}
	}
	if sub.Settings, err = t.loadSettings(&r); err != nil {
		return err
	}
	if progress := (Replay{ReplayStatus(r.ReplayStatus), r.ReplayNumber, r.ReplayFrom, r.ReplayUntil}); progress != (Replay{}) {
		sub.replay = &progress
	}
	if sub.removed = r.Removed; !sub.removed {
		s.addSubscription(sub)
		return nil
	}
	if sub.confirmation == nil || sub.Pending {
		return errors.New("a removed subscription that cannot be restored")
	}
	s.addRemoved(sub)
	return nil
}

// loadSettings are the settings in a subscription's record.
func (t *Topic) loadSettings(r *subscriptionRecord) (of Settings, err error) {
	of.Raw = r.Raw
	if r.Scope != "" {
		if of.Scope, err = filter.ParseScope(r.Scope); err != nil {
			return of, err
		}
	}
	if r.Filter != "" {
		if of.Filter, err = filter.Compile(r.Filter, of.Scope); err != nil {
			return of, err
		}
	}
	// As if raw: the policy was valid when it was set, and raw may be off by now.
	if of.Delivery, err = retry.ParseSubscription(r.Delivery, true); err != nil {
		return of, err
	}
	if r.Redrive != "" {
		queue, err := arn.Parse(r.Redrive)
		if err != nil {
			return of, err
		}
		of.Redrive = t.deadLetters(queue)
	}
	if r.Role != "" {
		of.Role = t.internRole(r.Role)
	}
	if r.Replay != "" {
		if of.Replay, err = settings.ParseReplay(r.Replay); err != nil {
			return of, err
		}
	}
	return of, nil
}

// put writes a topic's record.
func (s *State) put(b *mutation.Batch, t *Topic) {
	r := topicRecord{
		Created:     t.Created.UnixMilli(),
		Attributes:  t.attributes,
		Tags:        t.Tags,
		Deleted:     t.Deleted,
		Incarnation: t.Incarnation,
		Protection:  t.Protection.Text(),
	}
	if t.Retention > 0 {
		r.ArchivedFrom = t.archivedFrom.UnixMilli()
	}
	b.Set(s.topicKey(t.ARN), encode(r))
}

// putSubscription writes a subscription's record.
func (s *State) putSubscription(b *mutation.Batch, sub *Subscription) {
	progress := sub.Progress()
	r := subscriptionRecord{
		Protocol:                  sub.Protocol.String(),
		Endpoint:                  sub.Endpoint,
		Owner:                     sub.Owner,
		Created:                   sub.Created,
		Incarnation:               sub.Incarnation,
		Pending:                   sub.Pending,
		Authenticated:             sub.Authenticated,
		AuthenticateOnUnsubscribe: sub.AuthenticateOnUnsubscribe,
		Removed:                   sub.removed,
		Paused:                    sub.PausedAt,
		Resumed:                   sub.ResumedAt,
		Raw:                       sub.Raw,
		Delivery:                  sub.Delivery.Document(),
		Redrive:                   sub.DeadLetters().String(),
		Role:                      sub.attribute(attrRole),
		Replay:                    sub.attribute(settings.Replay),
		ReplayStatus:              string(progress.Status),
		ReplayNumber:              progress.Number,
		ReplayFrom:                progress.From,
		ReplayUntil:               progress.Until,
	}
	if s.sealer != nil {
		sealEndpoint(&r, sub.ARN, s.sealer)
	}
	if sub.principal != nil {
		r.Principal = *sub.principal
	}
	if sub.confirmation != nil {
		r.Token = sub.confirmation.Token[:]
		r.Expires = sub.confirmation.Expires.UnixMilli()
	}
	if sub.Scope != filter.MessageAttributes {
		r.Scope = sub.Scope.String()
	}
	if sub.Filter != nil {
		r.Filter = sub.Filter.String()
	}
	b.Set(s.subscriptionKey(sub.ARN), encode(r))
}

// sealEndpoint seals the endpoint if it may hold a password, and reports whether it does.
func sealEndpoint(r *subscriptionRecord, name arn.ARN, with Sealer) bool {
	if (r.Protocol != HTTP.String() && r.Protocol != HTTPS.String()) || !strings.Contains(r.Endpoint, "@") {
		return false
	}
	sealed, err := with.Seal([]byte(r.Endpoint), endpointPlace(name))
	if err != nil {
		panic(err) // it cannot fail
	}
	r.Endpoint, r.Sealed = "", sealed
	return true
}

// SealRecord seals the secrets in a subscription's record; nil: none is in clear. Errors:
// ErrRecord.
func SealRecord(key, value []byte, with Sealer) ([]byte, error) {
	if len(key) < 3 || len(value) == 0 || value[0] != version {
		return nil, fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	name, id, isSubscription := bytes.Cut(key[3:], []byte{0})
	owner, ok := parseTopicName(string(name))
	var r subscriptionRecord
	if !ok || !isSubscription || json.Unmarshal(value[1:], &r) != nil {
		return nil, fmt.Errorf("%w: key %q", ErrRecord, key)
	}
	if !sealEndpoint(&r, owner.Subscription(string(id)), with) {
		return nil, nil
	}
	return encode(r), nil
}

// endpointPlace is the context that a sealed endpoint is bound to.
func endpointPlace(sub arn.ARN) []byte { return []byte("endpoint of " + sub.String()) }

// Sealer seals secrets in records, bound to a place, which must be given to open them.
type Sealer interface {
	Seal(plaintext, place []byte) ([]byte, error)
	Open(sealed, place []byte) ([]byte, error)
}

// SealWith sets the sealer of endpoints with passwords, for records written from now on.
// Without it sealed endpoints are read as empty.
func (s *State) SealWith(sealer Sealer) { s.sealer = sealer }

func encode(record any) []byte { return keyspace.EncodeJSON(version, record) }

func (s *State) topicKey(name arn.ARN) []byte { return s.key(topicPrefix, name) }

func (s *State) subscriptionKey(name arn.ARN) []byte {
	owner, id, _ := name.SplitSubscription()
	return append(append(s.key(subscriptionPrefix, owner), 0), id...)
}

// subscriptionRange holds the records of a topic's subscriptions: [start, end).
func (s *State) subscriptionRange(name arn.ARN) (start, end []byte) {
	key := s.key(subscriptionPrefix, name)
	return append(bytes.Clone(key), 0), append(key, 1)
}

func (s *State) key(prefix byte, name arn.ARN) []byte {
	key := make([]byte, 0, 64+len(name.Resource))
	key = binary.BigEndian.AppendUint16(key, s.shard)
	key = append(key, prefix)
	return append(key, name.Account+"/"+name.Region+"/"+name.Resource...)
}

func parseTopicName(name string) (arn.ARN, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || parts[2] == "" {
		return arn.ARN{}, false
	}
	return arn.Topic(parts[1], parts[0], parts[2]), true
}
