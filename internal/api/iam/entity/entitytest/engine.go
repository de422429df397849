// Package entitytest has the identities of one account in memory, for tests of the operations
// on them.
package entitytest

import (
	"time"

	"godwit.dev/godwit/internal/iam"
)

// Engine is an entity.Engine.
type Engine struct{ Account *iam.Account }

// Now is the time of its commands.
var Now = time.Date(2026, 1, 1, 0, 0, 0, 5e8, time.UTC)

// New makes an Engine with an empty account.
func New(account string) *Engine { return &Engine{iam.NewAccount(account)} }

// Run runs a command. If it fails, its changes are undone.
func (e *Engine) Run(_ string, command func(a *iam.Account, now time.Time) error) error {
	err := command(e.Account, Now)
	if err != nil {
		e.Account.Revert()
		return err
	}
	e.Account.Changes()
	return nil
}

// Read reads the account.
func (e *Engine) Read(_ string, look func(a *iam.Account) error) error { return look(e.Account) }
