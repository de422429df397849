package sts

import (
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

// empty is an account without identities, which takes any session.
type empty struct{ Engine }

func (empty) Read(account string, look func(a *iam.Account) error) error {
	return look(iam.NewAccount(account))
}

func (empty) NewSession(*identity.Session) (string, error) { return "token", nil }

// A user that was deleted after its request was verified gets no session: without the user it
// would be one of the account's root.
func TestDeletedUserGetsNoSession(t *testing.T) {
	s := New(Options{Engine: empty{}, Clock: clock.NewVirtual(clock.Time(0))})
	who := &caller.Caller{Kind: caller.User, Account: "000000000000", ARN: "arn:aws:iam::000000000000:user/ann", ID: "AIDAANN", Name: "ann"}
	name := "eve"
	for _, verified := range []bool{true, false} {
		call := &api.Call{Account: who.Account, Caller: who, Authorized: verified}
		_, err := s.getSessionToken(t.Context(), call, &GetSessionTokenInput{})
		_, other := s.getFederationToken(t.Context(), call, &GetFederationTokenInput{Name: &name})
		for _, err := range []error{err, other} {
			if refused := fault.KindOf(err) == fault.Unauthenticated; refused != verified || err != nil && !refused {
				t.Errorf("verified %v: %v", verified, err)
			}
		}
	}
}
