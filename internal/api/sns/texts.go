package sns

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/texts"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

// Texts stores the settings of text messages; *texts.Module implements it.
type Texts interface {
	Attributes(p texts.Place) map[string]string
	SetAttributes(ctx context.Context, p texts.Place, attributes map[string]string) error
	IsOptedOut(p texts.Place, number string) bool
	OptedOut(p texts.Place, after string, limit int) (page []string, more bool)
	OptIn(ctx context.Context, p texts.Place, number string) error
	Sandboxed() bool
	AddDestination(ctx context.Context, p texts.Place, number, password string) error
	Verify(ctx context.Context, p texts.Place, number, password string) error
	RemoveDestination(ctx context.Context, p texts.Place, number string) error
	Destinations(p texts.Place, after string, limit int) (page []texts.Listed, more bool)
}

// Texting are the dependencies for text messages.
type Texting struct {
	Texts Texts
	// Publish accepts a message for a phone number; it is durable on return.
	Publish func(ctx context.Context, name arn.ARN, number string, m *message.Message) error
	// Origins are the sender numbers of messages.
	Origins []string
	// None refuses text messages: there is no SMSC or provider.
	None bool
}

func placeOf(call *api.Call) texts.Place {
	return texts.Place{Account: call.Account, Region: call.Region}
}

// needsCarrier ends the error for messages that cannot be sent.
const needsCarrier = "text messages need an SMSC or a provider, which this server has none of (--sms-smsc, --sms-http)"

// publishText answers a Publish to a phone number.
func (s *Service) publishText(ctx context.Context, call *api.Call, in *PublishInput) (*PublishOutput, error) {
	number, ok := sms.Number(*in.PhoneNumber)
	if !ok {
		return nil, invalid("PhoneNumber Reason: %s is not valid to publish to", *in.PhoneNumber)
	}
	if s.texting.None {
		return nil, invalid("PhoneNumber Reason: %s", needsCarrier)
	}
	plain := *in
	plain.MessageGroupId, plain.MessageDeduplicationId = nil, nil // text messages have no groups
	p, err := s.publication(call, recipient{maxSize: maxMessage}, &plain)
	if err != nil {
		return nil, err
	}
	body := p.Body
	if own, ok := p.Bodies[topic.SMS.String()]; ok {
		body = []byte(own)
	}
	if utf8.RuneCount(body) > sms.MaxCharacters {
		return nil, invalid("Message too long")
	}
	if err := checkWishes(p.Attributes); err != nil {
		return nil, err
	}
	if err := s.quota.take(call, p.Size()); err != nil {
		return nil, err
	}
	m := &message.Message{ID: p.ID, Sender: p.Sender, Trace: p.Trace, Attributes: p.Attributes, Body: body}
	if err := s.texting.Publish(ctx, arn.Direct(call.Region, call.Account, topic.SMS.String()), number, m); err != nil {
		return nil, err
	}
	return &PublishOutput{MessageId: p.ID.String()}, nil
}

// checkWishes validates the attributes for text messages.
func checkWishes(all []message.Attribute) error {
	for i := range all {
		value, ok := string(all[i].Value), true
		switch all[i].Name {
		case smssender.SenderIDAttribute:
			ok = sms.ValidSenderID(value)
		case smssender.OriginationAttribute:
			ok = sms.ValidOrigination(value)
		case smssender.TypeAttribute:
			ok = sms.ValidType(value)
		case smssender.MaxPriceAttribute:
			_, ok = sms.ParseUSD(value)
		}
		if !ok {
			return invalid("MessageAttributes Reason: the value of %s is not valid", all[i].Name)
		}
	}
	return nil
}

// phoneNumber validates a phone number.
func phoneNumber(text string) (string, error) {
	n, ok := sms.Number(text)
	if !ok {
		return "", invalid("PhoneNumber Reason: input incorrectly formatted")
	}
	return n, nil
}

// SetSMSAttributesInput is the request of SetSMSAttributes.
type SetSMSAttributesInput struct {
	Attributes map[string]string `wire:"name=attributes,required"`
}

// SetSMSAttributesOutput is the empty answer of SetSMSAttributes.
type SetSMSAttributesOutput struct{}

func (s *Service) setSMSAttributes(ctx context.Context, call *api.Call, in *SetSMSAttributesInput) (*SetSMSAttributesOutput, error) {
	return &SetSMSAttributesOutput{}, s.texting.Texts.SetAttributes(ctx, placeOf(call), in.Attributes)
}

// GetSMSAttributesInput is the request of GetSMSAttributes.
type GetSMSAttributesInput struct {
	Attributes []string `wire:"name=attributes"`
}

// GetSMSAttributesOutput is the answer of GetSMSAttributes.
type GetSMSAttributesOutput struct {
	Attributes map[string]string `wire:"name=attributes"`
}

func (s *Service) getSMSAttributes(_ context.Context, call *api.Call, in *GetSMSAttributesInput) (*GetSMSAttributesOutput, error) {
	for _, name := range in.Attributes {
		if !sms.IsAttribute(name) {
			return nil, sms.ErrAttribute.With(name)
		}
	}
	all := s.texting.Texts.Attributes(placeOf(call))
	if len(in.Attributes) > 0 {
		for name := range all {
			if !slices.Contains(in.Attributes, name) {
				delete(all, name)
			}
		}
	}
	return &GetSMSAttributesOutput{all}, nil
}

// CheckIfPhoneNumberIsOptedOutInput is the request of CheckIfPhoneNumberIsOptedOut.
type CheckIfPhoneNumberIsOptedOutInput struct {
	PhoneNumber string `wire:"name=phoneNumber,required"`
}

// CheckIfPhoneNumberIsOptedOutOutput is the answer of CheckIfPhoneNumberIsOptedOut.
type CheckIfPhoneNumberIsOptedOutOutput struct {
	IsOptedOut bool `wire:"name=isOptedOut"`
}

func (s *Service) checkIfPhoneNumberIsOptedOut(_ context.Context, call *api.Call, in *CheckIfPhoneNumberIsOptedOutInput) (*CheckIfPhoneNumberIsOptedOutOutput, error) {
	n, err := phoneNumber(in.PhoneNumber)
	if err != nil {
		return nil, err
	}
	return &CheckIfPhoneNumberIsOptedOutOutput{s.texting.Texts.IsOptedOut(placeOf(call), n)}, nil
}

// ListPhoneNumbersOptedOutInput is the request of ListPhoneNumbersOptedOut.
type ListPhoneNumbersOptedOutInput struct {
	NextToken *string `wire:"name=nextToken"`
}

// ListPhoneNumbersOptedOutOutput is the answer of ListPhoneNumbersOptedOut.
type ListPhoneNumbersOptedOutOutput struct {
	PhoneNumbers []string `wire:"name=phoneNumbers"`
	NextToken    string   `wire:"name=nextToken"`
}

func (s *Service) listPhoneNumbersOptedOut(_ context.Context, call *api.Call, in *ListPhoneNumbersOptedOutInput) (*ListPhoneNumbersOptedOutOutput, error) {
	const list = "opted out"
	after, err := readToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	page, more := s.texting.Texts.OptedOut(placeOf(call), after, pageSize)
	out := &ListPhoneNumbersOptedOutOutput{PhoneNumbers: append([]string{}, page...)}
	if more {
		out.NextToken = nextToken(list, page[len(page)-1])
	}
	return out, nil
}

// OptInPhoneNumberInput is the request of OptInPhoneNumber.
type OptInPhoneNumberInput struct {
	PhoneNumber string `wire:"name=phoneNumber,required"`
}

// OptInPhoneNumberOutput is the empty answer of OptInPhoneNumber.
type OptInPhoneNumberOutput struct{}

func (s *Service) optInPhoneNumber(ctx context.Context, call *api.Call, in *OptInPhoneNumberInput) (*OptInPhoneNumberOutput, error) {
	n, err := phoneNumber(in.PhoneNumber)
	if err != nil {
		return nil, err
	}
	return &OptInPhoneNumberOutput{}, s.texting.Texts.OptIn(ctx, placeOf(call), n)
}

// CreateSMSSandboxPhoneNumberInput is the request of CreateSMSSandboxPhoneNumber.
type CreateSMSSandboxPhoneNumberInput struct {
	PhoneNumber  string `wire:"required"`
	LanguageCode *string
}

// CreateSMSSandboxPhoneNumberOutput is the empty answer of CreateSMSSandboxPhoneNumber.
type CreateSMSSandboxPhoneNumberOutput struct{}

// languages are the languages of one-time passwords. Source: LanguageCodeString in the SNS
// API reference. The text is English in each.
var languages = []string{"en-US", "en-GB", "es-419", "es-ES", "de-DE", "fr-CA", "fr-FR", "it-IT", "ja-JP", "pt-BR", "kr-KR", "zh-CN", "zh-TW"}

func (s *Service) createSMSSandboxPhoneNumber(ctx context.Context, call *api.Call, in *CreateSMSSandboxPhoneNumberInput) (*CreateSMSSandboxPhoneNumberOutput, error) {
	n, err := phoneNumber(in.PhoneNumber)
	if err != nil {
		return nil, err
	}
	if code := cmp.Or(api.Deref(in.LanguageCode), languages[0]); !slices.Contains(languages, code) {
		return nil, invalid("LanguageCode Reason: %s is not one of %s", code, strings.Join(languages, ", "))
	}
	if s.texting.None {
		return nil, invalid("PhoneNumber Reason: %s", needsCarrier)
	}
	drawn, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return nil, err
	}
	password := fmt.Sprintf("%06d", drawn)
	if err := s.texting.Texts.AddDestination(ctx, placeOf(call), n, password); err != nil {
		return nil, err
	}
	m := &message.Message{
		ID: s.newID(), Sender: call.Account, Group: smssender.Exempt, Body: []byte("Your Amazon SNS SMS sandbox verification code is " + password),
		Attributes: []message.Attribute{{Name: smssender.TypeAttribute, Type: "String", Value: []byte(sms.Transactional)}},
	}
	return &CreateSMSSandboxPhoneNumberOutput{}, s.texting.Publish(ctx, arn.Direct(call.Region, call.Account, topic.SMS.String()), n, m)
}

// VerifySMSSandboxPhoneNumberInput is the request of VerifySMSSandboxPhoneNumber.
type VerifySMSSandboxPhoneNumberInput struct {
	PhoneNumber     string `wire:"required"`
	OneTimePassword string `wire:"required"`
}

// VerifySMSSandboxPhoneNumberOutput is the empty answer of VerifySMSSandboxPhoneNumber.
type VerifySMSSandboxPhoneNumberOutput struct{}

var password = regexp.MustCompile(`^[0-9]{5,8}$`)

func (s *Service) verifySMSSandboxPhoneNumber(ctx context.Context, call *api.Call, in *VerifySMSSandboxPhoneNumberInput) (*VerifySMSSandboxPhoneNumberOutput, error) {
	n, err := phoneNumber(in.PhoneNumber)
	if err != nil {
		return nil, err
	}
	if !password.MatchString(in.OneTimePassword) {
		return nil, invalid("OneTimePassword Reason: must be 5 to 8 digits")
	}
	return &VerifySMSSandboxPhoneNumberOutput{}, s.texting.Texts.Verify(ctx, placeOf(call), n, in.OneTimePassword)
}

// DeleteSMSSandboxPhoneNumberInput is the request of DeleteSMSSandboxPhoneNumber.
type DeleteSMSSandboxPhoneNumberInput struct {
	PhoneNumber string `wire:"required"`
}

// DeleteSMSSandboxPhoneNumberOutput is the empty answer of DeleteSMSSandboxPhoneNumber.
type DeleteSMSSandboxPhoneNumberOutput struct{}

func (s *Service) deleteSMSSandboxPhoneNumber(ctx context.Context, call *api.Call, in *DeleteSMSSandboxPhoneNumberInput) (*DeleteSMSSandboxPhoneNumberOutput, error) {
	n, err := phoneNumber(in.PhoneNumber)
	if err != nil {
		return nil, err
	}
	return &DeleteSMSSandboxPhoneNumberOutput{}, s.texting.Texts.RemoveDestination(ctx, placeOf(call), n)
}

// ListSMSSandboxPhoneNumbersInput is the request of ListSMSSandboxPhoneNumbers.
type ListSMSSandboxPhoneNumbersInput struct {
	NextToken  *string
	MaxResults *int
}

// ListSMSSandboxPhoneNumbersOutput is the answer of ListSMSSandboxPhoneNumbers.
type ListSMSSandboxPhoneNumbersOutput struct {
	PhoneNumbers []SMSSandboxPhoneNumber
	NextToken    string
}

// SMSSandboxPhoneNumber is a phone number in the sandbox.
type SMSSandboxPhoneNumber struct {
	PhoneNumber string
	Status      string // Pending or Verified
}

// limitOf reads the requested page size.
func limitOf(given *int, limit int) (int, error) {
	if given == nil {
		return limit, nil
	}
	if *given < 1 || *given > limit {
		return 0, invalid("MaxResults Reason: must be from 1 to %d", limit)
	}
	return *given, nil
}

func (s *Service) listSMSSandboxPhoneNumbers(_ context.Context, call *api.Call, in *ListSMSSandboxPhoneNumbersInput) (*ListSMSSandboxPhoneNumbersOutput, error) {
	const list = "sandbox"
	after, err := readToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	most, err := limitOf(in.MaxResults, pageSize)
	if err != nil {
		return nil, err
	}
	page, more := s.texting.Texts.Destinations(placeOf(call), after, most)
	out := &ListSMSSandboxPhoneNumbersOutput{PhoneNumbers: []SMSSandboxPhoneNumber{}}
	for _, d := range page {
		status := "Pending"
		if d.Verified {
			status = "Verified"
		}
		out.PhoneNumbers = append(out.PhoneNumbers, SMSSandboxPhoneNumber{d.Number, status})
	}
	if more {
		out.NextToken = nextToken(list, page[len(page)-1].Number)
	}
	return out, nil
}

// GetSMSSandboxAccountStatusInput is the empty request of GetSMSSandboxAccountStatus.
type GetSMSSandboxAccountStatusInput struct{}

// GetSMSSandboxAccountStatusOutput is the answer of GetSMSSandboxAccountStatus.
type GetSMSSandboxAccountStatusOutput struct{ IsInSandbox bool }

func (s *Service) getSMSSandboxAccountStatus(context.Context, *api.Call, *GetSMSSandboxAccountStatusInput) (*GetSMSSandboxAccountStatusOutput, error) {
	return &GetSMSSandboxAccountStatusOutput{s.texting.Texts.Sandboxed()}, nil
}

// ListOriginationNumbersInput is the request of ListOriginationNumbers.
type ListOriginationNumbersInput struct {
	NextToken  *string
	MaxResults *int
}

// ListOriginationNumbersOutput is the answer of ListOriginationNumbers.
type ListOriginationNumbersOutput struct {
	NextToken    string
	PhoneNumbers []PhoneNumberInformation
}

// PhoneNumberInformation is a sender number.
type PhoneNumberInformation struct {
	PhoneNumber        string
	Status             string
	RouteType          string
	NumberCapabilities []string
}

// maxOrigins is the page size of sender numbers.
const maxOrigins = 30

func (s *Service) listOriginationNumbers(_ context.Context, _ *api.Call, in *ListOriginationNumbersInput) (*ListOriginationNumbersOutput, error) {
	const list = "origination numbers"
	after, err := readToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	from := 0
	if after != "" {
		if from, err = strconv.Atoi(after); err != nil || from < 0 || from > len(s.texting.Origins) {
			return nil, invalid("NextToken")
		}
	}
	most, err := limitOf(in.MaxResults, maxOrigins)
	if err != nil {
		return nil, err
	}
	out := &ListOriginationNumbersOutput{PhoneNumbers: []PhoneNumberInformation{}}
	rest := s.texting.Origins[from:]
	for _, n := range rest[:min(most, len(rest))] {
		out.PhoneNumbers = append(out.PhoneNumbers, PhoneNumberInformation{
			PhoneNumber: n, Status: "ACTIVE", RouteType: sms.Transactional, NumberCapabilities: []string{"SMS"},
		})
	}
	if len(rest) > most {
		out.NextToken = nextToken(list, strconv.Itoa(from+most))
	}
	return out, nil
}

// textOperations are the operations on text messages.
func (s *Service) textOperations() []api.Operation {
	return api.Guarded(textAccess, []api.Operation{
		api.Op("SetSMSAttributes", s.setSMSAttributes).WithResult(),
		api.Op("GetSMSAttributes", s.getSMSAttributes),
		api.Op("CheckIfPhoneNumberIsOptedOut", s.checkIfPhoneNumberIsOptedOut),
		api.Op("ListPhoneNumbersOptedOut", s.listPhoneNumbersOptedOut),
		api.Op("OptInPhoneNumber", s.optInPhoneNumber).WithResult(),
		api.Op("CreateSMSSandboxPhoneNumber", s.createSMSSandboxPhoneNumber).WithResult(),
		api.Op("VerifySMSSandboxPhoneNumber", s.verifySMSSandboxPhoneNumber).WithResult(),
		api.Op("DeleteSMSSandboxPhoneNumber", s.deleteSMSSandboxPhoneNumber).WithResult(),
		api.Op("ListSMSSandboxPhoneNumbers", s.listSMSSandboxPhoneNumbers),
		api.Op("GetSMSSandboxAccountStatus", s.getSMSSandboxAccountStatus),
		api.Op("ListOriginationNumbers", s.listOriginationNumbers),
	})
}

// textAccess has the permissions that they require, on no particular resource.
var textAccess = func() map[string]api.Access {
	all := map[string]api.Access{}
	for _, action := range []string{
		"SetSMSAttributes", "GetSMSAttributes", "CheckIfPhoneNumberIsOptedOut", "ListPhoneNumbersOptedOut", "OptInPhoneNumber",
		"CreateSMSSandboxPhoneNumber", "VerifySMSSandboxPhoneNumber", "DeleteSMSSandboxPhoneNumber", "ListSMSSandboxPhoneNumbers",
		"GetSMSSandboxAccountStatus", "ListOriginationNumbers",
	} {
		all[action] = api.Anywhere("sns:" + action)
	}
	all["SetSMSAttributes"] = api.Needs(func(_ *api.Call, in *SetSMSAttributesInput) ([]authorize.Need, error) {
		return append(api.Any("sns:SetSMSAttributes"), passing(sms.StatusRole, in.Attributes[sms.StatusRole])...), nil
	})
	return all
}()
