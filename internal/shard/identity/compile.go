package identity

import (
	"encoding/json"

	"godwit.dev/godwit/internal/policy"
)

// parseIdentity parses a document that names no principal.
func parseIdentity(document string) (*policy.Policy, error) {
	return policy.Parse(withElement(document, "Principal"))
}

// withElement gives the statements of a document, which was checked, an element "*" that
// the parser asks for and the document's form has not.
func withElement(document, name string) string {
	var top map[string]json.RawMessage
	if json.Unmarshal([]byte(document), &top) != nil {
		return document
	}
	var statements []map[string]json.RawMessage
	if json.Unmarshal(top["Statement"], &statements) != nil {
		var s map[string]json.RawMessage
		if json.Unmarshal(top["Statement"], &s) != nil {
			return document
		}
		statements = []map[string]json.RawMessage{s}
	}
	for _, s := range statements {
		s[name] = json.RawMessage(`"*"`)
	}
	top["Statement"], _ = json.Marshal(statements)
	text, _ := json.Marshal(top)
	return string(text)
}

// parseTrust parses a document that names no resource.
func parseTrust(document string) (*policy.Policy, error) {
	return policy.Parse(withElement(document, "Resource"))
}
