package refusal

import "godwit.dev/godwit/internal/key"

// everywhere are the sentences that all services have in common.
var everywhere = sentences{
	key.ErrNoAlias: "Alias %s is not found.",
	key.ErrNoKey:   "Key '%s' does not exist",
}
