package server

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/shard/identity"
)

// callerOf is who makes a call: whom its access key and token stand for, else who the key
// says.
func callerOf(m *identity.Module) func(call *api.Call) *caller.Caller {
	return func(call *api.Call) *caller.Caller {
		if known, err := m.Credential(call.AccessKey, call.Header.Get("X-Amz-Security-Token")); err == nil {
			return known.Caller
		}
		who := &caller.Caller{Kind: caller.Root, Account: call.Account, ARN: call.Principal(), ID: call.Account, AccessKey: call.AccessKey}
		if root := identity.RootCaller(call.Account, ""); who.ARN != root.ARN {
			who.Kind, who.Name, who.ID = caller.User, call.AccessKey, call.AccessKey
		}
		return who
	}
}
